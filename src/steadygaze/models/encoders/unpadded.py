"""Rows of different lengths in one forward pass of a transformer, without the cost of padding.

The present tokens of all rows are joined to one sequence (1,N) with the positions of their rows.  Embeddings, linear
layers and normalizations read that sequence.  Attention must not cross the rows.  On a GPU, a kernel reads their
limits; on a CPU, and with dropout, the tokens are put back into padded rows.  The states are those of the padded rows.

`transformers` calls the attention function that is registered under the name in the configuration, with the arguments
of the forward pass that it does not know: here `rows`.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

NAME = "steadygaze_unpadded"
NETWORKS = {"bert", "camembert", "electra", "roberta", "xlm-roberta"}
"""Networks with learned positions whose layers pass such arguments on to the attention function."""
ALIGNMENT = 8
"""Attention kernels for a GPU need a mask, and the vectors of a head, whose width is a multiple of 8."""


@dataclass(frozen=True)
class Rows:
    """Rows of at most `longest` columns, whose N present tokens are one sequence, row after row."""

    columns: Tensor  # (N,) the column of each token
    offsets: Tensor  # (R+1,) int32: the first token of each row, then N
    longest: int
    is_full: bool
    """All rows have all columns."""
    layers: list[Any] = field(default_factory=list)
    """Attention layers that have read the rows."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns (R,W) of the padded rows."""
        return len(self.offsets) - 1, self.longest + (0 if self.is_full else -self.longest % ALIGNMENT)

    @cached_property
    def tokens(self) -> Tensor:
        """(N,) positions of the tokens in the flat padded rows (R·W)."""
        rows, width = self.shape
        row = torch.arange(rows, device=self.columns.device)
        row = row.repeat_interleave(self.offsets.diff(), output_size=len(self.columns))
        return row * width + self.columns

    @cached_property
    def present(self) -> Tensor:
        """(R,W) False at padding."""
        rows, width = self.shape
        return self.tokens.new_zeros(rows * width, dtype=torch.bool).index_fill(0, self.tokens, True).view(rows, width)

    def split(self, values: Tensor) -> Tensor:
        """0 at absent tokens.  (N,…) -> (R,W,…)"""
        rows, width = self.shape
        if not self.is_full:
            values = values.new_zeros(rows * width, *values.shape[1:]).index_copy(0, self.tokens, values)
        return values.view(rows, width, *values.shape[1:])

    def join(self, values: Tensor) -> Tensor:
        """(R,W,…) -> (N,…)"""
        flat = values.flatten(0, 1)
        return flat if self.is_full else flat.index_select(0, self.tokens)


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


def run(network: Any, vectors: Tensor, rows: Rows, first_position: int) -> Tensor:
    """Hidden states.  (N,E) -> (N,H)"""
    positions = (rows.columns + first_position).unsqueeze(0)
    output = network(inputs_embeds=vectors.unsqueeze(0), position_ids=positions, rows=rows)
    if len(rows.layers) < network.config.num_hidden_layers:
        raise RuntimeError("this version of transformers does not pass the rows of a batch to all attention layers")
    states: Tensor = output.last_hidden_state.squeeze(0)
    return states


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
    query, key, value = (states.transpose(1, 2) for states in (query, key, value))  # (1,N,heads,D)
    if not dropout and has_sequence_kernel(query):
        return sequence_attention(query, key, value, rows, scaling), None
    return padded_attention(query, key, value, rows, dropout, scaling), None


def has_sequence_kernel(states: Tensor) -> bool:
    """True if `sequence_attention` can read these states (1,N,heads,D)."""
    types = (torch.float32, torch.float16, torch.bfloat16)
    is_readable = states.is_cuda and states.dtype in types and states.shape[-1] % ALIGNMENT == 0
    is_enabled: bool = torch.backends.cuda.mem_efficient_sdp_enabled()  # type: ignore[no-untyped-call]
    return is_readable and is_enabled and torch.version.hip is None


def sequence_attention(query: Tensor, key: Tensor, value: Tensor, rows: Rows, scaling: float | None) -> Tensor:
    """Attention within the rows of the sequence, on a GPU.  (1,N,heads,D) -> (1,N,heads,D)

    The memory-efficient kernel of `scaled_dot_product_attention`, which nested tensors call in the same way.  It has
    no dropout here: with dropout, its gradients did not fit its outputs (torch 2.11).
    """
    longest = min(rows.longest, query.shape[1])  # the kernel refuses more
    output, *_ = torch.ops.aten._efficient_attention_forward(
        query, key, value, None, rows.offsets, rows.offsets, longest, longest, dropout_p=0.0,
        custom_mask_type=0, compute_log_sumexp=torch.is_grad_enabled(), scale=scaling,
    )  # fmt: skip
    states: Tensor = output
    return states


def padded_attention(
    query: Tensor, key: Tensor, value: Tensor, rows: Rows, dropout: float, scaling: float | None
) -> Tensor:
    """Attention within padded rows.  (1,N,heads,D) -> (1,N,heads,D)"""
    query, key, value = (rows.split(states[0]).transpose(1, 2) for states in (query, key, value))  # (R,heads,W,D)
    mask = None if rows.is_full else rows.present[:, None, None]  # (R,1,1,W)
    states = scaled_dot_product_attention(query, key, value, mask, dropout, scale=scaling)
    return rows.join(states.transpose(1, 2)).unsqueeze(0)
