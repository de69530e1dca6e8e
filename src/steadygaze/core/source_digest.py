"""Digests of source code, in which docstrings, comment lines and blank lines do not count."""

import ast
import hashlib
import inspect
from collections.abc import Iterator, Sequence
from pathlib import Path

LENGTH = 16
"""Characters of a digest."""


def class_digest(kind: type) -> str | None:
    """The digest of the file of a class; None for a class without a file, as in a notebook."""
    try:
        path = Path(inspect.getsourcefile(kind) or "")
    except TypeError:
        return None
    return source_digest(path.parent, [path]) if path.is_file() else None


def source_digest(root: Path, files: Sequence[Path]) -> str:
    """Digest Python files by their code, and other files by their content."""
    sha = hashlib.sha256()
    for path in files:
        content = path.read_bytes()
        sha.update(f"{path.relative_to(root).as_posix()}\n".encode())
        sha.update("\n".join(_code_lines(content.decode())).encode() if path.suffix == ".py" else content)
    return sha.hexdigest()[:LENGTH]


def _code_lines(source: str) -> Iterator[str]:
    """The lines of a module without docstrings, comment lines and blank lines."""
    docstring_lines = {line for first, last in _docstrings(ast.parse(source).body) for line in range(first, last + 1)}
    for number, line in enumerate(source.split("\n"), 1):
        if number not in docstring_lines and line.strip() and not line.lstrip().startswith("#"):
            yield line.rstrip()


def _docstrings(statements: Sequence[ast.stmt]) -> Iterator[tuple[int, int]]:
    """The first and last line of each docstring, also of fields and constants."""
    for statement in statements:
        match statement:
            case ast.Expr(value=ast.Constant(value=str())):
                yield statement.lineno, statement.end_lineno or statement.lineno
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _docstrings(statement.body)
