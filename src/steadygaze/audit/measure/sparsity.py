"""On how many words an attention rests.  Not good or bad in itself: what it means that stability was bought by it is.

    evenness      H(w) / ln n        1: all n words alike; 0: one word has it all
    from_uniform  JSD(w, 1/n)        in nats
    collapsed     1 where the weights of a whole set are even, or follow the place of a word: `maths.collapse`

The first two (B,T), (B,T) -> (B,).
"""

from torch import Tensor

from steadygaze.maths.collapse import evenness, from_uniform, judge

__all__ = ["collapsed", "evenness", "from_uniform"]


def collapsed(weights: Tensor, mask: Tensor, ids: Tensor) -> float:
    """Whether the weights say the same whatever the text: 1.0 or 0.0.  (N,T) -> one number"""
    if not (mask.sum(-1) > 1).any():
        raise ValueError("no text has two words: there is nothing to tell apart")
    return float(judge(weights, mask, ids=ids).collapsed)
