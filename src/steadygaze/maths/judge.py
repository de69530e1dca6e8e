"""The judge: can the label be told from the mask alone?  P(y|m), a small network on masks and nothing else."""

from torch import Tensor, nn
from torch.nn.functional import pad

HIDDEN = 100


class Judge(nn.Module):
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
