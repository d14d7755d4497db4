from __future__ import annotations

import pytest

from gym_dr.evaluation.failures import WORST_CELLS
from gym_dr.evaluation.results import Evaluation, read_episodes
from gym_dr.evaluation.summary import summarize
from gym_dr.reports.comparison import Comparison
from tests.reports.sample import tiny_evaluation, tiny_policies

# file names may hold whatever a web page, or the labels of a plot, would read as more than text
NASTY = ("<img src=x onerror=window.hacked=1>", "%{x}<script>window.hacked=1<")


@pytest.fixture(scope="session")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    root = tmp_path_factory.mktemp("report")
    policies = tiny_policies(root, *NASTY)
    (root / NASTY[0] / "command.txt").write_text("gymdr train </script><script>window.hacked=1</script>\n")
    return tiny_evaluation(policies, root / "evaluation")


@pytest.fixture(scope="session")
def judged(comparison: Comparison) -> Comparison:
    """The same evaluation, in which the second policy is only a reference."""
    before, (policy, reference) = comparison.evaluation, comparison.groups
    document = {**before.document, "references": [before.policies[1]]}
    evaluation = Evaluation(before.folder, document, before.episodes)
    document.update(summarize(evaluation, read_episodes(before.folder / WORST_CELLS)))
    return Comparison(groups=[policy], references=[reference], evaluation=evaluation)
