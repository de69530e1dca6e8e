"""Texts, tables, groups and rewrites of the study, read once per process."""

import dataclasses
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from steadygaze.core.atomic_files import write_text
from steadygaze.core.types import Example
from steadygaze.data.class_frequencies import class_frequencies
from steadygaze.data.corpora import load_corpus
from steadygaze.data.substitutable_pairs import substitutable_pairs
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.data.synonym_tables import clean_table, read_synonyms
from steadygaze.estimator.synonym_encoding import read_groups
from studies.synonyms.plan import CORPORA
from studies.synonyms.texts import WORD, Table, delete, misspell, substitute, without

VALIDATION_PROBES = ("cf3", "wn3")


class StudyData:
    def __init__(self, tables: Path, out: Path, data_dir: Path | None = None, limit: int | None = None) -> None:
        self.out, self.data_dir, self.limit = out, data_dir, limit
        self.tables = {name: _read_table(tables / f"{name}.jsonl") for name in ("cf", "wn")}
        self._splits: dict[str, dict[str, list[Example]]] = {}
        self._rewrites: dict[tuple[str, str], dict[str, list[str]]] = {}
        self._groups: dict[tuple[str, str], SynonymGroups] = {}

    def split(self, corpus: str, name: str) -> list[Example]:
        if corpus not in self._splits:
            setting, limit = CORPORA[corpus], self.limit
            splits = {
                key: [_truncate(example, setting.characters) for example in rows[:: setting.every]]
                for key, rows in load_corpus(setting.corpus, data_dir=self.data_dir).splits.items()
            }
            splits["test"] = splits["test"][:: 2 if setting.every > 1 else 1]
            if "validation" not in splits:
                train = splits["train"]
                splits["validation"] = train[::5]
                splits["train"] = [example for i, example in enumerate(train) if i % 5]
            self._splits[corpus] = {
                key: rows[:: max(1, len(rows) // limit) if limit else 1] for key, rows in splits.items()
            }
        return self._splits[corpus][name]

    def rewrites(self, corpus: str, split: str) -> dict[str, list[str]]:
        """Probe -> the texts after it, the same for every model."""
        if (corpus, split) not in self._rewrites:
            words = self._train_words(corpus)
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

    def _train_words(self, corpus: str) -> Counter[str]:
        return Counter(w.lower() for e in self.split(corpus, "train") for w in WORD.findall(e.text))

    def groups(self, corpus: str, name: str) -> SynonymGroups | None:
        """The groups of the default rule, built once per corpus; training would build the same."""
        if name == "none":
            return None
        if (corpus, name) not in self._groups:
            file = self.out / "groups" / f"{corpus}.{name}.json"
            if not file.exists():
                train = self.split(corpus, "train")
                frequencies = class_frequencies([e.text for e in train], [e.label for e in train])
                rule: Literal["linked", "star"] = "linked" if name == "linked" else "star"
                self._write(file, read_groups(self._table(name), rule, frequencies).groups.to_json())
            self._groups[corpus, name] = SynonymGroups.from_json(file.read_text())
        return self._groups[corpus, name]

    def _table(self, groups: str) -> Table:
        """The table of the groups; the merged tables for groups of both."""
        cf, wn = self.tables["cf"], self.tables["wn"]
        both = {word: list(dict.fromkeys([*cf.get(word, []), *wn.get(word, [])])) for word in {**cf, **wn}}
        return {"none": cf, "cf": cf, "wn": wn}.get(groups, both)

    def _write(self, file: Path, text: str) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_text(file, text)  # other processes read complete files only

    def substitutes(self, groups: str) -> Path:
        """The file of the table whose pairs a student substitutes."""
        file = self.out / "groups" / f"substitutes.{groups}.jsonl"
        if not file.exists():
            rows = ({"word": word, "synonyms": row} for word, row in self._table(groups).items())
            self._write(file, "".join(json.dumps(row) + "\n" for row in rows))
        return file


def write_tables(folder: Path, data_dir: Path | None, sources: Iterable[tuple[str, Path]]) -> None:
    """Write tables with the pairs of words that occur in the training texts.  Sources: name and table."""
    words: set[str] = set()
    for corpus in {setting.corpus for setting in CORPORA.values()}:
        examples = load_corpus(corpus, data_dir=data_dir).splits["train"]
        words |= {word.lower() for example in examples for word in WORD.findall(example.text)}
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in sources:
        table = substitutable_pairs(clean_table(read_synonyms(source, folded=True, words=words)).rows)
        rows = {word: [s for s in row if s in words] for word, row in table.items() if word in words}
        lines = [json.dumps({"word": word, "synonyms": row}) for word, row in sorted(rows.items()) if row]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
        print(name, len(lines), "words")


def _truncate(example: Example, characters: int | None) -> Example:
    """The example with the first words of its text, of at most so many characters."""
    if characters is None or len(example.text) <= characters:
        return example
    return dataclasses.replace(example, text=example.text[:characters].rpartition(" ")[0])


def _read_table(file: Path) -> Table:
    return {row["word"]: row["synonyms"] for row in map(json.loads, file.read_text().splitlines())}
