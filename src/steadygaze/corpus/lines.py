"""The lines of a UTF-8 file, one at a time, with their numbers."""

from collections.abc import Iterator
from pathlib import Path

from steadygaze.errors import UserError


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(1, first line), (2, second line) …, without their ends; a byte that is not UTF-8 is named."""
    with path.open("rb") as file:
        offset = 0
        for number, raw in enumerate(file, start=1):
            try:
                line = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                byte = offset + error.start
                raise UserError(
                    f"{path.name} is not UTF-8: line {number} holds an invalid byte (offset {byte}); save it as UTF-8."
                ) from None
            offset += len(raw)
            yield number, line.rstrip("\r\n")


def refuse_invalid_utf8(path: Path) -> None:
    """Read the file through, for the complaint that names the byte."""
    for _ in read_lines(path):
        pass
