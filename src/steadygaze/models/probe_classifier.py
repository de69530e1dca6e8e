"""Probe classifier: P(y|m), a small network that predicts the label from the mask alone."""

from torch import Tensor, nn
from torch.nn.functional import pad

HIDDEN = 100


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
