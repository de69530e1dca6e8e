"""One tiny model of each kind and state of the capability matrix: as a folder or MODULE:NAME, and as an object."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

import steadygaze as sg
from adapters import folders
from estimator.tiny import NOUNS, SMALL, tiny, transformer_folder

MODELS = (
    "word", "subword", "huggingface", "encoder-decoder", "prompted", "scikit-learn", "function", "fitted-explainer",
    "rationalizer",
)  # fmt: skip
STATES = ("healthy", "collapsed", "fp16", "bf16")
DTYPES = {"fp16": torch.float16, "bf16": torch.bfloat16}
CLASSES = ["neg", "pos"]
TEXTS = [f"it rained . the {noun} was good and fine ." for noun in NOUNS]
TEXTS += [f"we had bread . a bad , dull {noun} i thought ." for noun in NOUNS]
LABELS = ["pos"] * len(NOUNS) + ["neg"] * len(NOUNS)
QUESTIONS = [f"was the long awaited {noun} not good at all ?" for noun in NOUNS * 2]
PAIRS = list(zip(TEXTS, QUESTIONS, strict=True))
PROMPT = "Review : {text} It was"
LABEL_WORDS = {"neg": " bad", "pos": " good"}
FIT = {"epochs": 1, "hidden": 4, "dimension": 4}
MODULE = "matrix_functions"
"""Of the models MODULE:NAME."""


@dataclass(frozen=True)
class Made:
    """A model: words of the command line, the object of the Python calls, and its arguments."""

    words: tuple[str, ...]
    live: Any
    options: dict[str, Any] = field(default_factory=dict)
    explainer: Path | None = None
    """A fitted explainer of the model, which is then a function."""


class Models:
    """Each model is made once; all are below one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.module = sys.modules.setdefault(MODULE, ModuleType(MODULE))
        self.make = cache(self._make)
        self.encoder = cache(self._encoder)

    def _make(self, kind: str, state: str, pair: bool) -> Made:
        place = self.folder / f"{kind}-{state}-{pair}"
        if kind in ("word", "subword", "rationalizer"):
            return self._own(kind, state, pair, place)
        if kind in ("huggingface", "encoder-decoder", "prompted"):
            return _transformer(kind, state, place)
        if kind == "fitted-explainer":
            return self._fitted(state, pair, place)
        name = place.name.replace("-", "_")
        setattr(self.module, name, (_pipeline if kind == "scikit-learn" else _function)(state, pair))
        words = (f"{MODULE}:{name}", "--classes", ",".join(CLASSES))
        return Made(words, getattr(self.module, name), {"classes": CLASSES})

    def _encoder(self, state: str) -> Path:
        """The folder of an encoder without a head."""
        place = transformer_folder(self.folder / f"encoder-{state}")
        if state in DTYPES:
            _convert(place, DTYPES[state])
        return place

    def _own(self, kind: str, state: str, pair: bool, place: Path) -> Made:
        encoder = {"word": "average", "rationalizer": "bigru"}.get(kind) or f"transformer:{self.encoder('healthy')}"
        technique = "rnp" if kind == "rationalizer" else "vanilla"
        settings = {**({} if kind == "subword" else SMALL), **({"skewed": 1} if kind == "rationalizer" else {})}
        texts = PAIRS if pair and kind != "rationalizer" else TEXTS  # a rationalizer reads single texts
        clf = tiny(encoder, technique=technique, settings=settings).fit(texts, LABELS)
        if state == "collapsed":
            with torch.no_grad():
                for name, weight in clf.stored_.model.named_parameters():
                    if "encoder" not in name and "embed" not in name:
                        weight.zero_()
        clf.save(place)
        if state in DTYPES:
            _convert(place, DTYPES[state])
        return Made((str(place),), place)

    def _fitted(self, state: str, pair: bool, place: Path) -> Made:
        black_box = self.make("function", "collapsed" if state == "collapsed" else "healthy", pair)
        texts = PAIRS if pair else TEXTS
        sg.fit_explainer(black_box.live, texts, "l2x", k=2, classes=CLASSES, settings=FIT, device="cpu").save(place)
        if state in DTYPES:
            _convert(place, DTYPES[state])
        return Made(black_box.words, black_box.live, black_box.options, place)


def _convert(folder: Path, dtype: torch.dtype) -> None:
    """The floating-point tensors of a folder in half precision."""
    for file in folder.glob("*.safetensors"):
        with safe_open(file, framework="pt") as opened:
            metadata = opened.metadata()
        weights = load_file(file)
        weights |= {name: value.to(dtype) for name, value in weights.items() if value.is_floating_point()}
        save_file(weights, file, metadata)


def _transformer(kind: str, state: str, place: Path) -> Made:
    names = {"id2label": dict(enumerate(CLASSES)), "label2id": {name: i for i, name in enumerate(CLASSES)}}
    architecture = {"huggingface": "bert", "encoder-decoder": "bart", "prompted": "llama"}[kind]
    changes = {"max_position_embeddings": 120, **({} if kind == "prompted" else names)}
    network = folders.language_model(architecture) if kind == "prompted" else folders.network(architecture, **changes)
    if state == "collapsed":
        head = network.lm_head if kind == "prompted" else network.classifier if kind == "huggingface" else None
        head = network.classification_head.out_proj if head is None else head
        torch.nn.init.zeros_(head.weight)
    network = network.to(DTYPES.get(state, torch.float32))
    tokenizer = folders.tokenizer(architecture)
    network.save_pretrained(place)
    tokenizer.save_pretrained(place)
    if kind != "prompted":
        return Made((str(place),), (network, tokenizer))
    words = tuple(word for label, text in LABEL_WORDS.items() for word in ("--label-word", f"{label}={text}"))
    options = {"prompt": PROMPT, "label_words": LABEL_WORDS}
    return Made((str(place), "--prompt", PROMPT, *words), (network, tokenizer), options)


def _pipeline(state: str, pair: bool) -> Any:
    """A pipeline, for pairs with a step that joins them; half precision is what its probabilities have."""
    from sklearn.dummy import DummyClassifier
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    last = DummyClassifier() if state == "collapsed" else LogisticRegression()
    join = [FunctionTransformer(_joined)] if pair else []
    pipeline = make_pipeline(*join, CountVectorizer(), last).fit(PAIRS if pair else TEXTS, LABELS)
    return _Half(pipeline, DTYPES[state]) if state in DTYPES else pipeline


def _joined(pairs: Any) -> list[str]:
    return [" ".join(pair) for pair in pairs]


@dataclass
class _Half:
    """An estimator whose probabilities are in half precision."""

    estimator: Any
    dtype: torch.dtype

    @property
    def classes_(self) -> Any:
        return self.estimator.classes_

    def predict_proba(self, X: Any) -> Any:
        return _half(self.estimator.predict_proba(X), self.dtype)


def _half(values: Any, dtype: torch.dtype) -> Any:
    """float16 is NumPy's, bfloat16 only torch has."""
    return np.asarray(values, np.float16) if dtype == torch.float16 else torch.as_tensor(values).to(dtype)


def _function(state: str, pair: bool) -> Callable[[list[Any]], Any]:
    def predict(texts: list[Any]) -> Any:
        good = [("good" in text[0] if pair else "good" in text) and state != "collapsed" for text in texts]
        values = [[0.1, 0.9] if positive else [0.8, 0.2] for positive in good]
        return _half(values, DTYPES[state]) if state in DTYPES else values

    return predict
