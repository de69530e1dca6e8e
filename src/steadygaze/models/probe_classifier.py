"""Probe classifier: P(y|m), a small network that predicts the label from the mask alone.

probe = fit_probe(masks, labels, classes, seed=0)
probe(masks)                                log P(y|m)
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import nll_loss, pad

HIDDEN = 100
STEPS, AT_ONCE, LOOK = 1000, 256, 25
"""Settings of `fit_probe`: steps, masks per step, and steps between evaluations on held-out masks."""
PATIENCE = 8
"""Evaluations without improvement before training stops."""
LEARNING_RATE = 3e-3
HELD_OUT = 5
"""One in this many masks is held out for early stopping."""


class ProbeClassifier(nn.Module):
    """Reads which units are selected, not their content; only the first `places` units of longer texts."""

    def __init__(self, places: int, classes: int) -> None:
        super().__init__()
        self.places = places
        self.first, self.last = nn.Linear(places, HIDDEN), nn.Linear(HIDDEN, classes)

    def forward(self, mask: Tensor) -> Tensor:
        """Return log P(y|m).  (B,D) -> (B,C)"""
        wide = pad(mask.detach(), (0, self.places - mask.shape[1]))  # truncates if negative
        log_probs: Tensor = self.last(self.first(wide.to(self.first.weight.dtype)).relu()).log_softmax(-1)
        return log_probs


def fit_probe(masks: Tensor, labels: Tensor, classes: int, seed: int) -> ProbeClassifier:
    """Fit a probe with early stopping on held-out masks; it starts at the class frequencies.  (N,D), (N,) long"""
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(masks), generator=generator)
    held_out_size = max(1, len(masks) // HELD_OUT)
    train_rows, held_out = order[held_out_size:], order[:held_out_size]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        probe = ProbeClassifier(masks.shape[1], classes)
    shares = torch.bincount(labels[train_rows].cpu(), minlength=classes).float() + 1
    nn.init.zeros_(probe.last.weight)
    probe.last.bias.data = (shares / shares.sum()).log()
    probe.to(masks.device)
    adam = torch.optim.Adam(probe.parameters(), LEARNING_RATE, foreach=True)
    best: tuple[float, int, dict[str, Tensor]] = (float("inf"), 0, {})
    for step in range(STEPS + 1):
        if step % LOOK == 0:
            with torch.no_grad():
                loss = float(nll_loss(probe(masks[held_out]), labels[held_out]))
            if loss < best[0]:
                best = loss, step, {name: value.clone() for name, value in probe.state_dict().items()}
            elif step - best[1] >= PATIENCE * LOOK:
                break
        rows = train_rows[torch.randint(len(train_rows), (AT_ONCE,), generator=generator)]
        adam.zero_grad(set_to_none=True)
        torch.autograd.backward(nll_loss(probe(masks[rows]), labels[rows]))
        adam.step()
    probe.load_state_dict(best[2])
    return probe
