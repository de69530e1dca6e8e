"""Vectors moved inside their ball: never out of it, never clamped, at random evenly, at worst really worse."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from contract.probing import after
from contract.tiny import batch, classifier, split
from steadygaze.core.maths.distributions import jensen_shannon
from steadygaze.core.random_key import RandomKey
from steadygaze.core.types import Batch
from steadygaze.models.classifier import Classifier
from steadygaze.properties.measures.stability_measures import prediction_change
from steadygaze.properties.probes.text_perturbations import (
    Observation,
    PerturbedBatch,
    embedding_noise,
    fgm_on_label,
    observe,
    pgd_on_attention,
)

PATTERNS = ["s" + "w" * n + "s" for n in range(13)]
KEY = RandomKey(3)
ROUNDING = 1e-12
MOVES: dict[str, Callable[[Classifier, Batch, float], PerturbedBatch]] = {
    "noise": lambda m, b, radius: embedding_noise(m, b, radius, KEY),
    "fgm-label": fgm_on_label,
    "pgd-attention": lambda m, b, radius: pgd_on_attention(m, b, radius, KEY),
}
MOVE = pytest.mark.parametrize("move", MOVES)
MODEL = pytest.mark.parametrize("encoder", ["bilstm", "cnn", "average", "transformer"])


def moved_by(move: str, classifier: Classifier, texts: Batch, radius: float) -> Observation:
    return after(classifier, MOVES[move](classifier, texts, radius))


def model(encoder: str = "bilstm", dtype: torch.dtype = torch.float64) -> Classifier:
    """Vectors as long as GloVe's, with entries far below 0 and above 1; a decoder that has opinions."""
    result = classifier(encoder, dtype=dtype)
    result.encoder.vectors.data *= 3
    result.decoder.output.weight.data *= 5
    return result


def sigma(classifier: Classifier) -> float:
    """By NumPy; padding, id 0, has no vector of its own but in a BERT."""
    vectors = classifier.encoder.vectors.detach().numpy().astype(np.float64)
    return float(vectors[np.abs(vectors).sum(-1) > 0].std())


@contextmanager
def steps(classifier: Classifier, texts: Batch) -> Iterator[list[Tensor]]:
    """How far from the text's own vectors each thing is that reaches the encoder.  (B,T,E) each"""
    clean, right = classifier.embed(texts).detach(), classifier.encode
    seen: list[Tensor] = []

    def encode(batch: Batch, embedded: Tensor | None = None, question: Tensor | None = None) -> object:
        seen.append(torch.zeros_like(clean) if embedded is None else embedded.detach() - clean)
        return right(batch, embedded, question)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classifier, "encode", encode)
        yield seen


@pytest.mark.sweep(strength=2)
@pytest.mark.parametrize("radius", [0.01, 0.1, 2.0])
@MODEL
@MOVE
def test_nothing_leaves_the_ball_and_nothing_is_clamped(move, encoder, radius):
    """A clamp to [0, 1] would move a vector's entry of −2 by 2, whatever the radius."""
    result, texts = model(encoder), batch(split(PATTERNS))
    clean, size = result.embed(texts)[texts.mask].detach(), radius * sigma(result)
    with steps(result, texts) as seen:
        moved_by(move, result, texts, radius)
    assert max(float(step.abs().max()) for step in seen) <= size + ROUNDING
    last = seen[-1][texts.mask]
    for outside in (clean < 0, clean > 1):
        assert outside.any()
        assert (last[outside] != 0).double().mean() > 0.6  # a dead unit of a ReLU has no slope
        assert {-1.0, 1.0} <= set(last[outside].sign().tolist())


@MOVE
def test_the_size_of_a_step_grows_with_the_vectors(move):
    result, texts = model("average"), batch(split(PATTERNS))
    reached = []
    for scale in (1, 7):
        result.encoder.vectors.data *= scale
        with steps(result, texts) as seen:
            moved_by(move, result, texts, 0.1)
        reached.append(float(seen[-1].abs().max()) / sigma(result))
    assert reached == pytest.approx([0.1, 0.1], rel=0.05)


@MOVE
def test_every_word_is_touched_and_the_batch_stays_the_same(move):
    result, texts = model(), batch(split(PATTERNS))
    moved = MOVES[move](result, texts, 0.1)
    assert moved.batch is texts
    assert moved.touched.tolist() == list(range(13))


# --- at random


def test_noise_is_uniform_and_each_text_has_its_own():
    result, texts = model(), batch(split(["w" * 12] * 60))
    with steps(result, texts) as seen:
        after(result, embedding_noise(result, texts, 0.2, KEY))
    (drawn,) = seen
    drawn = drawn / (0.2 * sigma(result))
    assert stats.kstest(drawn.flatten().numpy(), stats.uniform(-1, 2).cdf).pvalue > 0.01
    assert len({tuple(row.flatten().tolist()) for row in drawn}) == 60


def test_other_random_keys_draw_other_noise_and_one_key_the_same_direction_at_any_radius():
    result, texts = model(), batch(split(PATTERNS))
    with steps(result, texts) as seen:
        for key, radius in ((KEY, 0.1), (KEY, 0.2), (KEY.child(1), 0.1)):
            after(result, embedding_noise(result, texts, radius, key))
    torch.testing.assert_close(2 * seen[0], seen[1], rtol=0, atol=1e-12)
    assert abs(np.corrcoef(seen[0][texts.mask].flatten(), seen[2][texts.mask].flatten())[0, 1]) < 0.2


# --- at worst, for the label


