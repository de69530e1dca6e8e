"""Whether anything breaks a certificate: random and gradient attacks on trained models of two and of four classes.

Both are trained on planted reviews (four classes: the sentiments of two aspects at once) and read in float64.  The
radius is the median of the texts' own, so that about half of them are certified.  Then, for either norm:

    random     10,000 changes of the weights of every text, half of them corners of the cube (ℓ∞)
    ascent     1,000 runs of 10 steps for every text from random starts, on the divergence and on every class's margin
    built      the change that moves the nearest class most, at 0.99 and 1.01 of each text's certified radius
    simplex    the random changes once more, their sum kept, against the tighter certificate

None may change a certified label, exceed α or the bound of the total variation; the built change must flip at 1.01 and
never at 0.99.  Last, what the exact inner maximum costs beside 10 steps of ascent, in turn on the same batch.

    python bench/certificate_soundness.py [--texts 100] [--random 10000] [--ascents 1000] [--rounds 200]

Exits with 1 where a certificate breaks, fewer than 99 % flip at 1.01, or ascent takes less than 8 times as long.
"""

import argparse
import statistics
import sys
import time
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from torch import Tensor

from steadygaze.audit.certificate_bounds import Bounds, certify_batch
from steadygaze.core.maths.distributions import Norm, kl_logits
from steadygaze.core.types import Batch, Forward
from steadygaze.data.batches import collate
from steadygaze.data.corpora import load_corpus
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models.classifier import Classifier
from steadygaze.models.inference import inference
from steadygaze.techniques.perturbations.closed_form import corner, worst_binary
from steadygaze.techniques.perturbations.gradient_ascent import ascend

FLIPS, FASTER = 0.99, 8.0
ROUNDING = 1e-12
K, STEPS = 7, 10
NORMS: tuple[Norm, ...] = ("linf", "l2")


@dataclass
class Attacked:
    """A batch, what was certified of it, and the worst that was done to it."""

    model: Classifier
    forward: Forward
    batch: Batch
    bounds: Bounds
    changed: int = 0
    above: int = 0
    tried: int = 0
    highest: Tensor = field(default_factory=lambda: torch.zeros(()))

    @torch.no_grad()
    def by(self, delta: Tensor) -> None:
        clean, moved = self.forward.logits.softmax(-1), self.decoded(delta)
        divergence = kl_logits(clean, moved)
        distance = (clean - moved.softmax(-1)).abs().sum(-1) / 2
        assert self.bounds.alpha is not None
        assert self.bounds.tvd is not None
        self.changed += int(((moved.argmax(-1) != self.bounds.predicted) & self.bounds.certified).sum())
        self.above += int(((divergence > self.bounds.alpha + ROUNDING) | (distance > self.bounds.tvd + ROUNDING)).sum())
        self.tried += len(delta)
        self.highest = torch.maximum(self.highest, divergence)

    def decoded(self, delta: Tensor) -> Tensor:
        """By the model's own decoder, not by z + Aᵀδ."""
        return self.model.decode(self.forward.encoded, self.forward.weights + delta)

    def report(self, name: str) -> bool:
        assert self.bounds.alpha is not None
        shown = (self.highest / self.bounds.alpha)[self.bounds.alpha > 0]
        print(
            f"    {name:8s} {self.tried:>9,}: {self.changed} certified labels changed, {self.above} above a bound; "
            f"highest / α: mean {shown.mean():.3f}, max {shown.max():.6f}"
        )
        return not (self.changed or self.above)


def trained(classes: int, texts: int) -> tuple[Classifier, Batch]:
    """A bilstm in float64, and test reviews as one batch."""
    sizes = f"sizes=[3000,200,{max(texts, 256)}]"
    reviews, other = (
        load_corpus(f"planted-reviews:aspect={aspect},{sizes}").splits for aspect in ("appearance", "palate")
    )

    def split(name: str) -> tuple[list[str], list[str]]:
        both = zip(reviews[name], other[name], strict=True)
        return [e.text for e in reviews[name]], [
            f"{a.label} {b.label}" if classes == 4 else str(a.label) for a, b in both
        ]

    settings = {"hidden": 32, "dimension": 50, "learning_rate": 3e-3}
    clf = TextClassifier(epochs=10, settings=settings, device="cpu", verbose=False)
    clf.fit(*split("train"), validation=split("validation"))
    read, labels = split("test")
    print(f"{classes} classes: test accuracy {clf.score(read, labels):.3f}")
    data = clf.stored_.data(read[:texts], None)
    return clf.stored_.model.double().eval(), collate(data, np.arange(texts))


def random(mask: Tensor, radius: float, norm: Norm, simplex: bool, draw: torch.Generator) -> Tensor:
    """A change of exactly that size of every text."""
    delta = torch.randn(mask.shape, dtype=torch.float64, generator=draw)
    if norm == "linf" and torch.rand((), generator=draw) < 0.5:
        delta = delta.sign()
    delta = delta.masked_fill(~mask, 0.0)
    if simplex:
        delta = (delta - delta.sum(-1, keepdim=True) / mask.sum(-1, keepdim=True)).masked_fill(~mask, 0.0)
    order = torch.inf if norm == "linf" else 2
    # A hair inside, so that rounding does not carry it over the rim of the ball.
    return radius * (1 - ROUNDING) * delta / torch.linalg.vector_norm(delta, order, dim=-1, keepdim=True)


