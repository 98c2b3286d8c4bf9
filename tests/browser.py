"""A page in a real Chromium for a test, which notes every error and every request that leaves this machine.

Import the two fixtures and take the second one by its name:

    from browser import chromium as chromium
    from browser import new_tab as new_tab

    def test_page(tab):
        tab.page.goto("http://127.0.0.1:8080")
        assert tab.troubles == []

Each module starts a browser of its own with an empty profile and ends it after its last test: Playwright's event loop
must not run on while other tests use theirs. Where Playwright or Chromium is missing, the tests are skipped.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest

FLAGS = (
    "--no-sandbox",  # which Chromium refuses to have as root, in a container
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",  # the 64 MB of a container are too few
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-proxy-server",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",  # whatever a page asks for, nothing gets out
)


@dataclass(frozen=True)
class Tab:
    """A page (Playwright's, for the test to drive) and what went wrong in it so far."""

    page: Any
    console_errors: list[str] = field(default_factory=list)
    page_errors: list[str] = field(default_factory=list)  # exceptions that no script caught
    outside: list[str] = field(default_factory=list)  # requests to anything but this machine; none got through

    @property
    def troubles(self) -> list[str]:
        """All of it; an empty list if the page is as it should be."""
        return [*self.console_errors, *self.page_errors, *self.outside]

    def note_request(self, url: str) -> None:
        """A page asked for something."""
        parts = urlsplit(url)
        if parts.scheme not in {"about", "blob", "data", "file"} and parts.hostname != "127.0.0.1":
            self.outside.append(url)


@pytest.fixture(name="browser", scope="module")
def chromium() -> Iterator[Any]:
    """A headless Chromium with an empty profile; skips the test if there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("needs a Chromium on the path: apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=program, headless=True, args=list(FLAGS))
        yield launched
        launched.close()


@pytest.fixture(name="tab")
def new_tab(browser) -> Iterator[Tab]:
    """A page that shares nothing with the pages of other tests: no cookies, no cache, no storage."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    tab = Tab(page)
    context.on("request", lambda request: tab.note_request(request.url))
    page.on("websocket", lambda socket: tab.note_request(socket.url))
    page.on("console", lambda message: tab.console_errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: tab.page_errors.append(str(error)))
    yield tab
    context.close()
