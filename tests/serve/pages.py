"""The page of the workbench in Chromium: helpers of the tests."""

from pathlib import Path

import pytest

playwright_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = playwright_api.expect
expect.set_options(timeout=60_000)  # a busy machine takes its time
AXE = """async () => (await axe.run(document, {resultTypes: ["violations"]})).violations.map(
  (found) => [found.impact, found.id, found.nodes[0].html])"""


def serious_problems(page) -> list:
    """The problems that axe-core finds on the page, minor and moderate ones left out."""
    package = pytest.importorskip("axe_playwright_python", reason="axe-playwright-python is not installed")
    page.evaluate((Path(package.__file__).parent / "axe.min.js").read_text(encoding="utf-8"))
    return [result for result in page.evaluate(AXE) if result[0] in ("serious", "critical")]


def explain(page, text: str, question: str | None = None) -> None:
    page.get_by_label("Text to explain").fill(text)
    if question is not None:
        page.get_by_label("Question about the text").fill(question)
    page.get_by_role("button", name="Explain", exact=True).click()
    expect(page.locator("#status")).to_have_text("Ready.")


def change(page, word: str, other: str, card: int = 0) -> None:
    """Type another word in the place of one of a card."""
    page.locator("#cards article").nth(card).get_by_role("button", name=f"{word}, weight").click()
    page.get_by_label("Another word").fill(other)
    page.get_by_label("Another word").press("Enter")
    expect(page.locator("#word-menu")).to_be_hidden()
    expect(page.locator("#status")).to_have_text("Ready.")
