"""Prompted causal language models: the score of a class is the log-probability of its label word after the prompt.

    z_c = Σ_j log p(w_cj | prompt, w_c1 … w_c,j−1)        w_c the tokens of the label word
    p_c = softmax(z)_c                                     normalized over the classes

Calibrated on an empty text x₀ (Zhao et al. 2021, arXiv:2102.09690, §5, with W = diag(p₀)⁻¹ and b = 0):

    z_c(x) − z_c(x₀)

Attention is that of the last token of the prompt, which predicts the first token of the label word.
One forward pass reads the prompt, and scores all label words of one token.  Each further pass reads the rest of a label
word alone, with the keys and values of the first pass; or the whole prompt, if the network has no such cache.
"""

import copy
import inspect
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from steadygaze.adapters.transformer_network import AGGREGATIONS, ForwardOptions, TokenRows, TransformerModel


class PromptedModel(TransformerModel):
    """`words`: the tokens of each label word."""

    def __init__(self, network: Any, options: ForwardOptions, words: Sequence[list[int]], has_attention: bool) -> None:
        super().__init__(network, options, "last", has_attention)
        self._words = words
        self._continuations = _continuations(words)
        self._trims_logits = "logits_to_keep" in inspect.signature(network.forward).parameters
        self.shares_prompt = "past_key_values" in inspect.signature(network.forward).parameters
        """True if later passes use the keys and values of the first, see `supports_shared_prompt`."""
        self.offset: Tensor | float = 0.0
        """Scores of an empty text, (1,C), which are subtracted."""

    def direct_logits(self, ids: Tensor) -> Tensor:
        scores = []
        for word in self._words:
            sequence = torch.cat([ids, ids.new_tensor([word])], 1)
            logits = self.network(input_ids=sequence, attention_mask=torch.ones_like(sequence)).logits
            scores.append(_score(logits[:, -len(word) - 1 : -1], word))
        return torch.stack(scores, 1)

    def _run(self, row: TokenRows, with_attention: bool) -> tuple[Tensor, Tensor]:
        weights = self._reads(row)
        scores: dict[int, Tensor] = {}
        later = [(tokens, labels) for tokens, labels in self._continuations.items() if tokens]
        if later and not self.shares_prompt:
            (first, labels), *later = self._continuations.items()
        else:
            first, labels = (), self._continuations.get((), [])
        output = self._read_prompt(row, first, with_attention, use_cache=bool(later) and self.shares_prompt)
        logits = output.logits[:, -len(first) - 1 :]
        scores |= self._scores(logits, labels)
        for tokens, labels in later:
            if self.shares_prompt:
                rest = torch.cat([logits, self._read_rest(row, tokens, output.past_key_values)], 1)
            else:
                rest = self._read_prompt(row, tokens, False).logits[:, -len(tokens) - 1 :]
            scores |= self._scores(rest, labels)
        if with_attention:
            read = pad(weights, (0, len(first)))
            weights = AGGREGATIONS[self.attention](output.attentions, read)[:, : weights.shape[1]]
        return torch.stack([scores[label] for label in range(len(scores))], 1) - self.offset, weights

    def _scores(self, logits: Tensor, labels: Sequence[int]) -> dict[int, Tensor]:
        """Label -> (B,)"""
        return {label: _score(logits[:, : len(self._words[label])], self._words[label]) for label in labels}

    def _read_prompt(self, row: TokenRows, tokens: Sequence[int], with_attention: bool, use_cache: bool = False) -> Any:
        """The output of the network for the prompt and these tokens."""
        real = pad(row.real, (0, len(tokens)), value=True)
        inputs = {**self._inputs(len(tokens) + 1), **({"use_cache": True} if use_cache else {})}
        if self._numbered:
            inputs["position_ids"] = (real.long().cumsum(1) - 1).clamp_min(0)
        vectors = torch.cat([row.vectors, self._vectors(tokens, row)], 1) if tokens else row.vectors
        return self.network(
            inputs_embeds=vectors, attention_mask=real.long(), output_attentions=with_attention, **inputs
        )

    def _read_rest(self, row: TokenRows, tokens: Sequence[int], cache: Any) -> Tensor:
        """Logits after each of these tokens, which follow the prompt of the cache.  (B,len(tokens),V)"""
        real = pad(row.real, (0, len(tokens)), value=True)
        inputs = {**self._inputs(len(tokens)), "past_key_values": _fork(cache), "use_cache": True}
        if self._numbered:
            inputs["position_ids"] = (real.long().cumsum(1) - 1)[:, -len(tokens) :]
        output = self.network(inputs_embeds=self._vectors(tokens, row), attention_mask=real.long(), **inputs)
        logits: Tensor = output.logits
        return logits

    def _inputs(self, last: int) -> dict[str, Any]:
        """Options of the network, with logits of the last tokens alone if it can."""
        return {**self._options, **({"logits_to_keep": last} if self._trims_logits else {})}

    def _vectors(self, tokens: Sequence[int], row: TokenRows) -> Tensor:
        """(B,len(tokens),E)"""
        return self._embed(row.part.new_tensor(tokens)).expand(len(row.real), -1, -1)


def supports_shared_prompt(model: PromptedModel, ids: Tensor) -> bool:
    """True if later passes with the keys and values of the first give the same scores.  (1,T)"""
    real = torch.ones_like(ids, dtype=torch.bool)
    with torch.no_grad():
        row = TokenRows(model.network.get_input_embeddings()(ids), real, torch.zeros_like(ids))
        try:
            shared = model._run(row, False)[0]
        except Exception:  # networks without such a cache raise various exceptions
            return False
        model.shares_prompt = False
        whole = model._run(row, False)[0]
        model.shares_prompt = True
    return bool((shared - whole).abs().max() <= model.epsilon**0.5 * (1 + whole.abs().max()))


def _fork(cache: Any) -> Any:
    """A cache that grows apart from this one, with the same tensors."""
    fork = copy.copy(cache)
    fork.layers = [copy.copy(layer) for layer in cache.layers]
    return fork


def _score(logits: Tensor, word: Sequence[int]) -> Tensor:
    """Log-probability of the word; at least single precision.  (B,W,V) -> (B,)"""
    precise = logits.to(torch.promote_types(logits.dtype, torch.float32)).log_softmax(-1)
    return precise[:, torch.arange(len(word)), list(word)].sum(-1)


def _continuations(words: Sequence[Sequence[int]]) -> dict[tuple[int, ...], list[int]]:
    """Tokens appended to the prompt in each forward pass -> the labels that it scores.

    >>> _continuations([[5], [6], [7, 8], [7, 8, 9]])
    {(7, 8): [0, 1, 2, 3]}
    """
    passes: dict[tuple[int, ...], list[int]] = {}
    for label in sorted(range(len(words)), key=lambda label: -len(words[label])):
        start = tuple(words[label][:-1])
        key = next((tokens for tokens in passes if tokens[: len(start)] == start), start)
        passes.setdefault(key, []).append(label)
    return {tokens: sorted(labels) for tokens, labels in passes.items()}
