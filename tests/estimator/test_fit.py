"""From an order to a trained model: the vocabulary, the vectors, the run that can be taken up again."""

import json
import re

import numpy as np
import pytest

from estimator.tiny import LABELS, PAIRS, SMALL, TEXTS, tiny
from steadygaze.core.errors import UserError
from steadygaze.core.rounding import percent
from steadygaze.data import word_vectors
from steadygaze.data.word_tokenizer import SPECIALS
from steadygaze.estimator.fit import fit
from steadygaze.estimator.inputs import hold_out_validation, read_split
from steadygaze.estimator.train_config import train_config
from steadygaze.techniques.word_iat import WordIAT
from training.toys import Listener


def fit_messages(clf, X=TEXTS, y=LABELS):
    listener = Listener()
    stored = fit(train_config(clf.get_params()), read_split(X, y), None, listener)
    return stored, listener.warned + listener.messages


@pytest.fixture
def vectors(tmp_path):
    file = tmp_path / "vectors.txt"
    file.write_text("good 1 0 0\nbad 0 1 0\nfilm 0 0 1\nnever-seen 1 1 1\n")
    return file


def test_the_vocabulary_is_that_of_the_training_texts_alone():
    stored, _ = fit_messages(tiny())
    clf = tiny().fit(TEXTS, LABELS, validation=(["entirely new words"] * 2, ["pos", "neg"]))
    assert "film" in stored.tokenizer.vocabulary
    assert "entirely" not in clf.stored_.tokenizer.vocabulary


def test_words_of_the_questions_are_known_too():
    stored, _ = fit_messages(tiny(), PAIRS)
    assert "?" in stored.tokenizer.vocabulary


def test_a_rarer_word_than_min_df_is_unknown():
    assert len(fit_messages(tiny(settings={**SMALL, "min_df": 3}))[0].tokenizer.vocabulary) < len(
        fit_messages(tiny())[0].tokenizer.vocabulary
    )


def test_vectors_set_the_dimension_and_their_coverage_is_reported(vectors):
    stored, message = fit_messages(tiny(vectors=vectors, settings={"hidden": 4, "train_vectors": False}))
    words = stored.tokenizer.vocabulary
    table = stored.model.encoder.embedding.weight
    assert stored.description.architecture.dimension == 3
    assert table[words.index("good")].tolist() == [1, 0, 0]
    assert table[words.index("dull")].abs().sum() > 0  # drawn, never zero
    assert stored.description.coverage == pytest.approx(3 / (len(words) - 4))
    assert any("words found in vectors.txt" in line for line in message)


def test_the_share_of_running_tokens_with_a_vector_is_kept_and_a_low_one_is_warned_about(vectors, tmp_path):
    stored, message = fit_messages(tiny(vectors=vectors, settings={"hidden": 4}))
    train = hold_out_validation(read_split(TEXTS, LABELS))[0]
    words = [word for text in train.texts for word in re.findall(r"\w+|[^\w\s]", text.lower())]
    share = sum(word in ("good", "bad", "film") for word in words) / len(words)
    assert 0 < share < word_vectors.LOW_COVERAGE
    assert stored.description.token_coverage == pytest.approx(share)
    assert [
        line
        for line in message
        if line.startswith(f"only {percent(share)} of the tokens in the training texts have a vec")
    ]
    every = tmp_path / "every.txt"
    every.write_text("".join(f"{word} 1 0 {i}\n" for i, word in enumerate(sorted(set(words)))))
    stored, message = fit_messages(tiny(vectors=every, settings={"hidden": 4, "min_df": 1}))
    assert stored.description.token_coverage == 1
    assert not [line for line in message if line.startswith("only")]
    assert fit_messages(tiny())[0].description.token_coverage is None


def test_fit_warns_in_python_too_when_few_tokens_have_a_vector(vectors):
    with pytest.warns(UserWarning, match=r"only \d+ % of the tokens in the training texts have a vector in vectors"):
        tiny(vectors=vectors, settings={"hidden": 4}).fit(TEXTS, LABELS)


