"""TextExplainer: a fitted explainer together with the black box that it explains."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, get_args

from torch import Tensor

from steadygaze.adapters.as_adapter import as_subject
from steadygaze.adapters.black_box import Box
from steadygaze.adapters.model_adapter import Subject
from steadygaze.core import __version__, arguments
from steadygaze.core.arguments import checked
from steadygaze.core.errors import UserError, unknown
from steadygaze.estimator import explainer_folder
from steadygaze.estimator.explain_texts import Request, explain_texts
from steadygaze.estimator.inputs import is_one, read_texts
from steadygaze.explainers.explainer import PREDICTED
from steadygaze.explainers.learned.answer_cache import digest
from steadygaze.explainers.learned.cxplain import Weighing
from steadygaze.explainers.learned.fit_config import name_of, said_of
from steadygaze.explainers.learned.fitted_explainer import Fitted, Learned, fresh, measured
from steadygaze.explainers.learned.removal_effects import Removal
from steadygaze.explainers.learned.text_inputs import Vocabulary
from steadygaze.results.explanation import Explanation
from steadygaze.results.leakage_warnings import READER, by_measure, selection_rows, warned
from steadygaze.results.row import Row


@dataclass(frozen=True)
class TextExplainer:
    """What `explain_fit` gives for texts.

    fitted = sg.explain_fit(model, texts, explainer="l2x", k=10)
    fitted.explain("A gorgeous, witty, seductive movie.")
    fitted.save("l2x/"); fitted = sg.load_explainer("l2x/", model)
    """

    name: str
    """Which explainer it is: l2x, vibi, ail or cxplain."""
    subject: Subject
    learned: Learned
    rows: tuple[Row, ...] = ()
    """How well it did on texts it was not fitted to."""
    facts: dict[str, Any] = field(default_factory=dict)
    """What else is known of how it was fitted: the seed, and a digest of the texts."""

    @property
    def warnings(self) -> list[str]:
        """What must be known before it is believed: whether its selections leak the label."""
        return warned(self.rows)

    @property
    def reader_accuracy(self) -> float | None:
        """How often an independent reader was right from the selected words of held-out texts; None: not known."""
        row = by_measure(self.rows).get(READER)
        return None if row is None else row.value

    @property
    def explainer(self) -> Fitted | Weighing:
        """It alone, for a batch of the black box's own ids."""
        self.learned.nets.to(self.subject.model.device)  # which may have moved
        return self._explainer

    @cached_property
    def _explainer(self) -> Fitted | Weighing:
        return self.learned.explainer(self.subject.tokens, self.subject.model.device, self.reader_accuracy)

    def of(self, subject: Subject) -> Fitted | Weighing:
        """The same where texts may be other ids; refused where that is not the black box it was fitted to."""
        self.check_subject(subject)
        return self.learned.explainer(subject.tokens, subject.model.device, self.reader_accuracy)

    def check_subject(self, subject: Subject) -> None:
        """Refuse a black box that this explainer was not fitted to."""
        own = self.subject
        if subject.fingerprint != own.fingerprint or len(subject.classes) != len(own.classes):
            raise UserError(
                f"{self.name} was fitted to another model than {subject.name}, or to other weights of it: "
                "what it selects says nothing of this one; explain_fit fits one to it"
            )

    def explain(self, texts: Any) -> Explanation | list[Explanation]:
        """The selected words of a text, or of each of several."""
        one = is_one(texts)
        read, questions = read_texts([texts] if one else texts)
        subject = self.subject.reading(questions is not None)
        request = Request(self.explainer, self.name)
        found = explain_texts(subject.model, subject.tokens, subject.classes, read, questions, request)
        return found[0] if one else found

    def measure(self, texts: Any, removal: Removal = "delete") -> list[Row]:
        """Of these texts: does the black box say the same of what is selected, and of the rest?"""
        check_removal(self.subject, removal)
        read, questions = read_texts(texts)
        subject = self.subject.reading(questions is not None)
        found = measured(subject.model, self.explainer, subject.data(subject.tokens.place(read), questions), removal)
        return self.to_rows(found, removal, digest(read, questions))

    def to_rows(self, found: dict[str, Tensor], removal: Removal, data: str) -> list[Row]:
        """One number per text, by name, as rows; `data`: a digest of the texts."""
        own = {"black-box": self.subject.name, "removal": removal, "data": data[:12], "steadygaze": __version__}
        settings = {**said_of(self.learned.how, self.facts), **own}
        values = {name: numbers.tolist() for name, numbers in found.items()}
        return selection_rows(values, values.pop(PREDICTED), self.subject.classes, settings)

    @checked(path=arguments.path)
    def save(self, path: str | Path) -> None:
        """As a folder; the black box itself is not in it."""
        config = {
            "steadygaze_explainer": __version__,
            "inputs": "texts",
            "explainer": self.name,
            "settings": asdict(self.learned.how),
            "classes": list(self.subject.classes),
            "pair": bool(self.subject.pair),
            "kind_of_tokens": self.learned.vocabulary.kind,
            "black_box": {"name": self.subject.name, "fingerprint": self.subject.fingerprint},
            "rows": [row.to_dict() for row in self.rows],
            "history": self.learned.history,
            "facts": self.facts,
        }
        written = explainer_folder.Written(config, self.learned.vocabulary.words, self.learned.nets.state_dict())
        explainer_folder.save(Path(path), written)


def check_removal(subject: Subject, removal: Any) -> None:
    """Refused where there is no such way to take a word out."""
    if not isinstance(removal, str) or removal not in get_args(Removal):
        raise unknown("removal", removal, get_args(Removal))
    if removal == "pad" and isinstance(subject.model, Box):
        raise UserError(
            f"{subject.name} reads text, in which nothing can stand for a word that is gone: removal must be 'delete'"
        )


def load_explainer(
    path: str | Path, black_box: Any, *, classes: Sequence[Any] | None = None, device: str = "auto"
) -> TextExplainer:
    """A fitted explainer of texts from its folder, with the black box it was fitted to."""
    where = Path(path)
    written = explainer_folder.load(where, "texts")
    config, how = written.config, explainer_folder.settings_of(written, where)
    subject = as_subject(black_box, classes=classes, device=device).reading(bool(config.get("pair")))
    explainer_folder.refuse_other(written, subject.classes, subject.fingerprint, where)
    if (kind := config.get("kind_of_tokens")) != subject.tokens.kind:
        raise UserError(
            f"{where} was fitted to a black box that reads {kind!s:.40}; this one reads {subject.tokens.kind}"
        )
    known = Vocabulary(written.words, subject.tokens.kind)
    nets = explainer_folder.filled(partial(fresh, how, len(known.words), len(subject.classes)), written, where)
    learned = Learned(how, known, nets, explainer_folder.part(written, "history", list, where))
    rows = tuple(map(Row.from_dict, explainer_folder.part(written, "rows", list, where)))
    explainer_folder.refuse_contradiction(written, rows, where)
    return TextExplainer(name_of(how), subject, learned, rows, explainer_folder.part(written, "facts", dict, where))
