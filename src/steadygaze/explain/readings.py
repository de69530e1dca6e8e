"""Readings: what networks predict from the selected words alone, the independent reader among them."""

from dataclasses import dataclass

from torch import Tensor
from torch.nn.functional import one_hot

from steadygaze.maths.leakage import balanced, independent_reader_accuracy, leakage_gap

ACCURACY, GAP = "independent-reader-accuracy", "leakage-gap"
PREDICTED = "predicted"
"""Beside measures of each input: the predicted class, as its position among the classes."""


@dataclass(frozen=True)
class Readings:
    """What is predicted from the selected units of each input: logits or probabilities."""

    reader: Tensor  # (B,C) by the independent reader
    random: Tensor  # (B,K,C) by the reader, of K random masks of the same size
    nothing: Tensor  # (B,C) by the reader, of no unit
    own: Tensor | None = None  # (B,C) by the network that was trained on such selections
    gold: Tensor | None = None  # (B,) labels, where these and not the prediction are to be recovered
    any_selection: Tensor | None = None  # (B,) True where the own network predicts the same from random selections

    def measures(self, predicted: Tensor, black_box: Tensor | None = None) -> dict[str, Tensor]:
        """One number per input, by the names of the catalogue.

        `predicted`: the prediction that is explained.  `black_box`: what the model predicts from the selected units
        alone.  (B,C), (B,C) -> (B,) each
        """
        if self.gold is not None:
            predicted = one_hot(self.gold, predicted.shape[-1])
        found = {
            ACCURACY: independent_reader_accuracy(predicted, self.reader.unsqueeze(1)),
            f"{ACCURACY}/random-words": independent_reader_accuracy(predicted, self.random),
            f"{ACCURACY}/no-words": independent_reader_accuracy(predicted, self.nothing.unsqueeze(1)),
        }
        if self.own is not None:
            found[GAP] = leakage_gap(self.own, self.reader, predicted)
            if self.any_selection is not None:
                found[GAP] = found[GAP].masked_fill(self.any_selection, 0.0)
        if self.own is not None and black_box is not None:
            found[f"{GAP}/black-box"] = leakage_gap(self.own, black_box, predicted)
        return found


def evened(found: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same with gaps in which each predicted class counts alike (maths/leakage.py: balanced).  (N,) each"""
    said = found[PREDICTED]
    return {name: balanced(one, said) if name.startswith(GAP) else one.double() for name, one in found.items()}
