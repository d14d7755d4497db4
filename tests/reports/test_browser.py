"""The page as a reader has it: in Chromium without a window, opened from disk."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gym_dr.reports.assemble import assemble
from gym_dr.reports.comparison import Comparison
from gym_dr.reports.page import write_report
from tests.reports.conftest import NASTY

selenium = pytest.importorskip("selenium.webdriver", reason="selenium is of the extra gym-dr[test]")

from selenium.webdriver import ChromeOptions, ChromeService  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import Select  # noqa: E402

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    chromium = next((path for name in NAMES if (path := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        reason = "needs Chromium and its driver: apt-get install --no-install-recommends chromium chromium-driver"
        if os.environ.get("GYMDR_REQUIRE_CHROMIUM"):
            pytest.fail(reason)
        pytest.skip(reason)
    options = ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'chromium'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = selenium.Chrome(options=options, service=ChromeService(driver))
    yield opened
    opened.quit()


def test_the_page_shows_every_plot_asks_for_nothing_and_runs_no_name(
    browser: Any, comparison: Comparison, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    write_report(assemble(comparison, "gymdr report <i>"), path)
    browser.get(path.as_uri())
    for select in browser.find_elements(By.CSS_SELECTOR, "select[data-section]"):
        Select(select).select_by_index(1)  # draws other plots
        Select(select).select_by_index(0)

    shown = browser.find_elements(By.CSS_SELECTOR, ".view:not([hidden]) .plot")
    sections = {plot.get_attribute("id").partition("-")[0] for plot in shown}
    assert sections == {"first", "maps", "along"}
    assert all(plot.find_elements(By.CSS_SELECTOR, ".main-svg") for plot in shown)

    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    requests = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
    # The browser's own first page may still ask for its icons.
    urls = [asked["request"]["url"] for asked in requests if asked["documentURL"] == path.as_uri()]
    assert path.as_uri() in urls  # they are recorded
    assert [url for url in urls if url != path.as_uri() and not url.startswith(("data:", "blob:"))] == []

    assert browser.execute_script("return window.hacked") is None
    body = browser.find_element(By.TAG_NAME, "body").text
    for name in (*NASTY, "</script><script>window.hacked=1</script>", "gymdr report <i>"):
        assert name in body
