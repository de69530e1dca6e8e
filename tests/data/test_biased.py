"""A token before every text that agrees with the label as often as requested, in any corpus."""

import json
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy.stats import binomtest

from commands import run
from steadygaze.core.errors import UserError
from steadygaze.core.types import Example
from steadygaze.data.corpora import TOKENS, add_shortcut, load_corpus
from steadygaze.data.corpus import Corpus
from steadygaze.data.sentence_roles import sentence_roles
from steadygaze.data.word_tokenizer import build_word_tokenizer, document_frequency

UNLIKELY = 1e-6
"""A fixed seed either falls outside of this or not: one in a million would."""
MARKED = Example("Bad nose. Fine taste.", "good", "taste?", ((10, 14), (15, 20)), ((0, 9), (10, 21)))


@cache
def plain() -> Corpus:
    return load_corpus("planted-reviews:aspect=palate,sizes=[2000,500,500]")


def first(example: Example) -> str:
    return example.text.split(" ", 1)[0]


def agree(corpus: Corpus, split: str) -> int:
    own = dict(zip(corpus.label_names, TOKENS, strict=False))
    return sum(first(example) == own[example.label] for example in corpus.splits[split])


def many(label: str, n: int) -> list[Example]:
    return [Example(f"{label} {i}", label) for i in range(n)]


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("agreement", [0.5, 0.7, 0.75, 0.8])
@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_the_token_agrees_as_often_as_requested_in_every_split(agreement: float, split: str) -> None:
    corpus = add_shortcut(plain(), agreement)
    assert binomtest(agree(corpus, split), corpus.sizes[split], agreement).pvalue > UNLIKELY


def test_at_the_ends_it_always_agrees_and_never() -> None:
    assert agree(add_shortcut(plain(), 1.0), "train") == 2000
    assert agree(add_shortcut(plain(), 0.0), "train") == 0


def test_of_several_classes_all_wrong_tokens_are_alike() -> None:
    """Three classes, α = 0.4: the two others share 0.6."""
    corpus = add_shortcut(Corpus("three", {"train": [x for label in "abc" for x in many(label, 2000)]}), 0.4)
    for label, own in zip("abc", TOKENS, strict=False):
        result = Counter(first(example) for example in corpus.splits["train"] if example.label == label)
        assert set(result) == set(TOKENS[:3])
        for token in result:
            assert binomtest(result[token], 2000, 0.4 if token == own else 0.3).pvalue > UNLIKELY


def test_nothing_but_the_token_is_added() -> None:
    corpus = add_shortcut(plain(), 0.7)
    assert corpus.sizes == plain().sizes
    assert (corpus.source, corpus.dropped) == (plain().source, plain().dropped)
    for split, examples in plain().splits.items():
        for before, after in zip(examples, corpus.splits[split], strict=True):
            assert after.text.split(" ", 1) == [first(after), before.text]
            assert (after.label, after.question) == (before.label, before.question)


def test_spans_move_along_and_the_first_sentence_begins_with_the_token() -> None:
    """`aye ` is four characters: every span moves by four, the first sentence begins at 0."""
    corpus = Corpus("two", {"train": [MARKED, Example("x", "bad"), Example("x", "bad", rationales=(), sentences=())]})
    assert add_shortcut(corpus, 1.0, tokens=("nay", "aye")).splits["train"] == [
        Example("aye Bad nose. Fine taste.", "good", "taste?", ((14, 18), (19, 24)), ((0, 13), (14, 25))),
        Example("nay x", "bad"),
        Example("nay x", "bad", rationales=(), sentences=()),
    ]


def test_a_coin_belongs_to_its_text() -> None:
    """Another order, another split, fewer texts beside it: the same token.  Another seed: about half of a fair coin."""
    texts = plain().splits["train"]
    drawn = add_shortcut(plain(), 0.5).splits["train"]
    turned = add_shortcut(Corpus("turned", {"test": texts[:99:-1], "train": texts[:100]}), 0.5).splits
    assert turned["train"] + turned["test"][::-1] == drawn
    other = add_shortcut(plain(), 0.5, seed=1).splits["train"]
    same = sum(example == another for example, another in zip(drawn, other, strict=True))
    assert binomtest(same, len(drawn), 0.5).pvalue > UNLIKELY


def test_a_higher_agreement_only_turns_tokens_right() -> None:
    """Corpora of one seed differ where they must, and nowhere else."""
    low, high = (add_shortcut(plain(), agreement).splits["train"] for agreement in (0.7, 0.8))
    own = dict(zip(plain().label_names, TOKENS, strict=False))
    changed = [after for before, after in zip(low, high, strict=True) if before != after]
    assert changed
    assert all(first(after) == own[after.label] for after in changed)


@pytest.mark.parametrize("token", TOKENS)
def test_our_tokens_are_one_token_each_and_end_no_sentence(token: str) -> None:
    """Also before a text that begins with the same mark; special tokens stand around the text."""
    text = f"{token} {token} fine"
    assert document_frequency([text]) == {token: 1, "fine": 1}
    assert (
        len(build_word_tokenizer([text]).encode([text]).ids)
        == len(build_word_tokenizer([text]).encode(["fine"]).ids) + 2
    )
    assert not sentence_roles([token, f"##{token}", f"Ġ{token}"]).any()


