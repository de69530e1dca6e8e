"""Prompted causal language models: the score of a class is the log-probability of its label word after the prompt.

    z_c = Σ_j log p(w_cj | prompt, w_c1 … w_c,j−1)        w_c the tokens of the label word
    p_c = softmax(z)_c                                     normalized over the classes

Attention is that of the last token of the prompt, which predicts the first token of the label word.
One forward pass serves all label words of one token.
"""

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

    def direct_logits(self, ids: Tensor) -> Tensor:
        scores = []
        for word in self._words:
            sequence = torch.cat([ids, ids.new_tensor([word])], 1)
            logits = self.network(input_ids=sequence, attention_mask=torch.ones_like(sequence)).logits
            scores.append(_score(logits[:, -len(word) - 1 : -1], word))
        return torch.stack(scores, 1)

    def _run(self, row: TokenRows, with_attention: bool) -> tuple[Tensor, Tensor]:
        scores: dict[int, Tensor] = {}
        weights = self._reads(row)
        for pass_index, (continuation, labels) in enumerate(self._continuations.items()):
            attentions = with_attention and not pass_index
            output = self._continue(row, continuation, attentions)
            logits = output.logits[:, -len(continuation) - 1 :]
            scores |= {label: _score(logits[:, : len(self._words[label])], self._words[label]) for label in labels}
            if attentions:
                read = pad(weights, (0, len(continuation)))
                weights = AGGREGATIONS[self.attention](output.attentions, read)[:, : weights.shape[1]]
        return torch.stack([scores[label] for label in range(len(scores))], 1), weights

    def _continue(self, row: TokenRows, continuation: Sequence[int], with_attention: bool) -> Any:
        """The output of the network for the prompt and these tokens."""
        tokens = self._embed(row.part.new_tensor(continuation)).expand(len(row.real), -1, -1)
        real = pad(row.real, (0, len(continuation)), value=True)
        inputs: dict[str, Any] = dict(self._options)
        if self._numbered:
            inputs["position_ids"] = (real.long().cumsum(1) - 1).clamp_min(0)
        if self._trims_logits:
            inputs["logits_to_keep"] = len(continuation) + 1
        return self.network(
            inputs_embeds=torch.cat([row.vectors, tokens], 1),
            attention_mask=real.long(),
            output_attentions=with_attention,
            **inputs,
        )


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
