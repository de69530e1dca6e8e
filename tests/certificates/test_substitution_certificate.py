"""The certificate of substitutions is sound: against all rewrites, exact probabilities, attacks and random rewrites."""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

import steadygaze as sg
from certificates.brute_force import all_rewrites, mixed_texts
from certificates.brute_force import unsure as uncertain
from estimator.tiny import LABELS, PAIRS, TEXTS, fitted, fitted_pair, tiny, transformer_folder
from steadygaze.certificates.substitution_certificate import Outputs, _sampled_claims
from steadygaze.certificates.substitution_plans import Plan, model_substitutions, plans
from steadygaze.core.errors import UserError
from steadygaze.data.substitutions import Substitutions
from steadygaze.data.subword_tokenizer import PieceTokenizer
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.results.audit_config import SubstitutionConfig
from steadygaze.results.substitution_certificates import SubstitutionCertificates

pytestmark = pytest.mark.filterwarnings("ignore::steadygaze.core.errors.CoverageWarning")
TABLE = {
    "good": ["bad", "dull", "fine"],
    "fine": ["good", "script"],
    "film": ["plot", "cast", "unseen"],
    "plot": ["film", "music"],
    "bad": ["dull", "good"],
    "dull": ["bad", "hidden"],
    "thought": ["sound"],
}
LINKED = {"film": ["movie", "picture"], "good": ["fine"], "fine": ["nice"], "nice": ["great"], "great": ["grand"]}


UNSPACED = ["我喜欢", "电影", "这", "とても", "カー", "映画", "หนัง", "ดี", "រឿង"]
"""Words of scripts without spaces, in which words of other scripts are written without spaces too."""


unsure = partial(uncertain, epochs=4)


def joined_texts() -> list[tuple[str, list[str]]]:
    """Texts without spaces, and their parts, of which every second one is a word of the table."""
    random, texts = np.random.default_rng(0), []
    for _ in range(24):
        parts = ["", *random.choice(UNSPACED, 3)]
        words = random.choice(list(TABLE), random.integers(1, 4))
        row = [part for pair in zip(parts, words, strict=False) for part in pair] + [str(random.choice(UNSPACED))]
        texts.append(("".join(row), row))
    return texts


def joined_rewrites(parts: Sequence[str]) -> list[str]:
    """Every rewrite of such a text, by brute force."""
    return ["".join(row) for row in product(*([part, *TABLE.get(part, [])] for part in parts))]


def top(weights: Sequence[float], k: int) -> frozenset[int]:
    return frozenset(np.argsort(-np.array(weights), kind="stable")[:k].tolist())


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("changes", [None, 1, 2])
def test_exact_certificates_agree_with_all_rewrites(changes: int | None) -> None:
    clf, texts = unsure(), mixed_texts(TABLE, 40, 5)
    certificates = sg.certify(clf, texts, k=2, substitutions=TABLE, samples=10_000, max_substitutions=changes)
    changed = 0
    for text, certificate in zip(texts, certificates, strict=True):
        rewrites = all_rewrites(text, TABLE, changes)
        explanations = clf.explain(rewrites)
        assert certificate.method == "exact"
        assert certificate.certified == (len({item.label for item in explanations}) == 1)
        assert certificate.top_k_certified == (len({top(item.weights, 2) for item in explanations}) == 1)
        assert certificate.probability == pytest.approx(
            min(item.probabilities[certificate.label] for item in explanations), abs=1e-5
        )
        first = np.array(explanations[0].weights)
        shift = max(np.abs(np.array(item.weights) - first).max() for item in explanations)
        assert certificate.weight_shift == pytest.approx(shift, abs=1e-5)
        if certificate.counterexample is not None:
            changed += 1
            assert certificate.counterexample in rewrites
            assert clf.predict([certificate.counterexample])[0] != certificate.label
        assert (certificate.counterexample is None) == certificate.certified
    assert 5 < changed < 35


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("encoder", ["bilstm", "black box", "average"])
def test_exact_certificates_hold_beside_scripts_without_spaces(encoder: str) -> None:
    clf = unsure() if encoder != "average" else tiny("average", epochs=3).fit(TEXTS, LABELS)
    model = sg.load(lambda texts: clf.predict_proba(texts), classes=list(clf.classes_)) if "box" in encoder else clf
    rows = joined_texts()
    samples = 2 if encoder == "average" else 10_000  # 2: the worst rewrite is computed
    certificates = sg.certify(model, [text for text, _ in rows], substitutions=TABLE, samples=samples)
    for (_, parts), certificate in zip(rows, certificates, strict=True):
        rewrites = joined_rewrites(parts)
        labels = clf.predict(rewrites)
        assert certificate.method == "exact"
        assert certificate.positions == len(parts) // 2
        assert certificate.certified == (len(set(labels)) == 1)
        assert certificate.counterexample is None or certificate.counterexample in rewrites
    assert 0 < sum(certificate.certified for certificate in certificates) < len(rows)


