"""Verdicts about trained models: which configurations the audit calls stable, robust and faithful.

`--cut TABLES` writes the two synonym tables, once, from counter-fitted neighbors and WordNet.  One job trains a model,
another audits it on TEXTS test texts with each explainer of plan.py and a model of another seed.  An audit runs the
checks that decide the verdicts below with the settings of `sg.audit`; models of FULL get all checks.

    faithfulness, robustness, seed-consistency, shortcut-leakage    as in any audit
    stability                                                       with the table of the model's groups
    stability-unused                                                with pairs that are not in that table

`--earlier FILE` reads the records of an earlier run: its audits are not repeated.
"""

import json
import random
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

import steadygaze as sg
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.auditing.audit import run_audit
from steadygaze.auditing.audit_report import CHOSEN_MEASURES, AuditFindings, build_report
from steadygaze.auditing.prepare_case import AuditRequest, choose_explainers, prepare_all
from steadygaze.core.atomic_files import write_text
from steadygaze.core.types import Example
from steadygaze.data.corpora import load_corpus
from steadygaze.data.substitutable_pairs import substitutable_pairs
from steadygaze.data.synonym_tables import clean_table, read_synonyms
from steadygaze.data.word_tokenizer import document_frequency
from steadygaze.estimator.resumable_training import columns
from steadygaze.properties import PROPERTIES
from steadygaze.properties.audit_case import AuditCase, Finding
from steadygaze.properties.protocols.content_leakage import content_leakage
from steadygaze.properties.protocols.relative_erasure import relative_erasure
from steadygaze.properties.protocols.rewording import FLIP, rewording
from steadygaze.properties.protocols.shortcut_leakage import shortcut_leakage
from steadygaze.properties.protocols.stability import robustness, seed_consistency, stability
from steadygaze.properties.verdict_rules import verdicts
from steadygaze.results.row import Row
from studies import jobs
from studies.data_folder import data_folder
from studies.stability.models import divide_scores, read_vectors_once
from studies.synonyms.texts import without
from studies.tables import read_records
from studies.verdicts.plan import (
    CORPORA,
    EXPLAINERS,
    OWN,
    ROWS,
    SUBSTITUTING,
    TEMPERATURE,
    TEXTS,
    TRAINING,
    UNUSED,
    VALIDATION,
    Job,
    open_jobs,
    plan,
)

VERDICTS = ("faithfulness", "stability", "robustness", "seed-consistency", "shortcut-leakage")
OF_UNUSED = "stability-unused"
PROBES = frozenset({"noise", "fgm-label", "pgd-attention"})
Check = Callable[[AuditCase], Iterator[Finding]]
CHECKS: dict[str, tuple[Check, ...]] = {
    "stability": (stability, rewording),
    "robustness": (robustness,),
    "faithfulness": (relative_erasure,),
    "seed-consistency": (seed_consistency,),
    "shortcut-leakage": (content_leakage, shortcut_leakage),
}
"""Property -> the checks that decide its verdict.  `attention_interventions` also has a row of faithfulness, the
comparison with random parameters, which costs as much as all of these: whole audits have it."""


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    tables: Path = field(metadata={"help": "folder of the synonym tables"})
    glove: Path = field(metadata={"help": "file of word vectors"})
    earlier: Path | None = field(default=None, metadata={"help": "records of an earlier run"})
    training: int = field(default=TRAINING, metadata={"help": "most training texts"})
    texts: int = field(default=TEXTS, metadata={"help": "audited texts"})
    epochs: int | None = None
    cut: bool = field(default=False, metadata={"help": "write the tables, and run nothing"})
    counter_fitted: Path | None = None
    wordnet: Path | None = None

    def table(self, name: str) -> Path:
        return self.tables / f"{name}.jsonl"

    def folder(self, job: Job) -> Path:
        return self.out / "models" / job.id


def run(options: Options) -> None:
    if options.cut:
        return write_tables(options)
    finished = (
        () if options.earlier is None else [Job(**_fields(record)).id for record in read_records([options.earlier])]
    )
    planned = open_jobs(plan(), options.only, finished)
    everything = replace(options, only="")  # trainings need not match
    return jobs.run(everything, lambda: planned, partial(run_job, options), needs=_needs)


def _needs(job: Job) -> tuple[str, ...]:
    return tuple(needed.id for needed in job.needs())


def _fields(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: record[name] for name in ("kind", "corpus", "row", "seed")}


def run_job(options: Options, job: Job) -> dict[str, Any]:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    start = time.process_time()
    record = train(options, job) if job.kind == "train" else audit(options, job)
    result: dict[str, Any] = jobs.compact({**record, "cpu": time.process_time() - start})
    return result


def splits(corpus: str, training: int, texts: int) -> dict[str, list[Example]]:
    """The texts of a study, drawn once for all models: no audited text is a training text."""
    loaded = load_corpus(corpus, data_dir=data_folder(corpus)).splits
    known = {example.text for example in loaded["train"]}
    unseen = [example for example in loaded["test"] if example.text not in known]
    parts = {
        "train": (loaded["train"], training),
        "validation": (loaded["validation"], VALIDATION),
        "test": (unseen, texts),
    }
    return {name: random.Random(0).sample(list(part), min(size, len(part))) for name, (part, size) in parts.items()}


_splits = cache(splits)


