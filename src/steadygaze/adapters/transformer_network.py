"""How much a transformer looks at each token, from the attention of all its layers and heads.

    Aₗ  (B,T,T)  attention of layer l, the mean over its heads; each row sums to one
    r   (B,T)    which token the classifier reads, as shares: all on [CLS], all on the last, or even

    last      r · A_L                                       what the last layer gathers into what is read
    rollout   r · Â_L · … · Â_1,   Â = ½ A + ½ I            what reaches it from the words through all layers

Rollout: Abnar & Zuidema, ACL 2020 (arXiv:2005.00928), §3; ½ I stands for the residual connection.
Departs from the paper: nothing known.  Pinned by tests/subject/test_looking.py.

Network: a sequence classifier of the transformers library, read by its word vectors.

The real tokens of a row stand together before the network sees them: at the front, or at the end where the classifier
reads the last token; columns that are padding in every row are left out.  So nothing can tell how far a batch was
padded.  A pair is one sequence, as its tokenizer joins them.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from steadygaze.core.maths.masked import normalize
from steadygaze.core.types import Batch
from steadygaze.models.encoders.transformer import joined, take
from steadygaze.models.model_protocol import Capability, Model


def last_layer_attention(attentions: Sequence[Tensor], read: Tensor) -> Tensor:
    """L times (B,heads,T,T), (B,T) -> (B,T)"""
    return _step(read, attentions[-1])


def attention_rollout(attentions: Sequence[Tensor], read: Tensor) -> Tensor:
    """L times (B,heads,T,T), (B,T) -> (B,T); a row at a time, so that no two (T,T) are multiplied"""
    for attention in reversed(attentions):
        read = (_step(read, attention) + read) / 2
    return read


LOOKS: dict[str, Callable[[Sequence[Tensor], Tensor], Tensor]] = {
    "last": last_layer_attention,
    "rollout": attention_rollout,
}


def special_token_attention(looked: Tensor, batch: Batch) -> Tensor:
    """Of the look at a text, the share on tokens that are no words of it: [CLS], [SEP].  (B,T) -> (B,)"""
    total = looked.masked_fill(~batch.present, 0.0).sum(-1)
    words = looked.masked_fill(~batch.mask, 0.0).sum(-1)
    return torch.where(total > 0, 1 - words / total.clamp_min(torch.finfo(looked.dtype).tiny), 0.0)


def _step(read: Tensor, attention: Tensor) -> Tensor:
    """(B,T), (B,heads,T,T) -> (B,T)"""
    return (read.unsqueeze(1) @ attention.to(read.dtype).mean(1)).squeeze(1)


MOST = 1 << 26
"""Numbers of attention held at once: 256 MB.  More texts than that are read one part after the other."""
FUSED = "sdpa"
"""The library's name of PyTorch's fused attention."""
Read = Literal["first", "last", "all"]
"""Which tokens a classifier reads, after all layers."""


@dataclass(frozen=True, slots=True)
class ForwardOptions:
    """How a network is to be asked."""

    padding: int
    attention: str = "last"
    """How its heads and layers become one weight for each token: one of LOOKS."""
    question_type: int = 0
    """The token type of a question; a text's is 0."""


@dataclass(frozen=True, slots=True)
class TransformerOutput:
    weights: Tensor | None  # (B,T)
    logits: Tensor  # (B,C)
    special_token_share: Tensor | None = None  # (B,) share of the look at a text that lies on its special tokens


