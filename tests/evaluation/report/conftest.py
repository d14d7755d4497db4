from __future__ import annotations

import pytest

from gym_dr.evaluation.report.comparison import Comparison
from tests.evaluation.report.sample import tiny_evaluation, tiny_policies

# file names may hold whatever a web page, or the labels of a plot, would read as more than text
NASTY = ("<img src=x onerror=window.hacked=1>", "%{x}<script>window.hacked=1<")


@pytest.fixture(scope="session")
def comparison(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    root = tmp_path_factory.mktemp("report")
    policies = tiny_policies(root, *NASTY)
    (root / NASTY[0] / "command.txt").write_text("gymdr train </script><script>window.hacked=1</script>\n")
    return tiny_evaluation(policies, root / "evaluation")
