"""Random and gradient attacks on certificates of models with two and with four classes, and time of the certificate.

The models are trained on planted reviews (four classes: the sentiments of two aspects) and evaluated in float64.  The
radius is the median of the certified radii, so about half of the texts are certified.  For each norm:

    random     10,000 perturbations of the weights of every text, half of them corners of the cube (ℓ∞)
    ascent     1,000 runs of 10 gradient steps for every text from random starts, on the divergence and on each margin
    built      the perturbation with the largest effect on the nearest class, at 0.99 and 1.01 of the certified radius
    simplex    random perturbations whose sum is zero, against the tighter certificate

No perturbation may change a certified label, or exceed α or the bound of the total variation.  The built one must
change the label at 1.01 and never at 0.99.  The last line has the time of 10 gradient steps over the exact maximum.

Exits with 1 if a certificate is wrong, if fewer than 99 % of the labels change at 1.01, or if ascent takes less than 8
times as long.
"""

from dataclasses import dataclass, field
from functools import partial

import numpy as np
import torch
from torch import Tensor

from steadygaze.certificates.certificate_bounds import Bounds, certify_batch
from steadygaze.core.maths.distributions import Norm, kl_logits
from steadygaze.core.types import Batch, Forward
from steadygaze.data.batches import collate
from steadygaze.data.corpora import load_corpus
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models.classifier import Classifier
from steadygaze.models.inference import inference
from steadygaze.perturbations.closed_form import corner, worst_binary
from steadygaze.perturbations.gradient_ascent import ascend
from timings.harness import race

MIN_FLIPS, MIN_SPEEDUP = 0.99, 8.0
ROUNDING = 1e-12
K, STEPS = 7, 10
NORMS: tuple[Norm, ...] = ("linf", "l2")


@dataclass
class Attack:
    """A batch, its certificate, and the largest effects of all perturbations."""

    model: Classifier
    forward: Forward
    batch: Batch
    bounds: Bounds
    label_changes: int = 0
    violations: int = 0
    count: int = 0
    largest: Tensor = field(default_factory=lambda: torch.zeros(()))

    @torch.no_grad()
    def evaluate(self, delta: Tensor) -> None:
        clean, perturbed = self.forward.logits.softmax(-1), self.decode(delta)
        divergence = kl_logits(clean, perturbed)
        distance = (clean - perturbed.softmax(-1)).abs().sum(-1) / 2
        assert self.bounds.alpha is not None
        assert self.bounds.tvd is not None
        self.label_changes += int(((perturbed.argmax(-1) != self.bounds.predicted) & self.bounds.certified).sum())
        self.violations += int(
            ((divergence > self.bounds.alpha + ROUNDING) | (distance > self.bounds.tvd + ROUNDING)).sum()
        )
        self.count += len(delta)
        self.largest = torch.maximum(self.largest, divergence)

    def decode(self, delta: Tensor) -> Tensor:
        """Logits of the model's decoder, not of z + Aᵀδ."""
        logits: Tensor = self.model.decode(self.forward.encoded, self.forward.weights + delta)
        return logits

    def report(self, name: str) -> bool:
        assert self.bounds.alpha is not None
        ratios = (self.largest / self.bounds.alpha)[self.bounds.alpha > 0]
        print(
            f"    {name:8s} {self.count:>9,}: {self.label_changes} certified labels changed, "
            f"{self.violations} above a bound; "
            f"largest / α: mean {ratios.mean():.3f}, max {ratios.max():.6f}"
        )
        return not (self.label_changes or self.violations)


def train_model(classes: int, texts: int) -> tuple[Classifier, Batch]:
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
    model = clf.stored_.model.double().eval()
    assert isinstance(model, Classifier)
    return model, collate(data, np.arange(texts))


def random_perturbation(mask: Tensor, radius: float, norm: Norm, simplex: bool, draw: torch.Generator) -> Tensor:
    """A perturbation of every text with this norm."""
    delta = torch.randn(mask.shape, dtype=torch.float64, generator=draw)
    if norm == "linf" and torch.rand((), generator=draw) < 0.5:
        delta = delta.sign()
    delta = delta.masked_fill(~mask, 0.0)
    if simplex:
        delta = (delta - delta.sum(-1, keepdim=True) / mask.sum(-1, keepdim=True)).masked_fill(~mask, 0.0)
    order = torch.inf if norm == "linf" else 2
    # Slightly inside the ball: rounding must not move it outside.
    length: Tensor = torch.linalg.vector_norm(delta, order, dim=-1, keepdim=True)
    return radius * (1 - ROUNDING) * delta / length


