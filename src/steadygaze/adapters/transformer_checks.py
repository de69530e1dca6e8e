"""Trial runs of a network of the transformers library, and tokenizers with its special tokens.

The special tokens between a text and its question differ ([SEP]; </s></s>; none) and are taken from the tokenizer.

The gradient of a logit with respect to the last hidden states shows which tokens the classifier reads.  The network
must predict the same from word vectors as from ids, padded or not; others are refused.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn.functional import pad

from steadygaze.adapters.transformer_network import Read, TransformerModel, global_attention
from steadygaze.core.errors import UserError
from steadygaze.core.ragged import TokenArray, TokenizedTexts
from steadygaze.core.types import Batch
from steadygaze.data.subword_tokenizer import PieceTokenizer, text_limit
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.models.inference import NonFiniteOutput, evaluation, inference

FUSED_ROUNDING, COARSE = 3.0, 1e-4
"""Most difference of logits by fused attention, relative to a rounding above COARSE."""


@dataclass(frozen=True)
class Template:
    """Special tokens of a pair: [CLS] text [SEP] question [SEP], or others."""

    before: list[int]
    between: list[int]
    after: list[int]
    question_type: int
    """The token type of a question; a text's is 0."""


class TokenizerOptions(TypedDict):
    """Arguments of a tokenizer."""

    max_length: int
    pad_id: int
    synonym_groups: SynonymGroups | None


class SpecialTokenTokenizer(PieceTokenizer):
    """Adds these special tokens before and after each text."""

    def __init__(
        self, engine: Tokenizer, before: list[int], after: list[int], **options: Unpack[TokenizerOptions]
    ) -> None:
        super().__init__(engine, **options)
        self._before, self._after = before, after


class PairTokenizer(SpecialTokenTokenizer):
    """Tokenizer of pairs (text, question)."""

    def __init__(self, engine: Tokenizer, template: Template, **options: Unpack[TokenizerOptions]) -> None:
        super().__init__(engine, template.before, template.between, **options)
        self._question = SpecialTokenTokenizer(engine, [], template.after, **options)

    def encode(self, texts: Sequence[str], *, question: bool = False) -> TokenArray:
        return self._question.encode(texts) if question else super().encode(texts)

    def place(self, texts: Sequence[str], *, question: bool = False) -> TokenizedTexts:
        return self._question.place(texts) if question else super().place(texts)


def single(
    engine: Tokenizer, *, token_limit: int, pad_id: int, synonym_groups: SynonymGroups | None = None
) -> PieceTokenizer:
    """Tokenizer of single texts; `token_limit`: tokens in all, special ones included."""
    left = text_limit(token_limit, engine.num_special_tokens_to_add(False))
    return PieceTokenizer(engine, max_length=left, pad_id=pad_id, synonym_groups=synonym_groups)


def paired(
    engine: Tokenizer, template: Template, *, token_limit: int, pad_id: int, synonym_groups: SynonymGroups | None = None
) -> PairTokenizer | None:
    """Half of the tokens for the text, half for the question; None: there are too few."""
    half = (token_limit - len(template.before) - len(template.between) - len(template.after)) // 2
    if half <= 0:
        return None
    return PairTokenizer(engine, template, max_length=half, pad_id=pad_id, synonym_groups=synonym_groups)


def template(engine: Tokenizer) -> Template | None:
    """Template of a trial pair; None: the tokenizer has no pairs."""
    probe = engine.encode("a", "a")
    part = np.array([-1 if part is None else part for part in probe.sequence_ids])
    text, question = np.flatnonzero(part == 0), np.flatnonzero(part == 1)
    if not len(text) or not len(question):
        return None
    before, between = probe.ids[: text[0]], probe.ids[text[-1] + 1 : question[0]]
    return Template(before, between, probe.ids[question[-1] + 1 :], int(probe.type_ids[question[0]]))


@dataclass(frozen=True, slots=True)
class NetworkTrial:
    read: Read
    attentive: bool
    """True if it returns attention from every token to every token."""


def try_network(network: Any, ids: Tensor) -> NetworkTrial:
    """Run the network on one text.  (1,T)"""
    with _errors_reported(network), evaluation(network), torch.enable_grad():
        vectors = network.get_input_embeddings()(ids).detach().requires_grad_()
        output = network(
            inputs_embeds=vectors,
            attention_mask=torch.ones_like(ids),
            output_attentions=True,
            output_hidden_states=True,
            **global_attention(network, ids),
        )
        return NetworkTrial(_read(output.logits, output.hidden_states), _attentive(output.attentions, ids.shape[1]))


