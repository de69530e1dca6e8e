"""The commands and the Python calls of the capability matrix, on a model and its texts."""

import asyncio
import csv
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import httpx

import steadygaze as sg
from robustness.matrix_models import FIT, LABELS, PAIRS, QUESTIONS, TEXTS, Made, Models
from steadygaze.core.types import Example

INPUTS = ("single", "pair", "sentences", "empty", "one")
TABLE = '{"word": "good", "synonyms": ["fine"]}\n{"word": "bad", "synonyms": ["dull"]}\n'
COLUMNS = {"pair": ("--text", "text", "--text", "question")}
FEW = 10
"""Texts of an audit, half of each class."""


class Cell(NamedTuple):
    """One call: the kind and the state of its model, and what its texts are like."""

    call: str
    model: str
    inputs: str
    state: str


@dataclass(frozen=True)
class Place:
    """Where a cell reads and writes."""

    models: Models
    data: Path
    out: Path
    cell: Cell

    @property
    def model(self) -> Made:
        return self.models.make(self.cell.model, self.cell.state, self.cell.inputs == "pair")

    @cached_property
    def explainer(self) -> Any:
        """The fitted explainer, if the cell has one; it knows its black box."""
        made = self.model
        if made.explainer is None:
            return None
        return sg.load_explainer(made.explainer, made.live, classes=made.options["classes"], device="cpu")

    @property
    def file(self) -> str:
        return str(self.data / f"{self.cell.inputs}.{'jsonl' if self.cell.inputs == 'sentences' else 'csv'}")

    @property
    def columns(self) -> tuple[str, ...]:
        return COLUMNS.get(self.cell.inputs, ())

    @property
    def sentences(self) -> tuple[str, ...]:
        return ("--sentences", "sentences") if self.cell.inputs == "sentences" else ()

    @property
    def training(self) -> tuple[str, ...]:
        """The options of a training that stand for the kind of model."""
        kind = self.cell.model
        transformers = {"subword": self.models.encoder(self.cell.state)} if kind == "subword" else {}
        if kind in ("huggingface", "encoder-decoder", "prompted"):
            transformers[kind] = Path(self.model.words[0])
        if kind in transformers:
            return ("--encoder", f"transformer:{transformers[kind]}")
        encoder = ("--encoder", "bigru" if kind == "rationalizer" else "average")
        return (*encoder, "--set", "hidden=4", "--set", "dimension=6")

    @property
    def techniques(self) -> tuple[str, str]:
        return ("rnp", "a2r") if self.cell.model == "rationalizer" else ("vanilla", "word-at")


