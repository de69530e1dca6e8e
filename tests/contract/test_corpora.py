"""Every registered corpus: loads the same for the same seed, and its rationales stands on words of its texts."""

from pathlib import Path

import pytest

from steadygaze.data.corpora import CORPORA, load_corpus
from steadygaze.data.corpus import Corpus, GeneratedCorpus
from steadygaze.data.token_alignment import mark_tokens
from steadygaze.data.word_tokenizer import build_word_tokenizer

SOME = 200  # examples looked at closely


def loaded(name: str, request: pytest.FixtureRequest) -> Corpus:
    """A generated corpus in a small size, a published one from the data folder."""
    if isinstance(CORPORA[name], GeneratedCorpus):
        return load_corpus(f"{name}:sizes=[300,40,40]")
    folder: Path = request.getfixturevalue("data_dir")
    if not (folder / name).is_dir():
        pytest.skip(f"{name} is not in the data folder")
    return load_corpus(name, data_dir=folder)


@pytest.fixture(scope="module")
def corpus(request: pytest.FixtureRequest) -> Corpus:
    """Read once for all tests of it; of this scope, so that one is freed before the next is read."""
    return loaded(request.param, request)


LARGE = (
    "ag_news",
    "imdb",
    "movie_rationales",
    "sst2",
    "yelp_polarity",
    "snli",
    "babi_2",
    "newsgroups_sport",
    "tweet_hate",
)
"""Published sets that take long to read; the same code reads the others."""


def _case(name: str) -> object:
    return pytest.param(name, marks=pytest.mark.slow) if name in LARGE else name


EVERY = pytest.mark.parametrize("corpus", [*map(_case, CORPORA)], indirect=True, scope="module")


@EVERY
def test_a_corpus_is_reproducible_and_every_example_has_text_and_label(
    corpus: Corpus, request: pytest.FixtureRequest
) -> None:
    assert corpus.fingerprint == loaded(request.node.callspec.params["corpus"], request).fingerprint
    assert len(corpus.label_names) >= 2
    for split, examples in corpus.splits.items():
        assert examples, split
        assert all(e.text.strip() and e.label is not None for e in examples)
        assert len({e.question is None for e in examples}) == 1, "all pairs, or none"


@EVERY
def test_rationales_cover_whole_words(corpus: Corpus) -> None:
    examples = [e for split in corpus.splits.values() for e in split[:SOME] if e.rationales]
    if not examples:
        pytest.skip(f"nobody marked rationales in {corpus.name}")
    tokenizer = build_word_tokenizer(["nothing"], max_length=10_000)
    placed = tokenizer.place([e.text for e in examples])
    for example, spans in zip(examples, placed.spans, strict=True):
        marked = mark_tokens(spans, example.rationales or ())
        assert marked.any()
        touched = [span for span, hit in zip(spans, marked, strict=True) if hit]
        inside = [span for span in touched if any(a <= span[0] and span[1] <= b for a, b in example.rationales or ())]
        assert len(inside) >= 0.9 * len(touched), (example.text, example.rationales)
