"""``gym_dr.evaluate``: policies on nominal values, on their training draws, and on other chosen values."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gym_dr.errors import ConfigError, check_known, located, shortened
from gym_dr.experiments.chosen_params import ChosenParams, choose_params
from gym_dr.experiments.policies import ContextParams, PoliciesLike, open_all
from gym_dr.experiments.progress import Progress
from gym_dr.options import is_number, is_whole
from gym_dr.randomization.context import INFO
from gym_dr.randomization.presets import resolve
from gym_dr.randomization.space import ParamSpace, nominal_may_be_outside
from gym_dr.randomization.spec import Randomization
from gym_dr.runs.stopping import explain_interrupt
from gym_dr.wording import either, flag, spelled

if TYPE_CHECKING:
    from gym_dr.evaluation.cells import CellSet
    from gym_dr.evaluation.results import Evaluation

EPISODES = {"draws": 100, "cell": 20, "sobol": 5}  # of nominal values and distributions, of a cell, of a Sobol point
PROTOCOLS = ("dre",)
TRAINING = "training"
RESERVED = ("nominal", TRAINING, "default")  # sets that evaluations have without being asked


def evaluate(
    policies: PoliciesLike,
    *,
    references: PoliciesLike = (),
    env: str | None = None,
    randomization: Any = None,
    randomize: Mapping[str, Any] | None = None,
    params: Mapping[str, float] | None = None,
    context: str = INFO,
    context_params: ContextParams = None,
    stochastic: bool = False,
    grid: Mapping[str, tuple[float, float, int]] | None = None,
    corners: bool = False,
    sobol: int | None = None,
    sobol_box: int | None = None,
    protocol: str | None = None,
    sets: Mapping[str, Any] | None = None,
    episodes: int | None = None,
    success: float | None = None,
    output: str | Path | None = None,
    trust: Collection[str] = (),
    progress: bool = True,
    command: str = "",
) -> Evaluation:
    """Evaluates policies, of runs or from other packages and programs, as ``gymdr evaluate`` does.

    All policies play the same draws and seeds, so differences between them are paired. Evaluating again adds to the
    results, and an interrupted evaluation resumes where it stopped. A callable is played again each time, since it may
    have changed. The episodes of a function given by name are reused while its module's file and its actions on 64
    first observations are unchanged; an evaluation does not seed its random numbers.

    Example:
        >>> found = gym_dr.evaluate("runs/first", grid={"gravity": (-12, -2, 11)})
        >>> found.summary.query("statistic == 'mean'")
        >>> found.episodes_of("grid").groupby("gravity")["return"].mean()
        >>> gym_dr.evaluate("runs/first", params={"gravity": -3, "wind_power": 15})  # exactly these values
        >>> gym_dr.evaluate({"coast": lambda obs: [0] * len(obs)}, env="gym_dr/LunarLanderDR-v3")
        >>> gym_dr.evaluate("runs/first", references="runs/oracle", output="possible").regret
        >>> gym_dr.evaluate(["runs/first", "sb3:ppo.zip"], trust=["ppo.zip"], output="runs/first_and_sb3")

    Args:
        policies: A run (its path, a ``Run`` or ``Runs``; a folder of seeds stands for all of its runs), any callable
            that takes observations ``(N, ...)`` and returns actions ``(N, ...)``, a text "sb3:FILE.zip",
            "onnx:FILE.onnx" or "package.module:function" (optionally after "NAME="), or several of these; a mapping
            names callables and texts. A callable with memory is one with a second positional parameter that has no
            default or is named ``episode_starts``: bool ``(N,)``, True where an observation is the first of an episode,
            so everywhere at its first call. It keeps its state itself.
        references: Other policies, such as specialists, that show what is possible: they play the same episodes, and
            regret is how much more the best of all policies returns. Their training draws are not played.
        env: Id of the environment; required if no policy is a run or a file of ``Run.export``, which names its own.
        randomization: Draws to play besides the usual ones, in any form that an environment takes. It is also the
            training randomization of policies that are not runs. If None, that of an exported file is in it, and others
            are evaluated on the training draws of the runs and files, if any, or of the preset "default".
        randomize: Rules for single parameters, such as ``{"gravity": Uniform(-12, -2)}``, which replace those of
            ``randomization`` if there is one; otherwise no other parameter varies.
        params: name -> value to play, such as ``{"gravity": -3}``; it replaces a draw. Without ``randomization`` and
            ``randomize`` all other parameters are nominal. These three make one set, named after them.
        context: "observation" for policies that are not runs and were trained on environments made with
            ``context="observation"``: they observe the draw, mapped to [-1, 1].
        context_params: Which parameters they observe, as their environments had it: names, or name -> (low, high). If
            None, all of ``randomization``, with its ranges.
        stochastic: Whether policies of Stable-Baselines3 sample their actions instead of taking the most likely one.
        grid: name -> (lowest, highest, count), both ends included; every combination is played.
        corners: Whether to play the corners of the box of training ranges.
        sobol: Points of Sobol sequences through the quantiles of each training distribution, a power of 2; from 4 on
            there are sensitivity indices.
        sobol_box: Points that fill the box of training ranges evenly, a power of 2, for sensitivity indices.
        protocol: "dre" for nominal, random and extreme as in Packer et al. 2018.
        sets: Other draws: name -> a randomization in any form that an environment takes.
        episodes: Episodes of each cell; None for 100 of nominal values and distributions, 20 of grid and corners and 5
            of a Sobol point.
        success: Return from which an episode is a success; None for that of the evaluation in the folder or, without
            one, the environment's threshold.
        output: Folder for the results; None for ``evaluation`` in the folder of a single run, or ``NAME-evaluation`` in
            the current folder for a single other policy.
        trust: Files of Stable-Baselines3, their ``VecNormalize`` statistics and modules of functions whose code may
            run, each named itself, and modules that configurations of runs may import.
        progress: Whether to show progress: a bar on a terminal and in a notebook, lines elsewhere.
        command: The command line, recorded in the folder.

    Returns:
        The evaluation, with its ``episodes`` and their ``summary`` as data frames.

    Raises:
        RunFolderError: There is no run at a path, or the results cannot be written.
        ConfigError: The policies cannot be compared, one does not fit the environment or is not trusted, or an option
            is invalid.
        InvalidActionError: A policy's actions do not fit the environment, or are not finite.
        UnknownNameError: The environment, a parameter, preset or protocol is unknown.
        RandomizationError: A value is out of bounds, or there is nothing to observe.
        Interrupted: A signal stopped the evaluation.
    """
    from gym_dr.evaluation.evaluate import evaluate_policies, with_larger  # heavy, as those below
    from gym_dr.evaluation.policies import nominal_and_training, training_randomizations
    from gym_dr.evaluation.results import evaluation_folder, read_document

    opened, folders = open_all(
        policies,
        references=references,
        env=env,
        randomization=randomization,
        context=context,
        context_params=context_params,
        stochastic=stochastic,
        trust=trust,
    )
    folder = evaluation_folder(folders, output)
    if success is None:
        success = (read_document(folder) or {}).get("success")
    env_id, space = opened[0].env, opened[0].space
    check_options(env_id, success, protocol)
    asked_for = [policy for policy in opened if not policy.reference]
    if randomize or params or all(policy.run for policy in asked_for):
        chosen = choose_params(env_id, space, randomization, randomize, params)
    else:  # the training draws of the others
        chosen = None
    for name in sets or {}:  # studies of 0.2 may have such names, and play all sets at once
        _check_name("sets", name)
    asked: Any = {"grid": grid or {}, "corners": corners, "sobol": sobol, "sobol_box": sobol_box}
    asked |= {"protocol": protocol, "sets": sets or {}, "episodes": episodes}
    with playing(progress) as display:
        found = nominal_and_training(asked_for, episodes_of_each(episodes)["draws"])
        found += asked_sets(env_id, space, training_randomizations(asked_for), display.note, **asked)
        if chosen is not None:
            found += _chosen_set(chosen, found, episodes, display.note)
        found = with_larger(found, opened, folder)
        return evaluate_policies(opened, found, folder, success=success, command=command, progress=display)


@contextlib.contextmanager
def playing(progress: bool) -> Iterator[Progress]:
    """Plays episodes in the block on one thread, with a progress display and a message for interrupts.

    Raises:
        Interrupted: Instead of ``KeyboardInterrupt``.
    """
    from gym_dr.experiments.one_run import one_thread  # heavy

    message = (
        f"Stopped. Finished episodes are saved; {either('run the same command', 'make the same call')} to continue."
    )
    with one_thread(), Progress("episode", "bar" if progress else "nothing") as display, explain_interrupt(message):
        yield display


def asked_sets(
    env: str,
    space: ParamSpace | None,
    trained: Mapping[str, Randomization],
    note: Callable[[str], None],
    *,
    grid: Mapping[str, tuple[float, float, int]],
    corners: bool,
    sobol: int | None,
    sobol_box: int | None,
    protocol: str | None,
    sets: Mapping[str, Any],
    episodes: int | None,
) -> list[CellSet]:
    """The sets that options ask for besides nominal values and training draws.

    Args:
        env: Id of the environment, for messages.
        space: Its parameters; None if it has none.
        trained: Distinct training randomizations; the key is the suffix of the names of their sets.
        note: Called with remarks for the user.
        grid: See ``evaluate``.
        corners: See ``evaluate``.
        sobol: See ``evaluate``.
        sobol_box: See ``evaluate``.
        protocol: See ``evaluate``.
        sets: See ``evaluate``.
        episodes: See ``evaluate``.

    Raises:
        ConfigError: The environment has no parameters, a value cannot be used, or two sets have the same name.
        UnknownNameError: There is no such parameter or preset.
        RandomizationError: A value of the grid is out of bounds.
    """
    from gym_dr.evaluation import cells, generalization

    if not (grid or corners or sobol is not None or sobol_box is not None or protocol or sets):
        return []
    each = episodes_of_each(episodes)
    found: list[CellSet] = []
    if space is None:
        names = ", ".join(map(spelled, ("grid", "corners", "sobol", "sobol_box")))
        last = either(f" or {flag('protocol')}", ", protocol or sets")
        raise ConfigError(f"{env} has no parameters to vary: expected no {names}{last}.")
    for name, value in (("grid", grid), ("sets", sets)):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{name}: expected a dictionary, got {shortened(value)}.")
    if protocol:
        found += generalization.dre(space, each["draws"])
    if grid:
        axes = {name: cells.axis(name, *_ends(name, ends)) for name, ends in grid.items()}
        found.append(cells.grid(space, axes, each["cell"]))
        for switch in found[-1].fixed:
            on = f"{switch} is on in every cell, since a parameter of the grid has no effect without it."
            note(f"{spelled('grid')}: {on}")
    if sobol is not None:
        varied = {end: randomization for end, randomization in trained.items() if cells.varies(space, randomization)}
        if not varied:
            raise cells.nothing_varies()
        found += [cells.sobol(f"sobol{end}", r, space, sobol, each["sobol"]) for end, r in varied.items()]
    if corners or sobol_box is not None:
        box = cells.training_box(space, trained.values())
        if corners:
            found.append(cells.corners(box, each["cell"]))
        if sobol_box is not None:
            found.append(cells.sobol_box(box, sobol_box, each["sobol"]))
    others = [one.name for one in found]
    for name, value in sets.items():
        if name in others or name.split(":")[0] in RESERVED:
            raise ConfigError(f"sets: expected a name that no other set has, got {name!r}. Choose another name.")
        found.append(_named(name, value, space, each["draws"]))
    return found


def _ends(name: str, given: Any) -> tuple[float, float, int]:
    """The ends of a parameter's axis and the number of its values.

    Raises:
        ConfigError: They are something else.
    """
    try:
        low, high, count = given
        return float(low), float(high), operator.index(count)
    except (TypeError, ValueError):
        raise ConfigError(
            f"grid: {name}: expected (lowest, highest, count), such as (-12, -2, 6), got {shortened(given)}."
        ) from None


def _chosen_set(
    chosen: ChosenParams, others: Sequence[CellSet], episodes: int | None, note: Callable[[str], None]
) -> list[CellSet]:
    """The set of the parameters that the user chose; none if they are nominal, or among the others already.

    Raises:
        ConfigError: Another set, or a kind of set, has its name.
    """
    from gym_dr.evaluation import cells

    for text in chosen.notes():
        note(f"{chosen.name}: {text}")
    count = episodes_of_each(episodes)["draws"]
    if chosen.randomization:
        own = cells.distribution(chosen.name, chosen.randomization, count, chosen.params)
    elif chosen.params:
        own = cells.fixed(chosen.name, chosen.params, count)
    else:
        return []
    same = [one.to_dict() for one in others if one.name == own.name]
    if any(form != own.to_dict() for form in same):
        raise ConfigError(
            f"{spelled('randomization')}: another set is named {own.name!r} already. Give the file another name."
        )
    if same:
        return []
    _check_name(spelled("randomization"), own.name)
    return [own]


def _check_name(what: str, name: str) -> None:
    """Raises ConfigError for the name of a kind of set, since it could replace such a set in the folder."""
    from gym_dr.evaluation.cells import SET_KINDS  # heavy

    if name.split(":")[0] in (*SET_KINDS, TRAINING):
        raise ConfigError(f"{what}: {name!r} is the name of a kind of set. Choose another name.")


def _named(name: str, value: Any, space: ParamSpace, episodes: int) -> CellSet:
    """A set of draws that the user defines."""
    from gym_dr.evaluation.cells import distribution  # heavy

    with located(f"sets: {name}"), nominal_may_be_outside():
        return distribution(name, resolve(value, space), episodes)


def episodes_of_each(episodes: int | None) -> dict[str, int]:
    """Episodes of nominal values and distributions, of a cell, and of a Sobol point.

    Raises:
        ConfigError: The number is not whole.
    """
    if episodes is not None and not is_whole(episodes):
        raise ConfigError(f"{spelled('episodes')}: expected a whole number, got {shortened(episodes)}.")
    return EPISODES if episodes is None else dict.fromkeys(EPISODES, episodes)


def check_options(env: str, success: float | None, protocol: str | None) -> None:
    """Checks options that do not depend on the sets.

    Raises:
        UnknownNameError: There is no such protocol.
        ConfigError: The success threshold is missing or not finite.
    """
    from gym_dr.evaluation.evaluate import success_threshold  # heavy

    if success is not None and not is_number(success):
        raise ConfigError(f"{spelled('success')}: expected a finite return, got {shortened(success)}.")
    if protocol is not None:
        check_known("protocol", protocol, PROTOCOLS)
    if protocol and success_threshold(env, success) is None:
        raise ConfigError(
            f"{spelled('protocol', protocol)} counts successes, but {env} has no threshold: set {spelled('success')}."
        )
