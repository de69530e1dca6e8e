"""A copy of the model that has learnt nothing: what would be highlighted then?

Adebayo et al. 2018 (arXiv:1810.03292), §3: an explanation that is the same of a model with random parameters is not
about what the model has learnt.

The entries of each tensor of parameters, word vectors too, are dealt out anew among its places.

Departs from the paper, which draws from the initialiser: that of somebody else's model is not known.  Dealt out anew
they are still as large and as spread as training left them, so that the copy is no tamer than the model.  The model is
never touched; the copy takes as much memory again.  Pinned by tests/audit/probe/test_randomise.py.
"""

import copy
from typing import TypeVar

import torch
from torch import nn

from steadygaze.maths.chance import Chance

Model = TypeVar("Model", bound=nn.Module)


def randomised(model: Model, chance: Chance) -> Model:
    """In evaluation mode, without gradients."""
    other = copy.deepcopy(model).eval().requires_grad_(False)
    for i, parameter in enumerate(other.parameters()):  # each once, tied ones too
        drawn = torch.Generator().manual_seed(chance.child(i).key)
        order = torch.randperm(parameter.numel(), generator=drawn).to(parameter.device)
        parameter.copy_(parameter.flatten()[order].view_as(parameter))
    return other.to(next(other.parameters()).device)  # `to` packs a recurrent network's weights together again
