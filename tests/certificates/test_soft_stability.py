"""The certificate of soft stability: against all sets, exact bounds, and every kind of model."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

import steadygaze as sg
from estimator.tiny import PAIRS, TEXTS, fitted, fitted_pair, transformer_folder
from steadygaze.core.errors import UserError
from steadygaze.core.maths.smoothing_bounds import binomial_bounds
from steadygaze.results.soft_stability import SoftStabilities

pytestmark = pytest.mark.filterwarnings("ignore::steadygaze.core.errors.CoverageWarning")
TEXT = "one two three four five six seven eight"
CLASSES = ["even", "odd"]


def by_length(texts: list[str]) -> list[list[float]]:
    """The class is odd if the longest word has an odd number of letters; `not` turns it over."""
    rows = []
    for text in texts:
        words = text.split()
        assert words, "an empty text was predicted"
        odd = (max(map(len, words)) + words.count("not")) % 2
        rows.append([0.9 - 0.8 * odd, 0.1 + 0.8 * odd])
    return rows


def certify(texts: Any = TEXT, pair: tuple[float, int] = (2, 3), **options: Any) -> SoftStabilities:
    certificates = sg.certify(by_length, texts, soft_stability=pair, classes=CLASSES, **options)
    assert isinstance(certificates, SoftStabilities)
    return certificates


def rate_of_all_sets(text: str, selected: tuple[str, ...], most: int) -> float:
    words = text.split()
    others = [word for word in words if word not in selected]
    sets = [{*selected, *added} for size in range(most + 1) for added in combinations(others, size)]
    kept = [" ".join(word for word in words if word in chosen) for chosen in sets]
    labels = np.argmax(by_length(kept), 1)
    return float(np.mean(labels == np.argmax(by_length([" ".join(selected)]), 1)))


def test_a_rate_is_exact_where_all_sets_are_evaluated():
    """6 other words, at most 3 of them: 42 sets."""
    (row,) = certify(samples=42)
    assert row.exact
    assert row.evaluated == 42
    assert row.rate == row.low == row.high == pytest.approx(rate_of_all_sets(TEXT, row.selected, 3))
    assert 0 < row.rate < 1
    assert row.words == 8
    assert len(row.selected) == 2


def test_bounds_of_samples_contain_the_rate():
    """The error of 99.9 % is far from the 40 draws of the sample."""
    (exact,) = certify(samples=42)
    for seed in range(20):
        (row,) = certify(samples=41, confidence=0.999, seed=seed)
        assert not row.exact
        assert row.low < exact.rate < row.high
        count = round(row.rate * 41)
        interval = scipy.stats.binomtest(count, 41).proportion_ci(0.999, "exact")
        assert (row.low, row.high) == pytest.approx((interval.low, interval.high), abs=1e-9)
    assert len({certify(samples=41, seed=seed)[0].rate for seed in range(5)}) > 1


@pytest.mark.parametrize(("count", "low", "high"), [(0, 0.0, 0.025), (5, 0.016432, 0.112835), (100, 0.963783, 1.0)])
def test_bounds_are_those_of_clopper_and_pearson(count, low, high):
    """95 %: tables, and 1 − (α/2)^(1/n) at the ends."""
    bounds = binomial_bounds(np.array([count]), 100, 0.05)
    expected = (low, 1 - 0.025**0.01) if count == 0 else (0.025**0.01, high) if count == 100 else (low, high)
    assert [bound.item() for bound in bounds] == pytest.approx(expected, abs=1e-5)


def test_a_constant_model_has_rate_1():
    rows = sg.certify(lambda texts: [[1.0, 0.0]] * len(texts), TEXT, soft_stability=(1, 4), samples=20, classes=CLASSES)
    assert rows[0].rate == rows[0].high == 1
    assert rows[0].low == pytest.approx((0.01 / 2) ** (1 / 20))
    assert rows[0].low < 1


def test_the_same_text_has_the_same_rate_in_any_batch_and_order():
    texts = [TEXT, f"not {TEXT}", f"{TEXT} not nine ten", "four eleven six", TEXT]
    together = certify(texts, samples=30)
    assert together[0] == together[4]
    for size in (1, 2):
        assert certify(texts[::-1], samples=30, batch_size=size).rows == together.rows[::-1]
    assert [certify(text, samples=30)[0] for text in texts] == list(together)


def test_equal_texts_are_predicted_once():
    """A share of 42 sets by 1,000 samples costs 42 predictions, one of the whole text and those of the explainer."""
    seen: list[str] = []

    def model(texts: list[str]) -> list[list[float]]:
        seen.extend(texts)
        return by_length(texts)

    sg.certify(model, TEXT, soft_stability=(2, 2), samples=21, classes=CLASSES, explainer="random")
    assert len(seen) <= 1 + 1 + 21
    seen.clear()
    sg.certify(model, TEXT, soft_stability=(2, 2), samples=1000, classes=CLASSES, explainer="random")
    assert len(seen) <= 2 + 22


def test_words_without_others_to_add_are_vacuous():
    rows = certify([TEXT, "four eleven"], pair=(2, 3))
    assert [row.is_vacuous for row in rows] == [False, True]
    assert rows[1].rate == 1
    assert rows.summary()["vacuous"] == 1
    assert rows.mean_rate == rows[0].rate
    assert rows.to_dict()["rows"][1]["vacuous"]
    assert "vacuous" in str(rows)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ((9, 1), "selects 9 words, but the longest text has 8: no word can be added"),
        ((5,), 'must be a pair K,R, such as "5,3" or "0.2,3"'),
        (5, "must be a pair K,R"),
        ((0, 1), "K of soft_stability must be a whole number of words from 1 up, or a share between 0 and 1, found 0"),
        ((1.5, 1), "or a share between 0 and 1, found 1.5"),
        ((1, 0), "R of soft_stability must be a whole number from 1 up, found 0"),
    ],
)
def test_a_wrong_pair_is_refused(value, message):
    with pytest.raises(UserError, match=message.replace("(", r"\(")):
        certify(pair=value)


@pytest.mark.parametrize(
    "options", [{"k": 3}, {"radius": 0.1}, {"norm": "l2"}, {"substitutions": {"one": ["two"]}}, {"set_size": 3}]
)
def test_options_of_other_certificates_are_refused(options):
    with pytest.raises(UserError, match="cannot be combined with soft_stability="):
        certify(**options)


def test_explainer_and_removal_need_soft_stability():
    for options in ({"explainer": "lime"}, {"removal": "pad"}):
        with pytest.raises(UserError, match="are about soft stability"):
            sg.certify(fitted(), TEXTS, **options)
    with pytest.raises(UserError, match="removal must be 'delete'"):
        certify(removal="zero")


def test_classifiers_pairs_and_removals():
    for removal in ("delete", "pad", "zero"):
        rows = sg.certify(fitted(), TEXTS, soft_stability=(0.2, 2), removal=removal, explainer="gradient")
        assert rows.config.explainer == "gradient"
        assert [row.text for row in rows] == TEXTS
        assert all(len(row.selected) == 2 and row.exact for row in rows)
        assert [row.model_label for row in rows] == fitted().predict(TEXTS).tolist()
    pairs = sg.certify(fitted_pair(), PAIRS[:3], soft_stability=(2, 2))
    assert [(row.text, row.question) for row in pairs] == PAIRS[:3]


def test_the_selected_words_are_the_top_words_of_the_explanation():
    rows = sg.certify(fitted(), TEXTS, soft_stability=(2, 2), explainer="input-x-gradient")
    for row, explanation in zip(rows, fitted().explain(TEXTS, explainer="input-x-gradient"), strict=True):
        top = sorted(np.argsort(-np.array(explanation.weights))[:2])
        assert row.selected == tuple(explanation.tokens[word] for word in top)


@pytest.mark.slow
def test_words_of_several_pieces_are_added_whole(tmp_path: Path):
    folder = transformer_folder(tmp_path / "bert")
    clf = sg.TextClassifier(f"transformer:{folder}", epochs=1, device="cpu").fit(TEXTS, ["pos"] * 12 + ["neg"] * 12)
    rows = sg.certify(clf, TEXTS[:4], soft_stability=(2, 2), explainer="leave-one-out")
    for row in rows:
        assert row.words == len(row.text.split())
        assert set(row.selected) <= set(row.text.split())


def test_results_are_tables_and_text(tmp_path: Path):
    rows = certify([TEXT, f"not {TEXT}"], samples=20)
    table = rows.to_pandas()
    assert list(table["rate"]) == [row.rate for row in rows]
    settings = {"top": 2, "added": 3, "explainer": "leave-one-out", "removal": "delete", "samples": 20, "seed": 0}
    assert rows.to_dict()["settings"] == {**settings, "confidence": 0.99}
    assert "confidence of 99.0 % (20 samples)" in str(rows)
    assert rows.least_stable(1)[0].low == min(row.low for row in rows)
    assert rows[0].line().split("\t")[3] == TEXT
    assert rows[:1].rows == rows.rows[:1]