def test_every_way_to_name_a_corpus_can_be_biased(tmp_path: Path) -> None:
    """A generated corpus, a published set on disk, a file, a folder: each is what `biased` makes of it."""
    rows = [{"text": f"text {i}", "label": i % 2} for i in range(40)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "both").mkdir()
    for split in ("train", "test"):
        (tmp_path / "both" / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "rotten_tomatoes").mkdir()
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "rotten_tomatoes" / "train.parquet")
    for data in ("planted-reviews:sizes=[20,10,10]", "rotten_tomatoes", f"{tmp_path}/a.jsonl", f"{tmp_path}/both"):
        corpus = load_corpus(f"biased=0.7:{data}", data_dir=tmp_path)
        plain = load_corpus(data, data_dir=tmp_path)
        assert corpus == add_shortcut(plain, 0.7)
        assert corpus.name == f"biased=0.7:{plain.name}"


def test_columns_seed_and_tokens_reach_it_too(tmp_path: Path) -> None:
    rows = "".join(f"text {i},{'xy'[i % 2]}\n" for i in range(40))
    (tmp_path / "a.csv").write_text(f"body,kind\n{rows}")
    columns = {"text": ["body"], "label": "kind"}
    plain = load_corpus(tmp_path / "a.csv", **columns)
    assert load_corpus(f"biased=0.7:{tmp_path}/a.csv", **columns, seed=3) == add_shortcut(plain, 0.7, seed=3)
    own = load_corpus(f'biased=0.7,seed=4,tokens=["no","yes"]:{tmp_path}/a.csv', **columns, seed=3)
    assert own == add_shortcut(plain, 0.7, seed=4, tokens=("no", "yes"))
    assert own.name == 'biased=0.7,seed=4,tokens=["no", "yes"]:a.csv'
    assert load_corpus(own.name.replace("a.csv", f"{tmp_path}/a.csv"), **columns) == own


def test_a_token_may_be_a_colon_though_a_colon_ends_what_is_written(tmp_path: Path) -> None:
    plain = load_corpus("planted-reviews:sizes=[6,2,2]")
    for tokens in ((":", ";"), ('"', ":"), ("\\", ":")):
        own = add_shortcut(plain, 0.7, tokens=tokens)
        assert load_corpus(own.name) == own, tokens


@pytest.mark.slow
def test_the_command_line_takes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = "".join(f'{{"text": "it is {word} {i}", "label": "{word}"}}\n' for i in range(80) for word in ("ok", "ko"))
    (tmp_path / "a.jsonl").write_text(rows)
    out = tmp_path / "model"
    wanted = ("train", f"biased=1:{tmp_path}/a.jsonl", "--out", out, "--epochs", 1, "--encoder", "average", "--json")
    assert json.loads(run(capsys, *wanted).out)["corpus"] == "biased=1.0:a.jsonl"


TWO = Corpus("two", {"train": [*many("a", 2), *many("b", 2)]})
UNLABELED = Corpus("bare", {"train": [*many("a", 1), *many("b", 1), Example("x")]})


@pytest.mark.parametrize(
    ("corpus", "options", "sentence"),
    [
        (TWO, {"agreement": 1.2}, "setting 'agreement': found 1.2; it should be less than or equal to 1."),
        (TWO, {"agreement": -0.1}, "setting 'agreement': found -0.1; it should be greater than or equal to 0."),
        (TWO, {"agreement": float("nan")}, "setting 'agreement': found nan"),
        (UNLABELED, {}, "bare has texts without a label; a shortcut token needs labels"),
        (Corpus("one", {"train": many("a", 3)}), {}, "one has 1 class; shortcut tokens need at least two classes."),
        (TWO, {"tokens": (",",)}, "2 classes and needs a different token for each; found 1 different ones, ,:"),
        (TWO, {"tokens": (",", ",")}, "needs a different token for each; found 1 different ones, , ,:"),
        (TWO, {"tokens": (",", "so so")}, "one word or mark without white space; found 'so so'."),
        (TWO, {"tokens": ("", ",")}, "one word or mark without white space; found ''."),
    ],
)
def test_a_shortcut_with_invalid_options_is_refused(corpus: Corpus, options: dict, sentence: str) -> None:
    with pytest.raises(UserError, match=re.escape(sentence)):
        add_shortcut(corpus, **options)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ("biased=0.8", "'biased=0.8' names no corpus after the prefix; for example biased=0.8:planted-reviews."),
        ("biased=2:imdb", "setting 'agreement': found 2; it should be less than or equal to 1."),
        ("biased=often:imdb", "setting 'agreement': found 'often'; it should be a valid number"),
        ("biased=0.8,sed=1:imdb", "unknown setting 'sed': did you mean 'seed'?"),
        ("biased=0.8:planted-review", "unknown corpus 'planted-review': did you mean 'planted-reviews'?"),
    ],
)
def test_a_wrong_value_is_an_error_before_anything_is_read(data: str, sentence: str) -> None:
    with pytest.raises(UserError, match=re.escape(sentence)):
        load_corpus(data)


def test_labels_that_are_missing_are_missed(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text\nfine\nbad\n")
    with pytest.raises(UserError, match=re.escape("a.csv has texts without a label")):
        load_corpus(f"biased=0.8:{tmp_path}/a.csv", label=None)


def test_more_classes_than_marks_need_tokens_of_ones_own() -> None:
    names = [f"c{i:02}" for i in range(12)]
    corpus = Corpus("many", {"train": [x for name in names for x in many(name, 1)]})
    with pytest.raises(UserError, match="many has 12 classes"):
        add_shortcut(corpus)
    result = add_shortcut(corpus, 1.0, tokens=names).splits["train"]
    assert [first(example) for example in result] == names
    assert replace(result[0], text="") == Example("", "c00")
