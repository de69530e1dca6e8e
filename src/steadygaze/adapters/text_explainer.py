"""TextExplainer: a fitted explainer with its black box."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, get_args

from torch import Tensor

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.core import __version__, arguments
from steadygaze.core.arguments import validated
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.types import Removal
from steadygaze.core.untrusted_files import digest_values
from steadygaze.estimator import explainer_folder
from steadygaze.estimator.explain_texts import ExplainRequest, explain_texts
from steadygaze.estimator.inputs import is_single_text, read_texts
from steadygaze.explainers.explainer import PREDICTED
from steadygaze.explainers.learned.cxplain import FittedCXPlain
from steadygaze.explainers.learned.fit_config import method_name, row_settings
from steadygaze.explainers.learned.fitted_explainer import (
    FittedExplainer,
    FittedSelector,
    measure_selection,
    untrained_networks,
)
from steadygaze.explainers.learned.text_inputs import Vocabulary
from steadygaze.results.explanation import Explanation
from steadygaze.results.leakage_warnings import READER, by_measure, leakage_warnings, selection_rows
from steadygaze.results.row import Row


@dataclass(frozen=True)
class TextExplainer:
    """A fitted explainer of texts, as returned by `fit_explainer`.

    fitted = sg.fit_explainer(model, texts, explainer="l2x", k=10)
    fitted.explain("A gorgeous, witty, seductive movie.")
    fitted.save("l2x/"); fitted = sg.load_explainer("l2x/", model)
    """

    name: str
    """Method: l2x, vibi, ail or cxplain."""
    adapter: ModelAdapter
    learned: FittedExplainer
    rows: tuple[Row, ...] = ()
    """Measures on held-out texts."""
    facts: dict[str, Any] = field(default_factory=dict)
    """Seed and digest of the texts of the fit."""

    @property
    def warnings(self) -> list[str]:
        """Warnings about label leakage through the selections."""
        return leakage_warnings(self.rows)

    @property
    def reader_accuracy(self) -> float | None:
        """Accuracy of the independent reader on held-out texts; None: not known."""
        row = by_measure(self.rows).get(READER)
        return None if row is None else row.value

    @property
    def explainer(self) -> FittedSelector | FittedCXPlain:
        """The explainer, for batches of the black box's ids."""
        self.learned.networks.to(self.adapter.model.device)  # the model may have moved
        return self._explainer

    @cached_property
    def _explainer(self) -> FittedSelector | FittedCXPlain:
        return self.learned.explainer(self.adapter.tokens, self.adapter.model.device, self.reader_accuracy)

    def for_adapter(self, subject: ModelAdapter) -> FittedSelector | FittedCXPlain:
        """The explainer for another adapter of the same black box."""
        self.check_subject(subject)
        return self.learned.explainer(subject.tokens, subject.model.device, self.reader_accuracy)

    def check_subject(self, subject: ModelAdapter) -> None:
        """Refuse a black box that this explainer was not fitted to."""
        own = self.adapter
        if subject.fingerprint != own.fingerprint or len(subject.classes) != len(own.classes):
            raise UserError(
                f"{self.name} was fitted to another model than {subject.name}, or to other weights of it: "
                "it cannot explain this one; call fit_explainer for this model"
            )

    def explain(self, texts: Any) -> Explanation | list[Explanation]:
        """Explain a text, or each text of a list."""
        single = is_single_text(texts)
        inputs, questions = read_texts([texts] if single else texts)
        subject = self.adapter.for_pairs(questions is not None)
        request = ExplainRequest(self.explainer, self.name)
        explanations = explain_texts(subject.model, subject.tokens, subject.classes, inputs, questions, request)
        return explanations[0] if single else explanations

    def measure(self, texts: Any, removal: Removal = "delete") -> list[Row]:
        """Measures of the selections of these texts."""
        check_removal(self.adapter, removal)
        inputs, questions = read_texts(texts)
        subject = self.adapter.for_pairs(questions is not None)
        measures = measure_selection(
            subject.model, self.explainer, subject.data(subject.tokens.place(inputs), questions), removal
        )
        return self.to_rows(measures, removal, digest_values(inputs, questions))

    def to_rows(self, found: dict[str, Tensor], removal: Removal, data: str) -> list[Row]:
        """Rows from one number per text, by measure; `data`: a digest of the texts."""
        own = {"black-box": self.adapter.name, "removal": removal, "data": data[:12], "steadygaze": __version__}
        settings = {**row_settings(self.learned.config, self.facts), **own}
        values = {name: numbers.tolist() for name, numbers in found.items()}
        return selection_rows(values, values.pop(PREDICTED), self.adapter.classes, settings)

    @validated(path=arguments.path)
    def save(self, path: str | Path) -> None:
        """Write a folder, without the black box."""
        config = {
            "steadygaze_explainer": __version__,
            "inputs": "texts",
            "explainer": self.name,
            "settings": asdict(self.learned.config),
            "classes": list(self.adapter.classes),
            "pair": bool(self.adapter.pair),
            "kind_of_tokens": self.learned.vocabulary.kind,
            "black_box": {"name": self.adapter.name, "fingerprint": self.adapter.fingerprint},
            "rows": [row.to_dict() for row in self.rows],
            "history": self.learned.history,
            "facts": self.facts,
        }
        written = explainer_folder.ExplainerFiles(
            config, self.learned.vocabulary.words, self.learned.networks.state_dict()
        )
        explainer_folder.save(Path(path), written)


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
    where = Path(path)
    written = explainer_folder.load(where, "texts")
    config, how = written.config, explainer_folder.settings_of(written, where)
    subject = as_adapter(black_box, classes=classes, device=device).for_pairs(bool(config.get("pair")))
    explainer_folder.check_same_black_box(written, subject.classes, subject.fingerprint, where)
    if (kind := config.get("kind_of_tokens")) != subject.tokens.kind:
        raise UserError(
            f"{where} was fitted to a black box that reads {kind!s:.40}; this one reads {subject.tokens.kind}"
        )
    vocabulary = Vocabulary(written.words, subject.tokens.kind)
    nets = explainer_folder.load_networks(
        partial(untrained_networks, how, len(vocabulary.words), len(subject.classes)), written, where
    )
    learned = FittedExplainer(how, vocabulary, nets, explainer_folder.config_value(written, "history", list, where))
    rows = tuple(map(Row.from_dict, explainer_folder.config_value(written, "rows", list, where)))
    explainer_folder.check_consistent_rows(written, rows, where)
    return TextExplainer(
        method_name(how), subject, learned, rows, explainer_folder.config_value(written, "facts", dict, where)
    )
