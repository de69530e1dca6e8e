"""Problems of accessibility that axe-core finds on pages, in light and dark colors, on a desktop and a phone.

    npm install axe-core; pip install playwright
    make docs; make demo
    python -m studies.figures accessibility node_modules/axe-core/axe.min.js site/index.html runs/demo/report.html

Prints each problem with its impact, and requests to a network.  The exit code is 1 if a problem is serious or critical,
or if a page makes a request.
"""

import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

WIDTHS, SCHEMES = (1280, 390), ("light", "dark")
SEVERE = ("serious", "critical")
LOCAL = ("file:", "data:", "blob:")
RUN = """async () => {
  const found = await axe.run(document, {resultTypes: ["violations"]});
  return found.violations.map(one => [one.impact, one.id, one.nodes.length, one.nodes[0].html.slice(0, 120)]);
}"""


def check(browser: Any, axe: str, page: Path, scheme: str, width: int) -> tuple[list[list[Any]], list[str]]:
    """The problems of a page, and its requests to a network."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=True)
    tab, requests = context.new_page(), []
    tab.on("request", lambda request: None if request.url.startswith(LOCAL) else requests.append(request.url))
    tab.goto(page.resolve().as_uri())
    tab.wait_for_timeout(250)
    tab.evaluate(axe)
    problems = tab.evaluate(RUN)
    context.close()
    return problems, requests


def run(axe: Path, pages: list[Path]) -> None:
    """axe.min.js of the package axe-core, and HTML files."""
    from playwright.sync_api import sync_playwright

    script, impacts, outside = axe.read_text(encoding="utf-8"), Counter[str](), 0
    with sync_playwright() as playwright:
        flags = ["--no-sandbox", "--allow-file-access-from-files"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        for page in pages:
            for scheme in SCHEMES:
                for width in WIDTHS:
                    problems, requests = check(browser, script, page, scheme, width)
                    impacts.update(problem[0] for problem in problems)
                    outside += len(requests)
                    for line in [*problems, *requests]:
                        print(page, scheme, width, line)
        browser.close()
    print(f"{len(pages)} pages: {dict(impacts)}, {outside} requests to a network")
    sys.exit(bool(outside or any(impacts[impact] for impact in SEVERE)))