def test_word_iat_in_training_has_no_special_token_among_the_neighbors(monkeypatch):
    results, refresh = [], WordIAT.on_epoch_start

    def recorded(self, model, synonyms):
        results.append(refresh(self, model, synonyms))
        return results[-1]

    monkeypatch.setattr(WordIAT, "on_epoch_start", recorded)
    stored, message = fit_messages(tiny(technique="word-iat", settings={**SMALL, "min_df": 2}))
    named = {stored.tokenizer.vocabulary[i] for table in results for i in table["nearest"].flatten().tolist()}
    assert named
    assert not named & set(SPECIALS)
    assert not [line for line in message if "synonym" in line]


def test_training_substitutes_across_word_classes_as_the_stability_study_did(tmp_path):
    """The audit would keep one of these pairs: film, movie."""
    table = {"film": ["movie", "the"], "films": ["movie"], "movies": ["film"], "never": ["rarely"]}
    rows = [json.dumps({"word": word, "synonyms": others}) + "\n" for word, others in table.items()]
    (tmp_path / "table.jsonl").write_text("".join(rows))
    settings = {**SMALL, "min_df": 1, "synonyms": str(tmp_path / "table.jsonl")}
    texts = [f"{text} film films movie movies never rarely" for text in TEXTS]
    message = fit_messages(tiny(technique="synonym-augmentation", settings=settings), texts)[1]
    assert [line for line in message if line.startswith("synonyms: 3 of ")], message


def test_texts_that_lose_their_end_are_counted():
    _, message = fit_messages(tiny(max_length=6))
    assert re.fullmatch(
        r"1[01] of 21 texts were truncated at 6 tokens: the model reads only their first 6 tokens\.  "
        r"To read whole texts, train with a larger max_length= \(--max-length\)",
        message[0],
    )
    assert not [line for line in fit_messages(tiny(max_length=100))[1] if "truncated" in line]


def test_without_a_progress_bar_they_are_a_warning():
    with pytest.warns(UserWarning, match="texts were truncated at 6 tokens"):
        tiny(max_length=6).fit(TEXTS, LABELS)


def test_an_interrupted_run_ends_as_if_it_had_not_been(tmp_path):
    whole = tiny(epochs=3).fit(TEXTS, LABELS)
    tiny(epochs=3).fit(TEXTS, LABELS, checkpoint=tmp_path / "run")
    resumed = tiny(epochs=3).fit(TEXTS, LABELS, checkpoint=str(tmp_path / "run"), resume=True)
    assert np.array_equal(resumed.predict_proba(TEXTS), whole.predict_proba(TEXTS))
    assert resumed.history_ == whole.history_


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"seed": 1}, "seed"),
        ({"settings": {**SMALL, "hidden": 5}}, "architecture"),
        ({"settings": {**SMALL, "min_df": 1}}, "text"),
        ({"settings": {**SMALL, "learning_rate": 0.1}}, "training"),
        ({"class_weight": {"pos": 2.0, "neg": 1.0}}, "class_weight"),
        ({"class_weight": "balanced"}, "class_weight"),
        ({"encoder": "lstm"}, "encoder"),
        ({"max_length": 9}, "max_length"),
    ],
)
def test_a_run_is_not_taken_up_as_another(changes, what, tmp_path):
    tiny().fit(TEXTS, LABELS, checkpoint=tmp_path / "run")
    with pytest.raises(UserError, match=f"contains a run with another {what}"):
        tiny(**changes).fit(TEXTS, LABELS, checkpoint=tmp_path / "run", resume=True)


def test_a_run_is_not_taken_up_with_other_texts(tmp_path):
    tiny().fit(TEXTS, LABELS, checkpoint=tmp_path / "run")
    with pytest.raises(UserError, match="contains a run with another corpus"):
        tiny().fit(TEXTS, LABELS[::-1], checkpoint=tmp_path / "run", resume=True)
