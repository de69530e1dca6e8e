"""Words in 13 scripts: as a reader expects, with exact spans; scripts without spaces in every kind of model."""

import json
import re
import sys
import tomllib
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

import steadygaze as sg
from steadygaze.core.errors import UserError
from steadygaze.core.types import Span
from steadygaze.data.subword_tokenizer import PieceTokenizer
from steadygaze.data.word_segmentation import LETTER, mark_breaks, unmarked_spans, word_breaks
from steadygaze.data.word_tokenizer import build_word_tokenizer
from steadygaze.estimator.model_folder import read_tokenizer

TOKENIZER = build_word_tokenizer([])
SCRIPTS = tomllib.loads((Path(__file__).parent / "scripts.toml").read_text(encoding="utf-8"))
SCORES = {"Han": 0.84, "Japanese": 0.86, "Japanese, held out": 0.9, "Thai": 0.95, "Khmer": 0.88}
"""Share of the words that are equal to the expected ones (F1); 1 in all other scripts."""
LETTERS = st.sampled_from("我喜欢电影这部日本の映画はとてもがっラーเรื่องนี้ฉันຂ້ອຍខ្ញុំကျွန်a1' .,!😀\u200b\u200d\u0301𠮷\ufdd0")
MIXED = st.lists(LETTERS | st.characters(), max_size=30).map("".join)


def spans_of(text: str) -> list[Span]:
    return TOKENIZER.place([text]).spans[0]


def written(row: str) -> tuple[str, list[Span]]:
    """The text of a row of scripts.toml, and the spans of its words."""
    text, spans, end = row.replace("|", ""), [], 0
    for word in re.split(r"[| ]+", row):
        start = text.index(word, end)
        end = start + len(word)
        spans.append((start, end))
    return text, spans


@pytest.mark.parametrize("script", SCRIPTS)
def test_sentences_end_where_a_reader_expects(script):
    both = expected = actual = 0
    for row in SCRIPTS[script]:
        wish, known = (row, row) if isinstance(row, str) else row
        (text, wished), (_, spans) = written(wish), written(known)
        assert spans_of(text) == spans, known
        both, expected, actual = both + len({*wished} & {*spans}), expected + len(wished), actual + len(spans)
    assert round(2 * both / (expected + actual), 2) == SCORES.get(script, 1.0)


@pytest.mark.parametrize(
    "row", ["一番|いい|映画", "本当|うれしい", "結局|つまらない|映画", "映画|みたい|な|話", "店|きれい"]
)
def test_a_kana_word_after_kanji_is_not_an_ending(row):
    text, spans = written(row)
    assert spans_of(text) == spans


@pytest.mark.parametrize("script", ["Japanese", "Japanese, held out"])
def test_joined_endings_beat_icu_alone(script, monkeypatch):
    monkeypatch.setattr("steadygaze.data.word_segmentation.AT_ENDINGS", ("(?!)",))
    both = lengths = 0
    for row in SCRIPTS[script]:
        text, wished = written(row if isinstance(row, str) else row[0])
        spans = spans_of(text)
        both, lengths = both + len({*wished} & {*spans}), lengths + len(wished) + len(spans)
    assert round(2 * both / lengths, 2) == {"Japanese": 0.67, "Japanese, held out": 0.7}[script] < SCORES[script]


@given(MIXED)
def test_every_visible_character_is_in_one_span_and_no_cluster_is_cut(text):
    covered, last = np.zeros(len(text), int), 0
    for start, end in spans_of(text):
        assert last <= start < end <= len(text)
        covered[start:end] += 1
        last = end
        before = text[start - 1 : start]
        if unicodedata.category(text[start]).startswith("M"):  # only after what cannot have a mark
            assert unicodedata.category(before or " ")[0] not in "LMN"
    for position, character in enumerate(text):
        separates = character == "\u200b" and (
            LETTER.match(text[: position + 1].rstrip("\u200b")[-1:]) or LETTER.match(text[position:].lstrip("\u200b"))
        )
        assert covered[position] == (not character.isspace() and not separates)


@given(st.lists(MIXED, max_size=5))
def test_marked_spans_return_to_the_text(texts):
    breaks = word_breaks(texts)
    for row, marked in enumerate(mark_breaks(texts, breaks)):
        if row in breaks:
            positions = breaks[row]
            ends = [*(positions + np.arange(len(positions))).tolist(), len(marked)]
            starts = [0, *(end + 1 for end in ends[:-1])]
            spans = unmarked_spans([*zip(starts, ends, strict=True)], positions)
            assert "".join(texts[row][start:end] for start, end in spans) == texts[row]
        else:
            assert marked == texts[row]


