"""Draws that follow the policy: a sampler that learns from finished episodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from gymnasium.vector import VectorEnv

from gym_dr.arrays import Mask
from gym_dr.envs.stack import stack_of
from gym_dr.envs.vector_arguments import check_whole_number
from gym_dr.errors import ConfigError, RandomizationError
from gym_dr.randomization.sampler import SAMPLERS, EpisodeRecord, ParamSampler, Row, TrainingInfo, restore
from gym_dr.wrappers.record import RecordEpisodes
from gym_dr.wrappers.resample import ResampleParams
from gym_dr.wrappers.vector_params import with_params

# of AdaptParams, which takes the options of a sampler beside them
OWN_KEYWORDS = ("env", "sampler", "every", "callback", "on_update")


class AdaptParams(RecordEpisodes):
    """Takes draws from a sampler that learns from finished episodes and their returns as seen by this wrapper.

    The sampler learns every ``every`` vector steps from the episodes that have ended since the last update, ordered by
    step and then by sub-environment, so native, sync and async environments get the same draws. An episode belongs to
    the version of the sampler that drew it. ``randomization/adaptive/learning.py`` explains which episodes count when
    they span an update, are cut off by a reset, or are short.

    Example:
        >>> import gymnasium as gym, gym_dr
        >>> envs = gym.make_vec("gym_dr/LunarLanderDR-v3", num_envs=4, randomization="wide")
        >>> envs = gym_dr.AdaptParams(envs, "doraemon", success=200, start="default")
        >>> _, info = envs.reset(seed=42)
        >>> info["params"]["gravity"].shape
        (4,)
        >>> envs.close()
    """

    adapts = True  # for ResampleParams, which must not hold these draws for longer

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        sampler: str | ParamSampler,
        *,
        every: int | None = 128,
        callback: Callable[[EpisodeRecord], None] | None = None,
        on_update: Callable[[Row], None] | None = None,
        **options: Any,
    ) -> None:
        """Wraps a vector environment, whose randomization is the widest that the sampler may draw from.

        Args:
            env: A native environment, or a sync or async one of randomized sub-environments; may already be wrapped.
            sampler: A name (``gymdr list samplers``), or a sampler whose support is the environment's randomization.
            every: Vector steps between updates; None to call ``update`` yourself.
            callback: Called once for each finished episode, as by ``RecordEpisodes``.
            on_update: Called with each row that the sampler returns from an update.
            **options: Options of the named sampler.

        Raises:
            UnknownNameError: There is no such sampler or option.
            ConfigError: An option is out of range, or the sampler is for another number of sub-environments.
            RandomizationError: The environment has no parameters or does not draw at each reset, or the sampler cannot
                learn its randomization.
        """
        interval = None if every is None else check_whole_number("every", every)
        env = with_params(env)
        layers = list(stack_of(env))
        for layer in layers:
            if isinstance(layer, AdaptParams | ResampleParams):
                raise RandomizationError(
                    f"AdaptParams: expected an environment that draws at each reset, got one in {type(layer).__name__}."
                )
        super().__init__(env, self._keep)
        if isinstance(sampler, str):
            kind = SAMPLERS.get(sampler)
            inner = next(layer for layer in reversed(layers) if hasattr(layer, "param_space"))  # without disturbances
            spec = getattr(inner, "spec", None)
            training = TrainingInfo(
                num_envs=self.num_envs, reward_threshold=None if spec is None else spec.reward_threshold
            )
            sampler = kind.for_space(inner.param_space, inner.randomization, kind.make_options(options), training)
        elif options:
            raise ConfigError(f"AdaptParams: expected options only with a sampler's name, got {', '.join(options)}.")
        made_for: TrainingInfo | None = getattr(sampler, "training", None)
        if made_for is not None and made_for.num_envs != self.num_envs:
            raise ConfigError(
                f"AdaptParams: expected a sampler for {self.num_envs} sub-environments, got one for "
                f"{made_for.num_envs}. Make it with TrainingInfo(num_envs={self.num_envs})."
            )
        self.interval, self._learner = interval, sampler
        self._callback, self._on_update = callback, on_update
        self._finished: list[EpisodeRecord] = []  # episodes that the sampler has not learned from yet
        self._hand_over()

    def _was_reset(self, mask: Mask, observations: Any, info: dict[str, Any]) -> None:
        super()._was_reset(mask, observations, info)
        if "params" not in info:
            raise RandomizationError(
                "AdaptParams: expected info['params'], which identifies an episode's draw, got an environment that "
                "hides it. Make it with context='info', or put wrappers that hide it outside."
            )

    def _due(self) -> None:
        self.update()

    def update(self) -> None:
        """Makes the sampler learn from the episodes that have ended since the last update."""
        episodes, self._finished = self._finished, []
        before = self._learner.version
        rows = self._learner.update(episodes) or ()
        if self._learner.version != before:
            self._hand_over()
        if self._on_update is not None:
            for row in rows:
                self._on_update(row)

    def state(self) -> dict[str, Any]:
        """The sampler's state, for checkpoints; reset all sub-environments after saving."""
        return self._learner.state()

    def load_state(self, state: Mapping[str, Any]) -> None:
        """Restores what ``state`` returned; reset all sub-environments afterwards.

        Raises:
            CheckpointError: It is not a state of this sampler, which stays as it is.
        """
        restore(self._learner, state)
        self._hand_over()

    def _hand_over(self) -> None:
        """Passes the sampler to the sub-environments, for the next episodes; worker processes hold copies."""
        cast(Any, self.env).set_sampler(self._learner)
        self._version = self._learner.version
        self._versions[self._autoreset.done] = self._version  # of episodes that the next step begins

    def _keep(self, record: EpisodeRecord) -> None:
        """Stores a finished episode, unless its simulation diverged."""
        if not record.diverged:
            self._finished.append(record)
        if self._callback is not None:
            self._callback(record)
