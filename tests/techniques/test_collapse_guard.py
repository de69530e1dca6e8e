"""The guard on a trained model: plain training passes, uninformative attention does not."""

from copy import deepcopy
from functools import cache

import pytest
import torch

from steadygaze.core.maths.collapse import detect_collapse
from steadygaze.data.planted.reviews import planted_reviews
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models.inference import SplitOutputs, split_outputs


@cache
def trained():
    """A vanilla model that attends to the planted words, and the split that tests it."""
    corpus = planted_reviews(sizes=(300, 60, 0))
    (texts, labels), held_out = (
        ([example.text for example in corpus[split]], [example.label for example in corpus[split]])
        for split in ("train", "validation")
    )
    settings = {"hidden": 8, "dimension": 12, "learning_rate": 0.02}
    clf = TextClassifier("average", epochs=6, settings=settings, device="cpu").fit(texts, labels, validation=held_out)
    return clf.stored_.model, clf.stored_.data(held_out[0], None), clf.history_


def seen(model) -> SplitOutputs:
    return split_outputs(model, trained()[1])


@pytest.mark.slow
def test_vanilla_is_not_flagged():
    model, _, history = trained()
    read = seen(model)
    collapse = detect_collapse(read.weights, read.mask, ids=read.ids)
    assert not collapse.collapsed
    assert collapse.distance_to_uniform > 0.05
    assert not any(record["attention"]["collapsed"] for record in history[-2:])


@pytest.mark.slow
@pytest.mark.parametrize("with_reference", [False, True])
def test_scores_divided_by_a_thousand_are_flagged_as_uniform(with_reference):
    model = deepcopy(trained()[0])
    with torch.no_grad():
        model.scorer.weigh.weight.div_(1000)
    read = seen(model)
    reference = seen(trained()[0]).weights if with_reference else None
    collapse = detect_collapse(read.weights, read.mask, reference, ids=read.ids)
    assert collapse.uniform
    assert collapse.collapsed
    assert "nearly the same for every word" in collapse.reason


@pytest.mark.slow
@pytest.mark.parametrize("end", ["first", "last"])
def test_all_weight_on_one_place_is_flagged_as_constant(end):
    read = seen(trained()[0])
    words = read.mask if end == "first" else read.mask.flip(-1)
    place = words & (words.cumsum(-1) == 1)
    weights = (place if end == "first" else place.flip(-1)).to(read.weights.dtype)
    collapse = detect_collapse(weights, read.mask, read.weights, ids=read.ids)
    assert collapse.constant
    assert not collapse.uniform
    assert "follow the position of a word" in collapse.reason