@pytest.mark.slow
def test_runs_of_a_hundred_thousand_letters_are_segmented():
    for letter in "中กあアက":
        (positions,) = word_breaks([letter * 100_000]).values()
        assert (positions[0], positions[-1]) == (0, 100_000)


def test_a_tokenizer_that_does_not_split_at_separators_keeps_runs_whole():
    saved = build_word_tokenizer(["我喜欢电影"]).to_json()
    assert read_tokenizer(saved, kind="words", max_length=9).place(["我喜欢电影"]).spans == [[(0, 1), (1, 3), (3, 5)]]
    old = read_tokenizer(saved.replace("\ufdd0", ""), kind="words", max_length=9)
    document = {**json.loads(saved), "pre_tokenizer": None}  # a tokenizer of others: a text is a word
    whole = read_tokenizer(json.dumps(document), kind="words", max_length=9)
    assert whole.place(["我 喜欢"]).spans == [[(0, 4)]]
    assert old.place(["我喜欢电影", "ខ្ញុំ\u200bចូល"]).spans == [[(0, 5)], [(0, 9)]]


@pytest.mark.parametrize("splitter", [pre_tokenizers.Whitespace(), pre_tokenizers.Split("", "isolated")])
def test_the_pieces_of_a_subword_model_are_grouped_into_words(splitter):
    """To one tokenizer a run of letters is a word, to the other (as BERT's for Chinese) each letter is one."""
    letters = "我喜欢电影这部 film,"
    engine = Tokenizer(models.BPE({letter: index for index, letter in enumerate(sorted(set(letters)))}, []))
    engine.pre_tokenizer = splitter
    placed = PieceTokenizer(engine, max_length=99, pad_id=0).place(["我喜欢这部film,电影"])
    expected = [0, 1, 1, 2, 3] + ([4, 4, 4, 4] if isinstance(splitter, pre_tokenizers.Whitespace) else [4, 5, 6, 7])
    assert placed.groups[0] == [*expected, expected[-1] + 1, expected[-1] + 2, expected[-1] + 2]


def test_icu_is_imported_only_for_scripts_without_spaces(monkeypatch):
    """None instead of a module refuses its import."""
    monkeypatch.setitem(sys.modules, "icu4py.breakers", None)
    tokenizer = build_word_tokenizer(["a plain film", "Привет, мир", "naïve 😀", "안녕"])
    tokenizer.place(["naïve Привет"])
    with pytest.raises((ImportError, UserError), match="icu4py"):
        tokenizer.place(["电影"])


@pytest.mark.parametrize(
    ("positive", "negative", "words"),
    [
        ("我|非常|喜欢|这|部|电影", "我|非常|讨厌|这|部|电影", ("喜欢", "讨厌")),
        ("ภาพยนตร์|เรื่อง|นี้|สนุก|มาก", "ภาพยนตร์|เรื่อง|นี้|แย่|มาก", ("สนุก", "แย่")),
    ],
    ids=["Chinese", "Thai"],
)
def test_a_classifier_learns_and_highlights_words(positive, negative, words):
    texts = [positive.replace("|", ""), negative.replace("|", "")] * 16
    model = sg.TextClassifier(seed=0, epochs=6, settings={"hidden": 8, "learning_rate": 0.02})
    model.fit(texts, ["good", "bad"] * 16, validation=(texts[:8], ["good", "bad"] * 4))
    assert model.score(texts, ["good", "bad"] * 16) == 1.0
    for row, text, word in zip((positive, negative), texts, words, strict=False):
        explanation = model.explain(text, explainer="leave-one-out")
        assert list(explanation.tokens) == row.split("|")
        assert [text[start:end] for start, end in explanation.spans] == row.split("|")
        assert explanation.tokens[int(np.argmax(explanation.weights))] == word


def test_a_function_is_explained_and_audited_by_japanese_words():
    def predict(texts: list[str]) -> list[list[float]]:
        return [[0.1, 0.9] if "面白かった" in text else [0.8, 0.2] for text in texts]

    texts = ["この映画はとても面白かったです。", "この映画は退屈でした。"] * 6
    explanation = sg.explain(predict, texts[0], classes=[0, 1])
    assert list(explanation.tokens) == ["この", "映画", "は", "とても", "面白かった", "です", "。"]
    assert [texts[0][start:end] for start, end in explanation.spans] == list(explanation.tokens)
    assert np.flatnonzero(explanation.weights).tolist() == [4]
    report = sg.audit(predict, texts, [1, 0] * 6, classes=[0, 1], explainers=["leave-one-out"])
    rows = {row.measure: row.value for row in report.rows}
    assert rows["comprehensiveness"] > 0
