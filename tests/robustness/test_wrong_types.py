"""Every argument of the public Python API with values of every wrong type: it works, or raises UserError."""

import inspect
import struct
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import steadygaze as sg
from robustness.harness import time_limit
from robustness.small import LABELS, TEXTS, classifier, small
from steadygaze.core.errors import UserError

WRONG: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "zero": lambda: 0,
    "negative": lambda: -1,
    "fraction": lambda: 1.5,
    "nan": lambda: float("nan"),
    "huge": lambda: 10**400,
    "true": lambda: True,
    "bytes": lambda: b"text",
    "empty string": lambda: "",
    "string": lambda: "no such thing",
    "null character": lambda: "a\0b",
    "surrogate": lambda: "\udc80",
    "long string": lambda: "x" * 100_000,
    "dict": lambda: {"a": 1},
    "empty list": list,
    "nested list": lambda: [[["a"]]],
    "list of None": lambda: [None] * len(TEXTS),
    "matrix": lambda: np.zeros((2, 2)),
    "generator": lambda: (word for word in ("a", "b")),
    "object": object,
    "class": lambda: object,
    "function": lambda: len,
    "path": lambda: Path("no such file.csv"),
    "set": lambda: {"a"},
}
IMAGES = np.zeros((24, 8, 8), np.uint8)
IMAGES[::2, 1] = 255
CLASSES = ["bad", "good"]
QUICK = {"epochs": 1}


def predict(texts: list[str]) -> np.ndarray:
    good = np.array(["fine" in text for text in texts], float)
    return np.stack([1 - good, good], 1) * 0.8 + 0.1


@cache
def fitted() -> sg.TextClassifier:
    return classifier().fit(TEXTS, LABELS)


@cache
def fitted_images() -> sg.ImageClassifier:
    return sg.ImageClassifier(epochs=1, device="cpu").fit(IMAGES, LABELS)


@cache
def explained() -> sg.Explanation:
    return fitted().explain(TEXTS[0])


@cache
def explained_image() -> sg.ImageExplanation:
    return fitted_images().explain(IMAGES[:1], k=2)[0]


@cache
def report() -> Any:
    return sg.audit(predict, TEXTS[:4], LABELS[:4], classes=CLASSES, sample=1)


@cache
def certificates() -> Any:
    return sg.certify(fitted(), TEXTS[:2])


@cache
def explainer() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sg.fit_explainer(predict, TEXTS, "l2x", k=1, classes=CLASSES, settings=QUICK)


def arguments(function: Callable[..., Any], *left_out: str) -> list[str]:
    return [name for name in inspect.signature(function).parameters if name not in {"self", *left_out}]


