"""The page in a browser: opened, searched, filtered, unfolded; 10,000 rows; without a complaint."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import run_records as samples

from hlotool.interface.report.html.page import page

from .test_page import HOSTILE, located, program, run_of

sync_api = pytest.importorskip("playwright.sync_api")

CHROMIUM = "/usr/bin/chromium"
#: Milliseconds after which a browser is taken for dead, on the busiest machine.
PATIENCE = 300_000
#: The row after what is unfolded stands below it; a page that is still measured may have moved away from it.
BELOW = """() => {
  document.querySelector(".unfolded")?.scrollIntoView({ block: "end" });
  scrollBy(0, 100);
  const [next, details] = ["[aria-posinset='3']", ".unfolded"].map((one) => document.querySelector(one));
  return next && details && next.getBoundingClientRect().top >= details.getBoundingClientRect().bottom - 1;
}"""
#: There is a row in the middle of the screen.
COVERED = """() => [...document.querySelectorAll(".entry")].some((entry) => {
  const { top, bottom } = entry.getBoundingClientRect();
  return top <= innerHeight / 2 && bottom >= innerHeight / 2;
})"""
if not os.path.exists(CHROMIUM):
    pytest.skip(f"there is no {CHROMIUM}", allow_module_level=True)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"], timeout=PATIENCE)
        yield started
        started.close()


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """10,000 results, of which 60 are wrong for two causes, and one has a hostile name."""
    rows = [samples.agreeing(f"host{n % 64:02d}/m{n}") for n in range(10_000 - 61)]
    rows += [located("one" if n % 3 else "other", path=f"d/{n}/m.txt") for n in range(60)]
    rows += [located(HOSTILE.replace("\udcff", ""))]
    return written(tmp_path_factory.mktemp("page"), rows)


def written(folder: Path, rows: list[Any]) -> Path:
    path = folder / "page.html"
    path.write_text(page(run_of(*rows)), encoding="utf-8")
    return path


@pytest.fixture
def tab(browser: Any) -> Iterator[Any]:
    """A tab in which nothing may go wrong."""
    opened = browser.new_page(viewport={"width": 1200, "height": 900})
    opened.set_default_timeout(PATIENCE)
    said: list[str] = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on("dialog", lambda dialog: said.append(dialog.message))
    opened.on("request", lambda request: said.append(request.url) if not is_file(request.url) else None)
    yield opened
    opened.close()
    assert said == []


def is_file(url: str) -> bool:
    return url.startswith("file:")


def shown(tab: Any) -> str:
    text: str = tab.inner_text("#shown")
    return text


def test_search_filter_and_sort(tab: Any, fleet: Path) -> None:
    tab.goto(fleet.as_uri())
    assert shown(tab) == "10000 in all"
    tab.keyboard.press("/")
    tab.keyboard.type("host07 AGREE")
    assert shown(tab) == f"{len(range(7, 9939, 64))} of 10000"
    tab.fill("#search", "no such thing")
    assert shown(tab) == "0 of 10000"
    assert tab.locator(".entry").count() == 0
    tab.fill("#search", "")
    tab.select_option("#kind", "wrong")
    assert shown(tab) == "61 of 10000"
    tab.locator(".cause", has_text="other.py").get_by_role("button").click()
    assert shown(tab) == "20 of 10000"
    tab.click("text=clear")
    tab.wait_for_function("document.getElementById('shown').textContent === '10000 in all'")
    tab.select_option("#sort", "name")
    tab.locator("button.row").first.scroll_into_view_if_needed()
    assert "m0" in tab.locator("button.row .name").nth(1).inner_text()


def test_the_same_program_once_or_under_all_its_names(tab: Any, tmp_path: Path) -> None:
    first = samples.agreeing("host00/m")
    twins = [samples.module(f"host{n:02d}/m", first.verdict, twin_of=first.path) for n in range(1, 30)]
    tab.goto(written(tmp_path, [first, samples.agreeing("other"), *twins]).as_uri())
    assert shown(tab) == "31 in all"
    assert "×30" in tab.inner_text(".row")
    tab.check("#once")
    assert shown(tab) == "2 of 31"
    tab.click(".row")
    said = tab.inner_text(".unfolded")
    assert "same program ×30" in said
    assert "host12/m and 17 more" in said


def test_a_module_unfolds_by_mouse_and_by_keyboard(tab: Any, fleet: Path) -> None:
    tab.goto(fleet.as_uri())
    tab.select_option("#kind", "wrong")
    first = tab.locator("button.row").first
    first.click()
    assert first.get_attribute("aria-expanded") == "true"
    unfolded = tab.locator(".unfolded")
    assert "returns other values" in unfolded.inner_text()
    assert unfolded.locator("svg.graph .node").count() == 3
    assert unfolded.locator("svg.heat rect").count() == 4
    assert unfolded.locator("table.histogram tbody tr").count() == 4
    assert unfolded.locator(".sides figure").count() == 2
    first.focus()
    tab.keyboard.press("Enter")
    assert tab.locator(".unfolded").count() == 0
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("Space")
    assert tab.locator("button.row").nth(1).get_attribute("aria-expanded") == "true"
    # What comes after stands below what is unfolded.
    tab.wait_for_function(BELOW)
    tab.locator("[aria-posinset='3'] button").focus()
    tab.keyboard.press("End")
    assert tab.evaluate("document.activeElement.closest('.entry').getAttribute('aria-posinset')") == "61"


def test_a_program_is_laid_out_searched_and_zoomed(tab: Any, tmp_path: Path) -> None:
    """Of 5,000 instructions those near the accused one, then those near what was searched for."""
    path = program(tmp_path / "m.hlo", 5000)
    tab.goto(written(tmp_path, [located("a", path=path)]).as_uri())
    tab.click("text=draw 5000 instructions")
    nodes = tab.locator(".program .node")
    assert nodes.count() == 150
    assert tab.locator(".program .node.spot").count() == 1
    assert "150 of 5000 instructions" in tab.inner_text(".program .tools")
    # What reads the accused instruction is the darker the nearer it is.
    assert tab.locator(".program .node.reached-1").count() > 10
    tab.fill(".program input", "a4321")
    tab.keyboard.press("Enter")
    assert "1 of 2" in tab.inner_text(".program .tools")
    focus = tab.locator(".program .node.focus")
    assert "%a4321" in focus.text_content()
    assert "%a4321 = f32[4] add(%a4320, %mul.0)" in tab.inner_text(".program .statement")
    before = tab.locator(".program svg").get_attribute("viewBox")
    tab.get_by_role("button", name="larger").click()
    after = tab.locator(".program svg").get_attribute("viewBox")
    assert float(after.split()[2]) == pytest.approx(0.8 * float(before.split()[2]))
    tab.locator(".canvas").focus()
    tab.keyboard.press("ArrowRight")
    assert float(tab.locator(".program svg").get_attribute("viewBox").split()[0]) > float(after.split()[0])
    tab.fill(".program input", "no such thing")
    tab.keyboard.press("Enter")
    assert "nothing found" in tab.inner_text(".program .tools")
    tab.get_by_role("button", name="to the wrong instruction").click()
    assert "%mul.0" in tab.locator(".program .node.focus").text_content()


def test_calls_as_one_box(tab: Any, tmp_path: Path) -> None:
    tab.goto(written(tmp_path, [located("a", path=program(tmp_path / "m.hlo"))]).as_uri())
    tab.click("text=draw 9 instructions")
    inner = tab.locator(".program .node", has_text="in %fused")
    assert inner.count() == 2
    tab.get_by_label("calls as one box").check()
    assert inner.count() == 0
    assert tab.locator(".program .node").count() == 7
    # What is looked for is shown, wherever it is.
    tab.fill(".program input", "negate")
    tab.keyboard.press("Enter")
    assert inner.count() == 1


def test_a_link_leads_to_a_row(tab: Any, fleet: Path) -> None:
    tab.goto(f"{fleet.as_uri()}#row-9990")
    tab.wait_for_selector(".unfolded")
    assert tab.evaluate("document.activeElement.getAttribute('aria-expanded')") == "true"
    assert tab.get_attribute(".unfolded .anchor", "href") == "#row-9990"
    tab.evaluate("location.hash = '#row-12'")
    tab.wait_for_function("document.activeElement.textContent.includes('host12/m12')")
    tab.goto(f"{fleet.as_uri()}#row-99999")
    assert shown(tab) == "10000 in all"


def test_ten_thousand_rows_are_never_all_in_the_document(tab: Any, fleet: Path) -> None:
    tab.goto(fleet.as_uri())
    seen = set()
    for share in (0.1, 0.5, 0.9):
        tab.evaluate(f"scrollTo(0, document.body.scrollHeight * {share})")
        tab.wait_for_function(COVERED)
        assert tab.locator(".entry").count() < 120
        seen |= set(tab.locator(".entry").evaluate_all("all => all.map(one => one.ariaPosInSet)"))
    tab.evaluate("scrollTo(0, document.body.scrollHeight)")
    tab.wait_for_selector("[aria-posinset='10000']")
    assert len(seen) > 100


def test_a_hostile_name_is_shown_and_does_nothing(tab: Any, fleet: Path) -> None:
    tab.goto(fleet.as_uri())
    tab.fill("#search", "onerror")
    tab.locator("button.row").first.click()
    assert "<img src=x onerror=alert(1)>" in tab.locator("button.row .name").first.inner_text()
    assert tab.locator("img").count() == 0


@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_is_wider_than_the_screen(tab: Any, fleet: Path, width: int) -> None:
    tab.set_viewport_size({"width": width, "height": 700})
    tab.goto(fleet.as_uri())
    tab.select_option("#kind", "wrong")
    tab.locator("button.row").first.click()
    assert tab.evaluate("document.documentElement.scrollWidth") <= width


def test_dark_and_light_by_system_and_by_choice(tab: Any, tmp_path: Path) -> None:
    path = written(tmp_path, [located("a")])
    ground = "getComputedStyle(document.body).backgroundColor"
    tab.emulate_media(color_scheme="dark")
    tab.goto(path.as_uri())
    dark = tab.evaluate(ground)
    tab.click("#theme")
    light = tab.evaluate(ground)
    assert dark != light
    tab.emulate_media(color_scheme="light")
    tab.reload()
    assert tab.evaluate(ground) == light
    # One result alone is unfolded at once.
    assert tab.locator(".unfolded").count() == 1


def test_on_paper_there_are_more_than_the_screen_shows(tab: Any, fleet: Path) -> None:
    tab.goto(fleet.as_uri())
    tab.emulate_media(media="print")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert tab.locator(".entry").count() == 500
    assert not tab.locator("#controls").is_visible()
    assert len(tab.pdf()) > 10_000
    tab.evaluate("dispatchEvent(new Event('afterprint'))")
    assert tab.locator(".entry").count() < 120