def test_unknown_alternatives_of_unknown_words_change_nothing() -> None:
    certificate = sg.certify(
        unsure(), "unseen hidden words", substitutions={"unseen": ["hidden"], "hidden": ["veiled"]}
    )[0]
    assert (certificate.positions, certificate.covered_positions, certificate.covered_alternatives) == (2, 2, 2)
    assert (certificate.rewrites, certificate.evaluated) == (1, 1)
    assert certificate.certified
    assert certificate.top_k_certified
    assert certificate.weight_shift == 0
    assert certificate.uncovered == ()


UNKNOWN = {"uone": ["good", "fine", "film", "plot", "utwo"], "utwo": ["good", "fine", "film", "bad"]}
"""Two words that the model does not know, with different perturbation sets."""


def test_free_substitutions_of_unknown_words_count_in_the_total_variation() -> None:
    text = " ".join(["uone"] * 12)
    options: dict[str, Any] = {"substitutions": UNKNOWN, "samples": 40, "set_size": 4, "max_substitutions": 1}
    certificate = sg.certify(unsure(), text, **options)[0]
    assert certificate.covered_alternatives == 12
    assert certificate.total_variation == pytest.approx(1 - 0.75**12)
    assert (certificate.method, certificate.certified) == ("none", False)


@pytest.mark.parametrize("words", [1, 2, 3])
def test_the_total_variation_bounds_all_rewrites_with_free_substitutions(words: int) -> None:
    """Any number of unknown words by unknown ones, and one word that the model reads differently."""
    clf, text = unsure(), " ".join(["uone"] * words)
    network = model_substitutions(clf.stored_.tokenizer, UNKNOWN, 4)
    options: dict[str, Any] = {"substitutions": UNKNOWN, "samples": 2, "set_size": 4, "max_substitutions": 1}
    certificate = sg.certify(clf, text, **options)[0]
    rewrites = [
        row for row in product(("uone", *UNKNOWN["uone"]), repeat=words) if sum(word[0] != "u" for word in row) <= 1
    ]
    shares = np.stack([exact_smoothed(clf.predict_proba, " ".join(row), network) for row in rewrites])
    assert np.abs(shares - shares[0]).max() <= certificate.total_variation + 1e-12
    assert certificate.total_variation == pytest.approx(1 - 0.75**words)


def test_rows_that_differ_in_case_are_all_certified() -> None:
    model = sg.load(
        lambda texts: np.array([[0.1, 0.9] if "movie" in text else [0.9, 0.1] for text in texts]), classes=["a", "b"]
    )
    certificate = sg.certify(model, "a film here", substitutions={"Film": ["movie"], "film": ["picture"]})[0]
    assert (certificate.certified, certificate.alternatives) == (False, 2)
    assert certificate.counterexample == "a movie here"


@pytest.mark.parametrize(
    ("word", "table", "alternatives"),
    [
        ("TOLL", {"toll": ["groß", "gross"], "groß": ["toll"]}, 1),
        ("Toll", {"toll": ["groß", "gross"], "groß": ["toll"]}, 2),
        ("KAPI", {"kapı": ["kapi"], "kapi": ["kapı"]}, 0),
        ("ΚΑΛΉ", {"καλή": ["σοφός"], "σοφός": ["καλή"]}, 0),
        ("FILM", {"film": ["שלום"], "שלום": ["film"]}, 0),  # has no upper case
        ("film", {"film": ["שלום"], "שלום": ["film"]}, 1),
    ],
)
def test_alternatives_without_the_case_of_the_word_are_left_out(
    word: str, table: dict[str, list[str]], alternatives: int
) -> None:
    model = sg.load(lambda texts: [[0.9, 0.1] for _ in texts], classes=["a", "b"])
    certificate = sg.certify(model, word, substitutions=table)[0]
    assert (certificate.positions, certificate.alternatives) == (int(alternatives > 0), alternatives)


