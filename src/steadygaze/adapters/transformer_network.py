"""A sequence classifier of the transformers library, run on word vectors, with one attention weight per token.

    Aₗ  (B,T,T)  attention of layer l, the mean over its heads; each row sums to one
    r   (B,T)    distribution over the tokens that the classifier reads: [CLS], the last token, or uniform

    last      r · A_L                                       attention of the last layer
    rollout   r · Â_L · … · Â_1,   Â = ½ A + ½ I            attention through all layers

Rollout: Abnar & Zuidema, ACL 2020 (arXiv:2005.00928), §3; ½ I represents the residual connection.

The real tokens of a row are moved to the front, or to the end if the classifier reads the last token.  Columns that are
padding in every row are removed, so that predictions do not depend on the padding of a batch.  A pair is one sequence.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from steadygaze.core.maths.distributions import normalize
from steadygaze.core.types import Batch
from steadygaze.models.encoders.transformer import joined, take
from steadygaze.models.inference import Capability, Model


def last_layer_attention(attentions: Sequence[Tensor], read: Tensor) -> Tensor:
    """L times (B,heads,T,T), (B,T) -> (B,T)"""
    return _step(read, attentions[-1])


def attention_rollout(attentions: Sequence[Tensor], read: Tensor) -> Tensor:
    """L times (B,heads,T,T), (B,T) -> (B,T); vector-matrix products only"""
    for attention in reversed(attentions):
        read = (_step(read, attention) + read) / 2
    return read


AGGREGATIONS: dict[str, Callable[[Sequence[Tensor], Tensor], Tensor]] = {
    "last": last_layer_attention,
    "rollout": attention_rollout,
}


def special_token_attention(attention: Tensor, batch: Batch) -> Tensor:
    """Share of a text's attention on special tokens: [CLS], [SEP].  (B,T) -> (B,)"""
    total = attention.masked_fill(~batch.present, 0.0).sum(-1)
    words = attention.masked_fill(~batch.mask, 0.0).sum(-1)
    return torch.where(total > 0, 1 - words / total.clamp_min(torch.finfo(attention.dtype).tiny), 0.0)


def _step(read: Tensor, attention: Tensor) -> Tensor:
    """(B,T), (B,heads,T,T) -> (B,T)"""
    return (read.unsqueeze(1) @ attention.to(read.dtype).mean(1)).squeeze(1)


MAX_ATTENTION_ENTRIES = 1 << 26
"""Attention values per forward pass: 256 MB.  Larger batches are split."""
CPU_TOKENS = 1 << 10
"""Tokens per forward pass on a CPU, padding included: larger passes are not faster, and have more padding."""
FUSED = "sdpa"
"""The library's name of PyTorch's fused attention."""
Read = Literal["first", "last", "all"]
"""Tokens that the classifier reads after the last layer."""


def configurations(network: Any) -> list[Any]:
    """The configuration of every part: an encoder and a decoder can have copies."""
    return list({id(part.config): part.config for part in network.modules() if hasattr(part, "config")}.values())


def global_attention(network: Any, ids: Tensor) -> dict[str, Tensor]:
    """The input that tells Longformer which token attends to all: [CLS].  (B,T)"""
    if "global_attention_mask" not in inspect.signature(network.forward).parameters:
        return {}
    mask = torch.zeros_like(ids, dtype=torch.long)
    mask[:, 0] = 1
    return {"global_attention_mask": mask}


@dataclass(frozen=True, slots=True)
class ForwardOptions:
    padding: int
    attention: str = "last"
    """Aggregation of heads and layers to one weight per token: one of AGGREGATIONS."""
    question_type: int = 0
    """The token type of a question; a text's is 0."""


@dataclass(frozen=True, slots=True)
class TransformerOutput:
    weights: Tensor | None  # (B,T)
    logits: Tensor  # (B,C)
    special_token_share: Tensor | None = None  # (B,) share of a text's attention on its special tokens


