"""On how many words an attention rests.  Not good or bad in itself: what it means that stability was bought by it is.

    evenness      H(w) / ln n        1: all n words alike; 0: one word has it all
    from_uniform  JSD(w, 1/n)        in nats

Both (B,T), (B,T) -> (B,).
"""

from steadygaze.maths.collapse import evenness, from_uniform

__all__ = ["evenness", "from_uniform"]
