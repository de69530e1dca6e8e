"""Search for ε: the table compares scores of the same seeds, and counts the epochs of one grid."""

import json
from pathlib import Path

from studies.tune_epsilon.run import GRID, plan
from studies.tune_epsilon.table import results, table

ROOT = Path(__file__).parents[2]


def test_the_ε_of_a_search_is_scored_with_the_seeds_of_the_grid(tmp_path: Path):
    """The grid is best at its third value, 0.7; the score 0.9 that selected the trial does not count."""
    third, runs = GRID[2], []
    for seed in (0, 1):
        runs += [
            {
                "kind": "grid",
                "epsilon": e,
                "seed": seed,
                "validation": 0.7 if e == third else 0.6,
                "test": 0.5,
                "epochs": 4,
            }
            for e in GRID
        ]
        runs.append(
            {"kind": "found", "epsilon": 0.2, "seed": seed, "validation": 0.69 + 0.01 * seed, "test": 0.4, "epochs": 4}
        )
    trials = [{"epsilon": 0.2, "score": [0.9], "epochs": 4}] * 5
    best = {"epsilon": 0.2, "score": 0.9}
    runs.append({"kind": "search", "epsilon": 0.0, "seed": 100, "trials": trials, "best": best})
    file = tmp_path / "records.jsonl"
    file.write_text("\n".join(map(json.dumps, runs)))
    grid, search = table([file]).splitlines()[2:]
    assert grid == f"| grid of ten | {third:g} | 40 | 0.7000 | 0.5000 |"
    assert search == "| `tune`, seed 100 | 0.2 | 20 | 0.6950 | 0.4000 |"


def test_what_a_search_found_is_trained_after_it(tmp_path: Path):
    assert len(plan(tmp_path, 2)) == 3 + 2 * 10
    (tmp_path / "records").mkdir()
    (tmp_path / "records" / "search.0.0.s0.json").write_text(json.dumps({"best": {"epsilon": 0.2}}))
    assert [job.id for job in plan(tmp_path, 2)[23:]] == ["found.0.2.s0", "found.0.2.s1"]


def test_the_page_has_the_numbers_of_the_records():
    (file,) = (ROOT / "studies" / "records").glob("tune_epsilon-*.jsonl")
    page = (ROOT / "docs" / "how-to" / "studies.md").read_text(encoding="utf-8")
    assert file.name in page
    grid, *searches = results([file])
    below = max(grid.validation - search.validation for search in searches)
    shares = [search.epochs / grid.epochs for search in searches]
    assert f"at most {below:.4f} below the best of ten values" in page
    assert f"with {100 * min(shares):.0f} to {100 * max(shares):.0f} %\nof its epochs" in page
    (default,) = [search for search in searches if search.epsilon == 0.2]
    assert default.validation == max(search.validation for search in searches), "no search gains over the default"
    runs = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    trials = [trial for run in runs if run["kind"] == "search" for trial in run["trials"]]
    pruned = [trial for trial in trials if not trial["score"]]
    assert f"The searches pruned {len(pruned)} of {len(trials)} trials." in page
    assert all(trial["epochs"] == 1 for trial in pruned if trial["epsilon"] >= 1)