@MODEL
def test_the_worst_step_for_the_label_is_down_the_slope_of_its_probability(encoder):
    """δ = −ρ·sign(∂p_c/∂x), c the predicted class, by a gradient taken here."""
    result, texts = model(encoder), batch(split(PATTERNS))
    embedded = result.embed(texts).detach().requires_grad_()
    encoded = result.encode(texts, embedded)
    logits = result.decode(encoded, result.attend(result.score(encoded), texts.mask))
    (slope,) = torch.autograd.grad(logits.softmax(-1).max(-1).values.sum(), embedded)
    with steps(result, texts) as seen:
        after(result, fgm_on_label(result, texts, 0.1))
    expected = -0.1 * sigma(result) * slope.masked_fill(~texts.mask.unsqueeze(-1), 0.0).sign()
    informative = (slope.abs() > 1e-12) | ~texts.mask.unsqueeze(-1)  # the sign of rounding errors is arbitrary
    torch.testing.assert_close(seen[-1][informative], expected[informative], rtol=0, atol=1e-12)


@MODEL
def test_the_worst_step_for_the_label_lowers_its_probability_more_than_noise_does(encoder):
    result, texts = model(encoder), batch(split(PATTERNS))
    clean = observe(result, texts).probs
    predicted = clean.argmax(-1, keepdim=True)
    some = texts.mask.any(-1)

    def lost(moved: PerturbedBatch) -> Tensor:
        return (clean - after(result, moved).probs).gather(-1, predicted).squeeze(-1)[some]

    worst = lost(fgm_on_label(result, texts, 0.05))
    assert (worst > 0).all()
    for key in range(10):
        assert (worst > lost(embedding_noise(result, texts, 0.05, RandomKey(key)))).all()


def test_the_worst_step_of_a_sure_prediction_is_the_same_in_single_precision():
    """Logits with a difference of 30 and more: 1 − p is 1e-13, which single precision rounds to 0."""
    result, texts = model("bilstm", torch.float32), batch(split(PATTERNS))
    result.decoder.output.weight.data *= 20
    result.decoder.output.bias.data[0] += 40
    assert (observe(result, texts).probs.float().amax(-1) == 1).all()
    taken = []
    for dtype in (torch.float32, torch.float64):
        with steps(result.to(dtype), texts) as seen:
            after(result, fgm_on_label(result, texts, 0.1))
        taken.append(seen[-1][texts.mask].sign().double())
    assert (taken[0] == taken[1]).double().mean() > 0.99
    assert taken[0].any(-1).all()


# --- at worst, for the attention


@pytest.mark.sweep(keep=1)
@MODEL
def test_the_worst_step_for_attention_moves_it_further_than_the_random_one_it_started_from(encoder):
    """Noise of the same key is the start."""
    result, texts = model(encoder), batch(split(PATTERNS))
    clean = observe(result, texts).weights
    for key in range(3):
        moves = (
            embedding_noise(result, texts, 0.1, RandomKey(key)),
            pgd_on_attention(result, texts, 0.1, RandomKey(key)),
        )
        start, worst = (jensen_shannon(clean, after(result, move).weights, texts.mask) for move in moves)
        assert (worst >= start).all()
        several = texts.mask.sum(-1) > 1
        assert (worst[several] > 1.5 * start[several]).all()


def test_the_worst_for_attention_is_the_worst_of_all_points_on_its_way():
    """In a large ball the last step is not always the best one."""
    result, texts = model("cnn"), batch(split(PATTERNS))
    clean, right = observe(result, texts).weights, result.attend
    way: list[Tensor] = []

    def attend(scores: Tensor, mask: Tensor) -> Tensor:
        weights = right(scores, mask)
        way.append(jensen_shannon(clean, weights.detach(), mask))
        return weights

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result, "attend", attend)
        after(result, pgd_on_attention(result, texts, 4.0, KEY))
    _, _, *points, end = way  # the clean text, twice for FGM, the start and ten steps, FGM, and the look at the end
    assert len(points) == 12
    highest = torch.stack(points).amax(0)
    torch.testing.assert_close(end, highest, rtol=0, atol=1e-12)
    assert (points[-2] < highest - 1e-3).any()


def test_without_steps_the_worst_for_attention_is_its_start_or_the_step_of_fgm():
    """The larger shift of the two, for each text; a search that finds less than one step of FGM is not the worst."""
    result, texts = model(), batch(split(PATTERNS))
    start, fgm = embedding_noise(result, texts, 0.1, KEY).embedded, fgm_on_label(result, texts, 0.1).embedded
    worst = pgd_on_attention(result, texts, 0.1, KEY, steps=0).embedded
    clean = observe(result, texts).weights
    shifts = [jensen_shannon(clean, observe(result, texts, point).weights, texts.mask) for point in (start, fgm)]
    by_fgm = shifts[1] > shifts[0]
    assert by_fgm.any()
    assert worst.equal(torch.where(by_fgm.view(-1, 1, 1), fgm, start))


@pytest.mark.sweep(keep=1)
@MOVE
def test_attention_moves_as_the_square_of_the_radius_and_the_prediction_as_the_radius(move):
    """JSD is to second order a squared distance; ½ Σ |Δp| to first order a distance."""
    result, texts = model(), batch(split(PATTERNS[4:]))
    clean, radii = observe(result, texts), np.logspace(-3, -1, 5)
    moved = [moved_by(move, result, texts, float(radius)) for radius in radii]
    distance = [float(jensen_shannon(clean.weights, seen.weights, texts.mask).mean()) for seen in moved]
    change = [float(prediction_change(clean.probs, seen.probs).mean()) for seen in moved]
    assert np.polyfit(np.log(radii), np.log(distance), 1)[0] == pytest.approx(2, abs=0.1)
    assert np.polyfit(np.log(radii), np.log(change), 1)[0] == pytest.approx(1, abs=0.1)
