"""Tables of explanations: throughput beside explanations in memory, peak memory, and workers of Ray.

throughput   rows per second of `explain --file in.parquet --out out.parquet`, model loaded, over those of
             clf.explain(texts) with the same texts; interleaved rounds
memory       peak memory of two children, which explain 20,000 and 200,000 rows
ray          rows per second of two workers over one; start-up of the cluster included

python bench/bulk.py [--texts 20000] [--rounds 3] [--memory 20000,200000] [--ray 50000]
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import pandas as pd

from explain_file import save_model, texts
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.bulk import BulkTask, Source, bulk_run
from steadygaze.adapters.load_and_explain import load
from steadygaze.cli.ray_bulk import write_with_ray

OPTIONS = {"explainer": None, "target": None}


def make_task(folder: Path) -> BulkTask:
    return BulkTask(as_adapter(load(folder, device="cpu")), OPTIONS)


def write(folder: Path, file: Path, task: BulkTask, workers: int = 0) -> float:
    """Seconds to write the table; `workers` of Ray, or this process."""
    out = file.with_name("out.parquet")
    start = time.perf_counter()
    with bulk_run(out, Source(file, ["text"]), task, {}, lambda *_: None) as run:
        if workers:
            write_with_ray(run, partial(make_task, folder), "ray", workers, gpu=False)
        else:
            run.write(task)
        run.parts.merge()
    seconds = time.perf_counter() - start
    out.unlink()
    return seconds


def table(folder: Path, rows: int) -> Path:
    file = folder / f"{rows}.parquet"
    pd.DataFrame({"id": range(rows), "text": texts(rows)}).to_parquet(file)
    return file


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", default="20000,200000", help="rows of the children; empty: none")
    parser.add_argument("--ray", type=int, default=0, help="rows of the comparison of workers")
    parser.add_argument("--child", nargs=2, type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        write(*options.child, make_task(options.child[0]))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder, base = Path(scratch) / "model", Path(scratch)
        save_model(folder, texts(options.texts))
        task, ratios = make_task(folder), []
        file, read, clf = table(base, options.texts), texts(options.texts), load(folder, device="cpu")
        for _ in range(options.rounds):
            bulk = write(folder, file, task)
            start = time.perf_counter()
            clf.explain(read)
            memory = time.perf_counter() - start
            ratios.append(memory / bulk)
            print(f"{options.texts / bulk:,.0f} rows/s in a table, {options.texts / memory:,.0f} in memory")
        print(f"throughput over that in memory: {statistics.median(ratios):.2f} (at least 0.9)")
        for rows in filter(None, options.memory.split(",")):
            command = [sys.executable, __file__, "--child", str(folder), str(table(base, int(rows)))]
            peak = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
            print(f"{int(rows):,} rows: peak memory {peak} MB")
        if options.ray:
            file = table(base, options.ray)
            seconds = [write(folder, file, task, workers) for workers in (1, 2)]
            print(f"two workers over one: {seconds[0] / seconds[1]:.2f} ({seconds[0]:.0f} s, {seconds[1]:.0f} s)")


if __name__ == "__main__":
    main()
