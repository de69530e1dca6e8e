"""A digest of the code that determines results, so that a finished cell is reused only if its code is unchanged.

The digest covers the packages that train, explain and measure, as bytecode without docstrings, comments and line
numbers: editing those keeps finished cells, and so does any change to reports, commands or this scheduler.  A digest
belongs to one minor version of Python, whose bytecode it reads.
"""

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import CodeType

import steadygaze

PACKAGES = (
    "core",
    "data",
    "models",
    "techniques",
    "training",
    "explainers",
    "results",
    "estimator",
    "adapters",
    "audit",
)
"""Every package that a model or a score depends on."""
LENGTH = 16
"""Characters of a code version."""


@cache
def code_version() -> str:
    """The digest of the installed code."""
    root = Path(steadygaze.__file__).parent
    files = (path for package in PACKAGES for path in sorted((root / package).rglob("*")))
    return source_digest(root, [path for path in files if path.is_file() and path.suffix != ".pyc"])


def source_digest(root: Path, files: list[Path]) -> str:
    """Digest Python files by their bytecode, and other files by their content."""
    sha = hashlib.sha256()
    for path in files:
        sha.update(str(path.relative_to(root)).encode())
        content = path.read_bytes()
        if path.suffix == ".py":
            for part in _parts(compile(content, path.name, "exec", dont_inherit=True, optimize=2)):  # no docstrings
                sha.update(part)
        else:
            sha.update(content)
    return sha.hexdigest()[:LENGTH]


def _parts(code: CodeType) -> Iterator[bytes]:
    """Everything in a code object that changes what it does."""
    names = (code.co_name, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars, code.co_flags)
    yield code.co_code
    yield code.co_exceptiontable
    yield repr(names).encode()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _parts(constant)
        elif isinstance(constant, frozenset):  # its order differs between processes
            yield repr(sorted(map(repr, constant))).encode()
        else:
            yield repr(constant).encode()
