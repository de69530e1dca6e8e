"""Records of label leakage: every job has one, and warnings are counted by method."""

from studies.default_tokens.run import plan as token_jobs
from studies.default_tokens.table import FILES
from studies.independent_reader.plan import plan
from studies.independent_reader.table import FILE, GROUPS, warnings
from studies.tables import read_records


def test_every_job_has_a_record() -> None:
    records = read_records([FILE])
    assert sorted(f"{run['corpus']}.{run['row']}.s{run['seed']}" for run in records) == sorted(
        job.id for job in plan(5)
    )
    assert {run["row"] for run in records} == {row for rows in GROUPS.values() for row in rows}


def test_every_job_of_default_tokens_has_a_record() -> None:
    assert sorted(run["job"] for run in read_records(FILES)) == sorted(job.id for job in token_jobs(5))


def test_a_run_is_warned_about_if_both_gaps_count() -> None:
    """A gap counts if the end of its interval is above 0.05."""

    def run(reader: float, black_box: float) -> dict[str, float | bool]:
        lows = {"leakage-gap low": reader, "leakage-gap/black-box low": black_box}
        return lows | {"leaks": min(reader, black_box) > 0.05}

    runs = [run(0.06, 0.06), run(0.04, 0.06), run(0.06, 0.0), run(0.0, 0.0)]
    assert warnings(runs) == {"runs": 4, "warned": 1, "black-box-gap-alone": 2, "reader-gap-alone": 2}
    for record in read_records([FILE]):
        count = warnings([record])
        assert record["leaks"] == (count["black-box-gap-alone"] == count["reader-gap-alone"] == 1)
