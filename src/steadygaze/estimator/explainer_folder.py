"""A fitted explainer as a folder: written atomically, read without executing code.

config.json          explainer, kind of inputs, settings, classes, black box and measures
vocabulary.json      the vocabulary; explainers of images have none
model.safetensors    the networks
"""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

from torch import Tensor, nn

from steadygaze.core import __version__, arguments
from steadygaze.core.arguments import validated
from steadygaze.core.atomic_files import recover_folder, unknown_entries
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.output_paths import check_new_folder
from steadygaze.core.settings import build
from steadygaze.core.tensor_files import layout, layout_difference, read_tensors, without_memory, write_network_folder
from steadygaze.core.types import Label
from steadygaze.core.untrusted_files import LARGEST_TEXT, foreign_error, read_json, read_object, read_object_or_empty
from steadygaze.explainers.explainer import PREDICTED
from steadygaze.explainers.learned import METHODS
from steadygaze.explainers.learned.fit_config import Method, row_settings
from steadygaze.results.health import HEALTHY, Health
from steadygaze.results.leakage_warnings import explainer_health, leakage_warnings, selection_rows
from steadygaze.results.row import Row

P = TypeVar("P")
SCHEMA = 1
"""Increased when older versions of the package cannot read a folder."""
CONFIG, WORDS, NETS = "config.json", "vocabulary.json", "model.safetensors"
KIND = "steadygaze explainer"
INPUT_KINDS = ("texts", "images")


class ExplainedModel(Protocol):
    """A black box."""

    @property
    def name(self) -> str: ...
    @property
    def classes(self) -> Sequence[Label]: ...
    @property
    def fingerprint(self) -> str:
        """SHA-256 of the weights; '' if they are not known."""


@dataclass(frozen=True)
class SavedExplainer(ABC):
    """A fitted explainer with its black box."""

    name: str
    """Method: l2x, vibi, ail or cxplain."""
    black_box: Any
    """An `ExplainedModel`."""
    learned: Any
    """Settings (`config`), networks and history of the fit."""
    rows: tuple[Row, ...] = ()
    """Measures on held-out inputs."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Seed and digest of the inputs of the fit."""

    @abstractmethod
    def explain(self, inputs: Any, /) -> Any:
        """Explain the predictions of the black box.

        Parameters
        ----------
        inputs : list of str or array of images
            Texts or images.

        Returns
        -------
        list of Explanation or of ImageExplanation
            One per input.
        """

    @abstractmethod
    def measure(self, inputs: Any, /) -> list[Row]:
        """Measure the selections of inputs.

        Parameters
        ----------
        inputs : list of str or array of images
            Texts or images.

        Returns
        -------
        list of Row
            Post-hoc accuracy, fidelity, accuracy of the independent reader, and others.
        """

    @abstractmethod
    def description(self) -> dict[str, Any]:
        """The part of config.json that depends on the kind of inputs.

        Returns
        -------
        dict
            Values for JSON.
        """

    @property
    def words(self) -> tuple[str, ...]:
        """The vocabulary of an explainer of texts."""
        return ()

    @property
    def health(self) -> Health:
        """Known-bad states of the black box and of the explainer."""
        return getattr(self.black_box, "health", HEALTHY) + explainer_health(self.rows, self.name)

    @property
    def warnings(self) -> list[str]:
        """Warnings about label leakage through the selections."""
        return [warning.sentence for warning in leakage_warnings(self.rows)]

    def check_model(self, model: ExplainedModel) -> None:
        """Refuse a black box that this explainer was not fitted to.

        Parameters
        ----------
        model : ModelAdapter or ImageClassifier
            The model.  A UserError names the difference.
        """
        if model.fingerprint != self.black_box.fingerprint or len(model.classes) != len(self.black_box.classes):
            raise UserError(
                f"{self.name} was fitted to another model than {model.name}, or to other weights of it: "
                "it cannot explain this one; call fit_explainer for this model"
            )

    def to_rows(self, measures: dict[str, Tensor], data: str, **settings: str | int) -> list[Row]:
        """Make rows of measured numbers.

        Parameters
        ----------
        measures : dict of str to tensor
            Measure -> one number per input.
        data : str
            Digest of the inputs.
        **settings
            Further settings of the rows.

        Returns
        -------
        list of Row
            Means with intervals.
        """
        fit = {**row_settings(self.learned.config, self.facts), "black-box": self.black_box.name}
        values = {name: numbers.tolist() for name, numbers in measures.items()}
        return selection_rows(
            values,
            values.pop(PREDICTED),
            self.black_box.classes,
            {**fit, **settings, "data": data[:12], "steadygaze": __version__},
        )

    @validated(path=arguments.path)
    def save(self, path: str | Path) -> None:
        """Write the explainer to a folder, without the black box.

        Parameters
        ----------
        path : str or Path
            The folder.  An existing explainer is replaced; any other existing path is refused.
        """
        folder = Path(path)
        check_explainer_folder(folder)
        config = {
            "kind": KIND,
            "schema": SCHEMA,
            "steadygaze_explainer": __version__,
            "health": self.health.to_list(),
            "explainer": self.name,
            "settings": asdict(self.learned.config),
            "classes": list(self.black_box.classes),
            "black_box": {"name": self.black_box.name, "fingerprint": self.black_box.fingerprint},
            "rows": [row.to_dict() for row in self.rows],
            "history": self.learned.history,
            "facts": self.facts,
            **self.description(),
        }
        # ASCII: a word may contain surrogates, which UTF-8 cannot encode
        words = {WORDS: json.dumps(self.words, ensure_ascii=True) + "\n"} if self.words else {}
        write_network_folder(folder, config, {NETS: self.learned.networks.state_dict()}, words)


