"""The worst rewrites of encoders with local hidden states, against all rewrites."""

from typing import Any

import numpy as np
import pytest

import steadygaze as sg
from certificates.brute_force import all_rewrites, mixed_texts, unsure
from estimator.tiny import LABELS, PAIRS, SMALL, TEXTS, tiny
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.certificates.substitution_plans import model_substitutions, plans
from steadygaze.certificates.worst_rewrites import WorstRewriteSearch, has_local_states
from steadygaze.results.audit_config import SubstitutionConfig

pytestmark = pytest.mark.filterwarnings("ignore::steadygaze.core.errors.CoverageWarning")
TABLE = {
    "good": ["bad", "dull"],
    "fine": ["good"],
    "film": ["plot", "unseen"],
    "plot": ["film", "music"],
    "bad": ["dull", "good"],
    "dull": ["bad"],
    "thought": ["sound"],
}
NOUN_TABLE = {name: TABLE[name] for name in ("film", "plot", "thought")}
ENCODERS = [("average", {}), ("cnn", {}), ("cnn", {"score": "dot"}), ("average", {"attention": "uniform"})]


def worst_rewrites(
    model: ModelAdapter,
    texts: list[str],
    questions: list[str] | None = None,
    changes: int | None = None,
    table: dict[str, list[str]] = TABLE,
) -> Any:
    network = model_substitutions(model.tokens, table, 100)
    search = WorstRewriteSearch(model, texts, questions, changes, 10**9)
    return plans(model.tokens, texts, network, SubstitutionConfig(samples=1, max_substitutions=changes), search)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("changes", [None, 1, 2])
@pytest.mark.parametrize(("encoder", "settings"), ENCODERS)
def test_the_lowest_log_odds_are_those_of_all_rewrites(encoder: str, settings: dict, changes: int | None) -> None:
    model, texts = as_adapter(unsure(encoder, tuple(settings.items()))), mixed_texts(TABLE, 25, 6)
    for text, plan in zip(texts, worst_rewrites(model, texts, None, changes), strict=True):
        rewrites = all_rewrites(text, TABLE, changes)
        if plan.worst is None:
            assert plan.method == "exact"
            assert plan.counts["rewrites"] == 1
            continue
        logits = np.log(model.predict_proba(rewrites))
        label = plan.worst.label
        assert label == logits[0].argmax()
        lowest = (logits[:, [label]] - logits).min(0)
        assert np.delete(plan.worst.log_odds, label) == pytest.approx(np.delete(lowest, label), abs=1e-4)
        assert set(plan.texts) <= set(rewrites)
        evaluated = np.log(model.predict_proba(plan.texts))
        assert (evaluated[:, [label]] - evaluated).min(0) == pytest.approx(lowest, abs=1e-4)
        probabilities = np.exp(logits)
        others = np.delete(probabilities, label, axis=1).max(1)
        assert plan.worst.probability <= probabilities[:, label].min() + 1e-5
        assert plan.worst.margin <= (probabilities[:, label] - others).min() + 1e-5 or plan.worst.margin < 0


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(("encoder", "settings"), ENCODERS)
def test_bounds_of_weights_hold_in_all_rewrites(encoder: str, settings: dict) -> None:
    clf, texts = unsure(encoder, tuple(settings.items())), mixed_texts(TABLE, 25, 6)
    certified = 0
    for text, plan in zip(texts, worst_rewrites(as_adapter(clf), texts, table=NOUN_TABLE), strict=True):
        if plan.worst is None:
            continue
        weights = np.array([item.weights for item in clf.explain(all_rewrites(text, NOUN_TABLE))])
        low, high = plan.worst.weight_bounds()
        assert plan.worst.weights == pytest.approx(weights[0], abs=1e-5)
        assert (weights >= low - 1e-5).all()
        assert (weights <= high + 1e-5).all()
        for k in (1, 2):
            top = np.zeros(weights.shape[1], np.bool_)
            top[np.argsort(-weights[0], kind="stable")[:k]] = True
            if not top.all() and (margin := plan.worst.top_k_margin(top)) > 2e-5:
                certified += 1
                assert (weights[:, top].min(1) - weights[:, ~top].max(1)).min() >= margin - 1e-5
    assert certified > 3 or settings.get("attention") == "uniform"


