"""The pictures of docs/how-to/workbench.md: two small models, a synonym table and planted reviews, seen in Chromium."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, sync_playwright

from steadygaze.data.corpora import load_corpus
from steadygaze.estimator.text_classifier import TextClassifier

CORPUS = "planted-reviews:sizes=[1500,100,60]"
TEXT = "It has a silky palate. As in December, I found the odour mouth-watering, mostly fig."
SYNONYMS = {"odour": ["smell", "scent"], "silky": ["smooth", "soft"], "palate": ["taste"], "found": ["judged"]}


def prepare(folder: Path) -> list[str]:
    """Arguments of `steadygaze serve`."""
    rows = load_corpus(CORPUS).splits["train"]
    texts, labels = [row.text for row in rows], [row.label for row in rows]
    for name, encoder in {"mean": "average", "cnn": "cnn"}.items():
        TextClassifier(encoder, epochs=6, device="cpu").fit(texts, labels).save(folder / name)
    table = folder / "synonyms.jsonl"
    table.write_text("".join(json.dumps({"word": word, "synonyms": row}) + "\n" for word, row in SYNONYMS.items()))
    return [str(folder / "mean"), str(folder / "cnn"), "--synonyms", str(table), "--data", CORPUS, "--port", "0"]


def explain(page: Page) -> None:
    page.get_by_label("Text to explain").fill(TEXT)
    page.get_by_role("button", name="Explain", exact=True).click()
    page.wait_for_selector("article + article .certificate")


def take(address: str, out: Path) -> None:
    with sync_playwright() as playwright:
        executable = shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1100, "height": 800})
        page.goto(address)
        explain(page)
        page.get_by_role("button", name="odour, weight").first.click()
        page.get_by_role("button", name="smell").click()
        page.wait_for_selector("article + article .changed")
        page.wait_for_selector("article + article .certificate")
        page.screenshot(path=out / "workbench-text.png", full_page=True)
        page.get_by_role("button", name="Audit", exact=True).click()
        page.get_by_role("button", name="Start the audit").click()
        page.wait_for_selector("#report:not([hidden])", timeout=300_000)
        page.locator("#order").select_option("jensen-shannon/1-synonym")
        page.wait_for_selector("#audit-texts thead th:nth-child(5)")
        page.set_viewport_size({"width": 1100, "height": 1150})
        page.screenshot(path=out / "workbench-audit.png")
        phone = browser.new_page(viewport={"width": 390, "height": 844}, color_scheme="dark", device_scale_factor=1.5)
        phone.goto(address)
        explain(phone)
        phone.locator("#choice-box summary").click()
        phone.locator("#results-title").scroll_into_view_if_needed()
        phone.screenshot(path=out / "workbench-phone.png")
        browser.close()
    for path in out.glob("workbench-*.png"):
        Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)


def run(*, out: Path = Path("docs/figures")) -> None:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "steadygaze", "serve", *prepare(Path(folder))]
        server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr is not None
            line = next(line for line in server.stderr if line.startswith("http"))
            take(line.split()[0], out)
        finally:
            server.terminate()
            server.wait(30)
