"""From heads and layers to one weight for each token."""

import numpy as np
import torch

from steadygaze.adapters.transformer_network import (
    attention_rollout,
    last_layer_attention,
    special_token_attention,
)
from steadygaze.core.types import Batch

CLOSE = {"rtol": 1e-12, "atol": 1e-12}


def stacks(layers=3, batch=4, heads=2, size=5, seed=0):
    """Attention of every layer, lower triangular in one text of them, as a decoder has it."""
    drawn = np.random.default_rng(seed).dirichlet(np.ones(size), (layers, batch, heads, size))
    drawn[:, 0] = np.tril(drawn[:, 0])
    return drawn / drawn.sum(-1, keepdims=True)


def test_two_layers_by_hand():
    """One head, two tokens, the first is read.

        A_1 = [.5 .5; 0 1]     Â_1 = [.75 .25; 0 1]
        A_2 = [.2 .8; 1 0]     Â_2 = [.6 .4; .5 .5]

    last: row one of A_2, (.2, .8).   rollout: (.6, .4) · Â_1 = (.6·.75, .6·.25 + .4·1) = (.45, .55)
    """
    layers = [torch.tensor([[[[0.5, 0.5], [0.0, 1.0]]]]), torch.tensor([[[[0.2, 0.8], [1.0, 0.0]]]])]
    read = torch.tensor([[1.0, 0.0]])
    torch.testing.assert_close(last_layer_attention(layers, read), torch.tensor([[0.2, 0.8]]))
    torch.testing.assert_close(attention_rollout(layers, read), torch.tensor([[0.45, 0.55]]))


def test_rollout_is_the_product_of_all_layers():
    """Slowly: whole matrices, one text at a time, as the paper has it."""
    result = stacks()
    for row in (0, 2, 4):
        read = torch.zeros(4, 5, dtype=torch.float64)
        read[:, row] = 1.0
        fast = attention_rollout([torch.from_numpy(layer) for layer in result], read)
        for text in range(4):
            product = np.eye(5)
            for layer in result:
                product = (0.5 * layer[text].mean(0) + 0.5 * np.eye(5)) @ product
            torch.testing.assert_close(fast[text], torch.from_numpy(product[row]), **CLOSE)


def test_attention_on_special_tokens_by_hand():
    """[CLS] w w [SEP] and what is no part of the text: padding, or a question.

    .4 .3 .1 .2         → (.4 + .2) / 1 = .6
    .1 .2 .1 .1 and .5  → (.1 + .1) / (.1 + .2 + .1 + .1) = .4: the question does not count
    words alone         → 0
    no word             → 1
    nothing looked at   → 0
    """
    looked = [
        [0.4, 0.3, 0.1, 0.2, 0.0],
        [0.1, 0.2, 0.1, 0.1, 0.5],
        [0.2, 0.3, 0.5, 0.0, 0.0],
        [0.7, 0.3, 0.0, 0.0, 0.0],
    ]
    looked = torch.tensor([*looked, [0.0] * 5], dtype=torch.float64)
    present = torch.tensor(
        [[True] * 4 + [False], [True] * 4 + [False], [True] * 3 + [False] * 2] + [[True] * 4 + [False]] * 2
    )
    mask = present & torch.tensor([[False, True, True, False, False]] * 5)
    mask[2, 0], mask[3] = True, False
    batch = Batch(torch.zeros(5, 5, dtype=torch.long), present, mask, torch.arange(5))
    torch.testing.assert_close(
        special_token_attention(looked, batch), torch.tensor([0.6, 0.4, 0.0, 1.0, 0.0], dtype=torch.float64), **CLOSE
    )
