"""Synonym augmentation: its terms by hand, and what it is without synonyms."""

import math
from dataclasses import replace

import pytest
import torch

from contract.tiny import assert_close
from steadygaze.core.random_key import RandomKey
from steadygaze.perturbations.word_substitution import substitute_words, without_synonyms
from steadygaze.techniques.synonym_augmentation import SynonymAugmentation
from steadygaze.techniques.vanilla import Vanilla
from techniques.byhand import LN3, assert_gradient, by_hand, handed, loss, real_model, task, texts
from techniques.test_anchored import synonyms


def test_the_terms_by_hand() -> None:
    """Text (1, 2), x_1 = (ln 3, 4 ln 3), x_2 = 0: w = (3/4, 1/4), p = 27/28.

    Word 3, the synonym of 1, is (0, 4 ln 3): w = (1/2, 1/2), p = 9/10.  The label is 1.
    """
    model, batch = by_hand([(LN3, 4 * LN3), (0, 0), (0, 4 * LN3)]), texts([1, 2])
    result = loss(SynonymAugmentation(weight=0.5, share=1), model, batch, synonyms=synonyms(4, {1: 3}))
    values = {name: value.item() for name, value in result.items()}
    assert values == pytest.approx({"task": math.log(28 / 27), "synonyms": 0.5 * math.log(10 / 9)}, abs=1e-12)


def test_each_word_is_replaced_at_the_rate_of_anchoring() -> None:
    model, batch = real_model()
    technique, known = SynonymAugmentation(share=0.5), synonyms()
    inputs = handed(technique, model, batch, synonyms=known)
    result = technique.loss(model, batch, inputs)["synonyms"]
    ids = substitute_words(batch.ids, batch.mask, known, RandomKey(3), batch.index, share=0.5)
    assert not torch.equal(ids, batch.ids), "or nothing is compared"
    expected = task(model, replace(batch, ids=ids))
    assert_close(result, expected)
    assert_gradient(model, result.sum(), expected.sum())


@pytest.mark.parametrize("settings", [{"share": 0.0}, {"weight": 0.0}])
def test_at_strength_zero_it_is_vanilla(settings: dict[str, float]) -> None:
    model, batch = real_model()
    technique = SynonymAugmentation(**settings)
    assert not technique.substitutes_words
    terms = loss(technique, model, batch, synonyms=synonyms())
    assert list(terms) == ["task"]
    assert_close(terms["task"], loss(Vanilla(), model, batch)["task"])


def test_without_a_table_no_word_is_substituted() -> None:
    """Words 1 and 2 point the same way; neighbors are not synonyms."""
    model, batch = by_hand([(1, 1), (2, 2), (-1, 1)]), texts([1, 3])
    nothing = without_synonyms(4, torch.zeros(4, dtype=torch.bool), torch.tensor([False, True, True, True]))
    assert list(loss(SynonymAugmentation(share=1), model, batch, synonyms=nothing)) == ["task"]
