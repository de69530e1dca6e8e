"""Advice to weight rare labels, from the recall on validation texts."""

from types import SimpleNamespace

import pytest
import torch

import steadygaze as sg
from steadygaze.estimator import class_balance
from steadygaze.estimator.inputs import read_split


def advice(monkeypatch, rare: int, hits: int) -> str | None:
    """Of 100 training texts so many are upset; of five upset validation texts the model finds so many."""
    train = read_split([f"text {i}" for i in range(100)], ["upset"] * rare + ["happy"] * (100 - rare))
    predicted = torch.tensor([1] * hits + [0] * (5 - hits) + [0] * 20)
    outputs = SimpleNamespace(logits=torch.nn.functional.one_hot(predicted, 2).double())
    monkeypatch.setattr(class_balance.inference, "split_outputs", lambda *_: outputs)
    validation = SimpleNamespace(label=[1] * 5 + [0] * 20)
    return class_balance.advice(None, train, validation, ["happy", "upset"])


def test_a_rare_label_that_is_seldom_found_leads_to_the_option(monkeypatch):
    assert advice(monkeypatch, rare=21, hits=2) == (
        "the model finds 40 % of the 5 validation texts with the rare label 'upset' (21 % of the training texts): "
        'add --balanced (class_weight="balanced") to weight all labels equally'
    )


@pytest.mark.parametrize(("rare", "hits"), [(21, 3), (25, 0)], ids=["it is found", "it is not rare"])
def test_otherwise_there_is_no_advice(monkeypatch, rare, hits):
    assert advice(monkeypatch, rare, hits) is None


@pytest.mark.parametrize(("weight", "shown"), [(None, True), ("balanced", False)])
def test_training_shows_the_advice_unless_the_labels_are_weighted(monkeypatch, capsys, weight, shown):
    monkeypatch.setattr(class_balance, "advice", lambda *_: "add --balanced")
    texts = [f"a {word} film {i}" for i in range(12) for word in ("bad", "good")]
    clf = sg.TextClassifier("average", epochs=1, device="cpu", verbose=True, class_weight=weight)
    clf.fit(texts, [text.split()[1] for text in texts])
    assert ("add --balanced" in capsys.readouterr().err) == shown
