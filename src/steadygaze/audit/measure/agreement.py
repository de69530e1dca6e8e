"""Whether two saliencies of one text agree: attention and gradient (Jain & Wallace 2019; Kitada & Iyatomi 2021).

    pearson    cov(x, y) / (σ_x σ_y)           do they give the same words the same share?
    kendall    τ_b = (C − D) / √(n_x n_y)      do they put the words in the same order?

Both over the words of each text, (B,T), (B,T), (B,T) -> (B,); NaN where fewer than three words, or words all of one
value, say nothing: whoever takes the mean counts those and says how many.

Departs from the paper: Jain & Wallace report the share of texts with p < 0.05 beside τ; here is τ alone.
"""

from steadygaze.maths.rank import kendall, pearson

__all__ = ["kendall", "pearson"]
