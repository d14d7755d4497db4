"""``gym_dr.evaluate``: policies on nominal values, on what they were trained on, and wherever else."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gym_dr.errors import ConfigError, unknown_name
from gym_dr.experiments.policies import PoliciesLike, open_all
from gym_dr.experiments.progress import Progress
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.stopping import explain_interrupt

if TYPE_CHECKING:
    from gym_dr.evaluation.cells import CellSet
    from gym_dr.evaluation.results import Evaluation

EPISODES = {"draws": 100, "cell": 20, "sobol": 5}  # of nominal and of distributions, of a cell, of a Sobol point
PROTOCOLS = ("dre",)


def evaluate(
    policies: PoliciesLike,
    *,
    env: str | None = None,
    randomization: Any = None,
    stochastic: bool = False,
    grid: Mapping[str, tuple[float, float, int]] | None = None,
    corners: bool = False,
    sobol: int | None = None,
    sobol_box: int | None = None,
    protocol: str | None = None,
    episodes: int | None = None,
    success: float | None = None,
    output: str | Path | None = None,
    trust: Collection[str] = (),
    progress: bool = True,
    command: str = "",
) -> Evaluation:
    """Evaluates policies as ``gymdr evaluate`` does: runs, and those of other packages and programs.

    All policies meet the same draws and the same seeds, so that differences between them are paired. Evaluating again
    adds to the results; what was interrupted goes on where it stopped. A callable is played anew each time, since what
    it does may have changed. A function by name is not, while its module's file and its actions on 64 first
    observations are the same. Its random numbers, if it has any, are its own: an evaluation does not start them anew.

    Example:
        >>> found = gym_dr.evaluate("runs/first", grid={"gravity": (-12, -2, 11)})
        >>> found.summary.query("statistic == 'mean'")
        >>> found.episodes.groupby("gravity")["return"].mean()
        >>> gym_dr.evaluate({"coast": lambda obs: [0] * len(obs)}, env="gym_dr/LunarLanderDR-v3")
        >>> gym_dr.evaluate(["runs/first", "sb3:ppo.zip"], trust=["ppo.zip"], output="runs/comparison")

    Args:
        policies: A run (its path, a ``Run`` or ``Runs``; a folder of seeds stands for all of its runs), any callable
            that takes observations ``(N, ...)`` and returns actions, a text "sb3:FILE.zip" or
            "package.module:function" (with "NAME=" before it if the name is to be another), or several of these; a
            mapping gives callables and texts their names.
        env: Id of the environment; needed where no policy is a run, which knows its own.
        randomization: What policies that are no runs were trained on, as an environment takes it. None where that is
            unknown: then they are also evaluated on the draws of the runs beside them, or else of the preset "default".
        stochastic: Whether policies of Stable-Baselines3 sample their actions, instead of taking the likeliest.
        grid: name -> lowest value, highest value (both included) and how many; every combination is played.
        corners: Whether to play the corners of the box that the policies were trained on.
        sobol: Points of a Sobol sequence through the quantiles of what each policy was trained on, a power of 2: say
            which parameter matters there.
        sobol_box: Points that fill the box evenly, a power of 2: say which parameter matters anywhere in it.
        protocol: "dre" for nominal, random and extreme as in Packer et al. 2018.
        episodes: Of each cell; None for 100 of nominal values and distributions, 20 of grid and corners, 5 of a point.
        success: Return from which an episode is solved; None for the environment's own.
        output: Folder for the results; None for ``evaluation`` in the folder of the run, or ``NAME-evaluation`` in the
            current one for another policy, if there is only one.
        trust: Files of Stable-Baselines3 and modules of functions whose code may be run, and modules that
            configurations of runs may have imported.
        progress: Whether to show it: a bar on a terminal and in a notebook, lines elsewhere.
        command: The command that asked for the evaluation, recorded in its folder.

    Returns:
        The evaluation, with its ``episodes`` and their ``summary`` as data frames.

    Raises:
        RunFolderError: There is no run at a path, or the results cannot be written.
        ConfigError: The policies cannot be compared, one does not fit the environment or is not trusted, or an option
            cannot be.
        InvalidActionError: A policy's actions do not fit the environment, or are not finite.
        UnknownNameError: The environment, a parameter, preset or protocol is unknown.
        RandomizationError: A value of the grid is out of bounds.
        Interrupted: A signal has stopped it.
    """
    from gym_dr.evaluation.evaluate import evaluate_policies  # heavy, as those below
    from gym_dr.evaluation.policies import nominal_and_training, training_randomizations
    from gym_dr.evaluation.results import evaluation_folder
    from gym_dr.runs.environments import param_space_of

    opened, folders = open_all(policies, env=env, randomization=randomization, stochastic=stochastic, trust=trust)
    folder = evaluation_folder(folders, output)
    env_id, space = opened[0].env, param_space_of(opened[0].env)
    check_options(env_id, success, protocol)
    asked: Any = {"grid": grid or {}, "corners": corners, "sobol": sobol, "sobol_box": sobol_box}
    asked |= {"protocol": protocol, "episodes": episodes}
    with playing(progress) as display:
        sets = nominal_and_training(opened, space, episodes_of_each(episodes)["draws"])
        sets += asked_sets(env_id, training_randomizations(opened, space), display.note, **asked)
        return evaluate_policies(opened, sets, folder, success=success, command=command, progress=display)


@contextlib.contextmanager
def playing(progress: bool) -> Iterator[Progress]:
    """Around episodes: one thread, a display of how far they are, and how to go on after an interrupt.

    Raises:
        Interrupted: In place of an interrupt.
    """
    from gym_dr.experiments.one_run import one_thread  # heavy

    message = "Stopped. Finished cells are saved; the same command goes on from there."
    with one_thread(), Progress("episode", "bar" if progress else "nothing") as display, explain_interrupt(message):
        yield display


def asked_sets(
    env: str,
    trained: Mapping[str, Randomization],
    note: Callable[[str], None],
    *,
    grid: Mapping[str, tuple[float, float, int]],
    corners: bool,
    sobol: int | None,
    sobol_box: int | None,
    protocol: str | None,
    episodes: int | None,
) -> list[CellSet]:
    """Where to look beside nominal values and the draws of training, all checked.

    Args:
        env: Id of the environment.
        trained: What policies were trained on, each once; the key ends the names of its sets.
        note: Is given what else is to be said.
        grid: This and the others are those of ``evaluate``.
        corners: See there.
        sobol: See there.
        sobol_box: See there.
        protocol: See there.
        episodes: See there.
    """
    from gym_dr.evaluation import cells, generalization
    from gym_dr.runs.environments import param_space_of

    if not (grid or corners or sobol is not None or sobol_box is not None or protocol):
        return []
    each, space = episodes_of_each(episodes), param_space_of(env)
    sets: list[CellSet] = []
    if space is None:
        raise ConfigError(
            f"{env} has no parameters to vary: expected no --grid, --corners, --sobol, --sobol-box, --protocol."
        )
    if protocol:
        sets += generalization.dre(space, each["draws"])
    if grid:
        axes = {name: cells.axis(name, *ends) for name, ends in grid.items()}
        sets.append(cells.grid(space, axes, each["cell"]))
        for switch in sets[-1].fixed:
            note(f"--grid: {switch} is on in every cell, since others have no effect without it.")
    if sobol is not None:
        varied = {end: randomization for end, randomization in trained.items() if cells.varies(space, randomization)}
        if not varied:
            raise ConfigError(cells.NOTHING_VARIES)
        sets += [cells.sobol(f"sobol{end}", r, space, sobol, each["sobol"]) for end, r in varied.items()]
    if corners or sobol_box is not None:
        box = cells.training_box(space, trained.values())
        if corners:
            sets.append(cells.corners(box, each["cell"]))
        if sobol_box is not None:
            sets.append(cells.sobol_box(box, sobol_box, each["sobol"]))
    return sets


def episodes_of_each(episodes: int | None) -> dict[str, int]:
    """Episodes of nominal values and distributions, of a cell, and of a Sobol point."""
    return EPISODES if episodes is None else dict.fromkeys(EPISODES, episodes)


def check_options(env: str, success: float | None, protocol: str | None) -> None:
    """Checks what does not depend on where one looks.

    Raises:
        UnknownNameError: There is no such protocol.
        ConfigError: The return of a success is missing or not finite.
    """
    from gym_dr.evaluation.evaluate import success_threshold  # heavy

    if success is not None and not math.isfinite(success):
        raise ConfigError(f"--success: expected a finite return, got {success}.")
    if protocol not in (None, *PROTOCOLS):
        raise unknown_name("protocol", protocol, PROTOCOLS)
    if protocol and success_threshold(env, success) is None:
        raise ConfigError(f"--protocol {protocol} counts successes, but {env} has no threshold: give --success.")
