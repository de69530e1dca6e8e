"""Words that may be substituted, in the vocabulary of the model."""

import json

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from estimator.tiny import LABELS, TEXTS, fitted
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.model_synonyms import model_synonyms
from steadygaze.core.errors import UserError
from steadygaze.core.random_key import RandomKey
from steadygaze.data.batches import collate
from steadygaze.data.verified_tables import Verification, verified_text
from steadygaze.perturbations.word_substitution import MAX_SYNONYMS
from steadygaze.properties.probes.text_perturbations import observe, substitute_synonyms, table_origin

TABLE = {"good": ["fine", "nice"], "bad": ["poor"], "film": ["movie", "film"], "do": ["perform"], "TV": ["telly"]}


def named(table, vocabulary):
    """What each word may become."""
    rows = zip(vocabulary, table.table.tolist(), table.count.tolist(), strict=True)
    return {word: [vocabulary[i] for i in row[:many]] for word, row, many in rows if many}


@pytest.fixture
def box():
    return as_adapter(make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXTS, LABELS))


def test_a_black_box_reads_synonyms_written_as_the_word_was(box):
    """ "Good" may be a name, and is left alone."""
    texts = ["GOOD film, good FILM!", "Good tv", "TV"]
    table = model_synonyms(box, TABLE, texts)
    result = named(table, box.tokens.vocabulary)
    assert result == {
        "GOOD ": ["FINE ", "NICE "],
        "good ": ["fine ", "nice "],
        "film": ["movie"],
        "FILM": ["MOVIE"],
        "tv": ["telly"],
        "TV": ["TELLY"],
    }
    assert table.origin == "table"


def test_substituted_ids_are_the_ids_of_the_text_with_substituted_words(box):
    """Every word that can be, and nothing else, not a space."""
    texts = ["  A GOOD film,\tnot a bad\nfilm !", "nothing here"]
    table = model_synonyms(box, TABLE, texts)
    batch = collate(box.for_pairs(False).data(box.tokens.place(texts), None), np.arange(2))
    moved = substitute_synonyms(batch, table, 10, RandomKey(0))
    assert box.tokens.join(moved.batch.ids, moved.batch.present) == [
        "  A FINE movie,\tnot a poor\nmovie !",
        "nothing here",
    ]
    assert moved.touched.tolist() == [4, 0]
    observe(box.model, moved.batch)


def test_a_word_with_a_contraction_is_not_substituted(box):
    texts = ["they daren't, I dare", "I daren’t"]
    table = model_synonyms(box, {"dare": ["risk"]}, texts)
    batch = collate(box.for_pairs(False).data(box.tokens.place(texts), None), np.arange(2))
    moved = substitute_synonyms(batch, table, 10, RandomKey(0))
    assert box.tokens.join(moved.batch.ids, moved.batch.present) == ["they daren't, I risk", "I daren’t"]


def test_function_words_negations_and_other_word_classes_are_never_substituted(box):
    table = {
        "new": ["for", "novel", "newer"],
        "newer": ["later"],
        "the": ["which"],
        "never": ["constant_label"],
        "for": ["new"],
    }
    result = named(model_synonyms(box, table, ["the new one", "never for us"]), box.tokens.vocabulary)
    assert result == {"new ": ["novel "]}


def test_only_so_many_synonyms_are_kept(box):
    table = model_synonyms(box, {"good": [f"fine{'x' * n}" for n in range(20)]}, ["good"])
    assert table.count.tolist()[box.tokens.vocabulary.index("good")] == MAX_SYNONYMS


def test_ours_are_read_in_lower_case_from_a_mapping_or_a_file(tmp_path):
    adapter = as_adapter(fitted())
    arguments = {"Good": ["FINE", "unheard-of"], "bad": ["dull", "bad"], "the": ["a"]}
    file = tmp_path / "synonyms.jsonl"
    file.write_text("\n".join(json.dumps({"word": word, "synonyms": others}) for word, others in arguments.items()))
    for source in (arguments, file, str(file)):
        table = model_synonyms(adapter, source)
        assert named(table, adapter.tokens.vocabulary) == {"good": ["fine"], "bad": ["dull"]}
        assert table.origin == "table"


def test_a_hugging_face_model_has_the_synonyms_that_are_whole_words_of_its_vocabulary(folder):
    adapter = as_adapter(folder("bert"), device="cpu")
    vocabulary = adapter.tokens.vocabulary
    assert named(model_synonyms(adapter, TABLE), vocabulary) == {}  # neither "fine" nor "movie" is a word to it
    assert named(model_synonyms(adapter, {"good": ["bad", "##able"]}), vocabulary) == {"good": ["bad"]}


def test_vectors_to_spare_are_no_words(folder):
    """Networks are often given more vectors than the tokenizer has words."""
    adapter = as_adapter(folder("bert"), device="cpu")
    adapter.model.network.resize_token_embeddings(64)
    assert len(model_synonyms(adapter, TABLE).count) == len(adapter.tokens.vocabulary) < 64


@pytest.mark.parametrize("table", [3, {"good": "fine"}, {"good": [3]}, {3: ["good"]}])
def test_what_is_no_table_is_refused(table, box):
    with pytest.raises(UserError, match=r"synonyms .*found"):
        model_synonyms(box, table, TEXTS)


def test_rows_that_differ_in_case_are_one_row_in_a_black_box(box):
    table = model_synonyms(box, {"Film": ["movie"], "film": ["picture"]}, ["a film"])
    assert named(table, box.tokens.vocabulary)["film"] == ["movie", "picture"]


def test_the_origin_is_that_of_the_file(box, tmp_path):
    file = tmp_path / "table.jsonl"
    file.write_text(verified_text({"good": ["fine"]}, Verification("abc", 0.9, "def")))
    for adapter in (box, as_adapter(fitted())):
        table = model_synonyms(adapter, file, TEXTS)
        assert table.origin == "verified"
        assert table_origin(table).startswith("verified-")
        assert model_synonyms(adapter, TABLE, TEXTS).origin == "table"


def test_function_words_of_a_verified_table_are_substituted(box, tmp_path):
    file = tmp_path / "table.jsonl"
    rows = {"although": ["though"], "film": ["movie"]}
    file.write_text(verified_text(rows, Verification("abc", 0.9, "def")))
    texts = ["although a film"]
    assert named(model_synonyms(box, file, texts), box.tokens.vocabulary) == {
        "although ": ["though "],
        "film": ["movie"],
    }
    assert named(model_synonyms(box, rows, texts), box.tokens.vocabulary) == {"film": ["movie"]}
