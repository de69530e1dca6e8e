"""Jobs of bench/synonym_groups.py: texts, tables, training."""

import argparse
import dataclasses
import json
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cheaper_consensus import ROWS, Job
from steadygaze.training.optimizers import EPOCHS
from word_rewrites import WORD, Table, delete, misspell, substitute, without

TEMPERATURES = (1.5, 2.0, 3.0, 5.0)
"""Temperatures of the control at equal entropy: vanilla without groups, short texts, word encoders."""
VALIDATION_PROBES = ("cf3", "wn3")


@dataclass(frozen=True)
class Setting:
    corpus: str
    encoder: str = "bilstm"
    every: int = 1
    """Keeps every n-th text."""
    characters: int | None = None
    """Keeps the first words of a text."""
    epochs: int | None = None
    """Epochs instead of the default of 8; those of other rows in proportion."""
    long: int = 0
    """Jobs of a higher number run first."""


CORPORA = {
    "sst2": Setting("sst2"),
    "rotten_tomatoes": Setting("rotten_tomatoes"),
    "tweet_emotion": Setting("tweet_emotion"),
    "imdb": Setting("imdb", every=10, characters=1200, long=1),
    "sst2-minilm": Setting("sst2", "transformer:minilm", epochs=3, long=2),
}


class Study:
    """Texts, tables and rewrites, read once per process."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.tables = {name: _read_table(options.tables / f"{name}.jsonl") for name in ("cf", "wn")}
        self.splits: dict[str, dict[str, list[Any]]] = {}
        self._rewrites: dict[tuple[str, str], dict[str, list[str]]] = {}
        self._groups: dict[tuple[str, str], Any] = {}

    def split(self, corpus: str, name: str) -> list[Any]:
        from steadygaze.data.corpora import load_corpus

        if corpus not in self.splits:
            setting, limit = CORPORA[corpus], self.options.limit
            splits = dict(load_corpus(setting.corpus, data_dir=self.options.data_dir).splits)
            splits = {
                key: [_truncate(e, setting.characters) for e in rows[:: setting.every]] for key, rows in splits.items()
            }
            splits["test"] = splits["test"][:: 2 if setting.every > 1 else 1]
            if "validation" not in splits:
                train = splits["train"]
                splits["validation"] = train[::5]
                splits["train"] = [example for i, example in enumerate(train) if i % 5]
            self.splits[corpus] = {
                key: rows[:: max(1, len(rows) // limit) if limit else 1] for key, rows in splits.items()
            }
        return self.splits[corpus][name]

    def rewrites(self, corpus: str, split: str) -> dict[str, list[str]]:
        """Probe -> the texts after it, the same for every model."""
        if (corpus, split) not in self._rewrites:
            words = Counter(w.lower() for e in self.split(corpus, "train") for w in WORD.findall(e.text))
            known = {word for word, count in words.items() if count >= 2}
            cf, wn = (
                {w: [s for s in row if s in known] for w, row in t.items() if w in known} for t in self.tables.values()
            )
            tables = {"cf3": cf, "wn3": wn, "cf-only3": without(cf, wn), "wn-only3": without(wn, cf)}
            texts = [example.text for example in self.split(corpus, split)]
            rewrites = {
                **{
                    name: [substitute(text, table, i) for i, text in enumerate(texts)] for name, table in tables.items()
                },
                "typo3": [misspell(text, i) for i, text in enumerate(texts)],
                "deletion3": [delete(text, i) for i, text in enumerate(texts)],
            }
            names = VALIDATION_PROBES if split == "validation" else tuple(rewrites)
            self._rewrites[corpus, split] = {name: rewrites[name] for name in names}
        return self._rewrites[corpus, split]

    def groups(self, corpus: str, name: str) -> Any:
        """The groups of the default rule, built once per corpus; training would build the same."""
        from steadygaze.data.class_frequencies import class_frequencies
        from steadygaze.data.synonym_groups import SynonymGroups
        from steadygaze.estimator.synonym_encoding import read_groups

        if name == "none":
            return None
        if (corpus, name) not in self._groups:
            file = self.options.out / "groups" / f"{corpus}.{name}.json"
            if not file.exists():
                file.parent.mkdir(parents=True, exist_ok=True)
                train = self.split(corpus, "train")
                frequencies = class_frequencies([e.text for e in train], [e.label for e in train])
                table = self._table(name)
                rule: Any = "linked" if name == "linked" else "star"
                temporary = file.with_suffix(f".{time.time_ns()}")
                temporary.write_text(read_groups(table, rule, frequencies).groups.to_json())
                temporary.replace(file)
            self._groups[corpus, name] = SynonymGroups.from_json(file.read_text())
        return self._groups[corpus, name]

    def _table(self, groups: str) -> Table:
        """The table of the groups; the merged tables for groups of both."""
        cf, wn = self.tables["cf"], self.tables["wn"]
        both = {word: list(dict.fromkeys([*cf.get(word, []), *wn.get(word, [])])) for word in {**cf, **wn}}
        return {"none": cf, "cf": cf, "wn": wn}.get(groups, both)

    def coverage(self, corpus: str, substitutes: str) -> dict[str, tuple[float, float]]:
        """Table -> shares of its substitutions inside groups of both tables, and of others that a student sees.

        Words count by their frequency in the training texts, and all synonyms of a word alike.
        """
        from steadygaze.data.vocabulary_lexicon import representative_table
        from steadygaze.perturbations.word_substitution import MAX_SYNONYMS

        words = Counter(w.lower() for e in self.split(corpus, "train") for w in WORD.findall(e.text))
        groups = self.groups(corpus, "both")
        vocabulary = {groups.representative(word) for word in words}
        student_table = {
            word: [synonym for synonym in row if synonym in vocabulary][:MAX_SYNONYMS]
            for word, row in representative_table(self._table(substitutes), groups).items()
        }
        shares = {}
        for name, table in self.tables.items():
            inside = others = total = 0.0
            for word, count in words.items():
                row = [s for s in table.get(word, []) if words[s] >= 2] if count >= 2 else []
                own, names = groups.representative(word), [groups.representative(s) for s in row]
                if row:
                    total += count
                    inside += count * names.count(own) / len(row)
                    others += count * sum(s != own and s in student_table.get(own, []) for s in names) / len(row)
            shares[name] = inside / total, others / total
        return shares

    def substitutes(self, groups: str) -> Path:
        """The file of the table whose pairs a student substitutes."""
        file: Path = self.options.out / "groups" / f"substitutes.{groups}.jsonl"
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            temporary = file.with_suffix(f".{time.time_ns()}")
            rows = ({"word": word, "synonyms": row} for word, row in self._table(groups).items())
            temporary.write_text("".join(json.dumps(row) + "\n" for row in rows))
            temporary.replace(file)
        return file

    def run_job(self, job: Job) -> dict[str, Any]:
        from synonym_measures import distance_to_seeds, divide_scores, measures

        start = time.perf_counter()
        clf = self._train(job)
        record: dict[str, Any] = {"training seconds": round(time.perf_counter() - start, 2)}
        record["epochs"] = Counter(epoch["stage"] for epoch in clf.stored_.description.history)
        if not ROWS[job.technique].teachers:
            clf.save(self.options.out / "models" / job.id)
        if job.technique.startswith(self.options.unmeasured or "/"):
            return record
        for split in ("validation", "test"):
            examples, rewrites = self.split(job.corpus, split), self.rewrites(job.corpus, split)
            attention_file = self._attention_file(job, split)
            record[split] = measures(clf, examples, rewrites, attention_file)
            others = [
                self._attention_file(Job(job.corpus, job.technique, job.groups, s), split) for s in range(job.seed)
            ]
            record[split]["seeds"] = distance_to_seeds(attention_file, others)
            if (job.technique, job.groups, split) == ("vanilla", "none", "test") and not CORPORA[job.corpus].long:
                for temperature in TEMPERATURES:
                    tempered_files = [file.with_suffix(f".{temperature}.npz") for file in (attention_file, *others)]
                    with divide_scores(clf, temperature):
                        result = measures(clf, examples, rewrites, tempered_files[0])
                    result["seeds"] = distance_to_seeds(tempered_files[0], tempered_files[1:])
                    record[f"temperature {temperature}"] = result
        return record

    def _train(self, job: Job) -> Any:
        import torch

        import steadygaze as sg

        torch.set_num_threads(1)
        row, setting = ROWS[job.technique], CORPORA[job.corpus]
        encoder = setting.encoder
        if encoder == "transformer:minilm" and self.options.minilm:
            encoder = f"transformer:{self.options.minilm}"
        is_name = isinstance(row.technique, str)
        settings = dict(row.settings)
        if encoder.startswith("transformer:"):
            settings.pop("learning_rate", None)
            torch.set_float32_matmul_precision("high")
        if row.teachers or not is_name:
            settings["synonyms"] = str(self.substitutes(job.groups if row.own_tables else "cf"))
        own = {"teachers": row.teachers, **row.options} if row.teachers else _scale_epochs(row.options, setting)
        if is_name:
            settings |= own
        clf = sg.TextClassifier(
            encoder,
            row.technique if is_name else row.technique(**own),
            seed=job.seed,
            epochs=self.options.epochs or _scale_epochs({"epochs": row.epochs or EPOCHS}, setting)["epochs"],
            vectors=None if encoder.startswith("transformer:") else self.options.glove,
            settings=settings,
            synonym_groups=self.groups(job.corpus, job.groups),
            device=self.options.device,
            verbose=False,
        )
        folders = [self.options.out / "models" / teacher.id for teacher in job.teachers]
        train, validation = self.split(job.corpus, "train"), self.split(job.corpus, "validation")
        return clf.fit(
            [e.text for e in train],
            [e.label for e in train],
            validation=([e.text for e in validation], [e.label for e in validation]),
            reference=[sg.load(folder, device=self.options.device) for folder in folders] or None,
        )

    def _attention_file(self, job: Job, split: str) -> Path:
        folder: Path = self.options.out / "seen" / split
        return folder / f"{job.id}.npz"


def _scale_epochs(epochs: Mapping[str, Any], setting: Setting) -> dict[str, Any]:
    """Numbers of epochs, or tuples of them, in proportion to the epochs of a setting."""
    share = (setting.epochs or EPOCHS) / EPOCHS

    def scaled(value: Any) -> Any:
        return tuple(map(scaled, value)) if isinstance(value, tuple) else max(1, round(value * share))

    return {name: scaled(value) for name, value in epochs.items()}


def _truncate(example: Any, characters: int | None) -> Any:
    """The example with the first words of its text, of at most so many characters."""
    if characters is None or len(example.text) <= characters:
        return example
    return dataclasses.replace(example, text=example.text[:characters].rpartition(" ")[0])


def _read_table(file: Path) -> Table:
    return {row["word"]: row["synonyms"] for row in map(json.loads, file.read_text().splitlines())}
