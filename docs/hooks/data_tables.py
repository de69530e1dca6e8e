"""CSV files of a page as tables below their links; scripts/data-table.js sorts and filters them.

A page has a link of the class `data-table`: `[All results](data/stability.csv){ .data-table }`.  The file stays a
download, and the only source of the table.
"""

import csv
import re
from html import escape
from pathlib import Path

LINK = re.compile(r'<p><a class="data-table" href="([^"]+\.csv)">(.*?)</a></p>')
NUMBER = re.compile(r"-?\d[\d.,]*(e[+-]?\d+)?")


def with_tables(html: str, folder: Path) -> str:
    """The page with a table after each such link; `folder`: that of the page."""
    return LINK.sub(lambda match: match[0].replace("</p>", " (CSV)</p>") + table(folder / match[1], match[2]), html)


def table(file: Path, caption: str) -> str:
    """The rows of a CSV file, left out of the search of the site; the first row is the heading."""
    with file.open(encoding="utf-8", newline="") as text:
        heading, *rows = csv.reader(text)
    numeric = [all(NUMBER.fullmatch(row[i]) for row in rows if row[i]) for i in range(len(heading))]
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in heading)
    body = "\n".join(f"<tr>{''.join(map(_cell, row, numeric))}</tr>" for row in rows)
    return (
        f'<div class="data-table" data-search-exclude><div tabindex="0" role="region" aria-label="{caption}">'
        f'<table class="data"><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div></div>'
    )


def _cell(text: str, is_number: bool) -> str:
    return f'<td class="number">{text.replace("-", "−")}</td>' if is_number else f"<td>{escape(text)}</td>"
