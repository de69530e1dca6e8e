"""Word iAT: worked by hand, against loops over words and neighbors, and only where other words lie."""

import math

import pytest
import torch

from contract.tiny import ENCODER_NAMES, assert_close
from steadygaze.data.vocabulary_lexicon import vocabulary_lexicon
from steadygaze.perturbations.word_substitution import without_synonyms
from steadygaze.techniques.word_at import WordAT
from steadygaze.techniques.word_iat import WordIAT
from techniques.byhand import LN3, assert_gradient, by_hand, handed, loss, move_of, real_model, task, texts

WORDS = [(0, 2 * LN3), (LN3, 2 * LN3), (0, -1)]
"""The second is the first one's nearest by cosine (2/√5), the third the other way (−1)."""


def slow(model, batch, neighbors, epsilon, released):
    """r, in loops, from the definition of either variant."""
    vectors = model.encoder.vectors.detach()
    lengths = [float(v.norm()) for v in vectors if v.any()]
    flat = torch.zeros_like(model.embed(batch)).requires_grad_()
    (g,) = torch.autograd.grad(task(model, batch, moved=flat).sum(), flat)
    r, x, squares = torch.zeros_like(g), model.embed(batch).detach(), [0.0] * len(g)
    for b, t in batch.mask.nonzero().tolist():
        word = int(batch.ids[b, t])
        others = [k for k in range(len(vectors)) if k != word and vectors[k].any()]
        others.sort(key=lambda k: -float(torch.cosine_similarity(vectors[k], vectors[word], dim=0)))
        directions = [(vectors[k] - x[b, t]) / (vectors[k] - x[b, t]).norm() for k in others[:neighbors]]
        rise = [float(g[b, t] @ d) for d in directions]
        size = math.sqrt(sum(value * value for value in rise)) if released else 1
        squares[b] += sum(value * value for value in rise)
        for value, d in zip(rise, directions, strict=True):
            r[b, t] += value / size * d
    for b in range(len(r)):
        if r[b].any():
            r[b] *= epsilon * sum(lengths) / len(lengths) / (r[b].norm() if released else squares[b] ** 0.5)
    return r


def test_one_word_by_hand():
    """The first word alone: z = (0, 2 ln 3), ℓ = ln(10/9); g points along (0, −1).

    One neighbor: the second word, along (1, 0), where the loss does not rise: r = 0.
    Two: the third as well, along (0, −1): α = (0, 1), r = ε (0, −1); ε = ln 3 makes z = (0, ln 3), ℓ = ln(4/3).
    Of one word whose directions are at right angles both variants are the same.
    """
    model, batch = by_hand(WORDS), texts([1])
    for variant in ("paper", "released"):
        how = {"epsilon": LN3, "relative": False, "variant": variant}
        terms = loss(WordIAT(**how, neighbors=1), model, batch)
        assert terms["adversarial"].item() == pytest.approx(math.log(10 / 9), abs=1e-12)
        r, two = move_of(WordIAT(**how, neighbors=2), by_hand(WORDS), batch)
        assert_close(r, torch.tensor([[[0, -LN3]]], dtype=torch.float64))
        assert two["adversarial"].item() == pytest.approx(math.log(4 / 3), abs=1e-12)


@pytest.mark.sweep
@pytest.mark.parametrize("encoder", ENCODER_NAMES)
@pytest.mark.parametrize("neighbors", [1, 3, 10])
@pytest.mark.parametrize("variant", ["paper", "released"])
def test_it_is_the_definition_in_loops(encoder, neighbors, variant):
    model, batch = real_model(encoder)
    r, _ = move_of(WordIAT(epsilon=0.4, neighbors=neighbors, variant=variant), model, batch)
    assert_close(r, slow(model, batch, neighbors, 0.4, variant == "released"))
    assert (r[~batch.mask] == 0).all()


def test_the_printed_form_is_the_default_and_differs_from_the_released_one():
    """Released, every word's α has length 1 before the text is normalized; printed, α follows the gradient."""
    model, batch = real_model()
    printed, _ = move_of(WordIAT(neighbors=2), model, batch)
    released, _ = move_of(WordIAT(neighbors=2, variant="released"), real_model()[0], batch)
    assert WordIAT().variant == "paper"
    several = (batch.mask.sum(-1) > 1).nonzero().flatten()
    cosine = torch.cosine_similarity(printed[several].flatten(1), released[several].flatten(1), dim=-1)
    assert (cosine < 0.999).any()


