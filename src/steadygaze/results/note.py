"""Note: a remark about a score or a report as data, a code with fields.

`report/sentences.py` has one template for each code and renders all sentences.  Programs read codes and fields.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pkgutil import resolve_name
from typing import Any

from steadygaze.core.errors import UserError, unknown


class NoteCode(StrEnum):
    """What a note says."""

    TEXT = "text"
    """In the words of its author, such as the module of another property."""

    # Reasons for a missing score
    ATTENTION_NOT_AUDITED = "attention-not-audited"
    EMPTY_SELECTIONS = "empty-selections"
    EXPLAINER_UNSUPPORTED = "explainer-unsupported"
    FEW_TEXTS_TO_READ = "few-texts-to-read"
    FEW_TEXTS_OF_A_CLASS = "few-texts-of-a-class"
    IN_CELL = "in-cell"
    LACKS_CAPABILITY = "lacks-capability"
    NO_BLANK_TOKENS = "no-blank-tokens"
    NO_EFFECT_OF_GRADIENT = "no-effect-of-gradient"
    NO_INDEPENDENT_READER = "no-independent-reader"
    NO_LABELS = "no-labels"
    NO_OTHER_TEXTS = "no-other-texts"
    NO_OTHER_SEEDS = "no-other-seeds"
    NO_PARAMETERS = "no-parameters"
    NO_RATIONALES = "no-rationales"
    NO_SHORT_TEXTS = "no-short-texts"
    NO_SENTENCE_ENDS = "no-sentence-ends"
    NO_SENTENCES = "no-sentences"
    NO_SHORTCUT = "no-shortcut"
    NO_SYNONYM_TABLE = "no-synonym-table"
    NO_TEXT_OF_TWO_WORDS = "no-text-of-two-words"
    NO_TRAINING_TEXTS = "no-training-texts"
    NOT_A_RATIONALIZER = "not-a-rationalizer"
    NOT_A_TEXT_CLASSIFIER = "not-a-text-classifier"
    NOT_MEASURED = "not-measured"
    NOT_THOROUGH = "not-thorough"
    NOTHING_MATTERS = "nothing-matters"
    NOTHING_SELECTS = "nothing-selects"
    ONLY_RANDOM_EXPLAINER = "only-random-explainer"
    READS_SELECTION = "reads-selection"
    READS_WORDS = "reads-words"
    RETRAINING_FAILED = "retraining-failed"
    SAME_SEED = "same-seed"
    SELECTS_WITHOUT_ATTENTION = "selects-without-attention"
    SELECTS_WORDS = "selects-words"
    TRAINED_DIFFERENTLY = "trained-differently"
    UNDEFINED = "undefined"

    # Remarks about a score
    CHANCE_LEVEL = "chance-level"
    BETWEEN = "between"
    COLLAPSED = "collapsed"
    CONSTANT_BLACK_BOX = "constant-black-box"
    CONTEXTUAL_DEFAULT_TOKENS = "contextual-default-tokens"
    EMPTY_WHEN_SHUFFLED = "empty-when-shuffled"
    EXACT_ENDS = "exact-ends"
    EXACT_RATES = "exact-rates"
    EXEMPT_TEXTS = "exempt-texts"
    FGM_ON_SAME_TEXTS = "fgm-on-same-texts"
    GRADED_MARKS = "graded-marks"
    INTERLOCKING = "interlocking"
    LEFT_OUT = "left-out"
    LEFT_OUT_EMPTY = "left-out-empty"
    LEFT_OUT_SHORT = "left-out-short"
    LEFT_OUT_WITHOUT_SYNONYMS = "left-out-without-synonyms"
    NOT_SAMPLED = "not-sampled"
    QUERY_NOISE = "query-noise"
    NOT_TRAINED_UNDER_MASKS = "not-trained-under-masks"
    ONE_LABEL_BLACK_BOX = "one-label-black-box"
    UNFLIPPED = "unflipped"

    # Reasons of a verdict
    DEPENDS_ON = "depends-on"
    AUDIT_INTERRUPTED = "audit-interrupted"
    NO_DECIDING_MEASURE = "no-deciding-measure"
    SCORE = "score"
    YES_NEEDS = "yes-needs"

    # Unmet requirements
    REQUIRED_ANSWER = "required-answer"
    REQUIRED_MEASURE = "required-measure"
    REQUIRED_SCORE = "required-score"

    # Notes of a report
    ARBITRARY_SELECTIONS = "arbitrary-selections"
    BELOW_BASELINE = "below-baseline"
    BLACK_BOX_DISAGREES = "black-box-disagrees"
    CHOSEN_MEASURES = "chosen-measures"
    COVERAGE = "coverage"
    EXPLAINER_NOT_AUDITED = "explainer-not-audited"
    INTERLOCKING_ANSWER = "interlocking-answer"
    INTERLOCKING_NOT_TESTED = "interlocking-not-tested"
    INTERRUPTED = "interrupted"
    LABEL_LEAKAGE = "label-leakage"
    LEAKAGE_NOT_TESTED = "leakage-not-tested"
    ONE_LABEL = "one-label"
    READER_NOT_TRAINED = "reader-not-trained"
    RECOMMENDATION = "recommendation"
    SECOND_TEXT = "second-text"
    SELECTION_LIKE_RANDOM = "selection-like-random"
    SUBSTITUTES = "substitutes"
    TRAINING_SPLIT = "training-split"
    TRAINING_TEXTS = "training-texts"
    UNSELECTED_PREDICTS_BETTER = "unselected-predicts-better"


@dataclass(frozen=True, slots=True)
class Note:
    """A remark: a code with fields."""

    code: NoteCode
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Values for JSON, with the names of the code's template in report/sentences.py."""

    @property
    def sentence(self) -> str:
        """The note in words."""
        return str(resolve_name("steadygaze.report.sentences:sentence")(self))

    def __hash__(self) -> int:
        return hash(self.code)

    def __str__(self) -> str:
        return self.sentence

    def to_dict(self) -> dict[str, Any]:
        """The note as values for JSON; `message` is its sentence."""
        return {**self.to_data(), "message": self.sentence}

    def to_data(self) -> dict[str, Any]:
        """The same without the sentence."""
        return {"code": str(self.code), "fields": dict(self.fields)}

    @classmethod
    def from_dict(cls, values: Any) -> "Note":
        """Restore a note; a UserError names what is wrong.  A sentence in `values` is ignored."""
        if not isinstance(values, Mapping) or not {"code", "fields"} <= values.keys() <= {"code", "fields", "message"}:
            raise UserError(f"a note has a code and fields, found {values!r:.80}")
        if values["code"] not in [*NoteCode]:  # a list: it may not be hashable
            raise unknown("code of a note", values["code"], NoteCode)
        read = cls(NoteCode(values["code"]), values["fields"])
        try:
            _ = read.sentence  # its template may need other fields
        except (KeyError, ValueError, TypeError, AttributeError, IndexError):
            raise UserError(f"the note {read.code} cannot have the fields {values['fields']!r:.80}") from None
        return read


def note(code: NoteCode, /, **fields: Any) -> Note:
    """A note with these fields; notes among them become values for JSON.

    >>> note(NoteCode.UNDEFINED, notes=[note(NoteCode.GRADED_MARKS)]).fields
    {'notes': [{'code': 'graded-marks', 'fields': {}}]}
    """
    return Note(code, {name: _plain(value) for name, value in fields.items()})


def text_note(text: str) -> Note:
    """A note in words of its own, for a property outside of steadygaze.

    >>> text_note("no text has two words").sentence
    'no text has two words'
    """
    return Note(NoteCode.TEXT, {"text": text})


def _plain(value: Any) -> Any:
    if isinstance(value, Note):
        return value.to_data()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(item) for item in value]
    return value
