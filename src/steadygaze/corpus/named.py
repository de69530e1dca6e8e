"""The published sets by name: where each lives, on disk and on the hub, and how its columns are read.

On disk a set is `<name>/<split>.parquet` in the folder --data-dir or $STEADYGAZE_DATA; otherwise the hub serves it.
The copies differ for some sets, and the corpus' fingerprint shows it:

    sst2               disk: sentences, every word rated (evidence); hub: 67,000 phrases, unrated, no labelled test
    newsgroups_sport   hub: signatures and quotations are removed as well as headers
    ag_news yelp_polarity snli multinli babi_3     disk: as much as the folder holds, often a part

Rows keep their order (the trainer shuffles).  Rows without text or label are left out and counted.
"""

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from steadygaze.corpus import rows
from steadygaze.corpus.corpus import Corpus
from steadygaze.corpus.hub import SAME, Hub, fetch
from steadygaze.corpus.layout import Layout
from steadygaze.corpus.table import require
from steadygaze.errors import UserError


@dataclass(frozen=True)
class Named:
    """One published set."""

    about: str
    disk: Layout
    hub: Hub
    hub_layout: Layout | None = None
    """Where it is not the layout on disk."""
    files: Mapping[str, str] = field(default_factory=lambda: SAME)
    """Our split -> the name of its file."""

    def load(self, name: str, options: Mapping[str, Any], data_dir: Path | None, seed: int) -> Corpus:
        """From the data folder if it is there, else from the hub; a published set has no options and no seed."""
        if options:
            raise UserError(f"{name} takes no options; found {', '.join(options)}.")
        folder = _folder(name, data_dir)
        if folder is None:
            layout, tables, source = self.hub_layout or self.disk, fetch(self.hub, name), "hub"
        else:
            layout, tables, source = self.disk, self._read(folder), "disk"
        dropped: Counter[str] = Counter()
        splits = {}
        for split, table in tables.items():
            require(layout.columns, list(table), f"{name}, {split} split")
            splits[split] = layout.read(table, dropped)
        return Corpus(name, splits, dict(dropped), source)

    def _read(self, folder: Path) -> dict[str, dict[str, list[Any]]]:
        files = {split: folder / f"{stem}.parquet" for split, stem in self.files.items()}
        try:
            tables = {split: parquet.read_table(file).to_pydict() for split, file in files.items() if file.exists()}
        except (pa.ArrowInvalid, OSError) as error:
            raise UserError(f"{folder} cannot be read as parquet: {error}.") from None
        if not tables:
            raise UserError(f"{folder} holds none of {', '.join(file.name for file in files.values())}.")
        return tables


def _folder(name: str, data_dir: Path | None) -> Path | None:
    """The set's folder in the data folder, if there is one."""
    base = data_dir if data_dir is not None else os.environ.get("STEADYGAZE_DATA")
    if not base:
        return None
    if not Path(base).is_dir():
        raise UserError(f"there is no data folder {base}.")
    folder = Path(base) / name
    return folder if folder.is_dir() else None


def _babi(task: int) -> Named:
    return Named(
        f"bAbI task {task}: where is something, after {task} supporting fact{'s' * (task > 1)}",
        Layout(("passage", "supporting", "question", "answer"), rows.story),
        Hub("facebook/babi_qa", f"en-10k-qa{task}", exported=True),
        Layout(("story",), rows.nested_story),
    )


SENTIMENT = {0: "negative", 1: "positive"}
INFERENCE = {0: "entailment", 1: "neutral", 2: "contradiction"}
TRAIN_AND_VALIDATION = {"train": "train", "validation": "validation"}

NAMED: dict[str, Named] = {
    "sst2": Named(
        "sentiment of sentences from film reviews",
        Layout(("text", "tokens", "token_sentiment", "label"), rows.marked_words, SENTIMENT),
        Hub("stanfordnlp/sst2", splits=TRAIN_AND_VALIDATION),  # the hub's test split has no labels
        Layout(("sentence", "label"), rows.text, SENTIMENT),
    ),
    "tweet_emotion": Named(
        "emotion of tweets",
        Layout(("text", "label"), rows.text, {0: "anger", 1: "joy", 2: "optimism", 3: "sadness"}),
        Hub("cardiffnlp/tweet_eval", "emotion"),
    ),
    "tweet_hate": Named(
        "hate speech in tweets (offensive text)",
        Layout(("text", "label"), rows.text, {0: "non-hate", 1: "hate"}),
        Hub("cardiffnlp/tweet_eval", "hate"),
    ),
    "rotten_tomatoes": Named(
        "sentiment of sentences from film reviews; overlaps with sst2: never train on one and test on the other",
        Layout(("text", "label"), rows.text, SENTIMENT),
        Hub("cornell-movie-review-data/rotten_tomatoes"),
    ),
    "imdb": Named(
        "sentiment of long film reviews",
        Layout(("text", "label"), rows.tagged, SENTIMENT),
        Hub("stanfordnlp/imdb"),
    ),
    "newsgroups_sport": Named(
        "newsgroup postings about baseball or hockey, without headers",
        Layout(("text", "label"), rows.posting, {0: "baseball", 1: "hockey"}),
        Hub("SetFit/20_newsgroups"),
        Layout(("text", "label_text"), rows.posting, {"rec.sport.baseball": "baseball", "rec.sport.hockey": "hockey"}),
    ),
    "ag_news": Named(
        "topic of news in brief",
        Layout(("text", "label"), rows.text, {0: "World", 1: "Sports", 2: "Business", 3: "Sci/Tech"}),
        Hub("fancyzhx/ag_news"),
    ),
    "yelp_polarity": Named(
        "sentiment of reviews of businesses",
        Layout(("text", "label"), rows.text, SENTIMENT),
        Hub("fancyzhx/yelp_polarity"),
    ),
    "babi_1": _babi(1),
    "babi_2": _babi(2),
    "babi_3": _babi(3),
    "snli": Named(
        "does a picture's caption entail a sentence, contradict it, or neither",
        Layout(("premise", "hypothesis", "label"), rows.pair, INFERENCE),
        Hub("stanfordnlp/snli"),
    ),
    "multinli": Named(
        "the same for ten genres of text; test is from the genres of train, test_mismatched from others",
        Layout(("premise", "hypothesis", "label"), rows.pair, INFERENCE),
        Hub(
            "nyu-mll/multi_nli",
            splits={"train": "train", "test": "validation_matched", "test_mismatched": "validation_mismatched"},
        ),
        files=SAME | {"test": "test_matched", "test_mismatched": "test_mismatched"},
    ),
    "movie_rationales": Named(
        "sentiment of film reviews, with the passages that people gave as their reasons",
        Layout(("text", "evidence_start", "evidence_end", "label"), rows.review, SENTIMENT),
        Hub("eraser-benchmark/movie_rationales", exported=True),
        Layout(("review", "evidences", "label"), rows.phrased_review, SENTIMENT),
    ),
}
