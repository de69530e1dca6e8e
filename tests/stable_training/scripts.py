"""A short training script of the transformers library, on a tiny network without dropout."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from transformers import TrainerCallback, TrainingArguments

from adapters.folders import network, tokenizer
from steadygaze.transformers import StableTrainer

TEXTS = ["a good film", "The cast was not good!", "bad", "a film was bad and not good, the cast was bad and bad"] * 2
LABELS = [2, 1, 0, 0] * 2
GROUPS = {"film": ["cast"], "cast": ["film"]}
STILL = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "classifier_dropout": 0.0, "dropout": 0.0}
STILL |= {
    "attention_dropout": 0.0,
    "seq_classif_dropout": 0.0,
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
}
QUIET = {"report_to": [], "use_cpu": True, "disable_tqdm": True, "save_strategy": "no", "logging_strategy": "no"}


def rows(kind: str = "bert", texts: list[str] = TEXTS, labels: list[int] = LABELS) -> list[dict[str, Any]]:
    encode = tokenizer(kind)
    return [{"text": text, "label": label, **encode(text)} for text, label in zip(texts, labels, strict=True)]


def trainer(
    folder: Path, kind: str = "bert", model: Any = None, arguments: dict[str, Any] | None = None, **options: Any
) -> StableTrainer:
    values = {"per_device_train_batch_size": 8, "num_train_epochs": 1, "learning_rate": 1e-2, **QUIET}
    model = network(kind, **STILL).double() if model is None else model
    options = {"train_dataset": rows(kind), "processing_class": tokenizer(kind), **options}
    return StableTrainer(model, TrainingArguments(folder, **values | (arguments or {})), **options)


class Gradients(TrainerCallback):
    """Keeps the gradients of each optimizer step, before they are clipped."""

    def __init__(self) -> None:
        self.steps: list[dict[str, torch.Tensor]] = []

    def on_pre_optimizer_step(self, *_: Any, model: Any = None, **__: Any) -> None:
        parameters = model.named_parameters()
        self.steps.append({name: value.grad.clone() for name, value in parameters if value.grad is not None})


@contextmanager
def quiet() -> Iterator[None]:
    """Without the warnings of the library about networks of one layer and pinned memory."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
