"""Coverage of the intervals behind verdicts: a section of docs/results/oracles.md."""

from pathlib import Path

from steadygaze.results.intervals import wilson_interval
from studies.numbers import Number, Origin
from studies.tables import RECORDS, Records, markdown, read_records
from studies.verdict_coverage.run import MEASURES, SIZES

FILE = RECORDS / "verdict_coverage.jsonl"
ORIGIN = Origin("43a4a3a3", "STEADYGAZE_DATA=DATA python -m studies run verdict_coverage --out OUT")


def numbers() -> list[Number]:
    """corpus.measure.n: the coverage, with Wilson's interval over the trials; .largest-miss: distance of the truth."""
    result = []
    for record in read_records([FILE]):
        for measure in MEASURES:
            for n in SIZES:
                share, trials = record[measure]["coverage"][str(n)], record["trials"]
                interval = wilson_interval(round(share * trials), trials)
                name = f"{record['corpus']}.{measure}.{n}"
                result.append(ORIGIN.number(name, share, interval, trials))
                result.append(
                    ORIGIN.number(f"{name}.largest-miss", record[measure]["largest miss"][str(n)], None, trials)
                )
    return result


def lines_of(records: Records) -> list[list[str]]:
    """The coverage of each measure in %, by corpus and number of texts."""
    heading = ["measure", *(f"{record['corpus']}, {n} texts" for record in records for n in SIZES)]
    rows = [
        [name, *(f"{100 * record[name]['coverage'][str(n)]:.1f}" for record in records for n in SIZES)]
        for name in MEASURES
    ]
    return [heading, *rows]


def table(records: list[Path] = [FILE]) -> str:  # noqa: B006
    return markdown(lines_of(read_records(records)))
