"""Sampled certificates against exact probabilities of the smoothed model, with 0 < q < 1/2.

The words of the table form a ring.  The perturbation set of a word contains its two neighbors on either side, so that a
substitution by a neighbor changes one word of five: d = 1/5, and q = 1 − (4/5)² = 0.36 for two substitutions.  The
model is a lookup table of two words of a text.  It is chosen so that one rewrite shifts the smoothed model by q.
"""

from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import Tensor

import steadygaze as sg
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.core.types import Batch
from steadygaze.data.word_tokenizer import SPECIALS, tokenizer_of_words
from steadygaze.models.inference import Capability, Model
from steadygaze.results.substitution_certificates import SubstitutionCertificates

RING = [f"ring{letter}" for letter in "bcfghjklmnpq"]
TABLE = {word: [RING[(i + 1) % 12], RING[i - 1]] for i, word in enumerate(RING)}
NEIGHBORS = (11, 0, 1)
"""Words that word 0 can become."""
POSITIONS = 8


def mass(word: int) -> np.ndarray:
    """The distribution of a sampled word.  (12,)"""
    return np.isin(np.arange(12), [(word + shift) % 12 for shift in range(-2, 3)]) / 5


class Lookup(Model):
    """The label depends on the first word, which names the text, and the next two.  One of these has all the weight."""

    capabilities: frozenset[Capability] = frozenset({"attention"})

    def __init__(self, labels: np.ndarray) -> None:
        super().__init__()
        self.labels = torch.from_numpy(labels)

    def forward(self, batch: Batch, embedded: Tensor | None = None) -> object:
        first = batch.mask.long().argmax(-1, keepdim=True)
        text, first_word, second_word = (batch.ids.gather(1, first + shift)[:, 0] - len(SPECIALS) for shift in range(3))
        label = self.labels[text - 12, first_word, second_word]
        weights = torch.zeros(batch.ids.shape).scatter_(1, first + 1 + label[:, None], 1.0)
        return SimpleNamespace(logits=torch.nn.functional.one_hot(label, 2) * 5.0, weights=weights)


def lookup_labels(texts: int) -> np.ndarray:
    """Label 0 for samples of words 0, 0 and 1 for others, except some of those shared with words 1, 1.  (N,12,12)"""
    random = np.random.default_rng(0)
    own, other = (np.outer(mass(word), mass(word)) > 0 for word in (0, 1))
    labels = np.broadcast_to(~own, (texts, 12, 12)).astype(np.int64)
    ranks = np.where(own & other, random.random((texts, 12, 12)), np.inf).reshape(texts, -1).argsort(1).argsort(1)
    ones = random.choice([0, 1, 4, 4, 4, 5], texts)
    return np.where(ranks.reshape(labels.shape) < ones[:, None, None], 1, labels)


@dataclass(frozen=True)
class Experiment:
    certificates: SubstitutionCertificates
    smoothed: np.ndarray
    """(N,3,3) exact probability of label 1 for every substitution of the two words that the model reads."""

    @property
    def label_changes(self) -> np.ndarray:
        """(N,) whether a rewrite has another smoothed label than the certificate states."""
        stated = np.array([row.label for row in self.certificates])
        share = np.where(stated[:, None, None] == 1, self.smoothed, 1 - self.smoothed)
        return share.min((1, 2)) <= 0.5

    @property
    def top_word_changes(self) -> np.ndarray:
        """(N,) whether the word with the largest smoothed weight differs between rewrites."""
        return (self.smoothed.min((1, 2)) <= 0.5) & (self.smoothed.max((1, 2)) >= 0.5)


def experiment(texts: int, confidence: float) -> Experiment:
    names = [f"id{''.join(letters)}" for letters in product("bcdfghjklmnpqrtvwx", repeat=3)][:texts]
    labels = lookup_labels(texts)
    tokens = tokenizer_of_words([*RING, *names], max_length=64)
    model = ModelAdapter("model", "a test model", Lookup(labels).eval(), tokens, [0, 1], False, "")
    certificates = sg.certify(
        model,
        [" ".join([name, *[RING[0]] * POSITIONS]) for name in names],
        k=1,
        substitutions=TABLE,
        max_substitutions=2,
        samples=100,
        set_size=5,
        confidence=confidence,
        batch_size=2048,
    )
    assert isinstance(certificates, SubstitutionCertificates)
    masses = np.stack([mass(word) for word in NEIGHBORS])
    smoothed = np.einsum("nab,ua,vb->nuv", labels.astype(np.float64), masses, masses)
    return Experiment(certificates, smoothed)


@pytest.mark.slow
def test_violations_with_shifted_distributions_are_at_most_as_frequent_as_stated() -> None:
    result = experiment(4000, confidence=0.2)
    assert {row.method for row in result.certificates} == {"sampling"}
    assert {round(row.total_variation or 0.0, 12) for row in result.certificates} == {0.36}
    shift = np.abs(result.smoothed - result.smoothed[:, 1:2, 1:2]).max()
    assert shift == pytest.approx(0.36)  # the bound is reached
    label = np.array([row.certified for row in result.certificates])
    top = np.array([bool(row.top_k_certified) for row in result.certificates])
    assert label.mean() > 0.2
    assert top.mean() > 0.2
    wrong_labels, wrong_top = label & result.label_changes, top & result.top_word_changes
    assert wrong_labels.any()  # the model is hard enough
    assert wrong_top.any()
    assert wrong_labels.mean() <= 0.4
    assert wrong_top.mean() <= 0.4
    assert (wrong_labels | wrong_top).mean() <= 0.8


def greedy_attack(smoothed: np.ndarray, label: int) -> bool:
    """Whether the best substitution of each step changes the smoothed label of a text.  (3,3) -> bool"""
    share = smoothed if label == 1 else 1 - smoothed
    rows = share[:, 1].argmin(), share[1].argmin()
    if share[rows[0], 1] <= share[1, rows[1]]:
        return bool(share[rows[0]].min() <= 0.5)
    return bool(share[:, rows[1]].min() <= 0.5)


def test_no_attack_on_the_smoothed_model_changes_a_certified_label() -> None:
    result = experiment(150, confidence=0.999)
    broken = [
        row.certified
        for row, smoothed in zip(result.certificates, result.smoothed, strict=True)
        if greedy_attack(smoothed, int(row.label))
    ]
    assert len(broken) > 20  # the attack works
    assert not any(broken)
    assert sum(row.certified for row in result.certificates) > 20
    assert not any(
        row.top_k_certified and change for row, change in zip(result.certificates, result.top_word_changes, strict=True)
    )
