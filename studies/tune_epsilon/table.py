"""Scores and epochs of the grid and of each search, over the same seeds: the table of docs/how-to/studies.md."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from studies.tables import RECORDS, markdown, read_records
from studies.tune_epsilon.run import GRID


@dataclass(frozen=True)
class SearchResult:
    name: str
    epsilon: float
    epochs: float
    validation: float
    test: float


def results(files: Iterable[Path]) -> list[SearchResult]:
    """The grid and each search: ε, trained epochs, and the mean scores of its ε over the seeds of the grid."""
    records = read_records(files)
    seeds = {r["seed"] for r in records if r["kind"] == "grid"}

    def score(epsilon: float, part: str) -> float:
        runs = {r["seed"]: r[part] for r in records if r["kind"] != "search" and r["epsilon"] == epsilon}
        assert runs.keys() == seeds, (epsilon, runs)
        return float(mean(runs.values()))

    def search_result(name: str, epsilon: float, epochs: float) -> SearchResult:
        return SearchResult(name, epsilon, epochs, score(epsilon, "validation"), score(epsilon, "test"))

    best = max(GRID, key=lambda epsilon: score(epsilon, "validation"))
    grid_epochs = sum(r["epochs"] for r in records if r["kind"] == "grid") / len(seeds)
    searches = sorted((r for r in records if r["kind"] == "search"), key=lambda r: r["seed"])
    return [
        search_result("grid of ten", best, grid_epochs),
        *(
            search_result(f"`tune`, seed {r['seed']}", r["best"]["epsilon"], sum(t["epochs"] for t in r["trials"]))
            for r in searches
        ),
    ]


def table(records: list[Path] = [RECORDS / "tune_epsilon-db9835f.jsonl"]) -> str:  # noqa: B006
    lines = [["search", "ε", "epochs", "validation macro-F1", "test macro-F1"]]
    for r in results(records):
        lines.append([r.name, f"{r.epsilon:g}", f"{r.epochs:.0f}", f"{r.validation:.4f}", f"{r.test:.4f}"])
    return markdown(lines)