@pytest.mark.parametrize("encoder", ["average", "cnn"])
def test_the_question_of_a_pair_is_fixed(encoder: str) -> None:
    model = as_adapter(tiny(encoder, epochs=3).fit(PAIRS, LABELS))
    texts, questions = ["a good film , dull plot", "the bad plot was fine"], ["was the film good ?", "the score ?"]
    for text, question, plan in zip(texts, questions, worst_rewrites(model, texts, questions), strict=True):
        logits = np.log(model.predict_proba([(rewrite, question) for rewrite in all_rewrites(text, TABLE)]))
        lowest = (logits[:, [plan.worst.label]] - logits).min(0)
        other = 1 - plan.worst.label
        assert plan.worst.log_odds[other] == pytest.approx(lowest[other], abs=1e-4)


def test_truncated_words_change_nothing() -> None:
    clf = tiny("cnn", epochs=3, max_length=3).fit(TEXTS, LABELS)
    text = "a good film bad plot"
    plan = next(worst_rewrites(as_adapter(clf), [text]))
    logits = np.log(clf.predict_proba(all_rewrites(text, TABLE)))
    lowest = (logits[:, [plan.worst.label]] - logits).min(0)[1 - plan.worst.label]
    assert plan.worst.log_odds[1 - plan.worst.label] == pytest.approx(lowest, abs=1e-4)


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("encoder", ["average", "cnn"])
@pytest.mark.parametrize("changes", [None, 5])
def test_certificates_of_long_texts_are_exact(encoder: str, changes: int | None) -> None:
    clf, certified = unsure(encoder), set()
    texts = [
        "Good a film a , a bad a plot a , a dull a thought a film",
        "FINE a fine a a plot a cast a , a film a good a bad a dull",
    ]
    cases = [(text, TABLE) for text in texts]
    cases += [("Good good fine a film a film a film a plot a plot a film a good fine", NOUN_TABLE)]
    for text, table in cases:
        options: dict[str, Any] = {"k": 1, "substitutions": table, "max_substitutions": changes}
        row, expected = (sg.certify(clf, text, samples=samples, **options)[0] for samples in (500, 10_000))
        assert (row.method, expected.method) == ("exact", "exact")
        assert row.evaluated <= 3 < 500 < expected.evaluated
        assert (row.label, row.certified) == (expected.label, expected.certified)
        assert (row.counterexample is None) == (expected.counterexample is None)
        assert row.probability <= expected.probability + 1e-5
        assert row.weight_shift >= expected.weight_shift - 1e-5
        assert expected.top_k_certified or not row.top_k_certified
        certified.add(row.certified)
    assert certified == {False, True}


def test_too_many_windows_are_not_evaluated() -> None:
    clf = unsure("cnn")
    certificate = sg.certify(clf, "good film bad plot good dull bad", substitutions=TABLE, samples=10, set_size=2)[0]
    assert certificate.method == "none"


@pytest.mark.parametrize(
    ("encoder", "settings", "expected"),
    [
        ("average", {}, True),
        ("cnn", {"attention": "uniform"}, True),
        ("gru", {}, False),
        ("average", {"attention": "sparsemax"}, False),
        ("cnn", {"decoder": "mlp"}, False),
    ],
)
def test_only_models_with_separable_log_odds_are_searched(encoder: str, settings: dict, expected: bool) -> None:
    clf = tiny(encoder, settings={**SMALL, **settings}).fit(TEXTS, LABELS)
    assert has_local_states(as_adapter(clf)) is expected