def test_alternatives_inside_synonym_groups_are_covered_and_need_no_evaluation() -> None:
    groups = SynonymGroups((("good", "fine", "nice"), ("film", "plot")))
    clf = tiny("bilstm", epochs=2, synonym_groups=groups).fit(TEXTS, LABELS)
    table = {"good": ["fine", "nice"], "film": ["plot", "cast"]}
    inside, outside = sg.certify(clf, ["a good plot", "Nice GOOD film"], k=1, substitutions=table)
    assert (inside.positions, inside.covered_positions, inside.covered_alternatives) == (1, 1, 2)
    assert (inside.method, inside.evaluated, inside.certified, inside.top_k_certified) == ("exact", 1, True, True)
    assert inside.weight_shift == 0
    assert (outside.positions, outside.covered_positions) == (2, 1)
    assert (outside.alternatives, outside.covered_alternatives, outside.rewrites) == (4, 3, 2)
    assert outside.uncovered == ("film",)
    explanations = clf.explain(all_rewrites("nice good film", table))
    assert len({item.weights for item in explanations}) == 2  # film and plot, or cast
    assert outside.certified == (len({item.label for item in explanations}) == 1)


def test_members_of_a_group_have_the_same_samples() -> None:
    groups = SynonymGroups((("good", "fine"),))
    tokens = tiny(epochs=1, synonym_groups=groups).fit(TEXTS, LABELS).stored_.tokenizer
    network = model_substitutions(tokens, {"good": ["fine", "bad"], "bad": ["dull"], "dull": ["music"]}, 2)
    assert network.perturbation_set("good") == network.perturbation_set("fine") == ("bad", "good")
    assert network.perturbation_set("bad") == ("bad", "dull")
    assert network.distance("good", "fine") == 0
    assert network.distance("good", "bad") == 0.5


def random_labels(classes: int, bias: float) -> Callable[[list[str]], np.ndarray]:
    """A black box without structure: the label of a text depends on its hash."""

    def predict(texts: list[str]) -> np.ndarray:
        hashes = np.array([int.from_bytes(hashlib.sha256(text.encode()).digest()[:4]) / 2**32 for text in texts])
        labels = np.where(hashes < bias, 0, 1 + (hashes * 1e6).astype(int) % (classes - 1))
        return np.eye(classes)[labels] * 0.8 + 0.2 / classes

    return predict


def exact_smoothed(predict: Callable[[list[str]], np.ndarray], text: str, network: Substitutions) -> np.ndarray:
    """The probabilities of the smoothed model, by enumeration.  (C,)"""
    rows = product(*(network.perturbation_set(word) for word in text.split()))
    probabilities = predict([" ".join(row) for row in rows])
    return np.bincount(probabilities.argmax(1), minlength=probabilities.shape[1]) / len(probabilities)


@pytest.mark.slow
@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(("classes", "set_size", "bias"), [(2, 5, 0.8), (2, 4, 0.97), (3, 5, 0.6), (2, 3, 0.99)])
def test_certified_labels_of_the_smoothed_model_hold_in_all_rewrites(classes: int, set_size: int, bias: float) -> None:
    predict = random_labels(classes, bias)
    model = sg.load(predict, classes=[f"class {i}" for i in range(classes)])
    random = np.random.default_rng(1)
    texts = [" ".join(random.choice(["film", *LINKED, "grand", "x"], 5)) for _ in range(40)]
    options: dict[str, Any] = {"substitutions": LINKED, "samples": 30, "confidence": 0.999, "set_size": set_size}
    network = model_substitutions(model.tokens, LINKED, set_size)
    sampled = certified = 0
    for text in dict.fromkeys(texts):
        certificate = sg.certify(model, text, **options, max_substitutions=3)[0]
        if certificate.method != "sampling":
            continue
        rewrites = all_rewrites(text, LINKED, 3)
        probabilities = np.stack([exact_smoothed(predict, rewrite, network) for rewrite in rewrites])
        sampled += 1
        assert np.abs(probabilities - probabilities[0]).max() <= certificate.total_variation + 1e-12
        if certificate.certified:
            certified += 1
            best = int(probabilities[0].argmax())
            assert certificate.label == f"class {best}"
            others = np.delete(probabilities, best, axis=1).max(1)
            assert (probabilities[:, best] > others).all()
            assert probabilities[:, best].min() >= certificate.probability
    assert sampled > 0
    assert certified > 0 or bias < 0.7


