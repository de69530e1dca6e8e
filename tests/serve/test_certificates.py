"""Certificates of the workbench: those of the command, and never against a change that a click shows."""

from dataclasses import asdict
from itertools import product
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

import steadygaze as sg
from estimator.tiny import LABELS, TEXTS, fitted, tiny, transformer_folder
from serve.serving import SYNONYMS, run
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.estimator.explain_request import ExplainRequest
from steadygaze.results.audit_config import SubstitutionConfig
from steadygaze.serve import served_models
from steadygaze.serve.served_models import ServedModel

PARTS = (
    *("good", "Good", "GOOD", "fine", "film", "movie", "dull", "a", "ΣΟΦΟΣ", "café", "cafe\u0301"),
    *("good-film", "o'good", "good_film", "good's", "don't", "https://good.film/good", "电影", "1"),
)
"""Words, and what tokenizers split in different ways."""
WORDS = ("good", "fine", "Film", "movie", "dull", "café", "σοφός", "don't", "good film")


def clicked_rewrites(model: ServedModel, text: str) -> list[str]:
    """The texts that clicks on synonyms in the page make of a text: any words, each replaced once."""
    (explanation,) = model.explain([text], ExplainRequest())
    parts, end = [], 0
    for start, stop in explanation.spans:
        word = text[start:stop].strip()
        parts += [[text[end:start]], [text[start:stop], *model.alternatives(word, text, start)]]
        end = stop
    return ["".join(row) for row in product(*parts, [text[end:]])]


def labels(model: ServedModel, texts: list[str]) -> set[str]:
    return {max(row, key=row.__getitem__) for row in model.predict(texts)}


def words_of(model: ServedModel, text: str) -> Any:
    return model.certify([text])[0]["words"]


@pytest.fixture(params=["words", "pieces"], scope="module")
def classifier(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> sg.TextClassifier:
    if request.param == "words":
        return fitted()
    encoder = f"transformer:{transformer_folder(tmp_path_factory.mktemp('encoder'))}"
    return tiny(encoder, epochs=4, batch_size=4, settings={"learning_rate": 0.01}).fit(TEXTS, LABELS)


texts = st.lists(st.tuples(st.sampled_from(PARTS), st.sampled_from([" ", ", ", ""])), min_size=1, max_size=4).map(
    lambda parts: "".join(word + gap for word, gap in parts).strip()
)
tables = st.dictionaries(st.sampled_from(WORDS), st.lists(st.sampled_from(WORDS), min_size=1, max_size=3), min_size=1)


@pytest.mark.slow
@given(text=texts, table=tables, seed=st.integers(0, 99), samples=st.sampled_from([2, 1000]))
def test_a_label_that_clicks_change_is_never_certified(text, table, seed, samples):
    def predict(rewrites):
        votes = [sum(crc32(f"{seed} {word}".encode()) % 7 - 3 for word in rewrite.split()) for rewrite in rewrites]
        return [[0.1, 0.9] if vote > 0 else [0.8, 0.2] for vote in votes]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(served_models, "CERTIFIED", SubstitutionConfig(samples=samples))
        model = ServedModel("box", as_adapter(predict, classes=["no", "yes"]), table)
        certificate = words_of(model, text)
        if len(labels(model, clicked_rewrites(model, text))) > 1:
            assert certificate["model_certified"] is not True
            assert not certificate["vacuous"]


@pytest.mark.slow
def test_no_label_that_clicks_change_is_certified_for_word_and_subword_models(classifier):
    table = {"good": ["bad", "fine"], "fine": ["dull"], "film": ["plot"], "dull": ["good"], "bad": ["light"]}
    model = ServedModel("model", as_adapter(classifier), table)
    changed = 0
    for text in [*TEXTS, "Good-film", "good_film", "o'good film", "GOOD, dull", "good's", "don't good"]:
        if len(labels(model, clicked_rewrites(model, text))) > 1:
            changed += 1
            assert words_of(model, text)["model_certified"] is not True, text
    assert changed > 10


def two_of_three(texts):
    """Yes for at least two cheerful words."""
    counts = [sum(word in text.split() for word in ("good", "bright", "kind")) for text in texts]
    return [[0.02, 0.98] if count > 1 else [0.986, 0.014] for count in counts]


CHEERFUL = "a good bright kind film"


def test_the_smoothed_label_is_never_given_for_the_shown_one(monkeypatch):
    """One click changes the label, and most rewrites have another label than the text."""
    monkeypatch.setattr(served_models, "CERTIFIED", SubstitutionConfig(samples=20))
    table = {"good": ["plain", "usual"], "bright": ["cloudy", "gray"], "kind": ["distant", "silent"]}
    model = ServedModel("box", as_adapter(two_of_three, classes=["no", "yes"]), table)
    certificate = words_of(model, CHEERFUL)
    assert certificate["method"] == "sampling"
    assert labels(model, [CHEERFUL]) == {certificate["model_label"]} == {"yes"}
    assert certificate["label"] == "no"
    assert certificate["model_certified"] is None


def test_all_rewrites_up_to_a_thousand_are_evaluated_and_a_change_is_found():
    table = {word: [f"{letter}{word}x" for letter in "bcdfghklm"] for word in ("good", "bright", "kind")}  # 10 ** 3
    model = ServedModel("box", as_adapter(two_of_three, classes=["no", "yes"]), table)
    certificate = words_of(model, CHEERFUL)
    assert (certificate["method"], certificate["evaluated"], certificate["model_certified"]) == ("exact", 1000, False)
    assert labels(model, [certificate["counterexample"]]) == {"no"}


def test_the_certificate_of_a_request_is_that_of_certify(classifier):
    model = ServedModel("model", as_adapter(classifier), SYNONYMS)
    given = ["a good , dull film", "the plot was what it was"]

    async def ask(client):
        return [(await client.post("/v1/certify", json={"text": text})).json() for text in given]

    answers = run(ask, model)
    for text, answer in zip(given, answers, strict=True):
        (words,) = sg.certify(classifier, [text], substitutions=SYNONYMS).rows
        (weights,) = sg.certify(classifier, [text], simplex=True).rows
        for name, row in (("words", asdict(words)), ("attention", weights.to_dict())):
            expected = {key: list(value) if isinstance(value, tuple) else value for key, value in row.items()}
            assert {key: answer[name][key] for key in expected} == expected
