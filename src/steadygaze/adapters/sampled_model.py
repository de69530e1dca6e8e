"""SampledModel: a causal language model that answers in words, for labels that have no scores.

    p_c = n_c / n          n_c of the n sampled answers that name a label name c; temperature 1

The random numbers of an answer depend on the text, the draw and nothing else: the same text gets the same answers.
Another draw asks again, as `BlackBoxModel.redrawn` does to measure the noise of the answers.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from steadygaze.adapters.hosted.label_reading import LabelWords, mean_of_readings
from steadygaze.adapters.hosted.request_form import Answer
from steadygaze.adapters.prompt_tokenizer import PromptTokenizer
from steadygaze.models.inference import inference
from steadygaze.results.intervals import wilson_interval

MORE_TOKENS = 8
"""Tokens of an answer besides those of the longest label word."""


@dataclass(frozen=True, eq=False)
class SampledModel:
    """A function texts -> probabilities."""

    network: Any
    tokens: PromptTokenizer
    engine: Tokenizer
    labels: LabelWords
    votes: int
    """Answers per text."""
    padding: int

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """(N,C)"""
        return self.draw(texts, 0)

    def draw(self, texts: Sequence[str], number: int) -> NDArray[np.float64]:
        """The probabilities of a draw.  (N,C)"""
        rows = [[self.labels.read(Answer(answer)) for answer in self._answers(text, number)] for text in texts]
        return np.array([mean_of_readings(row, len(self.labels.words)) for row in rows])

    @property
    def facts(self) -> dict[str, str]:
        """For reports."""
        low, high = wilson_interval(self.votes / 2, self.votes)
        return {"answers": f"{self.votes} votes: a share of 50 % has the 95 % interval {low:.2f} to {high:.2f}"}

    def _answers(self, text: str, number: int) -> list[str]:
        from transformers import GenerationConfig

        device = self.network.device
        ids = torch.from_numpy(self.tokens.encode([text]).ids).long().unsqueeze(0).to(device)
        length = MORE_TOKENS + max(map(len, self.tokens.label_ids))
        config = GenerationConfig(
            do_sample=True, temperature=1.0, top_k=0, top_p=1.0, max_new_tokens=length,
            num_return_sequences=self.votes, pad_token_id=self.padding,
            eos_token_id=self.network.generation_config.eos_token_id,
        )  # fmt: skip
        devices = [device] if device.type == "cuda" else []
        with inference(self.network), torch.random.fork_rng(devices=devices):
            torch.manual_seed(_seed(text, number))
            sampled = self.network.generate(ids, attention_mask=torch.ones_like(ids), generation_config=config)
        return list(self.engine.decode_batch(sampled[:, ids.shape[1] :].tolist(), skip_special_tokens=True))


def _seed(text: str, number: int) -> int:
    """Of a text, which may contain surrogates, and a draw."""
    return int.from_bytes(hashlib.blake2b(repr((text, number)).encode(), digest_size=8).digest()) >> 1
