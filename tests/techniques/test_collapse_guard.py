"""The guard on a trained model: the attention of plain training is informative."""

import pytest

from steadygaze.core.maths.collapse import detect_collapse
from steadygaze.data.planted.reviews import planted_reviews
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models.inference import split_outputs


@pytest.mark.slow
def test_vanilla_is_not_flagged():
    corpus = planted_reviews(sizes=(300, 60, 0))
    (texts, labels), held_out = (
        ([example.text for example in corpus[split]], [example.label for example in corpus[split]])
        for split in ("train", "validation")
    )
    settings = {"hidden": 8, "dimension": 12, "learning_rate": 0.02}
    clf = TextClassifier("average", epochs=6, settings=settings, device="cpu").fit(texts, labels, validation=held_out)
    read = split_outputs(clf.stored_.model, clf.stored_.data(held_out[0], None))
    collapse = detect_collapse(read.weights, read.mask, ids=read.ids)
    assert not collapse.collapsed
    assert collapse.distance_to_uniform > 0.05
    assert not any(record["attention"]["collapsed"] for record in clf.history_[-2:])
