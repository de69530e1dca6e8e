"""A MiniLM fine-tuned on SST-2 as a Hugging Face folder: the classifier that the timing `peers` explains."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from steadygaze.data.corpora import load_corpus
from steadygaze.models.encoders.transformer import locate
from studies.data_folder import data_folder

LEARNING_RATE, BATCH = 1e-4, 32


def sst2(split: str, count: int | None = None) -> list[tuple[str, str]]:
    """(text, label), in the order of the corpus."""
    examples = load_corpus("sst2", data_dir=data_folder("sst2")).splits[split]
    return [(example.text, str(example.label)) for example in examples[:count]]


def default_folder() -> Path:
    return Path(tempfile.gettempdir()) / "steadygaze-peers" / "minilm-sst2"


def fine_tuned_folder(folder: Path | None = None, texts: int = 800) -> Path:
    """The folder, trained first where it is not there: one epoch of plain transformers, about a minute of CPU."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = default_folder() if folder is None else folder
    if (folder / "model.safetensors").exists():
        return folder
    torch.manual_seed(0)
    examples = sst2("train")
    chosen = np.random.default_rng(0).permutation(len(examples))[:texts]
    labels = sorted({label for _, label in examples})
    names: dict[str, Any] = {"id2label": dict(enumerate(labels)), "label2id": {x: i for i, x in enumerate(labels)}}
    source = locate("minilm")
    tokenizer = AutoTokenizer.from_pretrained(source)
    model = AutoModelForSequenceClassification.from_pretrained(source, num_labels=len(labels), **names).train()
    optimizer = torch.optim.AdamW(model.parameters(), LEARNING_RATE)
    for start in range(0, len(chosen), BATCH):
        rows = [examples[i] for i in chosen[start : start + BATCH]]
        read = tokenizer([text for text, _ in rows], padding=True, truncation=True, max_length=64, return_tensors="pt")
        loss = model(**read, labels=torch.tensor([labels.index(label) for _, label in rows])).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    test = sst2("test", 200)
    with torch.no_grad():
        read = tokenizer([text for text, _ in test], padding=True, truncation=True, return_tensors="pt")
        right = model(**read).logits.argmax(-1) == torch.tensor([labels.index(label) for _, label in test])
    print(f"{folder}: accuracy {right.double().mean():.3f} on {len(test)} test texts")
    return folder
