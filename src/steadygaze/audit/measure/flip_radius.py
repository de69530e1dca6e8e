"""How little must the vectors of the heaviest words move to turn the label?

Yin et al., ACL 2022 (arXiv:2104.08782).  R_q is the smallest ‖δ‖_F, δ on the vectors of the ⌈q·n⌉ heaviest words alone,
found to change the predicted class.

    flip radius        ∫ R_q dq / (q_K − q_1)           lower is better: these are the words that the label hangs on

Hu et al. 2022 (SEAT) report under the same name what does not look at the explanation at all:

    seat sensitivity   mean over radii r of   ½ (1 − p_adv(label)) · r/2       p_adv: all words moved to the worst by r

    radii  R (B,K), in mean lengths of a word vector     drawn  the same of words drawn at random
    sizes  q (K,)                                        probs  p_adv (B,R,C), one for each r

Departs from the paper: Yin et al. released no code, and their sizes are not known here; the area is divided by its
width, so that it is a radius.  SEAT's sum over a batch of 32 is here the number of one text.
"""

import torch
from torch import Tensor

SHARES = (0.1, 0.2, 0.5)
LARGEST = 8.0
"""Mean lengths of a word vector beyond which nobody looks: texts that are not turned by then count as this."""
RADII = (0.1, 0.05, 0.025, 0.0125, 0.00625, 0.003125)
"""SEAT's, of the vectors' own scale."""


def flip_radius(radii: Tensor, sizes: tuple[float, ...] = SHARES) -> Tensor:
    """The mean radius over the sizes, as the area under the curve has it.  (B,K) -> (B,)"""
    at = torch.tensor(sizes, dtype=radii.dtype, device=radii.device)
    return torch.trapezoid(radii, at) / (at[-1] - at[0])


def flip_radius_above_random(radii: Tensor, drawn: Tensor, sizes: tuple[float, ...] = SHARES) -> Tensor:
    """The same minus that of as many words drawn at random: below 0 is better than chance.  (B,K), (B,K) -> (B,)"""
    return flip_radius(radii, sizes) - flip_radius(drawn, sizes)


def seat_sensitivity(probs: Tensor, label: Tensor, radii: tuple[float, ...] = RADII) -> Tensor:
    """How wrong the worst change of all words makes the prediction, weighted by its size.  (B,R,C), (B,) -> (B,)"""
    right = probs.gather(-1, label.reshape(-1, 1, 1).expand(-1, len(radii), 1)).squeeze(-1)  # (B,R)
    return ((1 - right) * torch.tensor(radii, dtype=probs.dtype, device=probs.device) / 4).mean(-1)
