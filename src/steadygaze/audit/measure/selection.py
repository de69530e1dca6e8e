"""What a selection is: how much of a text, in how many pieces, and whether it is where the text begins.

Yu et al. 2021 (arXiv:2110.13880), §5.  S the selected words of a text of n.

    share            |S| / n
    spans            runs of selected words: next to each other among the words of the text
    first sentence   1 where S has a word of sentence 1, else 0; the mean over texts is X₁

    chosen  S (B,T) bool     first  sentence 1 (B,T) bool     mask  (B,T) bool

Of whole sentences, first sentence says whether sentence 1 was taken; of single words, whether any of them lies in it
(which part does is `shortcut.first_sentence_share`).  A text of one sentence has no choice, and no number (NaN); in one
of which nothing is selected sentence 1 is not either: 0.

Precision, recall and F1 of a selection are `plausibility`'s, of S as it is: those of each text, whose mean is reported,
and micro, those of all texts together.  Of nothing selected they are 0; where nobody marked a word there are none.

Departs from the paper: it counts which part of the selected words lies in sentence 1; of one sentence that is the same.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad

from steadygaze.audit.measure.mass import part


def share(chosen: Tensor, mask: Tensor) -> Tensor:
    """In [0, 1]; NaN of a text without words.  (B,T) -> (B,)"""
    words = mask.sum(-1)
    return part((chosen & mask).sum(-1).double(), words).masked_fill(words == 0, torch.nan)


def spans(chosen: Tensor, mask: Tensor) -> Tensor:
    """From 0 up; NaN of a text without words.  (B,T) -> (B,)"""
    order = mask.to(torch.uint8).sort(dim=-1, descending=True, stable=True).indices  # runs do not see unread tokens
    taken = (chosen & mask).gather(-1, order)
    begins = taken & ~pad(taken, (1, 0))[..., :-1]
    return begins.sum(-1).double().masked_fill(~mask.any(-1), torch.nan)


def first_sentence(chosen: Tensor, first: Tensor, mask: Tensor) -> Tensor:
    """0 or 1; NaN where sentence 1 is not known, or is all there is.  (B,T) -> (B,)"""
    known, others = (first & mask).any(-1), (~first & mask).any(-1)
    return (chosen & first & mask).any(-1).double().masked_fill(~(known & others), torch.nan)
