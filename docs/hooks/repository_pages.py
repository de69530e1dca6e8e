"""Pages from the files at the root of the repository: CONTRIBUTING.md, CHANGELOG.md, and the decisions."""

import re
from pathlib import Path


def pages(root: Path) -> dict[str, str]:
    decisions = sorted((root / "docs" / "contributing" / "decisions").glob("*.md"))
    texts = [re.sub(r"^#", "##", path.read_text(encoding="utf-8"), flags=re.MULTILINE) for path in decisions]
    return {
        "contributing/index.md": _moved((root / "CONTRIBUTING.md").read_text(encoding="utf-8")),
        "contributing/changelog.md": _moved((root / "CHANGELOG.md").read_text(encoding="utf-8")),
        "contributing/decisions.md": "\n".join(["# Decisions\n", *texts]),
    }


def _moved(text: str) -> str:
    """Links from the root of the repository, as links from docs/contributing."""
    text = text.replace("](docs/contributing/decisions)", "](decisions.md)")
    return re.sub(r"\]\(docs/", "](../", text)