def test_certified_top_words_and_weights_of_the_smoothed_explanation_hold_in_all_rewrites() -> None:
    clf = fitted()
    table = {"good": ["fine", "bad"], "fine": ["dull"], "film": ["plot", "cast"], "music": ["score"]}
    texts = ["good film good fine", "the film was good and fine", "a music good plot film", "film and fine music"]
    network = model_substitutions(clf.stored_.tokenizer, table, 3)
    options: dict[str, Any] = {"substitutions": table, "samples": 11, "set_size": 3, "confidence": 0.9}
    for changes in (1, 2):
        for text in texts:
            certificate = sg.certify(clf, text, k=1, **options, max_substitutions=changes)[0]
            if certificate.method != "sampling":
                continue
            votes, means = zip(
                *(smoothed_weights(clf, t, network) for t in all_rewrites(text, table, changes)), strict=True
            )
            shift = certificate.total_variation + 1e-5
            assert np.abs(np.stack(means) - means[0]).max() <= shift
            assert np.abs(np.stack(votes) - votes[0]).max() <= shift
            if certificate.top_k_certified:
                assert len({int(row.argmax()) for row in votes}) == 1


def smoothed_weights(clf: sg.TextClassifier, text: str, network: Substitutions) -> tuple[np.ndarray, np.ndarray]:
    """The probability of each word to have the largest weight, and its mean weight."""
    rows = product(*(network.perturbation_set(word) for word in text.split()))
    weights = np.array([item.weights for item in clf.explain([" ".join(row) for row in rows])])
    votes = np.eye(weights.shape[1])[weights.argmax(1)]
    return votes.mean(0), weights.mean(0)


def balanced(texts: list[str]) -> np.ndarray:
    """Exactly half of the rewrites of each text have either label: no claim about a majority is true."""
    parity = np.array([(text.count("fine") + text.count("nice")) % 2 for text in texts])
    return np.eye(2)[parity]


NUMBERS = pytest.mark.parametrize("number", [1_000, pytest.param(10_000, marks=pytest.mark.exhaustive)])


@pytest.mark.slow
@NUMBERS
def test_false_claims_are_at_most_as_frequent_as_stated(number: int) -> None:
    table = {"good": ["fine"], "fine": ["nice"], "nice": ["great"]}
    texts = [f"good good good good good number{i}" for i in range(number)]
    model = sg.load(balanced, classes=["even", "odd"])
    certificates = sg.certify(model, texts, substitutions=table, samples=31, confidence=0.7)
    assert {row.method for row in certificates} == {"sampling"}
    assert {row.total_variation for row in certificates} == {0.0}
    false_claims = np.mean([row.certified for row in certificates])
    assert 0.02 < false_claims <= 0.3


@pytest.mark.slow
@NUMBERS
def test_violations_over_many_texts_are_at_most_as_frequent_as_stated(number: int) -> None:
    """Certified texts with a rewrite for which the exact smoothed model has another label."""
    predict = random_labels(2, 0.6)
    table = {"good": ["fine"], "film": ["movie"]}
    texts = [f"good film good film good film number{i}" for i in range(number)]
    certificates = sg.certify(
        sg.load(predict, classes=["a", "b"]), texts, substitutions=table, samples=25, confidence=0.8
    )
    network = model_substitutions(sg.load(predict, classes=["a", "b"]).tokens, table, 100)
    wrong = certified = 0
    for text, certificate in zip(texts, certificates, strict=True):
        if certificate.certified:
            certified += 1
            exact = exact_smoothed(predict, text, network)  # all rewrites have the same distribution
            wrong += "ab"[int(exact.argmax())] != certificate.label or exact[0] == exact[1]
    assert certified > number / 20
    assert wrong / len(texts) <= 0.2
    assert wrong > 0


