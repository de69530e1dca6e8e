"""Synonym groups beside vanilla, word-at and consensus: stability under substitutions of words in the text.

    python bench/synonym_groups.py --cut TABLES --data-dir DATA --counter-fitted FILE --wordnet FOLDER       once
    python bench/synonym_groups.py --tables TABLES --data-dir DATA --glove FILE --out DIR [--device cuda] [--workers 14]
                                   [--only REGEX] [--limit N] [--epochs N]
    python bench/synonym_groups.py ... --cheaper              cheaper forms of consensus, on validation texts
    python bench/synonym_groups.py --table RECORDS...

A job trains one model and measures it on test texts.  Rows:

    technique      vanilla, word-at (ε = 0.2), and consensus of five vanilla or five word-at teachers
    groups         none, cf (counter-fitted vectors), wn (WordNet), both (the merged tables)

The texts are rewritten before tokenization, and all models of a corpus read the same rewrites:

    cf3, wn3           three words substituted by synonyms of either table
    cf-only3, wn-only3 by pairs that the other table does not have
    deletion3, typo3   three words deleted, or with two neighboring letters exchanged: controls

Words and substitutes occur in the training texts.  The attention of a deleted word is left out, and the rest scaled to
sum 1.  `--table` prints ratios to vanilla without groups, as geometric means over corpora.
"""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, mean
from typing import Any

import job_queue
from word_rewrites import WORD, Table, delete, misspell, substitute, without

CORPORA = {"sst2": "bilstm", "rotten_tomatoes": "bilstm", "tweet_emotion": "bilstm", "imdb": "bilstm"}


@dataclass(frozen=True)
class Row:
    technique: str
    settings: Mapping[str, Any]
    teacher: str = ""
    """Row of the teachers."""
    teachers: int = 0
    epochs: int | None = None


WORD_AT = {"epsilon": 0.2}
TECHNIQUES: dict[str, Row] = {
    "vanilla": Row("vanilla", {}),
    "word-at": Row("word-at", WORD_AT),
    "consensus": Row("consensus", {}, "vanilla", 5),
    "consensus-word-at": Row("consensus", {}, "word-at", 5),
}
SHORT = 3
"""Epochs of short teachers."""
CHEAPER: dict[str, Row] = {
    "word-at": Row("word-at", WORD_AT),
    "word-at-short": Row("word-at", WORD_AT, epochs=SHORT),
    **{f"t{t}-e{e}": Row("consensus", {}, "word-at", t, e) for t, e in ((2, 8), (5, 8), (2, 4), (2, 2), (5, 2))},
    **{f"short-t{t}-e{e}": Row("consensus", {}, "word-at-short", t, e) for t, e in ((2, 4), (5, 4), (2, 2), (5, 2))},
    **{f"no-swaps-t2-e{e}": Row("consensus", {"swaps": 0.0}, "word-at-short", 2, e) for e in (2, 4)},
}
"""Cheaper students, on validation texts: t teachers, e epochs of the student (--cheaper)."""
ROWS = {**TECHNIQUES, **CHEAPER}
GROUPS = ("none", "cf", "wn", "both")
SEEDS = 5
K = 7
MEASURES = ("jensen-shannon", "top-7-overlap", "kendall", "prediction-change", "label-flip")


@dataclass(frozen=True)
class Job:
    corpus: str
    technique: str
    groups: str
    seed: int

    @property
    def id(self) -> str:
        return f"{self.corpus}.{self.technique}.{self.groups}.s{self.seed}"

    @property
    def teachers(self) -> list["Job"]:
        """Models of other seeds than other students have."""
        row = ROWS[self.technique]
        seeds = range(row.teachers * self.seed, row.teachers * (self.seed + 1))
        return [Job(self.corpus, row.teacher, self.groups, seed) for seed in seeds]


def plan(out: Path, students: int, corpora: Sequence[str], cheaper: bool) -> list[Job]:
    """All jobs whose teachers are trained: first the rows of `students` seeds, then the other teachers."""
    techniques, groups = (CHEAPER, ("both",)) if cheaper else (TECHNIQUES, GROUPS)
    rows = [Job(c, t, g, s) for c in corpora for s in range(students) for t in techniques for g in groups]
    if cheaper:
        rows += [Job(c, "vanilla", "none", s) for c in corpora for s in range(students)]
    jobs = dict.fromkeys(job for job in rows if not job.teachers)
    jobs |= dict.fromkeys(teacher for job in rows for teacher in job.teachers)
    ready = [job for job in rows if job.teachers and all((out / "models" / t.id).exists() for t in job.teachers)]
    return [*ready, *jobs]


