"""The documentation site as `make docs` builds it, read from the disk: search, formulas, nothing from elsewhere."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from browser import chromium as chromium
from browser import new_tab as new_tab

import pbgi

pytest.importorskip("material")
pytest.importorskip("mkdocstrings")

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", folder]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return folder


# Lines of code that are cut off, and columns of tables without a name.
CUT_OFF = """
[...document.querySelectorAll('article pre > code')].filter(code => code.scrollWidth > code.clientWidth + 1)
  .map(code => code.textContent.slice(0, 60))
"""
WITHIN = (
    "pbgi.parameter",
    "pbgi.policy",
    "pbgi.stopping",
)  # what these offer the engine is on the page "A tour of the code"
EMPTY_HEADS = """
[...document.querySelectorAll('article thead th')].filter(head => !head.textContent.trim()).length
"""


def test_search_works_from_the_disk(tab, site):
    tab.page.goto((site / "quickstart.html").as_uri())
    tab.page.locator("input.md-search__input").click()
    tab.page.keyboard.type("inverse_log_h")
    found = tab.page.locator(".md-search-result__item a").first
    found.wait_for(timeout=10_000)
    assert "gittins.html" in found.get_attribute("href") or "index-function.html" in found.get_attribute("href")
    assert tab.troubles == []


def test_formulas_are_drawn(tab, site):
    tab.page.goto((site / "index-function.html").as_uri())
    formula = tab.page.locator("math[display=block]").first.bounding_box()
    assert formula["width"] > 20
    assert formula["height"] > 10
    assert "$" not in tab.page.locator("article").inner_text()
    tab.page.set_viewport_size({"width": 390, "height": 900})
    cut = "[...document.querySelectorAll('.formula')].filter(box => box.scrollWidth > box.clientWidth + 1).length"
    assert tab.page.evaluate(cut) == 0  # on a phone
    assert tab.troubles == []


def test_every_public_method_is_in_the_reference(site):
    """Inherited ones too, which mkdocstrings leaves out unless it is told."""
    found = {
        name for page in (site / "reference").glob("*.html") for name in re.findall(r'id="([^"]+)"', page.read_text())
    }
    known = {tuple(name.split(".")[-2:]) for name in found}
    missing = [
        f"{name}.{method}"
        for name in pbgi.__all__
        for method, value in inspect.getmembers(getattr(pbgi, name), inspect.isfunction)
        if not method.startswith("_") and value.__doc__ and _is_for_users(value) and (name, method) not in known
    ]
    assert missing == []


def _is_for_users(method):
    """Not those of the standard library (of an enumeration, say), nor those that only the engine calls."""
    return method.__module__.startswith("pbgi.") and method.__module__ not in WITHIN


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_no_page_is_wider_than_the_screen(tab, site, width):
    tab.page.set_viewport_size({"width": width, "height": 900})
    for page in sorted(set(site.rglob("*.html")) - {site / "404.html"}):  # that one is for servers
        tab.page.goto(page.as_uri(), wait_until="domcontentloaded")
        wider = tab.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wider <= 0, f"{page.name} is {wider} px wider than a screen of {width}"
        assert tab.page.evaluate(CUT_OFF) == [], page.name
        assert tab.page.evaluate(EMPTY_HEADS) == 0, page.name
    assert tab.troubles == []