def attack(clf: sg.TextClassifier, words: Sequence[str], label: str, width: int, space: str = " ") -> bool:
    """Beam search for a rewrite with another label; each position is substituted at most once.  Width 1: greedy."""
    beam = [list(words)]
    for _ in words:
        candidates = [
            [*current[:i], name, *current[i + 1 :]]
            for current in beam
            for i, word in enumerate(words)
            if current[i] == word
            for name in TABLE.get(word, [])
        ]
        if not candidates:
            return False
        texts = [space.join(row) for row in candidates]
        values = clf.predict_proba(texts)[:, list(clf.classes_).index(label)]
        if (clf.predict(texts) != label).any():
            return True
        beam = [candidates[i] for i in np.argsort(values)[:width]]
    return False


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("width", [1, 5])
def test_no_attack_changes_a_certified_label(width: int) -> None:
    clf, texts = unsure(), mixed_texts(TABLE, 40, 5)
    certificates = sg.certify(clf, texts, substitutions=TABLE, samples=10_000)
    broken = [row.certified for row in certificates if attack(clf, row.text.split(), str(row.label), width)]
    assert len(broken) > 5  # the attack works
    assert not any(broken)


@pytest.mark.slow
def test_no_attack_changes_a_certified_label_beside_scripts_without_spaces() -> None:
    clf, rows = unsure(), joined_texts()
    certificates = sg.certify(clf, [text for text, _ in rows], substitutions=TABLE, samples=10_000)
    broken = [
        row.certified
        for row, (_, parts) in zip(certificates, rows, strict=True)
        if attack(clf, parts, str(row.label), 5, space="")
    ]
    assert len(broken) > 5  # the attack works
    assert not any(broken)


def test_texts_with_too_many_rewrites_and_small_sets_are_not_certified() -> None:
    text = " ".join(["good"] * 9)
    certificate = sg.certify(unsure(), text, substitutions=TABLE, samples=10, set_size=2)[0]
    assert (certificate.method, certificate.certified, certificate.top_k_certified) == ("none", False, False)
    assert (certificate.rewrites, certificate.evaluated, certificate.probability) == (4**9, 1, None)
    assert certificate.total_variation >= 0.5
    assert certificate.label == unsure().predict([text])[0]


def test_a_certificate_depends_on_the_text_and_the_seed_alone() -> None:
    model = sg.load(random_labels(2, 0.7), classes=["a", "b"])
    texts = ["good film good film", "fine film fine film", "good nice good nice good"]
    options: dict[str, Any] = {"substitutions": LINKED, "samples": 8}
    together = sg.certify(model, texts, **options)
    assert [sg.certify(model, text, **options)[0] for text in reversed(texts)] == list(together)[::-1]
    others = [sg.certify(model, texts, **options, seed=seed) for seed in range(1, 5)]
    assert any(list(other) != list(together) for other in others)


def test_pairs_keep_their_question() -> None:
    certificates = sg.certify(fitted_pair(), PAIRS[:3], substitutions=TABLE)
    assert [(row.text, row.question) for row in certificates] == PAIRS[:3]
    assert {row.method for row in certificates} == {"exact"}


def test_subword_models_are_certified_by_words(tmp_path: Path) -> None:
    clf = tiny(f"transformer:{transformer_folder(tmp_path)}").fit(TEXTS, LABELS)
    certificates = sg.certify(clf, TEXTS, k=2, substitutions=TABLE)
    for row in list(certificates)[::6]:
        explanations = clf.explain(all_rewrites(row.text, TABLE))
        assert row.certified == (len({item.label for item in explanations}) == 1)
        assert row.top_k_certified == (len({top(item.weights, 2) for item in explanations}) == 1)


@pytest.mark.parametrize(("groups", "rewrites"), [(None, 2), (SynonymGroups((("uone", "utwo"),)), 1)])
def test_word_pieces_that_continue_over_a_letter_are_distinct(groups: SynonymGroups | None, rewrites: int) -> None:
    """The model reads both words as [UNK], but not within a word that a Thai letter begins."""
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "ด", "##uone", "##utwo"]
    engine = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokens = PieceTokenizer(engine, max_length=9, pad_id=0, synonym_groups=groups)
    network = model_substitutions(tokens, {"uone": ["utwo"]}, 4)
    joined, distance = plans(tokens, ["ดuone", "ด uone"], network, SubstitutionConfig())
    assert joined.texts == ["ดuone", "ดutwo"][:rewrites]
    assert distance.texts == ["ด uone"]