# name: the call with valid arguments, the arguments to replace
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any], list[str]]] = {
    "fit": (
        lambda **options: classifier().fit(**options),
        {"X": TEXTS, "y": LABELS},
        arguments(sg.TextClassifier.fit),
    ),
    "predict": (lambda **options: fitted().predict(**options), {"X": TEXTS}, ["X"]),
    "predict_proba": (lambda **options: fitted().predict_proba(**options), {"X": TEXTS}, ["X", "batch_size"]),
    "score": (lambda **options: fitted().score(**options), {"X": TEXTS, "y": LABELS}, ["X", "y", "sample_weight"]),
    "explain": (lambda **options: fitted().explain(**options), {"X": TEXTS[0]}, arguments(sg.TextClassifier.explain)),
    "save": (lambda **options: fitted().save(**options), {"folder": "new"}, ["folder"]),
    "load": (sg.load, {"model": "MODEL"}, arguments(sg.load)),
    "explain any model": (
        sg.explain,
        {"model": predict, "texts": TEXTS[0], "explainer": "leave-one-out", "classes": CLASSES},
        arguments(sg.explain),
    ),
    "load_corpus": (sg.load_corpus, {"data": "DATA"}, arguments(sg.load_corpus)),
    "load_images": (sg.load_images, {"folder": "IMAGES"}, ["folder"]),
    "certify": (sg.certify, {"model": fitted, "texts": TEXTS[:2]}, arguments(sg.certify, "on_progress")),
    "audit": (
        sg.audit,
        {"model": predict, "texts": TEXTS[:4], "labels": LABELS[:4], "classes": CLASSES, "sample": 1},
        arguments(sg.audit),
    ),
    "fit_explainer": (
        sg.fit_explainer,
        {"black_box": predict, "inputs": TEXTS, "k": 1, "classes": CLASSES, "settings": QUICK},
        arguments(sg.fit_explainer, "on_progress"),
    ),
    "load_explainer": (
        sg.load_explainer,
        {"path": "EXPLAINER", "black_box": predict, "classes": CLASSES},
        arguments(sg.load_explainer),
    ),
    "Explanation": (
        sg.Explanation,
        {"text": "a", "tokens": ("a",), "spans": ((0, 1),), "weights": (1.0,), "label": "x", "probabilities": {}},
        ["text", "tokens", "spans", "weights", "probabilities", "bounds"],
    ),
    "Explanation.top": (lambda **options: explained().top(**options), {}, ["k"]),
    "Explanation.to_html": (lambda **options: explained().to_html(**options), {}, ["path"]),
    "Report.find": (lambda **options: report().find(**options), {"measure": "accuracy"}, ["measure", "explainer"]),
    "Report.failing": (lambda **options: report().failing(**options), {"policy": ["accuracy>=0.5"]}, ["policy"]),
    "Report.to_html": (lambda **options: report().to_html(**options), {}, ["path"]),
    "Report.to_json": (lambda **options: report().to_json(**options), {}, ["path"]),
    "Certificates.to_json": (lambda **options: certificates().to_json(**options), {"path": "new.json"}, ["path"]),
    "TextExplainer.explain": (lambda **options: explainer().explain(**options), {"texts": TEXTS}, ["texts"]),
    "TextExplainer.measure": (lambda **options: explainer().measure(**options), {"texts": TEXTS}, ["texts", "removal"]),
    "TextExplainer.save": (lambda **options: explainer().save(**options), {"path": "new"}, ["path"]),
    "ImageClassifier.fit": (
        lambda **options: sg.ImageClassifier(epochs=1, device="cpu").fit(**options),
        {"X": IMAGES, "y": LABELS},
        ["X", "y"],
    ),
    "ImageClassifier.predict": (lambda **options: fitted_images().predict(**options), {"X": IMAGES}, ["X"]),
    "ImageClassifier.score": (
        lambda **options: fitted_images().score(**options),
        {"X": IMAGES, "y": LABELS},
        ["X", "y", "sample_weight"],
    ),
    "ImageClassifier.explain": (
        lambda **options: fitted_images().explain(**options),
        {"X": IMAGES[:1], "k": 2},
        arguments(sg.ImageClassifier.explain),
    ),
    "ImageClassifier.save": (lambda **options: fitted_images().save(**options), {"folder": "new"}, ["folder"]),
    "ImageClassifier.load": (sg.ImageClassifier.load, {"folder": "IMAGE MODEL"}, ["folder", "device"]),
    "ImageExplanation.top": (lambda **options: explained_image().top(**options), {}, ["k"]),
    "ImageExplanation.to_png": (lambda **options: explained_image().to_png(**options), {}, ["path"]),
    **{
        f"TextClassifier({name})": (
            lambda **options: classifier(**options).fit(TEXTS, LABELS),
            {},
            [name],
        )
        for name in ("technique", "seed", "vectors", "batch_size", "max_length", "class_weight", "random_state")
    },
    **{
        f"ImageClassifier({name})": (
            lambda **options: sg.ImageClassifier(**{"epochs": 1, "device": "cpu", **options}).fit(IMAGES, LABELS),
            {},
            [name],
        )
        for name in arguments(sg.ImageClassifier)
    },
}
CASES = [(call, name) for call, (_, _, names) in CALLS.items() for name in names]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("small")
    made = small(folder)
    explainer().save(folder / "explainer")
    fitted_images().save(folder / "images")
    (folder / "idx").mkdir()
    for split in ("train", "t10k"):
        for name, values in (("images-idx3", IMAGES), ("labels-idx1", np.zeros(len(IMAGES), np.uint8))):
            header = bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape)
            (folder / "idx" / f"{split}-{name}-ubyte").write_bytes(header + values.tobytes())
    return {
        "MODEL": made.model,
        "DATA": made.data,
        "EXPLAINER": folder / "explainer",
        "IMAGE MODEL": folder / "images",
        "IMAGES": folder / "idx",
    }


@pytest.fixture
def valid_arguments(
    call: str, files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    arguments = {
        key: files.get(value, value) if isinstance(value, str) else value for key, value in CALLS[call][1].items()
    }
    return {key: value() if value is fitted else value for key, value in arguments.items()}


@pytest.mark.usefixtures("short_probe_in_module", "short_probe_training")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
def test_the_call_with_valid_arguments_succeeds(call: str, valid_arguments: dict[str, Any]) -> None:
    CALLS[call][0](**valid_arguments)


@pytest.mark.sweep(keep=30)
@pytest.mark.usefixtures("short_probe_in_module", "short_probe_training")
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("call", "name"), CASES, ids=[f"{call}-{name}" for call, name in CASES])
def test_a_wrong_type_is_a_user_error(call: str, name: str, valid_arguments: dict[str, Any]) -> None:
    failures = []
    for kind, make in WRONG.items():
        with time_limit(60):
            try:
                CALLS[call][0](**{**valid_arguments, name: make()})
            except (UserError, NotFittedError):
                pass
            except Exception as error:
                failures.append(f"{kind}: {type(error).__name__}: {error!s:.150}")
    assert not failures, "\n".join([f"{call}({name}=…)", *failures])
