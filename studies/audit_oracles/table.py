"""How often each verdict is right, by model: the table of docs/results/audit-tests.md."""

from pathlib import Path
from typing import Any

from studies.audit_oracles.run import MODELS, VERDICTS, oracle_tests
from studies.tables import RECORDS, markdown, read_records


def lines_of(records: list[dict[str, Any]]) -> list[list[str]]:
    """Seeds with the expected answer, by model and verdict; a dash where no answer is expected."""
    oracles = oracle_tests()
    expected, flaws = oracles.EXPECTED, oracles.GUILTY
    lines = [["model", *VERDICTS, "all", "measure made for the flaw"]]
    for name, label in MODELS.items():
        runs = [record for record in records if record["model"] == name]
        cells = []
        for title in VERDICTS:
            wanted = expected[name].get(title)
            right = sum(run["verdicts"][title] == wanted for run in runs)
            cells.append(f"{wanted}: {right} of {len(runs)}" if wanted else "–")
        every = sum(all(run["verdicts"][t] == answer for t, answer in expected[name].items()) for run in runs)
        lines.append([label, *cells, f"{every} of {len(runs)}", f"`{flaws[name]}`" if name in flaws else "–"])
    return lines


def table(records: list[Path] = [RECORDS / "audit_oracles.jsonl"]) -> str:  # noqa: B006
    return markdown(lines_of(read_records(records)))
