"""What an audit found, written into the card of the model it is about.  No torch: README.md is all that is touched."""

from datetime import UTC, date, datetime
from pathlib import Path

from steadygaze.atomic import write_text
from steadygaze.report.card import audited
from steadygaze.report.report import Report

CARD = "README.md"


def write_card(folder: Path, report: Report) -> str:
    """Says what was done: a folder that cannot be written to is no reason to lose an audit."""
    file = folder / CARD
    if file.is_symlink() or (file.exists() and not file.is_file()):
        return f"the model card {file} is unchanged: it is not a regular file"
    try:
        page = file.read_bytes().decode() if file.exists() else ""
        write_text(
            file,
            audited(page, report, date.fromisoformat(report.date[:10]) if report.date else datetime.now(UTC).date()),
        )
    except (OSError, UnicodeDecodeError) as error:
        return f"the model card {file} is as it was, without this audit: {error}"
    return f"written: {file}, the part about the audit"