def tokens_after_end(network: Any, ids: Tensor) -> int:
    """Number of tokens after the last end-of-text token, which an encoder–decoder classifier reads.  (1,T)"""
    end = network.config.eos_token_id
    ends = ids[0].eq(end if isinstance(end, int) else -1).nonzero().flatten()
    if not len(ends):
        raise _refusal(network, "its tokenizer adds no end-of-text token")
    return int(ids.shape[1] - 1 - ends[-1])


def check_network(model: TransformerModel, ids: Tensor) -> None:
    """Refuse a network that cannot read short texts, or whose prediction changes with word vectors or padding."""
    _check_short(model, torch.cat([ids[:, :1], ids[:, -2:]], 1))
    shorter, batch = _padded(model, ids)
    with _errors_reported(model.network), inference(model):
        try:
            logits = model(batch).logits
        except NonFiniteOutput:
            raise _refusal(model.network, "its output is NaN or infinite") from None
        for row, text in enumerate((ids, shorter)):
            if not _is_close(model.direct_logits(text)[0], logits[row], model.epsilon):
                raise _refusal(
                    model.network, "its prediction changes with padding, or with word vectors instead of ids"
                )


def _padded(model: TransformerModel, ids: Tensor) -> tuple[Tensor, Batch]:
    """A shorter text with the same end, and both texts as a padded batch.  (1,T) -> (1,t), a batch of 2"""
    shorter = torch.cat([ids[:, : ids.shape[1] // 2], ids[:, -2:]], 1)[:, : ids.shape[1]]
    present = torch.arange(ids.shape[1], device=ids.device) < ids.new_tensor([[ids.shape[1]], [shorter.shape[1]]])
    padded = torch.cat([ids, pad(shorter, (0, ids.shape[1] - shorter.shape[1]), value=model.padding)])
    return shorter, Batch(padded, present, present, torch.arange(2))


def _check_short(model: TransformerModel, ids: Tensor) -> None:
    """Refuse a network that fails on a few tokens, as a Funnel transformer does, which pools them.  (1,T)"""
    with inference(model):
        try:
            model.direct_logits(ids)
        except Exception:  # foreign code
            raise _refusal(model.network, f"it cannot read a text of {ids.shape[1]} tokens") from None


def supports_fused_attention(model: TransformerModel, ids: Tensor) -> bool:
    """True if fused attention gives the same predictions and gradients: some networks then ignore padding.  (1,T)"""
    _, batch = _padded(model, ids)
    model.fused = True
    try:
        with evaluation(model), torch.enable_grad():
            vectors = model.embed(batch).detach().requires_grad_()
            plain, fused = model(batch, vectors).logits, model.logits(batch, vectors)
            exact, other = (torch.autograd.grad(logits.sum(), vectors)[0] for logits in (plain, fused))
    except Exception:  # networks without such a kernel raise various exceptions
        return False
    finally:
        model.fused = False
    if other[~batch.present].any():  # it reads padding
        return False
    return _is_close(plain, fused, model.epsilon, FUSED_ROUNDING) and _is_close(exact, other, model.epsilon)


def _is_close(exact: Tensor, other: Tensor, eps: float, most: float = math.inf) -> bool:
    """True if they differ by at most the square root of the rounding, and at most `most` times it if it is coarse."""
    tolerance = min(eps**0.5, most * eps) if eps > COARSE else eps**0.5
    return bool((exact - other).abs().max() <= tolerance * (1 + exact.abs().max()))


@contextmanager
def _errors_reported(network: Any) -> Iterator[None]:
    """Convert exceptions of the network to one UserError."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # foreign code, called in an unusual way
        reason = next(iter(str(error).splitlines()), "")
        raise _refusal(network, f"{type(error).__name__}: {reason}") from None


def _refusal(network: Any, reason: str) -> UserError:
    return UserError(
        f"a {type(network).__name__} cannot be examined ({reason}); pass a function, "
        "texts -> probabilities, to audit it as a black box"
    )


def _read(logits: Tensor, states: Any) -> Read:
    """Tokens that the classifier reads, from the hidden states of all layers."""
    if not states:
        return "first"
    (gradient,) = torch.autograd.grad(logits[:, 0].sum(), states[-1], allow_unused=True)
    positions = [] if gradient is None else gradient[0].any(-1).nonzero().flatten().tolist()
    if positions == [states[-1].shape[1] - 1]:
        return "last"
    return "first" if positions in ([], [0]) else "all"


def _attentive(attentions: Any, size: int) -> bool:
    return bool(attentions) and all(
        attention is not None and attention.shape[2:] == (size, size) for attention in attentions
    )
