"""L2X: the k units from which the prediction can best be guessed.

Chen et al. 2018 (arXiv:1802.07814), §3:   max over selector and approximator of   E Σ_c p_c log q_c(x ⊙ m)

With `query` the selector is told p as well (Bai et al. 2021, §5.2; Liang et al. 2020): then it may say the label in
code, by which units it takes, and the approximator learns to read it.  docs/explainers.md shows what that does.

Departs from the paper: as attend/k_subset.py and text_nets.py say; padding is never selected, where the released code
pads every text in front to 400 tokens and lets padding be selected (`variant = released` does so too).
"""

from steadygaze.config import settings
from steadygaze.explain.learned.selecting import Selecting


@settings
class L2X(Selecting):
    """Learning to explain: k units from which the prediction can be guessed."""
