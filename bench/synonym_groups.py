"""Synonym groups beside vanilla, word-at and consensus: stability under substitutions of words in the text.

    python bench/synonym_groups.py --cut TABLES --data-dir DATA --counter-fitted FILE --wordnet FOLDER       once
    python bench/synonym_groups.py --tables TABLES --data-dir DATA --glove FILE --out DIR [--device cuda] [--workers 14]
                                   [--only REGEX] [--limit N] [--epochs N] [--minilm FOLDER] [--student ROW]
                                   [--rows vanilla:none,word-at:both] [--unmeasured fast-] [--seeds N]
    python bench/synonym_groups.py ... --cheaper              cheaper forms of consensus
    python bench/synonym_groups.py ... --coverage             substitutions inside groups, and those that students see
    python bench/synonym_table.py RECORDS...                  prints the tables

A job trains one model and measures it on validation and test texts (bench/synonym_measures.py).  Rows:

    technique      vanilla, word-at (ε = 0.2) and the students of bench/cheaper_consensus.py
    groups         none, cf (counter-fitted vectors), wn (WordNet), both (the merged tables)

IMDB is a subset: every tenth text, its first 1,200 characters; every fifth training text is for validation.
A student is trained as soon as its teachers are; teachers of two students differ.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path

from cheaper_consensus import CHEAPER, STUDY, Job, seeds_of
from studies import jobs as job_cells
from synonym_jobs import CORPORA, Study
from synonym_table import JOB_FIELDS
from word_rewrites import WORD

GROUPS = ("both", "none", "linked", "cf", "wn")


def all_jobs(cheaper: bool, corpora: list[str], max_seeds: int, in_order: bool = False) -> list[Job]:
    """Every row and the teachers it needs; rows that come first are trained first, and long texts if not `in_order`."""
    rows = [
        Job(corpus, name, groups, seed)
        for name, groups_of_row in (CHEAPER if cheaper else STUDY).items()
        for groups in groups_of_row
        for corpus in corpora
        for seed in range(min(max_seeds, seeds_of(name, groups, corpus, cheaper)))
    ]
    jobs = dict.fromkeys(job for row in rows for job in (*row.teachers, row))
    return list(jobs) if in_order else sorted(jobs, key=lambda job: (job.seed >= 3, -CORPORA[job.corpus].long))


def teachers_of(job: Job) -> tuple[str, ...]:
    """The jobs that train the teachers of a job."""
    return tuple(teacher.id for teacher in job.teachers)


def complete_seeds(out: Path) -> None:
    """Compare every model with those of all lower seeds, also with those that were measured after it."""
    from synonym_measures import distance_to_seeds

    for file in (out / "records").glob("*.json"):
        record = json.loads(file.read_text())
        for part in [name for name in record if name in ("validation", "test") or name.startswith("temperature ")]:
            split, suffix = ("test", f".{part.split()[1]}.npz") if " " in part else (part, ".npz")
            ids = [Job(*(record[name] for name in JOB_FIELDS[:-1]), seed).id for seed in range(record["seed"] + 1)]
            *others, own = [out / "seen" / split / f"{name}{suffix}" for name in ids]
            if own.exists():
                record[part]["seeds"] = distance_to_seeds(own, others)
        file.write_text(json.dumps(record) + "\n")


def prepare_tables(options: argparse.Namespace) -> None:
    """Write both tables with the pairs of words that occur in the training texts."""
    from steadygaze.data.corpora import load_corpus
    from steadygaze.data.substitutable_pairs import substitutable_pairs
    from steadygaze.data.synonym_tables import clean_table, read_synonyms

    words: set[str] = set()
    for corpus in {setting.corpus for setting in CORPORA.values()}:
        examples = load_corpus(corpus, data_dir=options.data_dir).splits["train"]
        words |= {word.lower() for example in examples for word in WORD.findall(example.text)}
    options.cut.mkdir(parents=True, exist_ok=True)
    for name, source in (("cf", options.counter_fitted), ("wn", options.wordnet)):
        table = substitutable_pairs(clean_table(read_synonyms(source, folded=True, words=words)).rows)
        rows = {word: [s for s in row if s in words] for word, row in table.items() if word in words}
        lines = [json.dumps({"word": word, "synonyms": row}) for word, row in sorted(rows.items()) if row]
        (options.cut / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
        print(name, len(lines), "words")


def matching_jobs(jobs: list[Job], only: str) -> Iterator[Job]:
    """The jobs that `only` matches, and their teachers."""
    import re

    names = {job.id for job in jobs if re.search(only, job.id)}
    names |= {teacher.id for job in jobs if job.id in names for teacher in job.teachers}
    return (job for job in jobs if job.id in names)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cut", type=Path, help="write the tables to this folder")
    for name in ("data-dir", "counter-fitted", "wordnet", "tables", "glove", "minilm"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--corpora", default=",".join(CORPORA))
    parser.add_argument("--seeds", type=int, default=5, help="largest number of seeds of a row")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--limit", type=int, help="texts per split, for a trial run")
    parser.add_argument("--student", default="snapshots-5-3-e2", help="the student of the study")
    parser.add_argument("--rows", default="", help="technique:groups, separated by commas, instead of the study's")
    parser.add_argument("--unmeasured", default="", help="techniques of teachers that are not measured: a prefix")
    parser.add_argument("--coverage", action="store_true", help="print which substitutions are in groups or trained")
    parser.add_argument("--cheaper", action="store_true", help="compare cheaper forms of consensus")
    job_cells.options(parser)
    options = parser.parse_args()
    if options.cut:
        prepare_tables(options)
        return
    if options.coverage:
        for corpus in options.corpora.split(","):
            for table in ("cf", "both"):
                print(corpus, "substitutions of", table, Study(options).coverage(corpus, table))
        return
    STUDY[options.student] = GROUPS
    if options.rows:
        STUDY.clear()
        for name, groups in (row.split(":") for row in options.rows.split(",")):
            STUDY[name] = (*STUDY.get(name, ()), groups)
    jobs = all_jobs(options.cheaper, options.corpora.split(","), options.seeds, in_order=bool(options.rows))
    jobs = list(matching_jobs(jobs, options.only))
    options.only = ""  # teachers need not match
    try:
        job_cells.run(options, lambda: jobs, Study(options).run_job, needs=teachers_of)
    finally:  # also if some jobs failed
        complete_seeds(options.out)


if __name__ == "__main__":
    import synonym_groups  # workers import the jobs from this module, not from the script

    synonym_groups.main()
