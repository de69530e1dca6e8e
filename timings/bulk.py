"""Tables of explanations: throughput beside explanations in memory, peak memory, and workers of Ray.

throughput   rows per second of `explain --file in.parquet --out out.parquet`, model loaded, over those of
             clf.explain(texts) with the same texts
memory       peak memory of two children, which explain 20,000 and 200,000 rows
ray          rows per second of two workers over one; start-up of the cluster included
"""

import tempfile
from functools import partial
from pathlib import Path

import pandas as pd

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.bulk import BulkTask, Source, bulk_run
from steadygaze.adapters.load_and_explain import load
from steadygaze.cli.ray_bulk import write_with_ray
from steadygaze.estimator.explain_request import ExplainRequest
from timings.explain_file import repeated_sentences
from timings.harness import Result, clocked, in_child, peak_memory, race
from timings.inputs import saved_model

MIN_THROUGHPUT = 0.9


def make_task(folder: Path) -> BulkTask:
    return BulkTask(as_adapter(load(folder, device="cpu")), ExplainRequest())


def write(folder: Path, file: Path, task: BulkTask, workers: int = 0) -> None:
    """Write the table; `workers` of Ray, or this process."""
    out = file.with_name("out.parquet")
    with bulk_run(out, Source(file, ["text"]), task, {}, lambda *_: None) as bulk:
        if workers:
            write_with_ray(bulk, partial(make_task, folder), "ray", workers, gpu=False)
        else:
            bulk.write(task)
        bulk.parts.merge()
    out.unlink()


def peak(folder: Path, file: Path) -> float:
    write(folder, file, make_task(folder))
    return peak_memory()


def table(folder: Path, rows: int) -> Path:
    file = folder / f"{rows}.parquet"
    pd.DataFrame({"id": range(rows), "text": repeated_sentences(rows)}).to_parquet(file)
    return file


def run(*, texts: int = 20_000, rounds: int = 3, memory: str = "20000,200000", ray: int = 0) -> list[Result]:
    """`memory`: rows of the children; `ray`: rows of the comparison of workers, none by default."""
    with tempfile.TemporaryDirectory() as scratch:
        base, folder, read = Path(scratch), Path(scratch) / "model", repeated_sentences(texts)
        saved_model(folder, read)
        task, file, clf = make_task(folder), table(base, texts), load(folder, device="cpu")
        variants = {"in memory": lambda: clf.explain(read), "table": lambda: write(folder, file, task)}
        times = race(variants, rounds, warm_up=0)
        results = [times.ratio("in memory", "table", at_least=MIN_THROUGHPUT)]
        for rows in map(int, filter(None, memory.split(","))):
            results.append(Result(f"peak memory, {rows:,} rows", in_child(peak, folder, table(base, rows)), "MiB"))
        if ray:
            file = table(base, ray)
            seconds = [clocked(partial(write, folder, file, task, workers))[0] for workers in (1, 2)]
            results.append(Result("two workers of Ray / one", seconds[0] / seconds[1], "×"))
    return results
