"""Stability of signed saliencies: weights for the class and weights against it are compared separately."""

import math

import numpy as np
import pytest
import torch
from scipy.spatial import distance
from scipy.stats import kendalltau

from contract.probing import synonyms
from contract.tiny import assert_close, batch, cached_classifier, split
from properties.protocols.cases import Signed, Target, case_of, findings_by, opposites, planted_classifier, toy
from steadygaze.core.maths.distributions import jensen_shannon
from steadygaze.core.random_key import RandomKey
from steadygaze.explainers.leave_one_out import LeaveOneOut
from steadygaze.properties.measures.stability_measures import saliency_divergence
from steadygaze.properties.probes.text_perturbations import substitute_synonyms
from steadygaze.properties.protocols.stability import stability
from steadygaze.results.audit_config import ProbeConfig


def test_a_signed_saliency_is_compared_by_its_positive_and_negative_parts_and_ranked_by_its_signs():
    """SciPy's distance is the root of the divergence.  By absolute value, its three top words are others."""
    data = split(["w" * 9])
    case = case_of(
        cached_classifier(), data, ProbeConfig(k=3, seed=4), {"3-synonyms": (synonyms(), 3)}, signed=Signed()
    )
    findings, texts = findings_by(stability, case, "signed"), batch(data)
    moved = substitute_synonyms(texts, synonyms(), 3, RandomKey(4).child(3)).batch
    message = [Signed().explain(case.model, batch).weights[0].double().numpy() for batch in (texts, moved)]
    assert all((saliency > 0).any() and (saliency < 0).any() for saliency in message)
    halves = [np.concatenate([saliency.clip(min=0), (-saliency).clip(min=0)]) for saliency in message]
    expected = {
        "jensen-shannon": distance.jensenshannon(*halves) ** 2,
        "top-k-overlap": _shared(message, 3),
        "kendall": kendalltau(*message).statistic,
    }
    for measure, value in expected.items():
        assert findings[f"{measure}/3-synonyms"].item() == pytest.approx(value, abs=1e-12), measure
    sizes = np.abs(message)
    assert abs(expected["jensen-shannon"] - distance.jensenshannon(*sizes) ** 2) > 0.005
    assert expected["top-k-overlap"] != _shared(sizes, 3)


def _shared(pair, k):
    first, second = ({int(place) for place in np.argsort(-saliency)[:k]} for saliency in pair)
    return len(first & second) / k


def test_a_saliency_and_its_opposite_are_as_far_as_can_be():
    """What is for in the one is against in the other: nothing is shared, so ln 2.

    (3, 1) and (3, −1): shares (¾, ¼ | 0, 0) and (¾, 0 | 0, ¼) with the mean (¾, ⅛ | 0, ⅛): each ¼ ln 2 from it.
    With one sign throughout it is the divergence of the shares; two without weight are equal; padding has no effect.
    """
    mask = torch.tensor([[True] * 3 + [False]])
    w = torch.tensor([[2.0, -1.0, 0.5, 9.0]], dtype=torch.float64)
    assert saliency_divergence(w, -w, mask).item() == pytest.approx(math.log(2), abs=1e-12)
    assert saliency_divergence(w, 7 * w, mask).item() == pytest.approx(0, abs=1e-15)
    assert saliency_divergence(0 * w, 0 * w, mask).item() == 0
    saliency, other = torch.tensor([[3.0, 1.0], [3.0, -1.0]], dtype=torch.float64)
    assert saliency_divergence(saliency, other, torch.ones(2, dtype=torch.bool)).item() == pytest.approx(
        math.log(2) / 4, abs=1e-12
    )
    p, q = torch.tensor([[[0.7, 0.2, 0.1, 0.0]], [[0.1, 0.3, 0.6, 0.0]]], dtype=torch.float64)
    assert_close(saliency_divergence(p, q, mask), jensen_shannon(p, q, mask))
    assert_close(saliency_divergence(-p, -q, mask), jensen_shannon(p, q, mask))


def test_the_moved_text_is_explained_for_the_class_predicted_of_the_clean_one():
    """An explainer that does not depend on the class receives none."""

    class Classless(Target):
        class_specific = False

    data, _ = toy()
    for explainer in (Target(), Classless()):
        case = case_of(planted_classifier(20.0), data, None, {"turned": (opposites(), 1)}, target=explainer)
        assert findings_by(stability, case, "target")["label-flip/turned"].tolist() == [1.0] * 20
        clean, moved = explainer.targets
        assert clean is None
        order = torch.from_numpy(next(iter(case.batches()))[0])
        assert (None if moved is None else moved.tolist()) == (
            case.probs.argmax(-1)[order].tolist() if explainer.class_specific else None
        )


def test_a_reason_that_turns_against_the_label_is_as_far_as_can_be():
    """Good is substituted by bad.  Without it the class loses ½ before and gains ½ after: w becomes −w, no other word
    has any.  For its new label, the explanation would seem to be the same as before."""
    case = case_of(planted_classifier(20.0), toy()[0], None, {"turned": (opposites(), 1)}, out=LeaveOneOut())
    findings = findings_by(stability, case, "out")
    assert findings["jensen-shannon/turned"].tolist() == pytest.approx([math.log(2)] * 20, abs=1e-3)
