"""Draw substitutions of unverified and verified tables to rate by hand, and measure their coverage.

The folder `tables` has a table of each corpus, in which SOURCE is wordnet, and of the verified table everyday (for
tweets: everyday chat):

    steadygaze synonyms build wordnet --data CORPUS --out tables/CORPUS.today.jsonl
    steadygaze synonyms build wordnet --data CORPUS --verify minilm --out tables/CORPUS.filter.jsonl
    steadygaze synonyms build everyday --data CORPUS --verify minilm --out tables/CORPUS.verified.jsonl

Yelp and TweetEval hate need the last one only.  The folder `out` gets pairs.jsonl, batches/*.txt without the sources to
rate from, and coverage.jsonl.
"""

import json
import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from studies.data_folder import data_folder
from studies.verified_substitutions.plan import CORPORA, NEW_CORPORA, SOURCES, Rows, by_length, draw, without_seen

BATCH = 100
"""Pairs of a file to rate from."""
NEW = 50
"""Rated substitutions of each corpus of NEW_CORPORA."""


@dataclass(frozen=True, kw_only=True)
class Options:
    tables: Path = field(metadata={"help": "folder of the tables"})
    out: Path = field(metadata={"help": "folder of pairs, batches and coverage"})
    seed: int = 0


def run(options: Options) -> None:
    pairs: list[dict[str, Any]] = []
    coverage: list[dict[str, Any]] = []
    texts = {corpus: _texts(corpus) for corpus in (*CORPORA, *NEW_CORPORA)}
    seen = [text for corpus in CORPORA for text in texts[corpus]["train"]]
    for corpus, parts in texts.items():
        tables = _tables(options.tables, corpus, parts["train"])
        for source, rows in tables.items():
            number = SOURCES[source] if corpus in CORPORA else NEW
            drawn = draw(rows, without_seen(parts["test"], seen), number, options.seed)
            pairs += ({"corpus": corpus, "source": source, **asdict(item)} for item in drawn)
            coverage += _coverage({"corpus": corpus, "source": source}, rows, parts["test"])
        if "both" in tables:
            drawn = draw(tables["both"], parts["test"], len(parts["test"]), options.seed)
            share = sum(item.word in tables["verified"] for item in drawn) / len(drawn)
            coverage.append({"corpus": corpus, "source": "both", "listed": share, "draws": len(drawn)})
    random.Random(options.seed).shuffle(pairs)
    (options.out / "batches").mkdir(parents=True, exist_ok=True)
    _write(options.out / "coverage.jsonl", coverage)
    _write(options.out / "pairs.jsonl", [{"id": number, **pair} for number, pair in enumerate(pairs)])
    for start in range(0, len(pairs), BATCH):
        lines = (f"{start + i} {pair['window']}\n" for i, pair in enumerate(pairs[start : start + BATCH]))
        (options.out / "batches" / f"{start // BATCH:02d}.txt").write_text("".join(lines), encoding="utf-8")


def _texts(corpus: str) -> dict[str, list[str]]:
    from steadygaze.data.corpora import load_corpus

    splits = load_corpus(corpus, data_dir=data_folder(corpus)).splits
    return {name: [example.text for example in splits[name]] for name in ("train", "test")}


def _tables(folder: Path, corpus: str, training: Sequence[str]) -> dict[str, Rows]:
    """The pairs of the tables whose words occur in the training texts."""
    from steadygaze.data.substitutable_pairs import substitutable_pairs
    from steadygaze.data.synonym_tables import LISTS, read_synonyms
    from steadygaze.data.word_tokenizer import document_frequency

    names = ("today", "filter", "verified") if corpus in CORPORA else ("verified",)
    tables: dict[str, Rows] = {name: read_synonyms(folder / f"{corpus}.{name}.jsonl", folded=True) for name in names}
    if "today" in tables:
        tables["today"] = substitutable_pairs(tables["today"])
        listed = {word for path in LISTS.values() for word in read_synonyms(path)}
        tables["added"] = {word: row for word, row in tables["filter"].items() if word not in listed}
        tables["both"] = {**tables["added"], **tables["verified"]}
    vocabulary = document_frequency(training)
    return {
        name: {
            word: [other for other in row if other in vocabulary] for word, row in rows.items() if word in vocabulary
        }
        for name, rows in tables.items()
    }


def _coverage(about: dict[str, str], rows: Rows, texts: Sequence[str]) -> list[dict[str, Any]]:
    """Texts by their number of words with a substitute: of all lengths, and of each group of lengths."""
    from steadygaze.data.verified_tables import texts_with_substitutes

    pairs = sum(map(len, rows.values()))
    groups = {"all": texts, **by_length(texts)}
    return [
        {**about, "length": length, "pairs": pairs, "texts": texts_with_substitutes(rows, group)}
        for length, group in groups.items()
        if group
    ]


def _write(file: Path, records: list[dict[str, Any]]) -> None:
    text = "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)
    file.write_text(text, encoding="utf-8")
