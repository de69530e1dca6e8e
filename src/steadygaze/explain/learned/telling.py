"""How far the mask alone tells the label, once selecting is over.

By a judge taught afresh on masks as explanations have them, exactly k units each: the one who learnt beside the
selector saw soft masks, and a selector that has moved on since.
"""

import numpy as np
import torch
from torch import nn
from torch.nn.functional import pad

from steadygaze.explain.learned.selecting import Selecting, rounds
from steadygaze.explain.learned.views import Inputs
from steadygaze.infer import inference
from steadygaze.maths.judge import Judge, taught

MOST = 20_000
"""Masks that a judge learns from."""
AT_ONCE = 256
"""Inputs read at once."""


def fresh_judge(how: Selecting, nets: nn.ModuleDict, inputs: Inputs, seed: int) -> Judge:
    """Taught by which units the selector takes."""
    old: Judge = nets["judge"]  # type: ignore[assignment]
    some = np.random.default_rng(seed).permutation(len(inputs))[:MOST]
    masks, labels = [], []
    with inference(nets):
        for round_ in rounds(how, nets, inputs, np.array_split(some, -(-len(some) // AT_ONCE))):
            mask = round_.chosen()
            masks.append(pad(mask, (0, old.places - mask.shape[1])).bool())
            labels.append(round_.views.probs.argmax(-1))
    return taught(torch.cat(masks), torch.cat(labels), inputs.probs.shape[1], seed)
