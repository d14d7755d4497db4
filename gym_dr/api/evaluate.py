"""``gym_dr.evaluate``: policies on nominal values, on their training draws, and on further sets of conditions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from gym_dr.evaluation.evaluate import evaluate_policies, playing
from gym_dr.evaluation.question import check_success
from gym_dr.evaluation.results import Evaluation, evaluation_folder
from gym_dr.evaluation.sets import SetLike
from gym_dr.evaluation.suite import sets_for
from gym_dr.policies.open import EnvLike, PoliciesLike, open_policies


def evaluate(
    policies: PoliciesLike,
    sets: SetLike | Sequence[SetLike] = (),
    *,
    references: PoliciesLike = (),
    env: EnvLike | None = None,
    episodes: int | None = None,
    success: float | None = None,
    output: str | Path | None = None,
    num_threads: int | None = None,
    trust: Collection[str] = (),
    progress: bool = True,
    command: str = "",
) -> Evaluation:
    """Evaluates policies, of runs or from other packages and programs, as ``gymdr evaluate`` does.

    All play nominal values, the training draws of each, and further sets, with the same draws and seeds, so differences
    between them are paired. Evaluating again adds to the results, and an interrupted evaluation resumes where it
    stopped. A function or another callable is played again each time, since it may have changed, and so is every policy
    if ``env`` is a function or an environment; an evaluation does not seed the random numbers of a callable.

    Example:
        >>> found = gym_dr.evaluate("runs/first", sets=[gym_dr.grid(gravity=(-12, -2, 11))])
        >>> found.summary.query("statistic == 'mean'")
        >>> found.episodes_of("grid").groupby("gravity")["return"].mean()
        >>> gym_dr.evaluate("runs/first", sets=["wide", gym_dr.draws(gravity=-3, wind_power=15)])
        >>> gym_dr.evaluate({"coast": lambda obs: [0] * len(obs)}, env="gym_dr/LunarLanderDR-v3")
        >>> gym_dr.evaluate("runs/first", references="runs/oracle", output="possible").regret
        >>> gym_dr.evaluate(["runs/first", "sb3:ppo.zip"], trust=["ppo.zip"], output="runs/first_and_sb3")

    Args:
        policies: What ``gym_dr.open_policy`` opens or has opened, several of these, or a mapping that names them. A
            folder of seeds stands for all of its runs. Use ``gym_dr.open_policy`` to say what a policy was trained on
            or observes; a policy with unknown training draws plays those of the others, or of the preset "default".
        sets: Further conditions: ``gym_dr.grid``, ``sobol`` and ``draws``, or what ``draws`` takes, such
            as the name of a preset.
        references: Other policies, such as specialists, that show what is possible: they play the same episodes, and
            regret is how much more the best of all policies returns. Their training draws are not played.
        env: The environment, as for ``gym_dr.open_policy``; required if no policy is a run or a file of ``Run.export``,
            which name their own.
        episodes: Episodes per cell in sets that do not set their own; None for 100 on nominal values and draws, 20 per
            cell of a grid, and 5 per Sobol point.
        success: Return from which an episode counts as solved; None for the threshold of the evaluation in the folder,
            or else the environment's.
        output: Folder for the results; None for ``evaluation`` in the folder of a single run, or ``NAME-evaluation`` in
            the current folder for a single other policy, or one of ``gym_dr.pretrained``.
        num_threads: Threads of native environments and compiled learners; None for one per core. Results do not depend
            on it.
        trust: See ``gym_dr.open_policy``.
        progress: Whether to show progress: a bar on a terminal and in a notebook, lines elsewhere.
        command: The command line, recorded in the folder.

    Returns:
        The evaluation, with its ``episodes`` and their ``summary`` as data frames.

    Raises:
        RunFolderError: There is no run at a path, or the results cannot be written.
        ConfigError: The policies cannot be compared, one does not fit the environment or is not trusted, or an argument
            is invalid.
        InvalidActionError: A policy's actions do not fit the environment, or are not finite.
        UnknownNameError: The environment, a parameter or preset is unknown.
        RandomizationError: A value is out of bounds.
        Interrupted: A signal stopped the evaluation.
    """
    success = check_success(success)
    opened = open_policies(policies, references, env=env, trust=trust)
    folder = evaluation_folder([policy.home for policy in opened], output)
    found = sets_for(opened, sets, episodes)
    with playing(progress, found, num_threads=num_threads) as display:
        return evaluate_policies(opened, found, folder, success=success, command=command, progress=display)
