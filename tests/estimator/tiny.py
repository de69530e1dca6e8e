"""Texts, labels and classifiers so small that a fit takes a fraction of a second."""

import math
from collections.abc import Container
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from steadygaze.core.types import Terms
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.training.technique_loop import TechniqueLoop

NOUNS = ("film", "plot", "cast", "music", "ending", "script", "camera", "light", "sound", "set", "story", "score")
TEXTS = [f"the {s} was good and fine" for s in NOUNS] + [f"a bad , dull {s} i thought" for s in NOUNS]
LABELS = ["pos"] * 12 + ["neg"] * 12
PAIRS = [(text, f"was the {subject} good ?") for text, subject in zip(TEXTS, NOUNS * 2, strict=True)]
SMALL = {"hidden": 4, "dimension": 6}


def tiny(encoder: str = "average", **parameters: Any) -> TextClassifier:
    """One epoch by default."""
    return TextClassifier(encoder, **{"epochs": 1, "settings": SMALL, "device": "cpu", **parameters})


def write_csv(path: Path) -> Path:
    """TEXTS and LABELS as a file."""
    rows = [f'"{text}",{label}\n' for text, label in zip(TEXTS, LABELS, strict=True)]
    path.write_text("".join(["text,label\n", *rows]))
    return path


@cache
def fitted() -> TextClassifier:
    """Trained long enough to separate the classes."""
    return tiny(epochs=6, batch_size=4, settings={**SMALL, "learning_rate": 0.05}).fit(TEXTS, LABELS)


@cache
def fitted_pair() -> TextClassifier:
    return tiny().fit(PAIRS, LABELS)


def _word_pieces(specials: list[str]) -> dict[str, int]:
    """Letters, their continuations and some words: a trained vocabulary differs between processes."""
    words = sorted({word for text in TEXTS for word in text.lower().split() if word.isalpha()})
    letters = sorted({letter for text in TEXTS for letter in text.lower() if not letter.isspace()})
    pieces = [*specials, *letters, *(f"##{letter}" for letter in letters), *words[::2], "good", "bad"]
    return {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}


def transformer_folder(folder: Path) -> Path:
    """A Hugging Face encoder of one layer, with a tokenizer of word pieces."""
    from transformers import BertConfig, BertModel

    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    engine = Tokenizer(models.WordPiece(_word_pieces(specials), unk_token="[UNK]"))
    engine.normalizer = normalizers.BertNormalizer()
    engine.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    engine.add_special_tokens(specials)
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    engine.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=engine.get_vocab_size(),
        hidden_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    engine.save(str(folder / "tokenizer.json"))
    return folder


def diverge(monkeypatch: pytest.MonkeyPatch, seeds: Container[int]) -> None:
    """Make the loss of models with these seeds NaN."""
    train_step, update = TechniqueLoop.train_step, TechniqueLoop.update

    def damaged(loop: TechniqueLoop, terms: Terms) -> Terms:
        factor = math.nan if loop.state.stream[0] in seeds else 1.0
        return {name: value * factor for name, value in terms.items()}

    monkeypatch.setattr(TechniqueLoop, "train_step", lambda loop, rows: damaged(loop, train_step(loop, rows)))
    monkeypatch.setattr(TechniqueLoop, "update", lambda loop, terms, weight: update(loop, damaged(loop, terms), weight))
