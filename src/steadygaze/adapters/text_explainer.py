"""TextExplainer: a fitted explainer with its black box."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, get_args

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.core.arguments import validated
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.types import Removal
from steadygaze.core.untrusted_files import digest_values
from steadygaze.estimator import explainer_folder
from steadygaze.estimator.explain_texts import ResolvedRequest, explain_inputs, explain_texts
from steadygaze.estimator.explainer_folder import SavedExplainer
from steadygaze.estimator.inputs import read_texts
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.explainer import ReaderFacts
from steadygaze.explainers.learned import METHODS
from steadygaze.explainers.learned.cxplain import FittedCXPlain
from steadygaze.explainers.learned.fit_config import method_name
from steadygaze.explainers.learned.fitted_explainer import (
    FittedExplainer,
    FittedSelector,
    measure_selection,
    untrained_networks,
)
from steadygaze.explainers.learned.text_inputs import Vocabulary
from steadygaze.results.explanation import Explanation, Explanations
from steadygaze.results.leakage_warnings import READER, arbitrary_classes, by_measure
from steadygaze.results.row import Row


@dataclass(frozen=True)
class TextExplainer(SavedExplainer):
    """A fitted explainer of texts, as returned by `fit_explainer`.

    fitted = sg.fit_explainer(model, texts, explainer="l2x", k=10)
    fitted.explain("A gorgeous, witty, seductive movie.")
    fitted.save("l2x/"); fitted = sg.load_explainer("l2x/", model)
    """

    black_box: ModelAdapter
    learned: FittedExplainer

    @property
    def words(self) -> tuple[str, ...]:
        return self.learned.vocabulary.words

    @property
    def explainer(self) -> FittedSelector | FittedCXPlain:
        """The explainer, for batches of the black box's ids."""
        self.learned.networks.to(self.black_box.model.device)  # the model may have moved
        return self._explainer

    @cached_property
    def _explainer(self) -> FittedSelector | FittedCXPlain:
        return self._for_tokens(self.black_box)

    def for_adapter(self, subject: ModelAdapter) -> FittedSelector | FittedCXPlain:
        """The explainer for another adapter of the same black box."""
        self.check_model(subject)
        return self._for_tokens(subject)

    def _for_tokens(self, subject: ModelAdapter) -> FittedSelector | FittedCXPlain:
        arbitrary = {item.label: (item.arbitrary, item.n) for item in arbitrary_classes(self.rows)}
        reader = by_measure(self.rows).get(READER)
        facts = ReaderFacts(None if reader is None else reader.value, arbitrary)
        return self.learned.explainer(subject.tokens, subject.model.device, facts)

    @validated()
    def explain(self, texts: Any) -> Explanation | list[Explanation | None]:
        """Explain a text, or each text of a list.  An empty text of a list has None, and a warning names it."""

        def explain(nonempty: list[Any]) -> Explanations:
            inputs, questions = read_texts(nonempty)
            subject = self.black_box.for_pairs(questions is not None)
            request = ResolvedRequest(self.explainer, self.name)
            model = subject.model, subject.tokens, subject.classes
            return explain_texts(*model, inputs, questions, request, health=self.health)

        explanations: Explanation | list[Explanation | None]
        explanations = explain_inputs(texts, self.black_box.tokens, explain)
        return explanations

    def measure(self, texts: Any, removal: Removal = "delete") -> list[Row]:
        """Measures of the selections of these texts."""
        check_removal(self.black_box, removal)
        inputs, questions = read_texts(texts)
        subject = self.black_box.for_pairs(questions is not None)
        data = subject.data(subject.tokens.place(inputs), questions)
        measures = measure_selection(subject.model, self.explainer, data, removal)
        return self.to_rows(measures, digest_values(inputs, questions), removal=removal)

    def description(self) -> dict[str, Any]:
        kind = self.learned.vocabulary.kind
        return {"inputs": "texts", "pair": bool(self.black_box.pair), "kind_of_tokens": kind}


def check_removal(subject: ModelAdapter, removal: Any) -> None:
    """Raise an error if words cannot be removed this way."""
    if not isinstance(removal, str) or removal not in get_args(Removal):
        raise unknown("removal", removal, get_args(Removal))
    if removal != "delete" and "embeddings" not in subject.model.capabilities:
        raise UserError(f"{subject.name} reads text, which has no padding: removal must be 'delete'")


def load_explainer(
    path: str | Path, black_box: Any, *, classes: Sequence[Any] | None = None, device: str = "auto"
) -> TextExplainer:
    """A fitted explainer of texts from its folder, with the black box it was fitted to."""
    files = explainer_folder.load(Path(path), "texts")
    config = files.method()
    adapter = as_adapter(black_box, classes=classes, device=device).for_pairs(bool(files.config.get("pair")))
    files.check_model(adapter)
    if (kind := files.config.get("kind_of_tokens")) != adapter.tokens.kind:
        own = adapter.tokens.kind
        raise UserError(f"{path} was fitted to a black box that reads {kind!s:.40}; this one reads {own}")
    nets = files.networks(partial(untrained_networks, config, len(files.words), len(adapter.classes)))
    vocabulary = Vocabulary(files.words, adapter.tokens.kind)
    learned = FittedExplainer(config, vocabulary, nets, files.value("history", list))
    return TextExplainer(method_name(config), adapter, learned, *files.measured())


def explainer_of(name: str | None, adapter: ModelAdapter, target: Any = None) -> "str | TextExplainer | None":
    """The name of an explainer, or the one of a folder.  A name takes precedence over a folder (./lime).

    `target`: the output of a multi-label model that it was fitted to.
    """
    if name is None:
        return None
    if name not in EXPLAINERS and Path(name).exists():
        return load_explainer(name, adapter.for_output(target) if adapter.task == "multi-label" else adapter)
    if name in METHODS:
        raise UserError(
            f"{name} must be fitted to the model first: "
            f"fit-explainer MODEL --data DATA --explainer {name} --out DIR, then --explainer DIR"
        )
    return name
