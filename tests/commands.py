"""The command line in this process: what it printed where, and how it ended."""

from typing import NamedTuple

import pytest

from steadygaze import cli


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> Ended:
    with pytest.raises(SystemExit) as ended:
        cli.main([str(argument) for argument in arguments])
    code = ended.value.code
    return Ended(0 if code is None else int(code), *capsys.readouterr())
