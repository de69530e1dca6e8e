"""The syntax trees of the package, parsed once per process."""

import ast
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "steadygaze"


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(parsed(path)))
