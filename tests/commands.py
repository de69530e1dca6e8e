"""The command line in this process: what it printed where, and how it ended."""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import NamedTuple

import pytest
from typer.main import get_group

from steadygaze import cli


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def run(capsys: pytest.CaptureFixture[str], *arguments: object, override: bool = True) -> Ended:
    """`override`: later options replace earlier ones, so that a test can change those of its fixture."""
    words = [str(argument) for argument in arguments]
    with pytest.raises(SystemExit) as ended:
        cli.main(overridden(words) if override else words)
    code = ended.value.code
    return Ended(0 if code is None else int(code), *capsys.readouterr())


def refused(capsys: pytest.CaptureFixture[str], *arguments: object, override: bool = True) -> str:
    """The message of a command that ends with code 2 and prints nothing else, in one line."""
    ended = run(capsys, *arguments, override=override)
    assert (ended.code, ended.out) == (2, ""), ended
    assert "Traceback" not in ended.err
    return " ".join(ended.err.split())


def overridden(words: Sequence[str]) -> list[str]:
    """The words without the earlier ones of repeated options that take one value, which a command refuses."""
    single, kept, seen = _single_options(words[0] if words else ""), list[str](), set[str]()
    for position in range(len(words) - 1, -1, -1):
        option = words[position].partition("=")[0]
        if option in single and single[option] in seen:
            if "=" not in words[position]:
                del kept[-1]  # its value
            continue
        seen.add(single.get(option, ""))
        kept.append(words[position])
    return kept[::-1]


@cache
def _single_options(name: str) -> dict[str, str]:
    """Option -> the parameter, for options that take one value."""
    if name not in cli.COMMANDS:
        return {}
    import_module(f"steadygaze.cli.{cli.COMMANDS[name][0]}")
    options = [item for item in getattr(get_group(cli.app).commands[name], "params", []) if hasattr(item, "is_flag")]
    single = [item for item in options if not item.is_flag and not item.multiple and item.nargs == 1]
    return {option: str(item.name) for item in single for option in item.opts}
