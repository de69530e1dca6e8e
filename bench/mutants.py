"""Mutation test of two layouts of the code: the same 60 small errors in each, and the tests that detect them.

bench/mutants.tsv has one mutant per line, located by its function and a text that occurs there exactly once.  "before"
is the layout of commit 1f3103e, "after" the layout since; an empty text and change equal those before.

    python bench/mutants.py --tree DIR --side before --workers 7 --out before.jsonl
    python bench/mutants.py --compare before.jsonl after.jsonl

Every worker has its own copy of the tree.  The unmutated test files run first, in full: tests that fail there are left
out, and so are files that cannot be collected.  Then each mutant runs its files until the first failure.

    killed      a test fails, or the run exceeds the time limit
    survived    all tests pass
    error       no test could run; a mutant that cannot be located has no record, and the exit status is 1
"""

import argparse
import ast
import csv
import json
import os
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

TABLE = Path(__file__).with_suffix(".tsv")
IGNORED = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache", "golden", "records")
OPTIONS = ["-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "hypothesispytest", "--hypothesis-seed=0"]
FAILED = re.compile(r"^(?:FAILED|ERROR) (tests/\S+?\.py(?:::.+?)?)(?: - .*)?$", re.MULTILINE)
Record = dict[str, Any]


@dataclass(frozen=True)
class Mutant:
    id: str
    file: str
    function: str
    text: str
    change: str
    tests: list[str]


def read_table(side: str, only: str) -> list[Mutant]:
    mutants = []
    for row in csv.DictReader(TABLE.read_text("utf-8").splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE):
        text_side = side if row[f"{side}_text"] else "before"
        text, change, tests = row[f"{text_side}_text"], row[f"{text_side}_change"], row[f"{side}_tests"].split()
        mutants.append(Mutant(row["id"], row[f"{side}_file"], row[f"{side}_function"], text, change, tests))
    return [mutant for mutant in mutants if re.search(only, mutant.id)]


def functions(node: ast.AST, prefix: str = "") -> Iterator[tuple[str, int, int]]:
    """Iterate over qualified names of functions, with the first and last line of each."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef):
            yield prefix + child.name, child.lineno, child.end_lineno or child.lineno
        if isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield from functions(child, f"{prefix}{child.name}.")


def mutated_source(source: str, mutant: Mutant) -> str | None:
    """Return the source with the error; None unless the text occurs exactly once in the function."""
    lines = source.splitlines(keepends=True)
    for name, first, last in functions(ast.parse(source)):
        body = "".join(lines[first - 1 : last])
        if name == mutant.function and body.count(mutant.text) == 1:
            mutated = "".join([*lines[: first - 1], body.replace(mutant.text, mutant.change), *lines[last:]])
            compile(mutated, mutant.file, "exec")
            return mutated
    return None


def locate(tree: Path, mutant: Mutant) -> tuple[Path, str, list[str]]:
    """Return the file, its source with the error, and the test files; what moved is found by its name."""
    package, tests = tree / "src" / "steadygaze", []
    for name in mutant.tests:
        path = tree / "tests" / name
        matches = [path] if path.exists() else list((tree / "tests").rglob(path.name))
        if len(matches) != 1:
            raise LookupError(f"{mutant.id}: there is no test file {name}")
        tests.append(str(matches[0].relative_to(tree)))
    for pattern in (mutant.file, "**/*.py"):
        sources = {file: mutated_source(file.read_text("utf-8"), mutant) for file in package.glob(pattern)}
        located = [(file.relative_to(tree), source) for file, source in sources.items() if source is not None]
        if len(located) == 1:
            return *located[0], tests
    raise LookupError(f"{mutant.id}: {mutant.function} in {mutant.file} does not contain {mutant.text!r} exactly once")


def run_tests(tree: Path, arguments: list[str], limit: float) -> Record:
    """Run tests in a tree; return the exit code, seconds, failed tests and last line."""
    path = os.pathsep.join([str(tree / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "500"}
    command, start = [sys.executable, "-m", "pytest", *OPTIONS, *arguments], time.perf_counter()
    shutil.rmtree(tree / ".hypothesis", ignore_errors=True)  # examples of other mutants
    try:
        run = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return {"code": None, "seconds": limit, "failed": ["time limit"], "last": ""}
    last, seconds = (run.stderr + run.stdout).strip().rpartition("\n")[2], round(time.perf_counter() - start, 1)
    return {"code": run.returncode, "seconds": seconds, "failed": FAILED.findall(run.stdout), "last": last}


def run_mutant(tree: Path, mutant: Mutant, unmutated: dict[str, Record], limit: float) -> Record:
    file, source, tests = locate(tree, mutant)
    usable = [name for name in tests if unmutated[name]["code"] == bool(unmutated[name]["failed"])]  # 0, or 1 and names
    excluded = [test for name in usable for test in unmutated[name]["failed"]]
    original = (tree / file).read_text("utf-8")
    write_source(tree / file, source)
    arguments = ["-x", *(f"--deselect={test}" for test in excluded), *usable]
    result: Record = run_tests(tree, arguments, limit) if usable else {"code": 5, "failed": []}
    write_source(tree / file, original)
    outcome = {0: "survived", 1: "killed", None: "killed"}.get(result["code"], "error")
    outcome = "error" if {*result["failed"]} & {*excluded} else outcome
    return {"id": mutant.id, "function": mutant.function, "outcome": outcome, "tests": usable, **result}


def write_source(path: Path, source: str) -> None:
    """Write a file and delete its bytecode: Python compares times in whole seconds, and sizes."""
    path.write_text(source, "utf-8")
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        compiled.unlink()


def run_all(tree: Path, side: str, mutants: list[Mutant], workers: int, out: Path, limit: float) -> None:
    copies, lock = queue.Queue[Path](), threading.Lock()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool, out.open("w") as records:
        for number in range(workers):
            copies.put(Path(shutil.copytree(tree, Path(folder, f"{side}-{number}"), ignore=IGNORED)))

        def work(job: Callable[[Path], Record]) -> Record:
            copy = copies.get()
            record = {"side": side, **job(copy)}
            copies.put(copy)
            with lock:
                records.write(json.dumps(record) + "\n")
                records.flush()
            return record

        names = sorted({name for mutant in mutants for name in locate(tree, mutant)[2]})
        checks = [lambda copy, name=name: {"file": name, **run_tests(copy, [name], limit)} for name in names]
        unmutated = {record["file"]: record for record in pool.map(work, checks)}
        jobs = [lambda copy, mutant=mutant: run_mutant(copy, mutant, unmutated, limit) for mutant in mutants]
        outcomes = [record["outcome"] for record in pool.map(work, jobs)]
    print(f"{side}:", ", ".join(f"{outcomes.count(name)} {name}" for name in ("killed", "survived", "error")))


def compare(*files: Path) -> None:
    """Print a table of the outcomes, and the tests that fail without a mutant."""
    sides = [[json.loads(line) for line in file.read_text("utf-8").splitlines()] for file in files]
    before, after = ({record["id"]: record for record in side if "id" in record} for side in sides)
    print("| mutant | function | before | after | first failed test after |\n|---|---|---|---|---|")
    for name in sorted({*before, *after}):
        left, right = before.get(name, {}), after.get(name, {})
        test = (right.get("failed") or ["—"])[0].removeprefix("tests/")
        print(f"| {name} | `{right.get('function')}` | {left.get('outcome')} | {right.get('outcome')} | {test} |")
    for side in sides:
        outcomes = [record["outcome"] for record in side if "id" in record]
        print(f"{side[0]['side']}: {outcomes.count('killed')} of {len(outcomes)} mutants killed; excluded tests:")
        print([record["failed"] or record["file"] for record in side if "id" not in record and record["code"]])


def main() -> str | None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", type=Path, help="folder with src and tests")
    parser.add_argument("--side", choices=("before", "after"), default="after")
    parser.add_argument("--workers", type=int, default=1, help="processes side by side")
    parser.add_argument("--out", type=Path, default="mutants.jsonl", help="records, one JSON object per line")
    parser.add_argument("--only", default="", help="mutants whose ids match this regular expression")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for one run of pytest")
    parser.add_argument("--check", action="store_true", help="locate mutants and test files, then stop")
    parser.add_argument("--compare", type=Path, nargs=2, help="print a table of two files of records")
    options = parser.parse_args()
    if options.compare:
        compare(*options.compare)
        return None
    tree, mutants, problems = options.tree.absolute(), [], []
    for mutant in read_table(options.side, options.only):
        try:
            locate(tree, mutant)
            mutants.append(mutant)
        except LookupError as error:
            problems.append(str(error))
    if not options.check:
        run_all(tree, options.side, mutants, options.workers, options.out, options.limit)
    return "\n".join(problems) or None


if __name__ == "__main__":
    sys.exit(main())