def test_black_boxes_have_no_top_words_and_keep_the_case() -> None:
    seen: list[str] = []

    def predict(texts: list[str]) -> list[list[float]]:
        seen.extend(texts)
        return [[0.9, 0.1] for _ in texts]

    certificates = sg.certify(sg.load(predict, classes=["a", "b"]), ["A GOOD Film!"], substitutions=LINKED)
    assert certificates[0].top_k_certified is None
    assert certificates.share_top_k_certified is None
    assert {"A FINE Film!", "A GOOD Movie!", "A FINE Picture!"} <= set(seen)


def test_the_summary_counts_methods_and_uncovered_words(tmp_path: Path) -> None:
    texts = ["good film", "nothing", " ".join(["good"] * 9)]
    certificates = sg.certify(unsure(), texts, substitutions=TABLE, samples=20, set_size=2)
    assert isinstance(certificates, SubstitutionCertificates)
    summary = certificates.summary()
    assert summary["methods"] == {"exact": 2, "sampling": 0, "none": 1}
    assert summary["mean_alternatives"] == pytest.approx((3 + 3 + 27) / 3)
    assert summary["uncovered_words"] == {"good": 2, "film": 1}
    assert "1 of 3" in str(certificates) or "2 of 3" in str(certificates) or "0 of 3" in str(certificates)
    assert "substitutions by the pairs of the table" in str(certificates)
    table = certificates.to_pandas()
    assert list(table["text"]) == texts
    certificates.to_json(tmp_path / "certificates.json")
    saved = json.loads((tmp_path / "certificates.json").read_text())
    assert saved["settings"]["samples"] == 20
    assert [row["method"] for row in saved["rows"]] == ["exact", "exact", "none"]
    assert len(certificates[:2]) == 2


def test_the_summary_counts_vacuous_certificates() -> None:
    """Without a word of the table, or with at most k words, the certificate holds for any model."""
    texts = ["a film", "nothing here at all", "i thought a good plot was here", "a bad and dull film , i thought"]
    certificates = sg.certify(unsure(), texts, k=2, substitutions=TABLE, samples=10_000)
    assert [row.words for row in certificates] == [2, 4, 7, 8]
    summary = certificates.to_dict()["summary"]
    assert (summary["vacuous"], summary["vacuous_top_k"]) == (1, 2)
    others = [certificates[0], certificates[2], certificates[3]]
    assert summary["share_certified_not_vacuous"] == pytest.approx(np.mean([row.certified for row in others]))
    assert certificates[0].top_k_certified
    assert certificates[1].top_k_certified
    share = np.mean([bool(row.top_k_certified) for row in certificates[2:]])
    assert summary["share_top_k_certified_not_vacuous"] == pytest.approx(share)
    assert summary["share_top_k_certified"] == pytest.approx(0.5 + share / 2)
    assert "  vacuous: texts without a word that has alternatives in the table: 1 of 4" in str(certificates)
    assert "  vacuous: texts without such a word, or with at most 2 words: 2 of 4" in str(certificates)
    assert f"  of the other texts: {round(2 * share)} of 2" in str(certificates)
    empty = sg.certify(unsure(), texts[1:2], k=2, substitutions=TABLE)
    assert empty.summary()["share_certified_not_vacuous"] is None
    assert "of the other texts" not in str(empty)
    worst = sg.certify(tiny("average", epochs=1).fit(TEXTS, LABELS), texts, k=2, substitutions=TABLE, samples=2)
    assert [row.words for row in worst] == [2, 4, 7, 8]
    box = sg.certify(sg.load(unsure().predict_proba, classes=list(unsure().classes_)), texts, substitutions=TABLE)
    assert box.summary()["vacuous_top_k"] is None


def test_the_summary_has_the_number_of_pairs_that_are_left_out() -> None:
    table = {"film": ["movie", "movies", "the", "motion picture", "film"], "films": ["movies"], "re": ["about"]}
    certificates = sg.certify(unsure(), ["a film"], substitutions=table)
    assert (certificates.table_pairs, certificates.excluded_pairs) == (6, 4)
    assert "pairs of the table that are left out: 4 of 6 (66.7 %)" in str(certificates)
    summary = certificates.to_dict()["summary"]
    assert (summary["table_pairs"], summary["excluded_pairs"]) == (6, 4)