@dataclass(frozen=True)
class ExplainerFiles:
    """The content of a folder."""

    folder: Path
    config: Mapping[str, Any]
    words: tuple[str, ...] = ()
    weights: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def sort(self) -> str:
        """Kind of inputs: texts or images."""
        return str(self.config.get("inputs", "texts"))

    def damaged(self, reason: object) -> UserError:
        return UserError(f"{self.folder / CONFIG} is damaged: {reason}")

    def value(self, key: str, kind: type[P]) -> P:
        """The value of a key in config.json."""
        value = self.config.get(key)
        if not isinstance(value, kind):
            raise self.damaged(f"it has no {key}")
        return value

    def method(self) -> Method:
        """Settings of the fit."""
        name, values = self.config.get("explainer"), self.value("settings", dict)
        if not isinstance(name, str) or name not in METHODS:
            raise unknown("explainer", name, METHODS)
        try:
            return build(METHODS[name], values)
        except UserError as error:
            raise self.damaged(error) from None

    def networks(self, make: Callable[[], nn.ModuleDict]) -> nn.ModuleDict:
        """Networks with the saved weights, in evaluation mode."""
        # no memory: a damaged file may claim any size
        with without_memory(), foreign_error(f"{self.folder / CONFIG} is damaged"):
            nets = make()
        if (difference := layout_difference(layout(self.weights), layout(nets.state_dict()))) is not None:
            raise UserError(f"{self.folder / NETS} does not match the networks that {CONFIG} describes: {difference}")
        nets.load_state_dict(dict(self.weights), assign=True)
        return nets.eval().requires_grad_(False)

    def check_model(self, model: ExplainedModel) -> None:
        """Raise an error for another black box than the one of the fit."""
        black_box, classes = self.value("black_box", dict), list(model.classes)
        if self.config.get("classes") != classes:
            raise UserError(
                f"{self.folder} was fitted to a black box with the classes "
                f"{json.dumps(self.config.get('classes')):.80}, this one has {json.dumps(classes):.80}; "
                "run fit-explainer for this model"
            )
        if black_box.get("fingerprint") != model.fingerprint:
            raise UserError(
                f"{self.folder} was fitted to another model, {black_box.get('name')!r:.80}, or to other weights of it: "
                "it cannot explain this one; run fit-explainer for this model"
            )

    def measured(self) -> tuple[tuple[Row, ...], dict[str, Any]]:
        """Rows and facts of the fit; raise an error if fields of the folder contradict each other."""
        rows, facts = tuple(map(Row.from_dict, self.value("rows", list))), self.value("facts", dict)
        texts, contradiction = self.sort == "texts", f"{self.folder / CONFIG} contradicts itself"
        if any((name in self.config) == texts for name in ("canvas", "shape")) or (
            (self.folder / WORDS).exists() != texts
        ):
            raise UserError(f"{contradiction}: inputs is {self.sort!r}, but other fields are not")
        expected = {"explainer": self.config.get("explainer"), "k": self.value("settings", dict).get("k"), **facts}
        for row in rows:
            for name in ("explainer", "k", "seed", "fitted-to"):
                if name in row.settings and name in expected and row.settings[name] != expected[name]:
                    conflict = f"{name} is {expected[name]!r:.40}, and {row.settings[name]!r:.40} in rows"
                    raise UserError(f"{contradiction}: {conflict}")
        return rows, facts


def load(folder: Path, sort: Literal["texts", "images"] | None = None) -> ExplainerFiles:
    """`sort`: required kind of inputs; None: any."""
    recover_folder(folder)
    if not (folder / CONFIG).is_file():
        raise UserError(f"{folder} is not a fitted explainer: it has no {CONFIG}; create one with fit-explainer")
    config = read_object(folder / CONFIG)
    if config.get("kind") != KIND:
        raise UserError(f"{folder} is not a fitted explainer; create one with fit-explainer")
    if not isinstance(schema := config.get("schema"), int) or schema > SCHEMA:
        raise UserError(f"{folder} has schema {schema!r:.40}; this package reads up to {SCHEMA}: upgrade to read it")
    inputs = ExplainerFiles(folder, config).sort
    if inputs not in INPUT_KINDS or sort not in (None, inputs):
        raise UserError(
            f"{folder} explains {inputs!s:.40}; use an explainer of {' or '.join([sort] if sort else INPUT_KINDS)}"
        )
    words = read_json(folder / WORDS, LARGEST_TEXT) if inputs == "texts" else []
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise UserError(f"{folder / WORDS} is damaged: it must contain a list of words")
    if len(set(words)) < len(words):
        twice, count = Counter(words).most_common(1)[0]
        raise UserError(f"{folder / WORDS} is damaged: it contains the word {twice!r:.40} {count:,} times")
    return ExplainerFiles(folder, config, tuple(words), read_tensors(folder / NETS))


def is_fitted(folder: Path) -> bool:
    """True if the folder is a fitted explainer."""
    return read_object_or_empty(folder / CONFIG).get("kind") == KIND


def check_explainer_folder(folder: Path) -> None:
    """An output folder may be new, empty, or a fitted explainer."""
    check_new_folder(folder)
    recover_folder(folder)
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not folder.is_dir() or not is_fitted(folder):
        raise UserError(f"{folder} exists and is not a fitted explainer; choose another folder")
    if extra := unknown_entries(folder, (CONFIG, WORDS, NETS)):
        raise UserError(
            f"{folder} contains {extra[0]!r} besides an explainer, which would be lost; choose another folder"
        )
