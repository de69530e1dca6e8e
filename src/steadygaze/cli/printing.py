"""Printing: results to standard output, everything else to standard error."""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from steadygaze.cli.command_options import Common
from steadygaze.core.errors import one_line, safe_json

if TYPE_CHECKING:
    from steadygaze.core.errors import Console
    from steadygaze.data.corpus import Corpus
    from steadygaze.results.health import Health

T = TypeVar("T")


def stderr_console(common: Common) -> "Console":
    """Return a console for messages: standard error."""
    from steadygaze.core.errors import Console

    return Console(stderr=True, quiet=common.quiet)


def stdout_console() -> "Console":
    """Return a console for formatted results: standard output."""
    from steadygaze.core.errors import Console

    return Console()


def output_closed() -> bool:
    """Return whether the reader of standard output has closed it, so that a command can stop."""
    return bool(getattr(getattr(getattr(sys.stdout, "buffer", None), "raw", None), "broken", False))


def print_line(console: "Console", message: str) -> None:
    """Print one line without wrapping."""
    console.print(one_line(message), highlight=False, markup=False, soft_wrap=True)


def show_labels(corpus: "Corpus", keep: bool, console: "Console") -> None:
    """Print the classes of the training texts and what is unusual about them; refuse near-duplicates unless kept."""
    from steadygaze.core.errors import UserError
    from steadygaze.data.label_checks import count_labels, count_sentence, near_duplicate_sentence, rare_sentence

    counts = count_labels(example.label for example in corpus.training)
    print_line(console, count_sentence(counts))
    if rare := rare_sentence(counts):
        print_line(console, rare)
    everywhere = count_labels(example.label for split in corpus.splits.values() for example in split)
    if not (near := near_duplicate_sentence(everywhere)):
        return
    if not keep:
        raise UserError(f"{near}.  Correct them in the data, or add --keep-labels to train on them as they are")
    print_line(console, f"{near}.  Each is a class of its own")


def show(message: object) -> None:
    """Print one line of a result."""
    print(one_line(message))


def print_json(value: Any) -> None:
    print_json_lines([json.dumps(value, ensure_ascii=False, indent=1).encode(errors="replace")])


def print_json_lines(lines: Iterable[bytes]) -> None:
    """Print JSON in UTF-8, independent of the encoding of standard output."""
    sys.stdout.flush()  # keep the order of earlier output
    for line in until_closed(lines):
        sys.stdout.buffer.write(safe_json(line) + b"\n")
    sys.stdout.flush()


def until_closed(items: Iterable[T]) -> Iterator[T]:
    """Yield items until the reader of standard output closes the pipe."""
    for item in items:
        if output_closed():
            return
        yield item


def print_omissions(data: "str | Path | None", dropped: Mapping[str, int], common: Common) -> None:
    """Print how many items of the data were left out, by reason."""
    if data is not None and any(dropped.values()):
        from steadygaze.data.corpus import omissions  # imports pyarrow

        print_line(stderr_console(common), f"{Path(data).name}: {omissions(dropped)}")


def print_health(health: "Health") -> None:
    """Print the known-bad states of a model, also with --quiet: they belong to every result."""
    from steadygaze.core.errors import Console

    for problem in health:
        print_line(Console(stderr=True), f"! {problem.sentence}")


def print_result(result: Any, known: "Health") -> None:
    """Print a result, first its health on standard error; `known`: problems that are already there."""
    from steadygaze.results.health import without_health

    print_health(result.health - known)
    stdout_console().print(without_health(result))
