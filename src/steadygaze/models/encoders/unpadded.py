"""Rows of different lengths in one forward pass of a transformer, without the cost of padding.

The present tokens of all rows are joined to one sequence (1,N) with the positions of their rows.  Embeddings, linear
layers and normalizations read that sequence.  Attention alone puts the tokens back into their rows, so that no row
attends to another.  The states are those of the padded rows.

`transformers` calls the attention function that is registered under the name in the configuration, with the arguments
of the forward pass that it does not know: here `rows`.
"""

from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch.nn.functional import pad, scaled_dot_product_attention

NAME = "steadygaze_unpadded"
NETWORKS = {"bert", "camembert", "electra", "roberta", "xlm-roberta"}
"""Networks with learned positions whose layers pass such arguments on to the attention function."""
ALIGNMENT = 8
"""Attention kernels for a GPU copy a mask whose width is not a multiple of 8."""


@dataclass(frozen=True)
class Rows:
    """The rows of a sequence of N tokens."""

    present: Tensor  # (R,W)
    tokens: Tensor  # (N,) the present tokens, as positions in the flat rows (R·W)
    layers: list[Any] = field(default_factory=list)
    """Attention layers that have read the rows."""

    def join(self, values: Tensor) -> Tensor:
        """(R,W,…) -> (1,N,…)"""
        return values.flatten(0, 1).index_select(0, self.tokens).unsqueeze(0)

    def split(self, values: Tensor) -> Tensor:
        """0 at absent tokens.  (1,N,…) -> (R,W,…)"""
        zeros = values.new_zeros(self.present.numel(), *values.shape[2:])
        return zeros.index_copy(0, self.tokens, values[0]).view(*self.present.shape, *values.shape[2:])


def enable(network: Any) -> bool:
    """Let a network accept `run`; return False, and leave it unchanged, if it cannot."""
    config = network.config
    if config.model_type not in NETWORKS or config._attn_implementation not in ("sdpa", NAME):
        return False
    from transformers import AttentionInterface, AttentionMaskInterface
    from transformers.masking_utils import sdpa_mask

    AttentionInterface.register(NAME, attention)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    config._attn_implementation = NAME
    return True


def run(network: Any, vectors: Tensor, present: Tensor, first_position: int) -> Tensor:
    """Hidden states, 0 at absent tokens.  (R,W,E), (R,W) -> (R,W,H)"""
    more = -present.shape[1] % ALIGNMENT
    vectors, is_present = pad(vectors, (0, 0, 0, more)), pad(present, (0, more))
    rows = Rows(is_present, is_present.flatten().nonzero().squeeze(-1))
    positions = (first_position + rows.tokens % is_present.shape[1]).unsqueeze(0)
    output = network(inputs_embeds=rows.join(vectors), position_ids=positions, rows=rows)
    if len(rows.layers) < network.config.num_hidden_layers:
        raise RuntimeError("this version of transformers does not pass the rows of a batch to all attention layers")
    return rows.split(output.last_hidden_state)[:, : present.shape[1]]


def attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    rows: Rows | None = None,
    **more: Any,
) -> tuple[Tensor, None]:
    """Attention within each row; without `rows`, that of the library.  (1,heads,N,D) -> (1,N,heads,D)"""
    if rows is None:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        output, _ = sdpa_attention_forward(module, query, key, value, attention_mask, dropout, scaling, **more)
        return output, None
    rows.layers.append(module)
    query, key, value = (rows.split(states.transpose(1, 2)).transpose(1, 2) for states in (query, key, value))
    mask = rows.present[:, None, None]  # (R,1,1,W)
    states = scaled_dot_product_attention(query, key, value, mask, dropout, scale=scaling)  # (R,heads,W,D)
    return rows.join(states.transpose(1, 2)), None
