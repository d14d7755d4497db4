"""What every registered environment promises, in every supported mode."""

from gym_dr.testing.environments import draws, episodes, states  # they register their contracts
from gym_dr.testing.playing import ENVIRONMENT_CONTRACTS

__all__ = ["ENVIRONMENT_CONTRACTS", "draws", "episodes", "states"]
