"""``gym_dr.evaluate``, ``gym_dr.report`` and ``gym_dr.record``: episodes as statistics, as a page, or as a log."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from gym_dr.envs.vector_arguments import check_whole_number
from gym_dr.errors import as_path, located, needs
from gym_dr.evaluation.evaluate import evaluate_policies, playing
from gym_dr.evaluation.question import check_success
from gym_dr.evaluation.results import Evaluation, evaluation_folder
from gym_dr.evaluation.sets import SetLike
from gym_dr.evaluation.suite import cells_to_play, report_suite, sets_for
from gym_dr.options import expect, is_whole
from gym_dr.policies.open import EnvLike, PoliciesLike, PolicyLike, open_policies, open_policy
from gym_dr.policies.record import check_log, record_policy
from gym_dr.runs.config import check_not_reserved
from gym_dr.runs.folder import check_output
from gym_dr.runs.terminal import stop_signals


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


def report(
    policies: PoliciesLike,
    *,
    references: PoliciesLike = (),
    env: EnvLike | None = None,
    output: str | Path | None = None,
    evaluation: str | Path | None = None,
    num_threads: int | None = None,
    trust: Collection[str] = (),
    progress: bool = True,
    command: str = "",
) -> Path:
    """Writes a report as one HTML file: how robust policies are, which parameters matter, and where each is better.

    The file opens from disk and needs no network. Missing episodes are played first: on nominal values, on training
    draws, and on points that fill the training distribution. For policies that are not runs, the report has no
    settings or training draws.

    Example:
        >>> gym_dr.report(["runs/first", "runs/wind"], output="first_and_wind.html")

    Args:
        policies: As in ``gym_dr.evaluate``, the baseline first.
        references: As in ``gym_dr.evaluate``: the report then has the regret of each policy.
        env: As in ``gym_dr.evaluate``.
        output: File to write; None for ``report.html``, in the run's folder if there is a single one.
        evaluation: Folder of an evaluation; None for the default of ``gym_dr.evaluate``, or beside the file if there
            are several policies.
        num_threads: As in ``gym_dr.evaluate``.
        trust: As in ``gym_dr.evaluate``.
        progress: Whether to show progress: a bar on a terminal and in a notebook, lines elsewhere.
        command: The command line, shown on the page.

    Returns:
        The path of the file.

    Raises:
        ConfigError: The output path cannot be used, gym-dr[report] is missing, the policies cannot be compared,
            or a run's seed is reserved: its options were tuned on it.
        InvalidActionError: A policy's actions do not fit the environment, or are not finite.
        RunFolderError: There is no run at a path, or a file cannot be read or written.
        Interrupted: A signal stopped the evaluation.
    """
    needs("A report", "report", "jinja2", "plotly")
    from gym_dr.reports.assemble import assemble  # heavy, as those below
    from gym_dr.reports.comparison import Comparison, group_policies
    from gym_dr.reports.page import MARK, write_report

    opened = open_policies(policies, references, env=env, trust=trust)
    folders = list(dict.fromkeys(policy.home for policy in opened))
    for run in [policy.run for policy in opened if policy.run]:
        with located(f"{run.folder.path} would look too good"):
            check_not_reserved("seed", [run.config.settings.seed], run.config.settings.reserved_seeds)
    home = folders[0].parent if len(folders) == 1 else Path()
    page = home / "report.html" if output is None else as_path(output)
    expect(page.suffix == ".html", "`output`", "a file that ends in .html", str(page))
    check_output(page, MARK if output is None else b"")
    if evaluation is None and len(folders) > 1:
        evaluation = page.with_name(f"{page.stem}-evaluation")
    folder = evaluation_folder(folders, evaluation)
    shown, others = ([policy for policy in opened if policy.reference is kind] for kind in (False, True))
    groups, of_references = group_policies(shown), group_policies(others)
    with playing(progress, num_threads=num_threads) as display:
        played = evaluate_policies(opened, report_suite(opened), folder, command=command, progress=display)
        compared = Comparison(groups=groups, references=of_references, evaluation=played)
        write_report(assemble(compared, command), page)
    return page


def record(
    policy: PolicyLike,
    draws: SetLike | None = None,
    *,
    episodes: int,
    output: str | Path,
    format: str = "minari",
    env: EnvLike | None = None,
    seed: int = 0,
    states: bool = True,
    num_threads: int | None = None,
    trust: Collection[str] = (),
    progress: bool = True,
) -> Path:
    """Records whole episodes of a policy as a log, as ``gymdr record`` does.

    Each episode has its own seed, ``seed`` + its number, and so its own draw. Observations are those of the
    environment, with its disturbances but without the draw that a policy may observe; the last one ended the episode.
    Actions are those that the policy chose, within the environment's bounds.

    Example:
        >>> gym_dr.record("runs/first", episodes=20, output="lander/first-v0")  # then minari.load_dataset(...)
        >>> gym_dr.record("random", env="gym_dr/CartPoleDR-v1", episodes=5, output="logs", format="npz")

    Args:
        policy: What ``gym_dr.open_policy`` opens, here with its most likely actions, or a policy that it has opened.
        draws: What to play: ``gym_dr.draws(...)`` or what that takes, such as the name of a preset. None for the
            policy's training draws; unknown ones are those of the preset "default".
        episodes: How many.
        output: Where to write; must not exist. With "npz" a folder, in which each episode is a file. With "minari" the
            id of a data set, such as "lander/first-v0", in Minari's own folder, or the path of its folder, which begins
            with ``/``, ``.`` or ``~`` or is a ``Path``; its name ends in a version.
        format: "minari" or "npz". See ``gym_dr.integrations.minari.write_minari`` and ``read_log`` for their content.
        env: The environment, as for ``gym_dr.open_policy``; required unless the policy is a run or a file of
            ``Run.export``.
        seed: Seed of the first episode, and of actions that are sampled.
        states: Whether to keep the environment's whole state at each observation, if it offers it: arrays
            ``state/NAME`` (T + 1, ...), whose rows fit ``set_state`` of an environment like it.
        num_threads: As in ``gym_dr.evaluate``.
        trust: See ``gym_dr.open_policy``.
        progress: Whether to show progress.

    Returns:
        The folder of the log.

    Raises:
        ConfigError: The policy or an option cannot be used, or Minari is not installed.
        LogError: The output exists already or cannot be written, or episodes of the environment cannot be logged.
        RunFolderError: There is no run at a path.
        UnknownNameError: The environment, a parameter, preset or format is unknown.
        RandomizationError: A value is out of bounds.
        InvalidActionError: The policy's actions do not fit the environment.
        Interrupted: A signal stopped it; nothing was written.
    """
    episodes = check_whole_number("`episodes`", episodes)
    expect(is_whole(seed) and 0 <= seed <= 2**62, "`seed`", "a whole number from 0 to 2**62", seed)
    check_log(output, format)
    opened = open_policy(policy, env=env, stochastic=False, trust=trust)
    cells = cells_to_play(opened, draws, episodes)
    with playing(progress, [cells], "Nothing was written.", num_threads) as display, stop_signals(_stop):
        return record_policy(opened, cells.draws, output, format, states=states, seed=int(seed), display=display)


def _stop(number: int) -> None:
    raise KeyboardInterrupt(number)  # also for SIGTERM, so that nothing half-written remains