class TransformerModel(Model):
    """One that shows no attention to every token from every token."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset({"embeddings"})

    def __init__(self, network: Any, asked: ForwardOptions, read: Read) -> None:
        super().__init__()
        self.network = network
        self.padding = asked.padding
        self.read = read
        self.attention = asked.attention
        known = inspect.signature(network.forward).parameters
        self._options = {"use_cache": False} if "use_cache" in known else {}
        self._numbered = "position_ids" in known
        self._place = -1 if read == "last" else 0
        self.fused = False
        """Whether `logits` may use fused attention kernels: trial.py finds out."""
        kinds = int(getattr(network.config, "type_vocab_size", 0) or 0)
        self._question_type = asked.question_type if asked.question_type < kinds else 0

    @property
    def vectors(self) -> Tensor:
        weight: Tensor = self.network.get_input_embeddings().weight
        return weight

    def embed(self, batch: Batch) -> Tensor:
        return self._embed(batch.ids)

    def embed_question(self, batch: Batch) -> Tensor | None:
        return None if batch.question_ids is None else self._embed(batch.question_ids)

    def logits(self, batch: Batch, embedded: Tensor | None = None, asked: Tensor | None = None) -> Tensor:
        """Without the weights; by fused attention kernels, which show none, where the network agrees with itself."""
        with self._kernel():
            return self._read(batch, embedded, asked, False).logits

    def forward(self, batch: Batch, embedded: Tensor | None = None, asked: Tensor | None = None) -> TransformerOutput:
        return self._read(batch, embedded, asked, "attention" in self.capabilities)

    def _read(self, batch: Batch, embedded: Tensor | None, asked: Tensor | None, shown: bool) -> TransformerOutput:
        vectors = self.embed(batch) if embedded is None else embedded
        real, part = batch.present, torch.zeros_like(batch.ids)
        if batch.question_ids is not None and batch.question_present is not None:
            asked = self._embed(batch.question_ids) if asked is None else asked
            vectors, real, part = joined(vectors, real, asked, batch.question_present)
        order = (real if self.read == "last" else ~real).long().argsort(dim=1, stable=True)
        row = _Row(vectors, real, part * self._question_type)
        if not bool((order.diff(dim=1) == 1).all() & real.any(1).all()):  # else there is nothing to move or to fill
            row = self._filled(_Row(take(vectors, order), real.gather(1, order), row.part.gather(1, order)))
        found = [self._run(one, shown) for one in self._portions(row)]
        logits = torch.cat([logits for logits, _ in found])
        if not shown:
            return TransformerOutput(None, logits)
        looked = torch.cat([pad(looked, self._margin(order, looked)) for _, looked in found])
        looked = looked.gather(1, order.argsort(1))[:, : batch.ids.shape[1]]
        return TransformerOutput(normalize(looked, batch.mask), logits, special_token_attention(looked, batch))

    @contextmanager
    def _kernel(self) -> Iterator[None]:
        """Fused attention, for as long as this lasts."""
        config = self.network.config
        own = config._attn_implementation
        try:
            if self.fused:
                config._attn_implementation = FUSED
            yield
        finally:
            config._attn_implementation = own

    def _embed(self, ids: Tensor) -> Tensor:
        vectors: Tensor = self.network.get_input_embeddings()(ids)
        return vectors

    def _margin(self, wide: Tensor, narrow: Tensor) -> tuple[int, int]:
        """Columns left out before and behind."""
        out = wide.shape[1] - narrow.shape[1]
        return (out, 0) if self.read == "last" else (0, out)

    def _filled(self, row: "_Row") -> "_Row":
        """A text of nothing at all becomes one token of padding: some networks put no special tokens around it."""
        blank = torch.zeros_like(row.real)
        blank[:, self._place] = ~row.real.any(1)
        nothing = self._embed(row.part.new_tensor([self.padding]))  # (1,E)
        return _Row(torch.where(blank.unsqueeze(-1), nothing, row.vectors), row.real | blank, row.part)

    def _portions(self, row: "_Row") -> Iterator["_Row"]:
        """Rows of one pass, as wide as their longest."""
        config = self.network.config
        heads = int(getattr(config, "num_attention_heads", 1)) * int(getattr(config, "num_hidden_layers", 1))
        width = int(row.real.sum(1).max())
        keep = slice(-width, None) if self.read == "last" else slice(0, width)
        many = max(1, MOST // (heads * width * width))
        for start in range(0, len(row.real), many):
            rows = slice(start, start + many)
            yield _Row(row.vectors[rows, keep], row.real[rows, keep], row.part[rows, keep])

    def _run(self, row: "_Row", shown: bool) -> tuple[Tensor, Tensor]:
        """(B,C) and how much is looked at each token (B,T)"""
        given: dict[str, Any] = dict(self._options)
        if self._question_type:
            given["token_type_ids"] = row.part
        if self.read == "last" and self._numbered:
            given["position_ids"] = (row.real.long().cumsum(1) - 1).clamp_min(0)
        output = self.network(
            inputs_embeds=row.vectors, attention_mask=row.real.long(), output_attentions=shown, **given
        )
        read = self._reads(row)
        return output.logits, LOOKS[self.attention](output.attentions, read) if shown else read

    def _reads(self, row: "_Row") -> Tensor:
        """Which tokens are read, as shares; single precision at least.  (B,T)"""
        read = row.real.to(torch.promote_types(row.vectors.dtype, torch.float32))
        if self.read != "all":
            read = torch.zeros_like(read)
            read[:, self._place] = 1.0
        return read / read.sum(1, keepdim=True)


class AttentionTransformerModel(TransformerModel):
    """One that does."""

    capabilities: ClassVar[frozenset[Capability]] = frozenset({"attention", "embeddings"})


@dataclass(frozen=True, slots=True)
class _Row:
    """Texts with their questions, moved together."""

    vectors: Tensor  # (B,T,E)
    real: Tensor  # (B,T) bool
    part: Tensor  # (B,T) the token type
