"""The page of `--emit html` in a real browser: it opens, a pin is clicked, its values are read.

The browser and its driver are Debian's `chromium` and `chromium-driver`; where they are missing the
test is skipped, but not in continuous integration.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.driver.conftest import FACTS, SOURCE

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")

pytestmark = pytest.mark.skipif(
    (BROWSER is None or DRIVER is None) and not os.environ.get("CI"),
    reason="no chromium and chromedriver (Debian: chromium, chromium-driver)",
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("page")
    (folder / "plan.py").write_text(SOURCE.replace("<= 256\n", "<= 256  # </script><b>\n"))
    (folder / "facts.yaml").write_text(FACTS)
    compile_page(folder)
    browser = open_browser()
    try:
        browser.get((folder / "out" / "analysis.html").as_uri())
        yield browser
    finally:
        browser.quit()


def compile_page(folder: Path) -> None:
    from selc.driver.compile import run
    from selc.driver.options import CompileOptions

    outcome = run(
        CompileOptions(
            target=str(folder / "plan.py"),
            facts=(folder / "facts.yaml",),
            out=folder / "out",
            emit=("python", "html"),
            native=False,
            use_cache=False,
        )
    )
    assert outcome.exit_code == 0, outcome.diagnostics


def open_browser() -> Any:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=Service(str(DRIVER)))


def texts(page: Any, selector: str) -> list[str]:
    return [e.text for e in page.find_elements("css selector", selector)]


def test_the_page_opens(page: Any) -> None:
    assert page.title == "selc - plan: plan"
    errors = [e for e in page.get_log("browser") if e["level"] == "SEVERE"]
    assert not errors
    assert "2 protected points follow the batch" in page.find_element("id", "about").text


def test_a_pin_shows_its_values(page: Any) -> None:
    (row,) = page.find_elements("css selector", "tr.pin[data-name='plan.width']")
    row.click()
    detail = page.find_element("id", "detail").text
    assert "plan.width" in detail
    assert "candidates 16, 128" in detail
    assert "legal 16, 128" in detail
    assert "fixes width" in detail
    assert "ruled out by width * stages <= 256" in detail
    assert "follows the batch by m -> plan.m -> " in detail
    (here,) = page.find_elements("css selector", "pre .here")
    assert "width = 16 if m <= 64 else 128" in here.text


def test_a_click_opens_the_neighbours(page: Any) -> None:
    page.find_element("id", "reset").click()
    before = len(page.find_elements("css selector", "svg .v"))
    page.find_element("css selector", "svg .v[data-key='site plan.m'] rect").click()
    after = len(page.find_elements("css selector", "svg .v"))
    assert after > before
    title = page.find_element("css selector", "svg .v[data-key='site plan.m'] title")
    said = title.get_attribute("textContent")
    assert "range 1 to 4096" in said
    assert "follows the batch: reads m" in said


def test_lines_that_follow_the_batch(page: Any) -> None:
    marked = "\n".join(texts(page, "pre .follows"))
    assert "width = 16 if m <= 64" in marked
    assert "return" in marked
    assert "# </script><b>" in "\n".join(texts(page, "pre div"))


def test_nothing_is_loaded_from_elsewhere(page: Any) -> None:
    loaded = page.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert loaded == []
    source = page.page_source
    assert "http://" not in source.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in source