class Study:
    """Texts, tables and rewrites, read once per process."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.measured = "validation" if options.cheaper else "test"
        self.tables = {name: _read_table(options.tables / f"{name}.jsonl") for name in ("cf", "wn")}
        self.splits: dict[str, dict[str, list[Any]]] = {}
        self.rewritten: dict[str, dict[str, list[str]]] = {}

    def split(self, corpus: str, name: str) -> list[Any]:
        from steadygaze.data.corpora import load_corpus

        if corpus not in self.splits:
            splits = load_corpus(corpus, data_dir=self.options.data_dir).splits
            limit = self.options.limit
            self.splits[corpus] = {
                key: list(rows[:: max(1, len(rows) // limit) if limit else 1]) for key, rows in splits.items()
            }
        return self.splits[corpus][name]

    def rewrites(self, corpus: str) -> dict[str, list[str]]:
        """Probe -> the test texts after it, the same for every model."""
        if corpus not in self.rewritten:
            words = Counter(w.lower() for e in self.split(corpus, "train") for w in WORD.findall(e.text))
            known = {word for word, count in words.items() if count >= 2}
            cf, wn = (
                {w: [s for s in row if s in known] for w, row in t.items() if w in known} for t in self.tables.values()
            )
            tables = {"cf3": cf, "wn3": wn, "cf-only3": without(cf, wn), "wn-only3": without(wn, cf)}
            texts = [example.text for example in self.split(corpus, self.measured)]
            self.rewritten[corpus] = {
                **{
                    name: [substitute(text, table, i) for i, text in enumerate(texts)] for name, table in tables.items()
                },
                "typo3": [misspell(text, i) for i, text in enumerate(texts)],
                "deletion3": [delete(text, i) for i, text in enumerate(texts)],
            }
        return self.rewritten[corpus]

    def groups(self, name: str) -> Table | None:
        """The table that groups are built from."""
        if name == "none":
            return None
        if name != "both":
            return self.tables[name]
        cf, wn = self.tables["cf"], self.tables["wn"]
        return {word: list(dict.fromkeys([*cf.get(word, []), *wn.get(word, [])])) for word in {**cf, **wn}}

    def do(self, job: Job) -> dict[str, Any]:
        import time

        started = time.perf_counter()
        clf = self._trained(job)
        seconds = time.perf_counter() - started
        clf.save(self.options.out / "models" / job.id)
        return {"training seconds": round(seconds, 2), **self._measured(job, clf)}

    def _trained(self, job: Job) -> Any:
        import steadygaze as sg

        row = ROWS[job.technique]
        clf = sg.TextClassifier(
            CORPORA[job.corpus],
            row.technique,
            seed=job.seed,
            epochs=self.options.epochs or row.epochs,
            vectors=self.options.glove,
            settings=row.settings
            | ({"synonyms": str(self.options.tables / "cf.jsonl"), "teachers": row.teachers} if row.teachers else {}),
            synonym_groups=self.groups(job.groups),
            device=self.options.device,
            verbose=False,
        )
        folders = [self.options.out / "models" / teacher.id for teacher in job.teachers]
        reference = [sg.load(folder, device=self.options.device) for folder in folders] or None
        train, validation = self.split(job.corpus, "train"), self.split(job.corpus, "validation")
        return clf.fit(
            [e.text for e in train],
            [e.label for e in train],
            validation=([e.text for e in validation], [e.label for e in validation]),
            reference=reference,
        )

    def _measured(self, job: Job, clf: Any) -> dict[str, Any]:
        import numpy as np
        import torch
        from sklearn.metrics import f1_score

        from steadygaze.audit.measures.stability_measures import label_flip, prediction_change
        from steadygaze.core.maths.distributions import entropy, jensen_shannon
        from steadygaze.core.maths.ranking import kendall, top_k_overlap

        examples = self.split(job.corpus, self.measured)
        before = _outputs(clf, [e.text for e in examples])
        label = [clf.stored_.description.classes.index(e.label) for e in examples]
        length = before.mask.sum(-1).double()
        result: dict[str, Any] = {
            "macro-f1": float(f1_score(label, before.probs.argmax(-1), average="macro")),
            "normalized-entropy": float((entropy(before.weights, before.mask) / length.clamp_min(2).log()).mean()),
            "comprehensiveness": _comprehensiveness(clf, [e.text for e in examples]),
        }
        np.savez_compressed(
            self._seen(job),
            weights=before.weights.float().numpy(),
            mask=before.mask.numpy(),
            probs=before.probs.numpy(),
        )
        for probe, texts in self.rewrites(job.corpus).items():
            after = _outputs(clf, texts)
            rows = torch.tensor([a != e.text for a, e in zip(texts, examples, strict=True)])
            if probe == "deletion3":
                values = {"prediction-change": prediction_change(before.probs, after.probs)}
                values["label-flip"] = label_flip(before.probs, after.probs)
            else:
                rows &= after.mask.sum(-1) == before.mask.sum(-1)
                width = min(before.mask.shape[1], after.mask.shape[1])
                p, q, mask = before.weights[:, :width], after.weights[:, :width], before.mask[:, :width]
                values = {
                    "jensen-shannon": jensen_shannon(p, q, mask),
                    "top-7-overlap": top_k_overlap(p, q, mask, K),
                    "kendall": kendall(p, q, mask),
                    "prediction-change": prediction_change(before.probs, after.probs),
                    "label-flip": label_flip(before.probs, after.probs),
                }
            result |= {f"{name}/{probe}": float(value[rows].double().nanmean()) for name, value in values.items()}
            result[f"texts/{probe}"] = int(rows.sum())
        return result | {"seeds": self._between(job)}

    def _between(self, job: Job) -> float | None:
        """Mean JSD to the attention of lower seeds of the same row that are done."""
        import numpy as np
        import torch

        from steadygaze.core.maths.distributions import jensen_shannon

        own = np.load(self._seen(job))
        distances = []
        for seed in range(job.seed):
            file = self._seen(Job(job.corpus, job.technique, job.groups, seed))
            if file.exists():
                other = np.load(file)
                mask = torch.from_numpy(own["mask"])
                p, q = (torch.from_numpy(seen["weights"]).double() for seen in (own, other))
                distances.append(float(jensen_shannon(p, q, mask).mean()))
        return mean(distances) if distances else None

    def _seen(self, job: Job) -> Path:
        folder = self.options.out / "seen"
        folder.mkdir(exist_ok=True)
        return folder / f"{job.id}.npz"


@dataclass
class Outputs:
    weights: Any
    mask: Any
    probs: Any


def _outputs(clf: Any, texts: list[str]) -> Outputs:
    from steadygaze.models import inference

    read = inference.split_outputs(clf.stored_.model, clf.stored_.data(texts, None))
    return Outputs(read.weights.double(), read.mask, read.logits.double().softmax(-1))


def _comprehensiveness(clf: Any, texts: list[str]) -> float:
    import numpy as np

    from steadygaze.audit.audit_case import AuditCase
    from steadygaze.audit.protocols.faithfulness import faithfulness
    from steadygaze.explainers.attention import Attention
    from steadygaze.results.audit_config import ProbeConfig

    data = clf.stored_.data(texts[:500], None)
    case = AuditCase(clf.stored_.model, data, {"attention": Attention()}, ProbeConfig(sample=len(data)))
    for answer in faithfulness(case):
        if (
            answer.measure == "comprehensiveness"
            and answer.explainer in (None, "attention")
            and answer.values is not None
        ):
            return float(np.nanmean(answer.values.numpy()))
    raise KeyError("comprehensiveness")


def _read_table(file: Path) -> Table:
    return {row["word"]: row["synonyms"] for row in map(json.loads, file.read_text().splitlines())}


def cut(options: argparse.Namespace) -> None:
    """Write both tables with the pairs of words that occur in the training texts."""
    from steadygaze.data.corpora import load_corpus
    from steadygaze.data.substitutable_pairs import substitutable_pairs
    from steadygaze.data.synonym_tables import clean_table, read_synonyms

    words: set[str] = set()
    for corpus in CORPORA:
        examples = load_corpus(corpus, data_dir=options.data_dir).splits["train"]
        words |= {word.lower() for example in examples for word in WORD.findall(example.text)}
    options.cut.mkdir(parents=True, exist_ok=True)
    for name, source in (("cf", options.counter_fitted), ("wn", options.wordnet)):
        table = substitutable_pairs(clean_table(read_synonyms(source, folded=True, words=words)).rows)
        rows = {word: [s for s in row if s in words] for word, row in table.items() if word in words}
        lines = [json.dumps({"word": word, "synonyms": row}) for word, row in sorted(rows.items()) if row]
        (options.cut / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
        print(name, len(lines), "words")


def table(places: list[str]) -> None:
    """Means over seeds, then ratios to vanilla without groups, geometric means over corpora."""
    cells: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    for record in job_queue.read_records(places):
        cells[record["corpus"], record["technique"], record["groups"]].append(record)
    corpora = sorted({corpus for corpus, _, _ in cells})
    probes = ("cf3", "wn3", "cf-only3", "wn-only3", "typo3")
    heading = ["technique", "groups", "seeds", "Δ macro-F1", *(f"{p} JSD / flips / Δp" for p in probes)]
    print(
        "| "
        + " | ".join([*heading, "deletion flips", "seed JSD", "comp.", "entropy", "top-7 cf3", "τ cf3", "time"])
        + " |"
    )
    print("|---" * (len(heading) + 7) + "|")

    def average(corpus: str, technique: str, groups: str, measure: str) -> float:
        values = [r[measure] for r in cells[corpus, technique, groups] if r.get(measure) is not None]
        return mean(values) if values else float("nan")

    for technique in ROWS:
        for groups in GROUPS:
            present = [c for c in corpora if cells.get((c, technique, groups))]
            if not present:
                continue

            def ratio(measure: str, present: list[str] = present, row: tuple[str, str] = (technique, groups)) -> float:
                pairs = [(average(c, *row, measure), average(c, "vanilla", "none", measure)) for c in present]
                ratios = [max(a, 1e-6) / b for a, b in pairs if b > 0 and a == a]
                return geometric_mean(ratios) if ratios else float("nan")

            def level(measure: str, present: list[str] = present, row: tuple[str, str] = (technique, groups)) -> float:
                return mean(average(c, *row, measure) for c in present)

            seeds = min(len(cells[c, technique, groups]) for c in present)
            gain = mean(
                average(c, technique, groups, "macro-f1") - average(c, "vanilla", "none", "macro-f1") for c in present
            )
            shifts = [
                " / ".join(f"{ratio(f'{m}/{p}'):.2f}" for m in ("jensen-shannon", "label-flip", "prediction-change"))
                for p in probes
            ]
            tail = [
                ratio("label-flip/deletion3"),
                ratio("seeds"),
                ratio("comprehensiveness"),
                level("normalized-entropy"),
            ]
            tail += [level("top-7-overlap/cf3"), level("kendall/cf3"), ratio("training seconds")]
            name = f"{technique} ({', '.join(present)})" if len(present) < len(corpora) else technique
            print(
                "| "
                + " | ".join([name, groups, str(seeds), f"{gain:+.3f}", *shifts, *(f"{v:.2f}" for v in tail)])
                + " |"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cut", type=Path, help="write the tables to this folder")
    for name in ("data-dir", "counter-fitted", "wordnet", "tables", "glove"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--corpora", default=",".join(CORPORA))
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--limit", type=int, help="texts per split, for a trial run")
    parser.add_argument("--table", nargs="+", help="print the table of these records")
    parser.add_argument("--cheaper", action="store_true", help="compare cheaper students on validation texts")
    job_queue.options(parser)
    options = parser.parse_args()
    if options.table:
        table(options.table)
    elif options.cut:
        cut(options)
    else:
        study = Study(options)
        corpora = options.corpora.split(",")
        job_queue.run(options, lambda: plan(options.out, options.seeds, corpora, options.cheaper), study.do, rounds=2)


if __name__ == "__main__":
    main()