def test_claims_about_the_smoothed_model_are_counted_separately() -> None:
    """The model predicts b for one text alone, the smoothed model a."""
    text = " ".join(["good"] * 8)
    model = sg.load(lambda texts: [[0.1, 0.9] if t == text else [0.9, 0.1] for t in texts], classes=["a", "b"])
    certificates = sg.certify(model, ["film", text, "nothing"], substitutions=LINKED, samples=50)
    assert [row.method for row in certificates] == ["exact", "sampling", "exact"]
    assert all(row.certified for row in certificates)
    assert (certificates.share_certified, certificates.share_certified_smoothed) == (2 / 3, 1 / 3)
    assert [(row.label, row.model_label) for row in certificates] == [("a", "a"), ("a", "b"), ("a", "a")]
    assert "cannot change by any number of substitutions: 2 of 3" in str(certificates)
    assert "cannot change in the smoothed model: 1 of 3" in str(certificates)
    assert "sampled texts with another label of the model itself: 1 of 1" in str(certificates)
    undecided = replace(certificates, rows=tuple(replace(row, certified=False) for row in certificates.rows))
    assert "sampled texts that are undecided: 1 of 1" in str(undecided)
    assert "more samples (--samples N, samples=)" in undecided.confidence_note()
    decided = replace(certificates, rows=tuple(replace(row, certified=True) for row in certificates.rows))
    assert "undecided" not in str(decided)
    assert "a (smoothed; model: b)" in certificates[1].line()
    assert certificates.summary()["smoothed_label_differs"] == 1


def sampled_claims(weights: np.ndarray | None, explained: bool) -> dict[str, Any]:
    """Claims of a text whose label 38 of 40 samples have, without substitutions that change the sets."""
    probabilities = np.eye(2)[[0] * 39 + [1] * 2]
    plan = Plan("sampling", ["text"] * 41, 0.0, {})
    return _sampled_claims(plan, Outputs(probabilities, weights, explained), SubstitutionConfig(k=1, confidence=0.9))


def test_the_error_is_split_by_the_model_and_not_by_the_samples() -> None:
    unequal = sampled_claims(None, explained=True)
    equal = sampled_claims(np.tile([0.9, 0.1], (41, 1)), explained=True)
    assert unequal["probability"] == equal["probability"] < sampled_claims(None, explained=False)["probability"]
    assert (equal["top_k_certified"], unequal["top_k_certified"]) == (True, False)
    assert sampled_claims(None, explained=False)["top_k_certified"] is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"substitutions": {"the": ["a"]}}, "no pair of the table can be used"),
        ({"substitutions": {"good": "fine"}}, "must be a list of words"),
        ({"substitutions": "missing.jsonl"}, "does not exist"),
        ({"substitutions": TABLE, "radius": 0.1}, "are about attention weights"),
        ({"substitutions": TABLE, "simplex": True}, "are about attention weights"),
        ({"substitutions": TABLE, "samples": 1}, "samples must be a whole number from 2 up"),
        ({"substitutions": TABLE, "confidence": 1.0}, "confidence must be a number between 0 and 1"),
        ({"substitutions": TABLE, "max_substitutions": 0}, "max_substitutions must be a whole number from 1 up"),
        ({"max_substitutions": 2}, "max_substitutions needs a synonym table"),
        (
            {"classes": ["a", "b"], "samples": 9, "confidence": 0.9, "set_size": 5},
            "classes, samples, confidence, set_size need",
        ),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        sg.certify(fitted(), TEXTS[:2], **options)


def test_classes_and_device_reach_the_model() -> None:
    def predict(texts: list[str]) -> list[list[float]]:
        return [[0.1, 0.9] if "good" in text else [0.8, 0.2] for text in texts]

    (row,) = sg.certify(predict, ["a good film"], substitutions={"good": ["fine"]}, classes=["no", "yes"])
    assert (row.label, row.counterexample) == ("yes", "a fine film")
    with pytest.raises(UserError, match="predict cannot be certified without substitutions="):
        sg.certify(predict, ["a good film"])
    for options in ({}, {"substitutions": {"good": ["fine"]}}):
        with pytest.raises(UserError, match="abacus"):
            sg.certify(fitted(), ["a good film"], device="abacus", **options)


def test_models_without_classes_are_refused() -> None:
    model = sg.load(lambda texts: [float(len(text)) for text in texts])
    with pytest.raises(UserError, match="has no classes"):
        sg.certify(model, ["good film"], substitutions=TABLE)
