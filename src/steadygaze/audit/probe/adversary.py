"""Attention as unlike the model's own as can be found, under which its prediction stays the same.

Jain & Wallace 2019 (arXiv:1902.10186), §4.2.2: for each text, hidden states held,

    max_w̃  JSD(w, w̃)    subject to  ½ Σ_c |y_c(w̃) − y_c(w)| ≤ ε                    ε = 0.05
    by descent on  500·max(0, ½ Σ |Δy| − 0.01) − JSD(w, w̃)  in the scores s,  w̃ = softmax(s)

from five starts s ~ 3·N(0, 1), 500 steps of Adam (0.01, AMSGrad).  Kept is the w̃ of the largest JSD on any of the five
ways that is within ε; where there is none the model's own, at a distance of 0.  What is found is a lower end of the
maximum; with two classes and a linear decoder the maximum itself is known (audit/probe/farthest.py), and taken.

Departs from the paper: the starts are not pushed apart from one another, since the best alone is kept; and the best of
the way is kept, not its end.  Pinned by tests/audit/probe/test_adversary.py.
"""

import torch
from torch import Tensor

from steadygaze.audit.probe.farthest import Found, farthest
from steadygaze.audit.probe.held import Held, hold
from steadygaze.infer import slopes
from steadygaze.maths.chance import Chance
from steadygaze.maths.divergence import jensen_shannon
from steadygaze.maths.masked import softmax
from steadygaze.model import Classifier
from steadygaze.perturb.texts import text_key
from steadygaze.types import Batch

RESTARTS, STEPS, RATE, SPREAD = 5, 500, 0.01, 3.0
"""The paper's code's."""
ALLOWED = 0.05
"""ε: how far the prediction may move."""
AIMED, PENALTY = 0.01, 500.0
"""Where the search begins to mind, and how much."""


def adversary(model: Classifier, batch: Batch, chance: Chance) -> Found:
    """The farthest attention where it is known, else what a search finds."""
    held = hold(model, batch)
    if held.reach is not None and held.logits.shape[-1] == 2:
        return farthest(held.weights, held.logits, held.reach, batch.mask, ALLOWED)
    return searched(held, batch, chance, RESTARTS, STEPS)


def searched(held: Held, batch: Batch, chance: Chance, restarts: int, steps: int) -> Found:
    mask = batch.mask.unsqueeze(1)
    starts = [chance.child(i).normal(text_key(batch), batch.ids.shape[1], dtype=torch.float64) for i in range(restarts)]
    scores = (SPREAD * torch.stack(starts, 1)).requires_grad_()  # (B,K,T)
    adam = torch.optim.Adam([scores], lr=RATE, amsgrad=True)
    best = Found(held.weights, torch.zeros_like(held.logits[:, 0]), torch.zeros_like(held.logits[:, 0]))
    with slopes(held.model):
        for _ in range(steps):
            here = _measured(held, softmax(scores, mask), mask)
            best = _better(best, here)
            loss = PENALTY * (here.change - AIMED).relu() - here.distance
            (scores.grad,) = torch.autograd.grad(loss.sum(), scores)  # the model's own gradients stay as they are
            adam.step()
        with torch.no_grad():
            return _better(best, _measured(held, softmax(scores, mask), mask))


def _measured(held: Held, weights: Tensor, mask: Tensor) -> Found:
    """(B,K,T) -> the same of K attentions of each text."""
    moved = held.read(weights) - held.logits.softmax(-1).unsqueeze(1)
    return Found(weights, jensen_shannon(held.weights.unsqueeze(1), weights, mask), moved.abs().sum(-1) / 2)


def _better(best: Found, here: Found) -> Found:
    """The best so far of each text, or the best of its ways here."""
    valid = here.distance.detach().masked_fill(here.change > ALLOWED, -1.0)
    distance, way = valid.max(1)
    better, row = distance > best.distance, torch.arange(len(way), device=way.device)
    return Found(
        torch.where(better.unsqueeze(-1), here.weights.detach()[row, way], best.weights),
        torch.where(better, distance, best.distance),
        torch.where(better, here.change.detach()[row, way], best.change),
    )