class TransformerModel(Model):
    """`has_attention`: the network returns attention from every token to every token."""

    sample_size = 50

    def __init__(self, network: Any, options: ForwardOptions, read: Read, has_attention: bool = True) -> None:
        super().__init__()
        self.capabilities: frozenset[Capability] = frozenset({"embeddings", "transformer"})
        if has_attention:
            self.capabilities |= {"attention"}
        self.network = network
        self.padding = options.padding
        self.read = read
        self.attention = options.attention
        parameters = inspect.signature(network.forward).parameters
        self._options = {"use_cache": False} if "use_cache" in parameters else {}
        self._numbered = "position_ids" in parameters
        self._read_position = -1 if read == "last" else 0
        self.fused = False
        """True if `logits` may use fused attention kernels, see `supports_fused_attention`."""
        self._configs = configurations(network)
        kinds = int(getattr(network.config, "type_vocab_size", 0) or 0)
        self._question_type = options.question_type if options.question_type < kinds else 0

    @property
    def epsilon(self) -> float:
        """Rounding of the network: that of its precision; quantized weights compute in half precision."""
        precision = torch.bfloat16 if getattr(self.network, "is_quantized", False) else self.network.dtype
        return max(torch.finfo(self.network.dtype).eps, torch.finfo(precision).eps)

    @property
    def tokens_per_pass(self) -> int:
        return CPU_TOKENS if self.device.type == "cpu" else super().tokens_per_pass

    @property
    def vectors(self) -> Tensor:
        weight: Tensor = self.network.get_input_embeddings().weight
        return weight

    def embed(self, batch: Batch) -> Tensor:
        return self._embed(batch.ids)

    def embed_question(self, batch: Batch) -> Tensor | None:
        return None if batch.question_ids is None else self._embed(batch.question_ids)

    def logits(self, batch: Batch, embedded: Tensor | None = None, question: Tensor | None = None) -> Tensor:
        """Logits without attention weights, with fused attention kernels if possible."""
        with self._kernel():
            return self._read(batch, embedded, question, False).logits

    def forward(
        self, batch: Batch, embedded: Tensor | None = None, question: Tensor | None = None
    ) -> TransformerOutput:
        return self._read(batch, embedded, question, "attention" in self.capabilities)

    def _read(
        self, batch: Batch, embedded: Tensor | None, question: Tensor | None, with_attention: bool
    ) -> TransformerOutput:
        vectors = self.embed(batch) if embedded is None else embedded
        real, part = batch.present, torch.zeros_like(batch.ids)
        if batch.question_ids is not None and batch.question_present is not None:
            question = self._embed(batch.question_ids) if question is None else question
            vectors, real, part = joined(vectors, real, question, batch.question_present)
        order = (real if self.read == "last" else ~real).long().argsort(dim=1, stable=True)
        row = TokenRows(vectors, real, part * self._question_type)
        if not bool((order.diff(dim=1) == 1).all() & real.any(1).all()):  # else the tokens are already in order
            row = self._filled(TokenRows(take(vectors, order), real.gather(1, order), row.part.gather(1, order)))
        outputs = [self._run(portion, with_attention) for portion in self._portions(row, with_attention)]
        logits = torch.cat([logits for logits, _ in outputs])
        if not with_attention:
            return TransformerOutput(None, logits)
        attention = torch.cat([pad(attention, self._margin(order, attention)) for _, attention in outputs])
        attention = attention.gather(1, order.argsort(1))[:, : batch.ids.shape[1]]
        return TransformerOutput(normalize(attention, batch.mask), logits, special_token_attention(attention, batch))

    def direct_logits(self, ids: Tensor) -> Tensor:
        """Logits of one text as the library computes them, from ids.  (1,T) -> (1,C)"""
        logits: Tensor = self.network(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
        return logits

    @contextmanager
    def _kernel(self) -> Iterator[None]:
        """Use fused attention in the context."""
        implementations = [config._attn_implementation for config in self._configs]
        try:
            if self.fused:
                for config in self._configs:
                    config._attn_implementation = FUSED
            yield
        finally:
            for config, implementation in zip(self._configs, implementations, strict=True):
                config._attn_implementation = implementation

    def _embed(self, ids: Tensor) -> Tensor:
        vectors: Tensor = self.network.get_input_embeddings()(ids)
        return vectors

    def _margin(self, wide: Tensor, narrow: Tensor) -> tuple[int, int]:
        """Removed columns before and after."""
        out = wide.shape[1] - narrow.shape[1]
        return (out, 0) if self.read == "last" else (0, out)

    def _filled(self, row: "TokenRows") -> "TokenRows":
        """Replace an empty text by one padding token: some networks add no special tokens."""
        blank = torch.zeros_like(row.real)
        blank[:, self._read_position] = ~row.real.any(1)
        padding_vector = self._embed(row.part.new_tensor([self.padding]))  # (1,E)
        return TokenRows(torch.where(blank.unsqueeze(-1), padding_vector, row.vectors), row.real | blank, row.part)

    def _portions(self, row: "TokenRows", with_attention: bool) -> Iterator["TokenRows"]:
        """Split into forward passes, trimmed to the longest row."""
        config = self.network.config
        layers = int(getattr(config, "num_hidden_layers", 1)) if with_attention else 1  # others are not kept
        heads = int(getattr(config, "num_attention_heads", 1)) * layers
        lengths, start = row.real.sum(1).tolist(), 0
        while start < len(lengths):
            width, end = lengths[start], start + 1
            while end < len(lengths):
                wider = max(width, lengths[end])
                many = end + 1 - start
                if many * wider > self.tokens_per_pass or many * heads * wider**2 > MAX_ATTENTION_ENTRIES:
                    break
                width, end = wider, end + 1
            rows, start = slice(start, end), end
            keep = slice(-width, None) if self.read == "last" else slice(0, width)
            yield TokenRows(row.vectors[rows, keep], row.real[rows, keep], row.part[rows, keep])

    def _run(self, row: "TokenRows", with_attention: bool) -> tuple[Tensor, Tensor]:
        """Logits (B,C) and attention to each token (B,T)"""
        inputs: dict[str, Any] = dict(self._options)
        if self._question_type:
            inputs["token_type_ids"] = row.part
        if self.read == "last" and self._numbered:
            inputs["position_ids"] = (row.real.long().cumsum(1) - 1).clamp_min(0)
        inputs |= global_attention(self.network, row.part)
        output = self.network(
            inputs_embeds=row.vectors, attention_mask=row.real.long(), output_attentions=with_attention, **inputs
        )
        read = self._reads(row)
        return output.logits, AGGREGATIONS[self.attention](output.attentions, read) if with_attention else read

    def _reads(self, row: "TokenRows") -> Tensor:
        """Distribution over the tokens that the classifier reads; at least single precision.  (B,T)"""
        read = row.real.to(torch.promote_types(row.vectors.dtype, torch.float32))
        if self.read != "all":
            read = torch.zeros_like(read)
            read[:, self._read_position] = 1.0
        return read / read.sum(1, keepdim=True)


@dataclass(frozen=True, slots=True)
class TokenRows:
    """Texts joined with their questions."""

    vectors: Tensor  # (B,T,E)
    real: Tensor  # (B,T) bool
    part: Tensor  # (B,T) the token type