def test_special_tokens_are_never_neighbors():
    """<unk> lies beside the first word, and [CLS] beside that; without names they would be its nearest."""
    vectors = [(1, 0.01), (1, 0.02), (1, 0), (0.5, 1), (0, 1)]
    names = ["<pad>", "<unk>", "[CLS]", "good", "fine", "film"]
    model, known = by_hand(vectors), vocabulary_lexicon(names, "words")
    excluded = without_synonyms(6, *map(torch.from_numpy, (known.continues, known.words, known.special)))
    assert WordIAT(neighbors=2).on_epoch_start(model, None)["nearest"][3].tolist() == [1, 2]
    assert WordIAT(neighbors=2).on_epoch_start(model, excluded)["nearest"][3].tolist() == [4, 5]
    every = WordIAT().on_epoch_start(model, excluded)["nearest"]
    assert every.shape == (6, 2)
    assert set(every.flatten().tolist()) == {3, 4, 5}


def test_vectors_beyond_the_vocabulary_are_never_neighbors():
    excluded = without_synonyms(
        3, torch.zeros(3, dtype=torch.bool), torch.ones(3, dtype=torch.bool), torch.zeros(3).bool()
    )
    assert WordIAT().on_epoch_start(by_hand(WORDS), excluded)["nearest"][1:].flatten().tolist() == [2, 1, 2]


def test_it_lies_where_other_words_are():
    """Two neighbors span a plane of the five dimensions; Word AT's direction does not lie in it."""
    model, batch = real_model()
    technique = WordIAT(epsilon=1.0, neighbors=2)
    r, _ = move_of(technique, model, batch)
    vectors, nearest = model.encoder.vectors.detach(), technique.on_epoch_start(model, None)["nearest"]
    for b, t in batch.mask.nonzero().tolist():
        word = int(batch.ids[b, t])
        plane = (vectors[nearest[word]] - vectors[word]).T  # (E,2)
        coefficients = torch.linalg.lstsq(plane, r[b, t].unsqueeze(-1)).solution
        assert_close(plane @ coefficients, r[b, t].unsqueeze(-1))
    assert torch.linalg.vector_norm(r[batch.mask], dim=-1).min() > 1e-3


@pytest.mark.parametrize("words", [1, 2, 3])
def test_a_vocabulary_of_fewer_words_than_neighbors_has_those_it_has(words):
    """Padding is never a neighbor, and no word is its own."""
    model, batch = by_hand(WORDS[:words]), texts([1])
    technique = WordIAT(epsilon=LN3, relative=False)
    nearest = technique.on_epoch_start(model, None)["nearest"]
    assert [sorted(row) for row in nearest.tolist()[1:]] == [
        [k for k in range(1, words + 1) if k != i] for i in range(1, words + 1)
    ]
    expected = {1: 10 / 9, 2: 10 / 9, 3: 4 / 3}[words]
    assert loss(technique, model, batch)["adversarial"].item() == pytest.approx(math.log(expected), abs=1e-12)


def test_neighbors_are_updated_when_the_loop_calls_for_it():
    model, batch = by_hand(WORDS), texts([1])
    technique = WordIAT(neighbors=1)
    before = handed(technique, model, batch)
    assert before.epoch_tables["nearest"][1].tolist() == [2]
    with torch.no_grad():
        model.encoder.words[3] = torch.tensor([0.0, 9.0])
    assert handed(technique, model, batch).epoch_tables["nearest"][1].tolist() == [3]


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_it_raises_the_loss_but_no_more_than_word_at_per_unit_of_length(variant):
    """The gradient is the steepest direction.  The released form has length ε, the printed one is longer."""
    model, batch = real_model()
    words = batch.mask.any(-1)
    freely = loss(WordAT(epsilon=1e-4, relative=False), model, batch)
    r, toward = move_of(WordIAT(epsilon=1e-4, relative=False, variant=variant), model, batch)
    length = torch.linalg.vector_norm(r.flatten(1), dim=-1)[words]
    free, rise = ((terms["adversarial"] - terms["task"])[words] for terms in (freely, toward))
    assert (rise > 0).all()
    assert (rise / length < free / 1e-4).all()
    if variant == "released":
        assert_close(length, torch.full_like(length, 1e-4))
    else:
        assert (length > 1e-4).any()


@pytest.mark.parametrize("variant", ["paper", "released"])
def test_training_takes_the_perturbation_as_a_constant(variant):
    model, batch = real_model()
    r, terms = move_of(WordIAT(epsilon=0.4, variant=variant), model, batch)
    assert_gradient(model, terms["adversarial"].sum(), task(model, batch, moved=r).sum())
