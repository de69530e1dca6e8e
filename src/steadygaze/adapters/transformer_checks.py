"""Tokens as a model of the transformers library wants them: special tokens where its own tokenizer puts them.

The specials between a text and its question differ ([SEP]; </s></s>; none) and are read off the tokenizer.

What can only be found out by asking: how a network of the transformers library answers.

Which tokens its classifier reads is seen from the slope of a logit by the last hidden states: it is 0 on all others.
Whether it shows attention is seen from what it shows.  And it must say of vectors what it says of ids, padded or not:
a network that does not could be audited only as something it is not.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from steadygaze.adapters.transformer_network import Read, TransformerModel
from steadygaze.core.errors import UserError
from steadygaze.core.ragged import TokenArray, TokenizedTexts
from steadygaze.core.types import Batch
from steadygaze.data.subword_tokenizer import PieceTokenizer
from steadygaze.models.inference import evaluation, inference
from steadygaze.models.model_protocol import NonFiniteOutput


@dataclass(frozen=True)
class Template:
    """[CLS] text [SEP] question [SEP], or whatever a tokenizer has."""

    before: list[int]
    between: list[int]
    after: list[int]
    question_type: int
    """The token type of a question; a text's is 0."""


class SpecialTokenTokenizer(PieceTokenizer):
    """With these special tokens before and after each text."""

    def __init__(self, engine: Tokenizer, before: list[int], after: list[int], *, max_length: int, pad_id: int) -> None:
        super().__init__(engine, max_length=max_length, pad_id=pad_id)
        self._before, self._after = before, after


class PairTokenizer(SpecialTokenTokenizer):
    """For texts that are followed by a question."""

    def __init__(self, engine: Tokenizer, template: Template, *, max_length: int, pad_id: int) -> None:
        super().__init__(engine, template.before, template.between, max_length=max_length, pad_id=pad_id)
        self._question = SpecialTokenTokenizer(engine, [], template.after, max_length=max_length, pad_id=pad_id)

    def encode(self, texts: Sequence[str], *, question: bool = False) -> TokenArray:
        return self._question.encode(texts) if question else super().encode(texts)

    def place(self, texts: Sequence[str], *, question: bool = False) -> TokenizedTexts:
        return self._question.place(texts) if question else super().place(texts)


def single(engine: Tokenizer, *, most: int, pad_id: int) -> PieceTokenizer:
    """At most so many tokens in all, special ones included."""
    return PieceTokenizer(engine, max_length=most - engine.num_special_tokens_to_add(False), pad_id=pad_id)


def paired(engine: Tokenizer, template: Template, *, most: int, pad_id: int) -> PairTokenizer | None:
    """Half of the room for the text, half for the question; None where that is none."""
    half = (most - len(template.before) - len(template.between) - len(template.after)) // 2
    return PairTokenizer(engine, template, max_length=half, pad_id=pad_id) if half > 0 else None


def template(engine: Tokenizer) -> Template | None:
    """Read off a pair of one letter each; None where the tokenizer makes nothing of that."""
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
    """Whether it shows attention from every token to every token."""


def try_network(network: Any, ids: Tensor) -> NetworkTrial:
    """By one text.  (1,T)"""
    with _asked(network), evaluation(network), torch.enable_grad():
        vectors = network.get_input_embeddings()(ids).detach().requires_grad_()
        output = network(
            inputs_embeds=vectors,
            attention_mask=torch.ones_like(ids),
            output_attentions=True,
            output_hidden_states=True,
        )
        return NetworkTrial(_read(output.logits, output.hidden_states), _attentive(output.attentions, ids.shape[1]))


def check_network(model: TransformerModel, ids: Tensor) -> None:
    """Refuses a network that reads vectors or padding otherwise than it reads a plain text."""
    size = ids.shape[1]
    lengths = torch.tensor([size, (size + 1) // 2], device=ids.device)
    present = torch.arange(size, device=ids.device) < lengths.unsqueeze(1)
    batch = Batch(ids.expand(2, -1).masked_fill(~present, model.padding), present, present, torch.arange(2))
    with _asked(model.network), inference(model):
        try:
            found = model(batch).logits
        except NonFiniteOutput:
            raise _refusal(model.network, "its output is NaN or infinite") from None
        for row, length in enumerate(lengths.tolist()):
            plain = model.network(input_ids=ids[:, :length], attention_mask=torch.ones_like(ids[:, :length])).logits
            # The root of what the numbers can tell apart: more than rounding adds up to, less than any real difference.
            if (found[row] - plain[0]).abs().max() > torch.finfo(plain.dtype).eps ** 0.5 * (1 + plain.abs().max()):
                raise _refusal(model.network, "it reads padding, or vectors in place of words, otherwise than a text")


def supports_fused_attention(model: TransformerModel, ids: Tensor) -> bool:
    """Whether the network predicts the same by fused attention, with slopes too.  (1,T)"""
    present = torch.ones_like(ids, dtype=torch.bool)
    batch = Batch(ids, present, present, torch.arange(1))
    model.fused = True
    try:
        with evaluation(model), torch.enable_grad():
            vectors = model.embed(batch).detach().requires_grad_()
            plain, quick = model(batch, vectors).logits, model.logits(batch, vectors)
            slopes = [torch.autograd.grad(one.sum(), vectors)[0] for one in (plain, quick)]
    except Exception:  # a network that has no such kernel says so in many ways
        return False
    finally:
        model.fused = False
    least = torch.finfo(plain.dtype).eps ** 0.5
    return all(
        bool((one - other).abs().max() <= least * (1 + one.abs().max())) for one, other in ((plain, quick), slopes)
    )


@contextmanager
def _asked(network: Any) -> Iterator[None]:
    """What it says against being asked so, as one sentence."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # somebody else's code, asked in a way it may never have been asked
        reason = next(iter(str(error).splitlines()), "")
        raise _refusal(network, f"{type(error).__name__}: {reason}") from None


def _refusal(network: Any, why: str) -> UserError:
    return UserError(
        f"a {type(network).__name__} cannot be looked into ({why}); give its predictions as a function, "
        "texts -> probabilities, to audit it from outside"
    )


def _read(logits: Tensor, states: Any) -> Read:
    """From the hidden states of all layers, where it shows them."""
    if not states:
        return "first"
    (slope,) = torch.autograd.grad(logits[:, 0].sum(), states[-1], allow_unused=True)
    read = [] if slope is None else slope[0].any(-1).nonzero().flatten().tolist()
    if read == [states[-1].shape[1] - 1]:
        return "last"
    return "first" if read in ([], [0]) else "all"


def _attentive(attentions: Any, size: int) -> bool:
    return bool(attentions) and all(one is not None and one.shape[2:] == (size, size) for one in attentions)
