"""What an audit found, written into the card of the model it is about.  No torch: README.md is all that is touched."""

from datetime import UTC, date, datetime
from pathlib import Path

from steadygaze.atomic import write_text
from steadygaze.errors import UserError
from steadygaze.foreign_files import read_text
from steadygaze.report.card import audited
from steadygaze.report.report import Report

CARD = "README.md"


def write_card(folder: Path, report: Report) -> str:
    """Says what was done: a folder that cannot be written to is no reason to lose an audit."""
    file = folder / CARD
    if file.is_symlink() or (file.exists() and not file.is_file()):
        return f"the model card {file} is unchanged: it is not a regular file"
    try:
        page = read_text(file) if file.exists() else ""
        write_text(
            file,
            audited(page, report, date.fromisoformat(report.date[:10]) if report.date else datetime.now(UTC).date()),
        )
    except (OSError, UserError) as error:
        return f"the model card {file} is as it was, without this audit: {error}"
    return f"written: {file}, the part about the audit"
