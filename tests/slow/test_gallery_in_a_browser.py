"""The page of a real discovery in headless Chromium: it opens without an error, and its own controls make the names."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from tests.runs.own_images import SMALL, draw_classes

webdriver = pytest.importorskip("selenium.webdriver")

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BROWSER or not DRIVER, reason="needs chromium and chromedriver"),
]


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = str(BROWSER)
    for flag in (*FLAGS, f"--user-data-dir={tmp_path / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    yield driver
    driver.quit()


def show(browser: Any, page: Path, width: int) -> None:
    # A window has a least width; the page's own is set as a phone's would be.
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get(page.as_uri())


def test_clusters_named_and_merged_in_the_page_are_accepted(
    cli: Callable[..., Result], browser: Any, tmp_path: Path
) -> None:
    labelled = draw_classes(tmp_path / "known", ("a", "b"), 6)
    pile = draw_classes(tmp_path / "pile", ("x", "y", "z"), 6)
    command = ("discover", "--labelled", labelled, "--unlabelled", pile, "--k", 6, "-m", "kmeans", *SMALL, "--json")
    result = cli(*command, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    page = tmp_path / "out" / "gallery.html"
    for width in (390, 1400):
        show(browser, page, width)
        assert browser.execute_script("return window.innerWidth") == width
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert browser.find_elements("css selector", "article .thumb")
        assert [entry for entry in browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []

    cards = browser.find_elements("css selector", "article")
    numbers = [int(card.get_attribute("data-number")) for card in cards]
    assert len(numbers) >= 3
    for card, name in zip(cards, ('ulcer "fresh"', "Narbe \\ alt"), strict=False):
        card.find_element("css selector", "input.name").send_keys(name)
    merge = cards[2].find_element("css selector", "select.merge")
    merge.find_element("css selector", f'option[value="{numbers[0]}"]').click()
    browser.find_element("id", "save").click()
    text = browser.find_element("id", "toml").get_property("value")
    names = tmp_path / "names.toml"
    names.write_text(text, encoding="utf-8")
    named = cli("name", told["run"], names, "--json")
    assert named.exit_code == 0, named.output
    decided = json.loads(named.stdout)
    assert decided["named"] == {str(numbers[0]): 'ulcer "fresh"', str(numbers[1]): "Narbe \\ alt"}
    assert decided["merged"] == {str(numbers[2]): numbers[0]}
    printed = cli("predict", told["run"], pile, "-q")
    assert printed.exit_code == 0, printed.output
    assert "Narbe \\ alt" in printed.stdout
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []
