"""Word AT: worked by hand, one length for a whole text, uphill to first order, the clean loss counted once."""

import math

import pytest
import torch

from contract.tiny import ENCODER_NAMES, assert_close
from steadygaze.techniques.word_at import WordAT
from techniques.byhand import LN3, by_hand, loss, move_of, real_model, texts


def test_one_word_by_hand():
    """The word (0, 2 ln 3) alone: weight 1, z = (0, 2 ln 3), ℓ = ln(10/9); g points along (0, −1).

    The mean length of a word vector is 2 ln 3 (vectors of zeros do not count), so that ε = ½ makes r = (0, −ln 3):
    z = (0, ln 3), ℓ = ln(4/3).  As a length itself, ε = ½ ends in z = 2 ln 3 − ½.
    """
    model, batch = by_hand([(0, 2 * LN3), (0, 0)]), texts([1])
    r, terms = move_of(WordAT(epsilon=0.5), model, batch)
    assert_close(r, torch.tensor([[[0, -LN3]]], dtype=torch.float64))
    assert terms["task"].item() == pytest.approx(math.log(10 / 9), abs=1e-12)
    assert terms["adversarial"].item() == pytest.approx(math.log(4 / 3), abs=1e-12)
    plain = loss(WordAT(epsilon=0.5, relative=False, weight=3.0), model, batch)
    assert plain["adversarial"].item() == pytest.approx(3 * math.log(1 + math.exp(0.5) / 9), abs=1e-12)


@pytest.mark.parametrize("encoder", ENCODER_NAMES)
@pytest.mark.parametrize("relative", [True, False])
def test_a_text_is_moved_by_epsilon_mean_vector_lengths_and_specials_and_padding_not_at_all(encoder, relative):
    model, batch = real_model(encoder)
    vectors = [vector for vector in model.encoder.vectors.detach() if vector.any()]
    unit = sum(float(torch.linalg.vector_norm(vector)) for vector in vectors) / len(vectors) if relative else 1.0
    r, _ = move_of(WordAT(epsilon=0.3, relative=relative), model, batch)
    words = batch.mask.any(-1)
    assert_close(torch.linalg.vector_norm(r, dim=(1, 2)), 0.3 * unit * words.double())
    assert (r[~batch.mask] == 0).all()
    longest = torch.linalg.vector_norm(r, dim=-1).amax(-1)
    assert (longest[batch.mask.sum(-1) > 1] < 0.3 * unit * 0.9999).all(), "the length is the text's, not each word's"


def test_frozen_word_vectors_are_perturbed_all_the_same():
    model, batch = real_model()
    moving = loss(WordAT(), model, batch)
    model.encoder.embedding.weight.requires_grad_(False)
    frozen = loss(WordAT(), model, batch)
    assert_close(frozen, moving)
    assert (frozen["adversarial"] > frozen["task"])[batch.mask.any(-1)].all()