def inputs_of(inputs: str, *, few: bool = False) -> tuple[list[Any], list[str]]:
    """Texts and labels for the Python calls."""
    rows = list(zip(TEXTS, LABELS, strict=True))
    if few:
        rows = rows[: FEW // 2] + rows[-FEW // 2 :]
    if inputs == "one":
        rows = rows[:1]
    texts, labels = [text for text, _ in rows], [label for _, label in rows]
    questions = dict(zip(TEXTS, QUESTIONS, strict=True))
    if inputs == "pair":
        return [(text, questions[text]) for text in texts], labels
    if inputs == "sentences":
        return [Example(text, label, sentences=_sentences(text)) for text, label in rows], labels
    if inputs == "empty":
        texts[1] = ""
    return texts, labels


def _sentences(text: str) -> tuple[tuple[int, int], ...]:
    middle = text.index(" . ") + 2
    return (0, middle), (middle + 1, len(text))


def write_inputs(folder: Path) -> None:
    """The same as files, with all texts and with few."""
    for name in INPUTS:
        for few in (False, True):
            texts, labels = inputs_of(name, few=few)
            stem = f"{name}-few" if few else name
            if name == "sentences":
                spans = [[list(span) for span in text.sentences] for text in texts]
                rows = [
                    {"text": text.text, "label": label, "sentences": units}
                    for text, label, units in zip(texts, labels, spans, strict=True)
                ]
                (folder / f"{stem}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
                continue
            cells = [text if isinstance(text, tuple) else (text, "") for text in texts]
            with (folder / f"{stem}.csv").open("w", newline="") as file:
                lines = [(text, question, label) for (text, question), label in zip(cells, labels, strict=True)]
                csv.writer(file).writerows([("text", "question", "label"), *lines])
    (folder / "table.jsonl").write_text(TABLE)


def _few(place: Place) -> str:
    return place.file.replace(place.cell.inputs, f"{place.cell.inputs}-few")


def _fitted(place: Place) -> tuple[str, ...]:
    return () if place.model.explainer is None else ("--explainer", str(place.model.explainer))


def _training(command: str, *more: str) -> Callable[[Place], list[str]]:
    def words(place: Place) -> list[str]:
        first = place.techniques[0]
        techniques = ("--techniques", ",".join(place.techniques)) if command == "compare" else ("--technique", first)
        foreign = place.cell.model in ("scikit-learn", "function", "fitted-explainer")
        start = ["--from", place.model.words[0]] if foreign and command == "train" else []
        return [
            command, place.file, *techniques, *place.training, *place.columns, "--epochs", "1",
            *(place.sentences if command == "train" else ()), *start, *more, "--out", str(place.out / "new"),
        ]  # fmt: skip

    return words


COMMANDS: dict[str, Callable[[Place], list[str]]] = {
    "train": _training("train"),
    "predict": lambda p: ["predict", *p.model.words, "--file", p.file, *p.columns, *p.sentences],
    "explain": lambda p: ["explain", *p.model.words, "--file", p.file, *p.columns, *p.sentences, *_fitted(p)],
    "word-weights": lambda p: [
        "word-weights", *p.model.words, "--data", p.file, *p.columns, "--min-texts", "1", *_fitted(p),
    ],
    "evaluate": lambda p: ["evaluate", *p.model.words, "--data", p.file, *p.columns, *p.sentences],
    "fit-explainer": lambda p: [
        "fit-explainer", *p.model.words, "--data", p.file, *p.columns, *p.sentences, "--k", "2", "--out",
        str(p.out / "new"), *(word for key, value in FIT.items() for word in ("--set", f"{key}={value}")),
    ],
    "audit": lambda p: ["audit", *p.model.words, "--data", _few(p), *p.columns, *p.sentences, *_fitted(p)],
    "certify": lambda p: [
        "certify", *p.model.words, "--data", p.file, *p.columns, "--substitutions", str(p.data / "table.jsonl"),
        "--samples", "20",
    ],
    "certify --soft-stability": lambda p: [
        "certify", *p.model.words, "--data", p.file, *p.columns, "--soft-stability", "0.2,2", "--samples", "20",
        *_fitted(p),
    ],
    "compare": _training("compare", "--seeds", "1", "--limit", "4", "--workers", "1"),
    "tune": _training("tune", "--trials", "1", "--workers", "1", "--set", "learning_rate=0.01,0.02"),
    "reproduce": lambda p: ["reproduce", "list", "--out", str(p.out / "new")],
    "serve": lambda p: ["serve", *p.model.words, "--data", p.file, *p.columns, *p.sentences, "--port", "0"],
    "list": lambda p: ["list", "explainers"],
    "demo": lambda p: ["demo", "--device", "gpu", "--out", str(p.out / "new")],
    "synonyms": lambda p: ["synonyms", "check", str(p.data / "table.jsonl"), "--data", p.file, *p.columns],
}  # fmt: skip
"""Registered command -> its words; `serve` answers requests instead of waiting for them."""


def _call(function: Callable[..., Any], *, few: bool = False, **more: Any) -> Callable[[Place], Any]:
    def run(place: Place) -> Any:
        texts, _ = inputs_of(place.cell.inputs, few=few)
        return function(_live(place), texts, **more)

    return run


def _live(place: Place) -> Any:
    made = place.model
    if place.explainer is not None:
        return place.explainer.black_box
    return sg.load(made.live, device="cpu", **made.options)


def _labeled(function: Callable[..., Any], *, few: bool = False) -> Callable[[Place], Any]:
    return lambda place: function(_live(place), *inputs_of(place.cell.inputs, few=few))


def _explainers(place: Place) -> list[Any]:
    return [] if place.explainer is None else [place.explainer]


def _fit(place: Place) -> Any:
    kind, encoders = place.cell.model, place.training[1]
    settings = {} if encoders.startswith("transformer:") else {"hidden": 4, "dimension": 6}
    technique = {"rationalizer": "rnp"}.get(kind, "vanilla")
    return sg.TextClassifier(encoders, technique, epochs=1, settings=settings, device="cpu").fit(
        *inputs_of(place.cell.inputs)
    )


def _study(function: Callable[..., Any], **more: Any) -> Callable[[Place], Any]:
    def run(place: Place) -> Any:
        encoder = place.training[1]
        settings = {} if encoder.startswith("transformer:") else {"hidden": 4, "dimension": 6}
        first, second = place.techniques
        technique = {"techniques": [first, second]} if function is sg.compare else {"technique": first}
        return function(
            *inputs_of(place.cell.inputs),
            **technique,
            encoder=encoder,
            epochs=1,
            settings=settings,
            device="cpu",
            **more,
        )

    return run


CALLS: dict[str, Callable[[Place], Any]] = {
    "sg.TextClassifier": _fit,
    "sg.load": _live,
    "sg.explain": lambda p: sg.explain(_live(p), inputs_of(p.cell.inputs)[0], *_explainers(p)),
    "sg.word_weights": lambda p: sg.word_weights(
        _live(p), inputs_of(p.cell.inputs)[0], _explainers(p) or [None], min_texts=1
    ),
    "sg.predict_sentences": _call(sg.predict_sentences),
    "sg.evaluate": _labeled(sg.evaluate),
    "sg.fit_explainer": _call(sg.fit_explainer, k=2, settings=FIT, device="cpu"),
    "sg.load_explainer": lambda p: sg.load_explainer(
        p.model.explainer or p.model.words[0], p.model.live, classes=p.model.options.get("classes")
    ).explain(inputs_of(p.cell.inputs)[0]),
    "sg.audit": lambda p: sg.audit(_live(p), *inputs_of(p.cell.inputs, few=True), explainers=_explainers(p)),
    "sg.certify": _call(sg.certify, few=True, substitutions={"good": ["fine"], "bad": ["dull"]}, samples=20),
    "sg.certify (soft stability)": _call(sg.certify, few=True, soft_stability=(0.2, 2), samples=20),
    "sg.compare": _study(sg.compare, seeds=1, limit=4, workers=1),
    "sg.tune": _study(sg.tune, trials=1, workers=1, search={"learning_rate": [0.01, 0.02]}),
    "sg.load_corpus": lambda p: sg.load_corpus(p.file, text=p.columns[1::2] or ("text",)),
    "model.predict": lambda p: _live(p).predict(inputs_of(p.cell.inputs)[0]),
    "model.predict_proba": lambda p: _live(p).predict_proba(inputs_of(p.cell.inputs)[0]),
    "model.score": lambda p: _live(p).score(*inputs_of(p.cell.inputs)),
    "model.explain": lambda p: _live(p).explain(inputs_of(p.cell.inputs)[0], *_explainers(p)),
}
"""Python call -> its run; `model.` is a method of what `load` returns."""
NO_MODEL = ("reproduce", "list", "demo", "synonyms", "sg.load_corpus")
"""Calls that read no model."""
NO_TEXTS = ("reproduce", "list", "demo", "sg.load")
"""Calls that read no texts."""
PAIRWISE = ("fit-explainer", "compare", "tune", "sg.fit_explainer", "sg.audit", "sg.compare", "sg.tune")
"""Calls that take long: their cells hold every pair of values."""
RESULTS = {"Explanation", "ImageExplanation", "Report", "SynonymGroups", "UserError", "__version__"}
"""Public names that are no calls of a model."""
IMAGES = {"ImageClassifier", "explain_images", "load_images"}
"""Public names that read images."""


@contextmanager
def answered(patch: Any, requests: list[tuple[int, Any]]) -> Iterator[None]:
    """Answer requests where `serve` would wait for them; the answers are appended."""
    bodies = [("predict", {"texts": [TEXTS[0]]}), ("predict", {"texts": [""]}), ("explain", {"text": TEXTS[0]})]
    bodies += [("predict", {"texts": [{"text": PAIRS[0][0], "question": PAIRS[0][1]}]})]

    async def ask(app: Any, address: str) -> None:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url=f"http://{address}") as client:
            name = (await client.get("/v1/models")).json()["models"][0]["name"]
            for path, body in bodies:
                answer = await client.post(f"/v1/{path}", json={"model": name, **body})
                requests.append((answer.status_code, answer.text))
        await asyncio.to_thread(app.app.app.state.jobs.close)

    class Server:
        def __init__(self, app: Any) -> None:
            self.app = app

        def run(self, sockets: list[Any]) -> None:
            asyncio.run(ask(self.app, f"127.0.0.1:{sockets[0].getsockname()[1]}"))

    patch.setattr("steadygaze.cli.serve_command.uvicorn_server", Server)
    yield