def attack_model(model: Classifier, batch: Batch, norm: Norm, random: int, ascents: int) -> bool:
    with inference(model):
        forward: Forward = model(batch)
    unit = certify_batch(model, batch, 1.0, norm, K, False)
    assert unit.radius is not None
    radius = float(unit.radius.median())
    draw = torch.Generator().manual_seed(0)
    is_sound = True
    for simplex in (False, True):
        bounds = certify_batch(model, batch, radius, norm, K, simplex)
        attack = Attack(model, forward, batch, bounds)
        constraint = ", simplex" if simplex else ""
        print(f"  {norm}{constraint}, R = {radius:.4g}: {bounds.certified.double().mean():.0%} certified", end="")
        print(f", mean α {bounds.alpha.mean():.4g}, its lower end {bounds.alpha_low.mean():.4g}")  # type: ignore[union-attr]
        for _ in range(random):
            attack.evaluate(random_perturbation(batch.mask, radius, norm, simplex, draw))
        is_sound &= attack.report("random")
        if not simplex:
            ascent = Attack(model, forward, batch, bounds)
            gradient_ascent(ascent, radius, norm, ascents, draw)
            is_sound &= ascent.report("ascent")
        is_sound &= check_built(attack, norm, simplex)
    return is_sound


def gradient_ascent(attack: Attack, radius: float, norm: Norm, runs: int, draw: torch.Generator) -> None:
    """Gradient ascent on the divergence and on the margin of each class over the predicted one, in turn."""
    forward, predicted = attack.forward, attack.bounds.predicted
    clean, row = forward.logits.softmax(-1), torch.arange(len(predicted))
    losses = [partial(kl_logits, clean)]
    losses += [lambda z, j=j: z[:, j] - z[row, predicted] for j in range(clean.shape[-1])]  # type: ignore[misc]
    for run in range(runs):
        loss = losses[run % len(losses)]
        start = random_perturbation(attack.batch.mask, radius, norm, False, draw)
        delta = ascend(
            lambda weights, loss=loss: loss(attack.model.decode(forward.encoded, weights)),  # type: ignore[misc]
            start,
            center=forward.weights,
            radius=radius * (1 - ROUNDING),
            norm=norm,
            steps=STEPS,
            keep=attack.batch.mask,
            best=True,
        )
        attack.evaluate(delta)


@torch.no_grad()
def check_built(attack: Attack, norm: Norm, simplex: bool) -> bool:
    """Whether the built perturbation changes labels only outside the certified radius."""
    forward, bounds = attack.forward, attack.bounds
    assert bounds.radius is not None
    reach = attack.model.decoder.reach(forward.encoded)  # type: ignore[operator]
    own = reach[torch.arange(len(reach)), :, bounds.predicted]
    flipped = {0.99: torch.zeros(len(reach), dtype=torch.bool), 1.01: torch.zeros(len(reach), dtype=torch.bool)}
    for j in range(reach.shape[-1]):
        delta = corner(reach[..., j] - own, attack.batch.mask, bounds.radius, norm, simplex)
        for factor, flips in flipped.items():
            flips |= attack.decode(factor * delta).argmax(-1) != bounds.predicted
    inside, outside = (float(flips.double().mean()) for flips in flipped.values())
    print(f"    built    flips {inside:.1%} at 0.99 and {outside:.1%} at 1.01 of the certified radius")
    return inside == 0 and outside >= MIN_FLIPS


def time_ratio(model: Classifier, batch: Batch, rounds: int) -> float:
    """Time of ascent over that of the exact maximum, from hidden states to divergences, in float32 as in training."""
    model = model.float()
    with inference(model):
        forward: Forward = model(batch)
    clean, radius = forward.logits.softmax(-1), 1e-3

    def exact() -> Tensor:
        reach = model.decoder.reach(forward.encoded)  # type: ignore[operator]
        return worst_binary(reach, forward.logits, clean, batch.mask, radius, "linf", False)

    def search() -> Tensor:
        reach = model.decoder.reach(forward.encoded).detach()  # type: ignore[operator]

        def divergence(delta: Tensor) -> Tensor:
            return kl_logits(clean, forward.logits + (delta.unsqueeze(1) @ reach).squeeze(1))

        start = radius * (2 * torch.rand_like(forward.weights) - 1)
        center = torch.zeros_like(start)
        return divergence(
            ascend(divergence, start, center=center, radius=radius, norm="linf", steps=STEPS, keep=batch.mask)
        )

    times = race({"ascent": search, "exact": exact}, rounds)
    result = times.ratio("ascent", "exact", at_least=MIN_SPEEDUP)
    print(*(times.time(name) for name in times.wall), result, sep="\n")
    return result.value


def run(*, texts: int = 100, random: int = 10_000, ascents: int = 1_000, rounds: int = 200) -> None:
    """`random`, `ascents`: perturbations of each text; `rounds`: of the timing."""
    is_sound, ratio = True, 0.0
    for classes in (2, 4):
        model, batch = train_model(classes, texts)
        for norm in NORMS:
            is_sound &= attack_model(model, batch, norm, random, ascents)
        if classes == 2:
            ratio = time_ratio(model, batch, rounds)
    print("sound" if is_sound else "NOT SOUND")
    if not is_sound or ratio < MIN_SPEEDUP:
        raise SystemExit(1)