def train(options: Options, job: Job) -> dict[str, Any]:
    """Train a model and save it."""
    read_vectors_once()
    own, start = str(options.table(OWN)), job.start()
    settings = ROWS[job.row] | ({"synonyms": own} if job.technique in SUBSTITUTING else {})
    clf = sg.TextClassifier(
        "bilstm",
        job.technique,
        seed=job.seed,
        epochs=options.epochs,
        vectors=options.glove,
        settings=settings,
        synonym_groups=own if job.has_groups else None,
        device=options.device,
        verbose=False,
    )
    parts = _splits(job.corpus, options.training, options.texts)
    reference = None if start is None else sg.load(options.folder(start), device=options.device)
    clf.fit(*columns(parts["train"]), validation=columns(parts["validation"]), reference=reference)
    clf.save(options.folder(job))
    return {"epochs": len(clf.history_)}


def _loaded(options: Options, job: Job, temperature: float) -> Any:
    clf = sg.load(options.folder(job), device=options.device)
    if temperature != 1:
        divide_scores(clf.stored_.model, temperature)
    return clf


def audit(options: Options, job: Job) -> dict[str, Any]:
    """The answers, and the numbers behind them."""
    temperature = TEMPERATURE if job.row == "tempered" else 1.0
    clf, *others = (_loaded(options, needed, temperature) for needed in job.needs())
    examples = _splits(job.corpus, options.training, options.texts)["test"]
    adapters = [as_adapter(model, device=options.device) for model in (clf, *others)]
    request = AuditRequest(adapters[0], examples, explainers=EXPLAINERS, others=adapters[1:])
    own, unused = (replace(request, synonyms=str(options.table(name))) for name in (OWN, UNUSED))
    parts = {OWN: rows_of(own, CHECKS), UNUSED: rows_of(replace(unused, others=()), {"stability": (rewording,)})}
    texts, labels = columns(examples)
    record = {
        "texts": len(examples),
        "training texts": len(_splits(job.corpus, options.training, options.texts)["train"]),
        "accuracy": float(np.mean(clf.predict(texts) == np.array(labels))),
        **{f"flips-{name}": next(row.value for row in rows if row.measure == FLIP) for name, rows in parts.items()},
        **decide(parts[OWN], parts[UNUSED]),
    }
    return record | ({"full": decide(build_report(run_audit(own)).rows)["answers"]} if job.is_full else {})


def rows_of(request: AuditRequest, checks: Mapping[str, Sequence[Check]]) -> Sequence[Row]:
    """The rows of an audit that runs these checks alone."""
    explainers, _ = choose_explainers(request.adapter, request.explainers)
    prepared = prepare_all(request, explainers)
    case = replace(prepared.case, chosen_probes=PROBES)
    findings = {name: [finding for check in checks.get(name, ()) for finding in check(case)] for name in PROPERTIES}
    return build_report(AuditFindings(replace(prepared, case=case), findings, request, incomplete=CHOSEN_MEASURES)).rows


def decide(rows: Sequence[Row], unused: Sequence[Row] = ()) -> dict[str, Any]:
    """Answers and deciding numbers of every explainer.

    `unused`: rows of rewording by the other table, which take the place of those of the first.
    """
    names = {row.measure for row in unused}
    exchanged = [row for row in rows if row.measure not in names] + list(unused)
    answers: dict[str, dict[str, str]] = {}
    numbers: dict[str, Any] = {}
    for explainer in EXPLAINERS:
        answers[explainer], numbers[explainer] = _decided(rows, explainer, VERDICTS)
        if unused:
            of_unused, further = _decided(exchanged, explainer, ("stability",))
            answers[explainer][OF_UNUSED] = of_unused["stability"]
            numbers[explainer] |= {f"{name}-unused": further[name] for name in names & further.keys()}
    return {"answers": answers, "numbers": numbers}


def _decided(rows: Sequence[Row], explainer: str, keys: Sequence[str]) -> tuple[dict[str, str], dict[str, Any]]:
    known = {verdict.key: verdict for verdict in verdicts(rows, explainer) if verdict.key in keys}
    deciding = {measure for verdict in known.values() for measure in verdict.thresholds}
    return {key: verdict.answer for key, verdict in known.items()}, {
        row.measure: [row.value, *(row.interval or (None, None)), row.n]
        for row in rows
        if row.measure in deciding and row.settings.get("explainer") == explainer and row.n
    }


def write_tables(options: Options) -> None:
    """Write both tables with the pairs of words of the training texts; no pair is in both."""
    words: dict[str, int] = {}
    for corpus in CORPORA:
        examples = load_corpus(corpus, data_dir=data_folder(corpus)).splits["train"]
        words |= document_frequency([example.text for example in examples])
    if options.counter_fitted is None or options.wordnet is None:
        raise SystemExit("--cut needs --counter-fitted FILE and --wordnet FOLDER")
    tables = {
        name: substitutable_pairs(clean_table(read_synonyms(source, folded=True, words=set(words))).rows)
        for name, source in ((OWN, options.counter_fitted), (UNUSED, options.wordnet))
    }
    tables[UNUSED] = without(tables[UNUSED], tables[OWN])
    for name, table in tables.items():
        rows = {word: [other for other in row if other in words] for word, row in table.items() if word in words}
        lines = [json.dumps({"word": word, "synonyms": row}) for word, row in sorted(rows.items()) if row]
        options.tables.mkdir(parents=True, exist_ok=True)
        write_text(options.table(name), "\n".join(lines) + "\n")
        print(f"{name}: {len(lines):,} words")
