"""Pages as a parser and a real browser take them."""

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DARK = "--blink-settings=preferredColorScheme=0"
LIGHT = "--blink-settings=preferredColorScheme=1"
QUIET = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --enable-logging=stderr"
)
FRAMES = """<!doctype html><meta charset="utf-8"><body>{frames}<pre id="found"></pre><script>
addEventListener("load", () => {{
  const found = [...document.querySelectorAll("iframe")].map(frame => {{
    const doc = frame.contentDocument, view = frame.contentWindow;
    {script}
  }});
  document.getElementById("found").textContent = JSON.stringify(found);
}});
</script>"""


def browse(page: Path, *flags: str) -> tuple[str, str]:
    """What headless Chromium made of a page, and what it complained of."""
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    place = [f"--user-data-dir={page.parent / 'profile'}", *flags, "--dump-dom", page.as_uri()]
    run = subprocess.run([CHROMIUM, *QUIET.split(), *place], capture_output=True, text=True, timeout=120)
    if run.returncode != 0:
        pytest.skip(f"chromium does not start here: {run.stderr[-300:]}")
    return run.stdout, run.stderr


def measure(page: Path, script: str, widths: Sequence[int], *flags: str) -> list[Any]:
    """What a script finds out about a page (`doc`, `view`) in frames of these widths: the page itself may run none."""
    frames = "".join(f'<iframe width="{width}" height="900" src="{page.as_uri()}"></iframe>' for width in widths)
    outer = page.with_name("outer.html")
    outer.write_text(FRAMES.format(frames=frames, script=script), encoding="utf-8")
    dom, _ = browse(outer, "--allow-file-access-from-files", *flags)
    return json.loads(unescape(dom.split('<pre id="found">')[1].split("</pre>")[0]))


def plain_text(html: str) -> str:
    """What is read on the page, with one blank between any two elements."""
    body = html[html.index("<body>") :].replace("<wbr>", "")
    return " ".join(unescape(re.sub("<[^>]+>", " ", body)).split())


class Outline(HTMLParser):
    """Elements that were opened and closed in order, and the text between them."""

    EMPTY = frozenset({"input", "meta", "wbr", "line", "polyline"})

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.text = [], [], ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in self.EMPTY:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
