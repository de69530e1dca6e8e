"""Time of training steps of StableTrainer relative to transformers.Trainer, on the same rows of the same lengths.

The network has the sizes of MiniLM (6 layers of 384) and random weights; the ratio of tokens per second is the inverse.
"""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from timings.harness import Result, race

SIZES = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
WORDS = 30_522
TECHNIQUES = ("vanilla", "word-at")
MOST = 2.1
"""Limit of word-at."""


def random_rows(number: int, mean: int) -> list[dict[str, Any]]:
    """Texts of random words, of lengths from half to three halves of the mean."""
    draw = np.random.default_rng(0)
    lengths = draw.integers(mean // 2, mean * 3 // 2 + 1, number)
    return [
        {"input_ids": draw.integers(1000, WORDS, length).tolist(), "label": int(draw.integers(2))} for length in lengths
    ]


def padded(rows: list[dict[str, Any]]) -> dict[str, torch.Tensor]:
    width = max(len(row["input_ids"]) for row in rows)
    ids = torch.tensor([row["input_ids"] + [0] * (width - len(row["input_ids"])) for row in rows])
    return {
        "input_ids": ids,
        "attention_mask": (ids > 0).long(),
        "labels": torch.tensor([row["label"] for row in rows]),
    }


def trainers(folder: str, rows: list[dict[str, Any]], batch: int, bf16: bool) -> dict[str, Callable[[], Any]]:
    from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

    from steadygaze.transformers import StableTrainer

    def make(cls: Any, **options: Any) -> Any:
        torch.manual_seed(0)
        network = BertForSequenceClassification(BertConfig(vocab_size=WORDS, **SIZES))
        arguments = TrainingArguments(
            folder, per_device_train_batch_size=batch, num_train_epochs=1, bf16=bf16, report_to=[], disable_tqdm=True,
            save_strategy="no", logging_strategy="no", seed=0,
        )  # fmt: skip
        return cls(network, arguments, train_dataset=rows, data_collator=padded, **options)

    variants = {"Trainer": make(Trainer).train}
    return variants | {name: make(StableTrainer, technique=name).train for name in TECHNIQUES}


def run(*, batch: int = 32, mean: int = 32, steps: int = 8, rounds: int = 5, bf16: bool = False) -> list[Result]:
    """Steps with the optimizer."""
    rows = random_rows(batch * steps, mean)
    tokens = sum(len(row["input_ids"]) for row in rows)
    with tempfile.TemporaryDirectory() as folder:
        times = race(trainers(folder, rows, batch, bf16), rounds)
    results = [times.ratio("vanilla", "Trainer"), times.ratio("word-at", "Trainer", at_most=MOST)]
    thousand = replace(times.time("Trainer", per=tokens / 1000), name="Trainer, 1,000 tokens")
    return [*results, times.ratio("word-at", "Trainer", clock="cpu"), thousand]
