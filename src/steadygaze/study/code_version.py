"""A digest of the code that determines results, so that a finished cell is reused only if its code is unchanged.

The digest covers the packages that train, explain and measure, and the modules of this package, which choose texts and
measure models.  Docstrings, comment lines and blank lines do not count.  Finished cells therefore remain valid after an
edit of those, and after a change to reports, commands or published numbers.
A technique or an explainer of the user adds the digest of its file, without the modules that it imports.
"""

import ast
import hashlib
import inspect
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from uuid import uuid4

import steadygaze
from steadygaze.explainers import own_explainers
from steadygaze.techniques import own_techniques

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
"""Every package that a model or a score depends on; a package imports those before it."""
LENGTH = 16
"""Characters of a code version."""


@cache
def code_version() -> str:
    """The digest of the installed code."""
    root = Path(steadygaze.__file__).parent
    files = [path for package in PACKAGES for path in sorted((root / package).rglob("*"))]
    files += sorted(Path(__file__).parent.glob("*.py"))
    return source_digest(root, [path for path in files if path.is_file() and path.suffix != ".pyc"])


def technique_source(name: str) -> dict[str, str]:
    """The digest of the file of a user's technique; empty for our own, which the code version covers."""
    own = own_techniques([name])
    return {"source": _file_digest(own[name])} if own else {}


def explainer_source(name: str) -> dict[str, str]:
    """The same for an explainer."""
    own = own_explainers([name])
    return {"explainer_source": _file_digest(own[name])} if own else {}


@cache
def _file_digest(kind: type) -> str:
    """The digest of the file of a class; a class without a file, as in a notebook, has a new one in every process."""
    try:
        path = Path(inspect.getsourcefile(kind) or "")
    except TypeError:
        path = Path()
    return source_digest(path.parent, [path]) if path.is_file() else uuid4().hex[:LENGTH]


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