def attack(model: Classifier, batch: Batch, norm: Norm, options: argparse.Namespace) -> bool:
    with inference(model):
        forward: Forward = model(batch)
    first = certify_batch(model, batch, 1.0, norm, K, False)
    assert first.radius is not None
    radius = float(first.radius.median())
    draw = torch.Generator().manual_seed(0)
    fine = True
    for simplex in (False, True):
        bounds = certify_batch(model, batch, radius, norm, K, simplex)
        attacked = Attacked(model, forward, batch, bounds)
        kept = ", simplex" if simplex else ""
        print(f"  {norm}{kept}, R = {radius:.4g}: {bounds.certified.double().mean():.0%} certified", end="")
        print(f", mean α {bounds.alpha.mean():.4g}, its lower end {bounds.alpha_low.mean():.4g}")  # type: ignore[union-attr]
        for _ in range(options.random):
            attacked.by(random(batch.mask, radius, norm, simplex, draw))
        fine &= attacked.report("random")
        if not simplex:
            climbed = Attacked(model, forward, batch, bounds)
            climb(climbed, radius, norm, options.ascents, draw)
            fine &= climbed.report("ascent")
        fine &= built(attacked, norm, simplex)
    return fine


def climb(attacked: Attacked, radius: float, norm: Norm, runs: int, draw: torch.Generator) -> None:
    """Gradient ascent on the divergence, and in turn on each class's margin over the predicted one."""
    forward, predicted = attacked.forward, attacked.bounds.predicted
    clean, row = forward.logits.softmax(-1), torch.arange(len(predicted))
    losses = [partial(kl_logits, clean)]
    losses += [lambda z, j=j: z[:, j] - z[row, predicted] for j in range(clean.shape[-1])]  # type: ignore[misc]
    for run in range(runs):
        loss = losses[run % len(losses)]
        start = random(attacked.batch.mask, radius, norm, False, draw)
        delta = ascend(
            lambda weights, loss=loss: loss(attacked.model.decode(forward.encoded, weights)),  # type: ignore[misc]
            start,
            center=forward.weights,
            radius=radius * (1 - ROUNDING),
            norm=norm,
            steps=STEPS,
            keep=attacked.batch.mask,
            best=True,
        )
        attacked.by(delta)


@torch.no_grad()
def built(attacked: Attacked, norm: Norm, simplex: bool) -> bool:
    """The change toward each other class at the certified radius: where it must and must not flip."""
    forward, bounds = attacked.forward, attacked.bounds
    assert bounds.radius is not None
    reach = attacked.model.decoder.reach(forward.encoded)  # type: ignore[operator]
    own = reach[torch.arange(len(reach)), :, bounds.predicted]
    flipped = {0.99: torch.zeros(len(reach), dtype=torch.bool), 1.01: torch.zeros(len(reach), dtype=torch.bool)}
    for j in range(reach.shape[-1]):
        delta = corner(reach[..., j] - own, attacked.batch.mask, bounds.radius, norm, simplex)
        for factor, flips in flipped.items():
            flips |= attacked.decoded(factor * delta).argmax(-1) != bounds.predicted
    below, above = (float(flips.double().mean()) for flips in flipped.values())
    print(f"    built    flips {below:.1%} at 0.99 and {above:.1%} at 1.01 of the certified radius")
    return below == 0 and above >= FLIPS


def times(model: Classifier, batch: Batch, rounds: int) -> float:
    """Ascent / exact: both from hidden states to the worst divergence of each text, in float32 as in training."""
    model = model.float()
    with inference(model):
        forward: Forward = model(batch)
    clean, radius = forward.logits.softmax(-1), 1e-3

    def exact() -> Tensor:
        reach = model.decoder.reach(forward.encoded)  # type: ignore[operator]
        return worst_binary(reach, forward.logits, clean, batch.mask, radius, "linf", False)

    def searched() -> Tensor:
        reach = model.decoder.reach(forward.encoded).detach()  # type: ignore[operator]

        def divergence(delta: Tensor) -> Tensor:
            return kl_logits(clean, forward.logits + (delta.unsqueeze(1) @ reach).squeeze(1))

        start = radius * (2 * torch.rand_like(forward.weights) - 1)
        center = torch.zeros_like(start)
        return divergence(
            ascend(divergence, start, center=center, radius=radius, norm="linf", steps=STEPS, keep=batch.mask)
        )

    taken: dict[str, list[float]] = {"exact": [], "ascent": []}
    for _ in range(rounds):
        for name, work in (("exact", exact), ("ascent", searched)):
            began = time.perf_counter()
            work()
            taken[name].append(time.perf_counter() - began)
    ratio = statistics.median(a / b for a, b in zip(taken["ascent"], taken["exact"], strict=True))
    print(f"exact {1e3 * statistics.median(taken['exact']):.2f} ms, {STEPS} steps of ascent ", end="")
    print(
        f"{1e3 * statistics.median(taken['ascent']):.2f} ms, {len(batch)} texts: {ratio:.1f} times  (bar: {FASTER:g})"
    )
    return ratio


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--texts", type=int, default=100)
    parser.add_argument("--random", type=int, default=10_000)
    parser.add_argument("--ascents", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    fine, ratio = True, 0.0
    for classes in (2, 4):
        model, batch = trained(classes, options.texts)
        for norm in NORMS:
            fine &= attack(model, batch, norm, options)
        if classes == 2:
            ratio = times(model, batch, options.rounds)
    print("sound" if fine else "NOT SOUND")
    sys.exit(0 if fine and ratio >= FASTER else 1)


if __name__ == "__main__":
    main()
