"""Classifiers of many architectures, built from small configurations, predict what a direct call predicts."""

from pathlib import Path

import numpy as np
import pytest
import torch

import steadygaze as sg
from adapters.architectures import TITLES, row_of, rows
from adapters.folders import KINDS, LABELS, OTHERS, TEXTS, network, tokenizer
from steadygaze.core.errors import UserError

ARCHITECTURES = [*KINDS, *OTHERS]
FAST = ["t5", "llama"]
"""The kinds of KINDS have tests of their own."""


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # DeBERTa
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in FAST else pytest.mark.slow) for kind in ARCHITECTURES]
)
def test_probabilities_are_those_of_a_direct_call_and_explainers_run(kind):
    net, words = network(kind), tokenizer(kind)
    words.model_input_names = ["input_ids", "attention_mask"]
    with torch.no_grad():
        expected = [net(**words(text, return_tensors="pt")).logits[0].softmax(-1).numpy() for text in TEXTS]
    assert np.ptp(expected, axis=0).max() > 0.01  # the text matters
    model = sg.load((net, words))
    np.testing.assert_allclose(model.predict_proba(TEXTS), expected, rtol=0, atol=1e-5)
    alone = model.explain(TEXTS[0], explainer="leave-one-out", target=LABELS[1])
    if kind not in ("roberta", "gpt2"):  # without "good", their letters merge with the next space
        without = model.predict_proba(["A , unbelievable film!"])[0, 1]
        assert alone.weights[1] == pytest.approx(expected[0][1] - without, abs=1e-5)
    integrated = model.explain(TEXTS[0], explainer="integrated-gradients", target=LABELS[1], settings={"steps": 5})
    assert len(integrated.weights) == len(alone.weights) == 6
    assert all(integrated.weights)


TABLE = rows(Path(__file__).parents[2] / "docs/how-to/architectures.csv")


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # DeBERTa
@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind == "llama" else pytest.mark.slow) for kind in ARCHITECTURES]
)
def test_the_table_of_architectures_says_what_works(kind):
    assert row_of(kind) == TABLE[kind]


def test_the_table_has_every_tested_architecture():
    assert TABLE.keys() == TITLES.keys() == {*ARCHITECTURES}
    assert all(row["fp32"] == row["leave-one-out"] == row["integrated-gradients"] == "yes" for row in TABLE.values())


@pytest.mark.parametrize("pools_the_start", [False, True])
def test_a_network_that_cannot_read_short_texts_is_refused_when_it_is_loaded(pools_the_start):
    from transformers import FunnelConfig, FunnelForSequenceClassification

    sizes = {"d_model": 16, "n_head": 2, "d_head": 8, "d_inner": 16, "truncate_seq": pools_the_start}
    words = tokenizer("bert")
    net = FunnelForSequenceClassification(FunnelConfig(vocab_size=len(words), block_sizes=[1, 1, 1], **sizes)).eval()
    sentence = (
        r"a FunnelForSequenceClassification cannot be examined \(it cannot read a text of 3 tokens\); pass a function"
    )
    with pytest.raises(UserError, match=sentence):
        sg.load((net, words))
