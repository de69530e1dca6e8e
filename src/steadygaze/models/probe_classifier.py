"""The judge: can the label be told from the mask alone?  P(y|m), a small network on masks and nothing else.

judge = taught(masks, labels, seed=0)
judge(masks)                                log P(y|m)
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import nll_loss, pad

HIDDEN = 100
STEPS, AT_ONCE, LOOK = 1000, 256, 25
"""Of a judge that is taught by itself: steps, masks in each, and how often it is asked of masks that it does not learn
from.
"""
PATIENCE = 8
"""It is over when so many times in a row it knew no more."""
LEARNING_RATE = 3e-3
HELD_OUT = 5
"""Every so manieth mask is not learnt from, and says when the judge knew most."""


class ProbeClassifier(nn.Module):
    """Sees which units are selected, never what they are; of texts longer than `places`, only so many units."""

    def __init__(self, places: int, classes: int) -> None:
        super().__init__()
        self.places = places
        self.first, self.last = nn.Linear(places, HIDDEN), nn.Linear(HIDDEN, classes)

    def forward(self, mask: Tensor) -> Tensor:
        """log P(y|m).  (B,D) -> (B,C)"""
        wide = pad(mask.detach(), (0, self.places - mask.shape[1]))  # cuts where that is negative
        known: Tensor = self.last(self.first(wide.to(self.first.weight.dtype)).relu()).log_softmax(-1)
        return known


def fit_probe(masks: Tensor, labels: Tensor, classes: int, seed: int) -> ProbeClassifier:
    """One that begins with the shares of the classes, learns, and is kept as it was when it knew most of masks it had
    not learnt from.  (N,D), (N,) whole numbers
    """
    chance = torch.Generator().manual_seed(seed)
    order = torch.randperm(len(masks), generator=chance)
    few = max(1, len(masks) // HELD_OUT)
    known, asked = order[few:], order[:few]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        judge = ProbeClassifier(masks.shape[1], classes)
    shares = torch.bincount(labels[known].cpu(), minlength=classes).float() + 1
    nn.init.zeros_(judge.last.weight)
    judge.last.bias.data = (shares / shares.sum()).log()
    judge.to(masks.device)
    adam = torch.optim.Adam(judge.parameters(), LEARNING_RATE, foreach=True)
    best: tuple[float, int, dict[str, Tensor]] = (float("inf"), 0, {})
    for step in range(STEPS + 1):
        if step % LOOK == 0:
            with torch.no_grad():
                lost = float(nll_loss(judge(masks[asked]), labels[asked]))
            if lost < best[0]:
                best = lost, step, {name: value.clone() for name, value in judge.state_dict().items()}
            elif step - best[1] >= PATIENCE * LOOK:
                break
        rows = known[torch.randint(len(known), (AT_ONCE,), generator=chance)]
        adam.zero_grad(set_to_none=True)
        torch.autograd.backward(nll_loss(judge(masks[rows]), labels[rows]))
        adam.step()
    judge.load_state_dict(best[2])
    return judge
