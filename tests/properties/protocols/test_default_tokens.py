"""The model once more, where it could talk in code; trained on texts of a dozen words."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from estimator.tiny import LABELS, PAIRS, SMALL, TEXTS, tiny, transformer_folder
from steadygaze.estimator.inputs import read_split
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.properties.measures.shortcut_measures import class_gap
from steadygaze.properties.protocols.default_tokens import (
    PLACES,
    default_token_attention,
    default_tokens,
    retrain_with_default_tokens,
)
from steadygaze.results.note import Note, NoteCode
from steadygaze.techniques.mask_neutral import MaskNeutral

SPLIT = TEXTS, LABELS
HASTE = {**SMALL, "learning_rate": 0.03}


def model(encoder: str = "bilstm", **changes: object) -> TextClassifier:
    return tiny(encoder, **{"epochs": 3, "batch_size": 4, "settings": HASTE, **changes})


def findings_of(clf: TextClassifier, split=SPLIT):
    return {finding.measure: finding for finding in default_tokens(clf, split)}


@pytest.fixture(scope="module")
def trained_findings():
    return findings_of(model())


@pytest.mark.slow
def test_two_numbers_of_the_texts_it_was_trained_on(trained_findings):
    """24 texts, three of them set aside."""
    assert list(trained_findings) == ["default-mass/default-tokens", "class-gap/default-tokens"]
    for finding in trained_findings.values():
        assert 0 <= finding.interval[0] <= finding.value <= finding.interval[1] <= 1
        assert (finding.n, finding.explainer, finding.settings) == (
            21,
            "attention",
            {"defaults": "a b c d", "words": 5},
        )


def test_they_are_those_of_a_model_looked_at_by_hand(trained_findings):
    net, data = retrain_with_default_tokens(model(), read_split(*SPLIT))
    weights, mask = default_token_attention(net, data)
    assert weights.shape == (21, PLACES)
    assert mask.all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(21).double(), rtol=0, atol=1e-6)
    assert trained_findings["default-mass/default-tokens"].value == pytest.approx(
        float(weights[:, :4].sum(-1).mean()), abs=1e-6
    )
    label = torch.from_numpy(data.label)
    distance = (weights[label == 0].mean(0) - weights[label == 1].mean(0)).abs().sum() / 2
    assert trained_findings["class-gap/default-tokens"].value == pytest.approx(float(distance), abs=1e-6)
    assert class_gap(weights, label, mask) == pytest.approx(float(distance), abs=1e-9)


@pytest.mark.slow
def test_it_is_trained_as_the_model_was_with_its_seed_and_by_its_technique():
    weights, again, other = (
        retrain_with_default_tokens(model(seed=seed), read_split(*SPLIT))[0].state_dict() for seed in (0, 0, 1)
    )
    assert all(value.equal(again[name]) for name, value in weights.items())
    assert not all(value.equal(other[name]) for name, value in weights.items())
    weighed = retrain_with_default_tokens(model(technique=MaskNeutral()), read_split(*SPLIT))[0].state_dict()
    assert weights.keys() == weighed.keys()
    assert not all(value.equal(weighed[name]) for name, value in weights.items())


@pytest.mark.slow
def test_the_users_model_is_left_alone():
    clf = model().fit(*SPLIT)
    before = {name: value.clone() for name, value in clf.stored_.model.state_dict().items()}
    findings_of(clf)
    assert all(value.equal(before[name]) for name, value in clf.stored_.model.state_dict().items())
    assert "d" not in clf.stored_.tokenizer.vocabulary


def test_a_note_explains_the_mass_if_hidden_states_depend_on_their_neighbors(trained_findings):
    assert {finding.notes for finding in trained_findings.values()} == {(Note(NoteCode.CONTEXTUAL_DEFAULT_TOKENS),)}
    assert {finding.notes for finding in findings_of(model("average", epochs=1)).values()} == {()}


@pytest.mark.slow
def test_pairs_class_weights_and_pieces_too(tmp_path):
    assert findings_of(model(epochs=1), (PAIRS, LABELS))["class-gap/default-tokens"].n == 21
    assert findings_of(model(epochs=1, class_weight="balanced"))["class-gap/default-tokens"].n == 21
    folder = transformer_folder(tmp_path)
    net, data = retrain_with_default_tokens(model(f"transformer:{folder}", epochs=1), read_split(*SPLIT))
    assert (np.add.reduceat(data.text.words, data.text.starts[:-1]) == PLACES).all()
    assert default_token_attention(net, data)[1].all()


def test_attention_that_must_look_at_the_defaults_is_found_there():
    """Texts of no word: only the four are there, and all the mass."""
    split = replace(read_split(*SPLIT), texts=[" "] * 12 + ["  "] * 12)
    net, data = retrain_with_default_tokens(model("average", epochs=1), split)
    weights, mask = default_token_attention(net, data)
    assert mask.sum(-1).eq(4).all()
    torch.testing.assert_close(weights[:, :4].sum(-1), torch.ones(21).double(), rtol=0, atol=1e-6)
