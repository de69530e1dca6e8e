"""SentencePredictions: what a model predicts from every single sentence of some texts.  Does not import torch.

same             sentences that alone give the label of their text
every sentence   texts of two or more sentences, each of which alone gives the label: any could be the rationale
counter-sentence a sentence of any text that alone gives another label; its flips are the texts of the class that
                 change their label if the sentence is added to them
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from steadygaze.core.errors import one_line
from steadygaze.core.rounding import percent
from steadygaze.core.types import Label
from steadygaze.results.data_frame import data_frame
from steadygaze.results.evaluation import LABEL, render_text
from steadygaze.results.formatting import count_text
from steadygaze.results.health import HEALTHY, Health, without_health
from steadygaze.results.row import JsonResult, json_values

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import Group


@dataclass(frozen=True, slots=True)
class SentencePrediction:
    """The prediction from one sentence of a text."""

    row: int
    """Position of the text, from 0."""
    sentence: str
    label: Label
    """Predicted from the sentence alone."""
    probability: float
    """Probability of the label."""
    text_label: Label
    """Predicted from the whole text."""
    selected: bool = False
    """True if a rationalizer selects the sentence."""


@dataclass(frozen=True, slots=True)
class CounterSentence:
    """A sentence that alone gives another label than a class."""

    sentence: str
    label: Label
    """Predicted from the sentence alone."""
    probability: float
    """Probability of the label."""
    flips: int
    """Texts of the class whose predicted label changes if the sentence is added at their end."""
    n: int
    """Texts to which it was added."""


@dataclass(frozen=True, slots=True)
class ClassSentences:
    """The sentences of the texts with one predicted class."""

    label: Label
    texts: int
    """Texts with this predicted class."""
    sentences: int
    """Their sentences."""
    same: int
    """Sentences that alone give the class."""
    several: int
    """Texts of two or more sentences."""
    every_sentence: int
    """Those whose every single sentence gives the class: any selection would give it."""
    counter_sentences: tuple[CounterSentence, ...] = ()
    """The sentences that give another class with the highest probability, with the texts that they change."""

    @property
    def finding(self) -> str:
        """The numbers as a sentence."""
        alone = f"{one_line(self.label, LABEL)}: {self.same:,} of {self.sentences:,} sentences alone give this label"
        if not self.several:
            return f"{alone}; no text has two or more sentences."
        several = f"{count_text(self.several, 'text')} of two or more sentences"
        return f"{alone}; any selection gives it in {self.every_sentence:,} of {several}."


@dataclass(frozen=True, repr=False)
class SentencePredictions(JsonResult):
    """Predictions from single sentences, as returned by `steadygaze.predict_sentences`."""

    model: str
    """Name of the model."""
    classes: tuple[ClassSentences, ...]
    """The predicted classes that occur."""
    sentences: tuple[SentencePrediction, ...]
    """The sentences of all texts, in order."""
    health: Health = HEALTHY
    """Known-bad states of the model."""

    def __iter__(self) -> Iterator[ClassSentences]:
        return iter(self.classes)

    def to_dict(self) -> dict[str, Any]:
        classes, sentences = ([json_values(asdict(item)) for item in items] for items in (self.classes, self.sentences))
        return {"health": self.health.to_list(), "model": self.model, "classes": classes, "sentences": sentences}

    def to_pandas(self) -> "DataFrame":
        """The sentences as a table.

        Returns
        -------
        pandas.DataFrame
            One row per sentence: row, sentence, label, probability, text_label and selected.
        """
        return data_frame([asdict(item) for item in self.sentences])

    def __repr__(self) -> str:
        return f"<SentencePredictions of {self.model}: {len(self.sentences):,} sentences>"

    def __rich__(self) -> "Group":
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        heading = f"Single sentences, read by {one_line(self.model)}"
        counts = Table("label of the text", "texts", "sentences", "same label alone", "every sentence", box=None)
        counters = Table("label", "counter-sentence", "its label", "flips", box=None)
        for item in self.classes:
            name, share = one_line(item.label, LABEL), percent(item.same / max(1, item.sentences))
            every = f"{item.every_sentence:,} of {item.several:,}"
            counts.add_row(name, f"{item.texts:,}", f"{item.sentences:,}", share, every)
            for counter in item.counter_sentences:
                label = f"{one_line(counter.label, LABEL)} {counter.probability:.2f}"
                counters.add_row(name, one_line(counter.sentence, 80), label, f"{counter.flips} of {counter.n}")
        findings = [Text(item.finding) for item in self.classes]
        return Group(*self.health.lines, Text(heading, "bold"), counts, Text(), counters, Text(), *findings)

    def __str__(self) -> str:
        return render_text(self)

    def _repr_html_(self) -> str:
        return f"{self.health.banner}<pre>{escape(str(without_health(self)))}</pre>"
