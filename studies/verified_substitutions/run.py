"""Draw substitutions of an unverified and of a verified WordNet table to rate by hand, and measure their coverage.

The folder `tables` has a table of each corpus and source, CORPUS.today.jsonl and CORPUS.verified.jsonl:

    steadygaze synonyms build wordnet --data CORPUS --out tables/CORPUS.today.jsonl
    steadygaze synonyms build wordnet --data CORPUS --verify minilm --out tables/CORPUS.verified.jsonl

The folder `out` gets pairs.jsonl, batches/*.txt without the sources to rate from, and coverage.jsonl.
"""

import json
import random
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from studies.data_folder import data_folder
from studies.verified_substitutions.plan import CORPORA, SOURCES, draw

BATCH = 50
"""Pairs of a file to rate from."""


@dataclass(frozen=True, kw_only=True)
class Options:
    tables: Path = field(metadata={"help": "folder of the tables"})
    wordnet: Path = field(metadata={"help": "folder of the WordNet database"})
    out: Path = field(metadata={"help": "folder of pairs, batches and coverage"})
    seed: int = 0


def run(options: Options) -> None:
    from steadygaze.data.corpora import load_corpus
    from steadygaze.data.substitutable_pairs import substitutable_pairs
    from steadygaze.data.synonym_tables import read_synonyms
    from steadygaze.data.verified_tables import candidate_rows, texts_with_substitutes
    from steadygaze.data.word_tokenizer import document_frequency

    pairs: list[dict[str, Any]] = []
    coverage = []
    for corpus in CORPORA:
        splits = load_corpus(corpus, data_dir=data_folder(corpus)).splits
        vocabulary = document_frequency([example.text for example in splits["train"]])
        texts = [example.text for example in splits["test"]]
        tables = {
            name: read_synonyms(options.tables / f"{corpus}.{name}.jsonl", folded=True)
            for name in ("today", "verified")
        }
        tables["senses"] = candidate_rows([options.wordnet], vocabulary)
        for source, number in SOURCES.items():
            table = substitutable_pairs(tables[source])
            rows = {
                word: [name for name in row if name in vocabulary] for word, row in table.items() if word in vocabulary
            }
            counts = texts_with_substitutes(rows, texts)
            coverage.append(
                {"corpus": corpus, "source": source, "pairs": sum(map(len, rows.values())), "texts": counts}
            )
            drawn = draw(rows, texts, number, options.seed)
            pairs += ({"corpus": corpus, "source": source, **asdict(item)} for item in drawn)
    random.Random(options.seed).shuffle(pairs)
    (options.out / "batches").mkdir(parents=True, exist_ok=True)
    _write(options.out / "coverage.jsonl", coverage)
    _write(options.out / "pairs.jsonl", [{"id": number, **pair} for number, pair in enumerate(pairs)])
    for start in range(0, len(pairs), BATCH):
        lines = (f"{start + i} {pair['window']}\n" for i, pair in enumerate(pairs[start : start + BATCH]))
        (options.out / "batches" / f"{start // BATCH:02d}.txt").write_text("".join(lines), encoding="utf-8")


def _write(file: Path, records: list[dict[str, Any]]) -> None:
    text = "".join(f"{json.dumps(record, ensure_ascii=False)}\n" for record in records)
    file.write_text(text, encoding="utf-8")
