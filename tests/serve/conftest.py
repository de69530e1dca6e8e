"""Chromium and its pages, for the tests of the workbench."""

import contextlib

import pytest

from report.browser import CHROMIUM


@pytest.fixture(scope="module")
def browser():
    """For one module: other tests could not run an event loop while it is open."""
    playwright_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with playwright_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser):
    """Open the page of a server; it must not cause an error in the console, or a request to another server."""
    problems = []
    with contextlib.ExitStack() as stack:

        def open_page(address: str, **options):
            context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
            stack.callback(context.close)
            context.set_default_timeout(60_000)
            page = context.new_page()
            own = address.split("#")[0].rstrip("/"), "data:", "blob:"
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on("console", lambda message: problems.append(message.text) if "Policy" in message.text else None)
            page.on("request", lambda request: None if request.url.startswith(own) else problems.append(request.url))
            page.goto(address)
            return page

        yield open_page
    assert problems == []
