"""The page as a reader has it: in Chromium without a window, opened from disk."""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from PIL import Image

from gym_dr.evaluation.report.assemble import assemble
from gym_dr.evaluation.report.comparison import Comparison
from gym_dr.evaluation.report.page import write_report
from tests.evaluation.report.conftest import NASTY

selenium = pytest.importorskip("selenium.webdriver", reason="selenium is of the extra gym-dr[test]")

from selenium.webdriver import ActionChains, ChromeOptions, ChromeService, Keys  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

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

INK = "return getComputedStyle(document.querySelector('#training-0-0 .xtitle')).fill"  # of a plot's text
LIGHT_INK, DARK_INK = "rgb(27, 30, 35)", "rgb(230, 233, 237)"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    chromium = next((path for name in NAMES if (path := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        reason = "needs Chromium and its driver: apt-get install --no-install-recommends chromium chromium-driver"
        if os.environ.get("GYMDR_REQUIRE_CHROMIUM"):
            pytest.fail(reason)
        pytest.skip(reason)
    options = ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = selenium.Chrome(options=options, service=ChromeService(driver))
    yield opened
    opened.quit()


@pytest.fixture(scope="module")
def page(comparison: Comparison, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_report(assemble(comparison, "gymdr report <i>", lambda text: None), path)
    return path.as_uri()


@pytest.fixture(scope="module")
def opened(browser: Any, page: str) -> Any:
    """The page on a wide screen; tests put back what they change."""
    screen(browser, width=1280)
    scheme(browser, dark=False)
    browser.get_log("performance")  # forgets what the browser's own first page asked for
    browser.get(page)
    return browser


def screen(browser: Any, *, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def scheme(browser: Any, *, dark: bool) -> None:
    feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def wait(browser: Any, true: Any) -> Any:
    return WebDriverWait(browser, 20, poll_frequency=0.05).until(true)


def hover_text(browser: Any) -> str:
    return " ".join(e.text for e in browser.find_elements(By.CSS_SELECTOR, ".hoverlayer text"))


def picture(browser: Any, rect: dict[str, float]) -> Any:
    """A part of the page in half its size, as an array (height, width, 3); the page is taller than the screen."""
    options = {"captureBeyondViewport": True, "clip": {**rect, "scale": 0.5}}
    data = browser.execute_cdp_cmd("Page.captureScreenshot", options)["data"]
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB"))


def test_nothing_is_requested_and_the_console_is_silent(opened: Any, page: str) -> None:
    for select in opened.find_elements(By.CSS_SELECTOR, "select[data-section]"):
        Select(select).select_by_index(1)  # draws other plots
        Select(select).select_by_index(0)
    assert opened.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    urls = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
    assert page in urls  # they are recorded
    assert [url for url in urls if url != page and not url.startswith(("data:", "blob:"))] == []


def test_every_plot_and_picture_is_there(opened: Any) -> None:
    plots = opened.find_elements(By.CSS_SELECTOR, ".view:not([hidden]) .plot")
    sections = {plot.get_attribute("id").partition("-")[0] for plot in plots}
    assert sections == {"maps", "along", "distributions", "differences", "sensitivity", "training", "draws"}
    whole = picture(opened, opened.find_element(By.TAG_NAME, "html").rect)
    for plot in plots:
        assert plot.rect["width"] > 300
        x, y, width, height = (round(plot.rect[key] / 2) for key in ("x", "y", "width", "height"))
        assert whole[y : y + height, x : x + width].std() > 5, plot.get_attribute("id")
    sizes = opened.execute_script("return [...document.images].map((i) => [i.complete, i.naturalWidth])")
    assert len(sizes) > 20
    assert all(size == [True, 320] for size in sizes)


def test_pointing_at_a_heat_map_tells_its_value(opened: Any, comparison: Comparison) -> None:
    plot = opened.find_element(By.ID, "maps-0-0")
    middle = plot.find_element(By.CSS_SELECTOR, ".heatmaplayer")
    ActionChains(opened).scroll_to_element(plot).move_to_element(middle).perform()
    wait(opened, lambda b: "mean return" in hover_text(b))
    assert "episodes" in hover_text(opened)


def test_arrow_keys_walk_through_the_points(opened: Any) -> None:
    plot = opened.find_element(By.ID, "maps-0-0")
    opened.execute_script("arguments[0].focus()", plot)
    ActionChains(opened).send_keys(Keys.ARROW_RIGHT).perform()
    first = wait(opened, lambda b: hover_text(b))
    ActionChains(opened).send_keys(Keys.ARROW_UP).perform()
    wait(opened, lambda b: hover_text(b) not in ("", first))
    assert opened.find_element(By.ID, "reading").get_attribute("textContent") != ""
    ActionChains(opened).send_keys(Keys.ESCAPE).perform()
    wait(opened, lambda b: hover_text(b) == "")


def test_tab_reaches_links_choices_plots_and_buttons(opened: Any) -> None:
    focused = "return [document.activeElement.tagName, ...document.activeElement.classList]"
    opened.execute_script("document.querySelector('.skip').focus()")
    reached = set()
    for _ in range(40):
        ActionChains(opened).send_keys(Keys.TAB).perform()
        reached |= set(opened.execute_script(focused))
    assert {"A", "SELECT", "plot", "modebar-btn"} <= reached


def test_a_choice_shows_other_plots(opened: Any) -> None:
    select = Select(opened.find_element(By.ID, "maps-choice"))
    assert len(select.options) == 7  # gravity and wind on the grid, six pairs of four parameters over the box
    select.select_by_index(3)
    shown = opened.find_elements(By.CSS_SELECTOR, "[data-view-of=maps]:not([hidden]) .main-svg")
    assert shown
    assert all(element.size["width"] > 300 for element in shown)
    assert not opened.find_element(By.ID, "maps-0-0").is_displayed()
    select.select_by_index(0)
    assert opened.find_element(By.ID, "maps-0-0").is_displayed()


def test_dark_mode_changes_page_and_plots_without_loading_again(opened: Any) -> None:
    plot = opened.find_element(By.ID, "training-0-0").rect
    assert picture(opened, plot).mean() > 200
    scheme(opened, dark=True)
    wait(opened, lambda b: b.execute_script(INK) == DARK_INK)
    assert picture(opened, plot).mean() < 100
    scheme(opened, dark=False)
    wait(opened, lambda b: b.execute_script(INK) == LIGHT_INK)


def test_paper_is_light_and_shows_the_configuration(opened: Any) -> None:
    scheme(opened, dark=True)
    wait(opened, lambda b: b.execute_script(INK) == DARK_INK)
    opened.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert opened.execute_script(INK) == LIGHT_INK
    assert opened.execute_script("return [...document.querySelectorAll('details')].every((d) => d.open)")
    opened.execute_script("dispatchEvent(new Event('afterprint'))")
    assert opened.execute_script(INK) == DARK_INK
    assert not opened.execute_script("return [...document.querySelectorAll('details')].some((d) => d.open)")
    scheme(opened, dark=False)


def test_a_phone_shows_everything_within_its_width(opened: Any) -> None:
    screen(opened, width=390)
    fits = "return [...document.querySelectorAll('.plot, .main-svg, img, select, pre')].every((e) => "
    wait(opened, lambda b: b.execute_script(fits + "e.getBoundingClientRect().width <= 390)"))
    assert opened.execute_script("return document.documentElement.scrollWidth") == 390
    screen(opened, width=1280)


def test_plots_keep_their_height_when_the_window_changes(opened: Any) -> None:
    size = "return [...document.querySelectorAll('.view:not([hidden]) .js-plotly-plot')].map((e) => e"
    before = opened.execute_script(f"{size}._fullLayout.height)")
    screen(opened, width=700)
    wait(opened, lambda b: max(b.execute_script(f"{size}._fullLayout.width)")) < 700)
    assert opened.execute_script(f"{size}.clientHeight)") == before
    screen(opened, width=1280)
    wait(opened, lambda b: max(b.execute_script(f"{size}._fullLayout.width)")) > 700)
    assert opened.execute_script(f"{size}.clientHeight)") == before


def test_names_and_commands_are_text_and_never_code(opened: Any) -> None:
    assert opened.execute_script("return window.hacked") is None
    body = opened.find_element(By.TAG_NAME, "body").text
    for name in (*NASTY, "</script><script>window.hacked=1</script>", "gymdr report <i>"):
        assert name in body
    legend = opened.find_element(By.CSS_SELECTOR, "#training-0-0 .legend").text
    assert all(name in legend for name in NASTY)
