"""The page that other tests open must notice what they rely on it to notice."""

from browser import chromium as chromium
from browser import new_tab as new_tab


def opened(tab, tmp_path, html):
    page = tmp_path / "page.html"
    page.write_text(f"<!doctype html><title>a page</title>{html}")
    tab.page.goto(page.as_uri())
    tab.page.wait_for_load_state("networkidle")


def test_a_page_in_order(tab, tmp_path):
    picture = "<img src='data:image/gif;base64,R0lGODlhAQABAAAAACw='>"
    opened(tab, tmp_path, f"{picture}<script>fetch(URL.createObjectURL(new Blob(['x']))); console.log('fine')</script>")
    assert tab.page.title() == "a page"
    assert tab.troubles == []


def test_a_page_that_calls_outside(tab, tmp_path):
    script = "new WebSocket('ws://example.invalid/socket'); fetch('https://192.0.2.1/data')"
    opened(tab, tmp_path, f"<link rel=stylesheet href='https://example.invalid/font.css'><script>{script}</script>")
    wanted = {"https://example.invalid/font.css", "https://192.0.2.1/data", "ws://example.invalid/socket"}
    assert set(tab.outside) == wanted


def test_a_page_with_errors(tab, tmp_path):
    opened(tab, tmp_path, "<script>console.error('told'); throw new Error('not caught')</script>")
    assert (tab.console_errors, tab.page_errors, tab.outside) == (["told"], ["not caught"], [])
