"""AuditRequest, TextDraw and PreparedCase: draw the texts, choose the explainers and build the AuditCase.

`compose_request` is the one place that makes the request of an audit, for `sg.audit`, the command and the server.

An audit of a model that steadygaze did not train takes seconds per text on a CPU.  Without a limit, it reads
DEFAULT_LIMIT texts.  The limit 0 reads all texts.
"""

import copy
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from steadygaze.adapters.as_adapter import two_class_models
from steadygaze.adapters.model_adapter import ModelAdapter, is_comparable
from steadygaze.adapters.model_synonyms import model_synonyms
from steadygaze.adapters.text_explainer import TextExplainer
from steadygaze.auditing.mask_filling import MaskFiller
from steadygaze.core.errors import UserError
from steadygaze.core.ragged import TokenizedTexts
from steadygaze.core.types import Example, Span, texts_of
from steadygaze.core.untrusted_files import digest_json
from steadygaze.data.splits import sample_rows
from steadygaze.data.text_checks import check_labels
from steadygaze.data.token_alignment import grade_tokens, mark_tokens
from steadygaze.explainers.explainer import Explainer, check_distinct, missing_capability
from steadygaze.explainers.resolve_explainer import resolve_explainer
from steadygaze.perturbations.word_substitution import Synonyms
from steadygaze.properties.audit_case import AuditCase
from steadygaze.results.audit_config import AuditConfig, ProbeConfig, Runtime
from steadygaze.results.formatting import count_text
from steadygaze.results.note import Note, NoteCode, note

SEED = "seed"
DEFAULT_LIMIT = 100
STREAM = 0xA0D1
"""Separates the audit's random stream from that of training with the same seed."""
SYNONYM_PROBES = {"1-synonym": 1, "3-synonyms": 3}
"""Name of a probe -> number of substituted words."""
CONTENT = re.compile(r"[^\W_]")
"""A letter or a digit; tokens without one are blank."""
Settings = Mapping[str, str | int | float]
Substitutions = Mapping[str, tuple[Synonyms, int]]
T = TypeVar("T")


@dataclass(frozen=True)
class TextDraw:
    """The texts that an audit reads, all of them or a random sample."""

    total: int
    size: int
    """Number of audited texts."""
    seed: int
    by_default: bool = False
    """True if the size is DEFAULT_LIMIT, because no limit was set."""

    def select(self, items: Sequence[T]) -> list[T]:
        """The drawn items, in their order."""
        if self.size == self.total:
            return list(items)
        return [items[row] for row in sample_rows(self.total, self.size, (self.seed, STREAM))]

    def __str__(self) -> str:
        """
        >>> str(TextDraw(400, 100, 0)), str(TextDraw(1, 1, 0))
        ('100 of 400 texts, drawn with seed 0', '1 text')
        """
        if self.size == self.total:
            return count_text(self.total, "text")
        return f"{self.size:,} of {count_text(self.total, 'text')}, drawn with seed {self.seed}"


def draw_texts(total: int, limit: int | None, seed: int, adapter: ModelAdapter | None = None) -> TextDraw:
    """Draw at most `limit` texts; None: all, or DEFAULT_LIMIT for a model that is not a TextClassifier."""
    by_default = limit is None and adapter is not None and not adapter.is_classifier and total > DEFAULT_LIMIT
    size = min(DEFAULT_LIMIT if by_default else limit or total, total)
    return TextDraw(total, size, seed, by_default)


@dataclass(frozen=True)
class AuditRequest:
    """The models, texts and settings of one audit."""

    adapter: ModelAdapter
    examples: Sequence[Example]
    config: ProbeConfig = field(default_factory=ProbeConfig)
    explainers: Sequence[Any] = ()
    """Names or explainer objects; requirements are about the first.  Empty: the model's default."""
    others: Sequence[ModelAdapter] = ()
    """Models trained with other seeds."""
    synonyms: Any = None
    """A synonym table: a file or a mapping.  None: no word is substituted."""
    train: tuple[Any, Any] | None = None
    """Training texts and labels, as `fit` takes them.  None: no model is retrained."""
    validation: tuple[Any, Any] | None = None
    """Validation texts and labels of the training.  None: a tenth of the training texts."""
    facts: Settings = field(default_factory=dict)
    """Facts that every number depends on: corpus, split, data."""
    notes: tuple[Note, ...] = ()
    runtime: Runtime = field(default_factory=Runtime)
    draw: TextDraw | None = None
    """How the examples were drawn; None: they are all texts."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings of the command with portable paths, for the advice; empty: made in Python."""
    measures: frozenset[str] = frozenset()
    """Names of the rows that are needed; other protocols and probes are left out if possible.  Empty: all."""


def compose_request(
    adapters: Sequence[ModelAdapter],
    examples: Sequence[Example],
    config: AuditConfig,
    runtime: Runtime,
    *,
    explainers: Sequence[Any] = (),
    synonyms: Any = None,
    train: tuple[Any, Any] | None = None,
) -> AuditRequest:
    """Draw the texts, and choose one output of a multi-label or regression model.

    `adapters`: the audited model, then the models of other seeds.  `examples`: all texts, with the labels of the data.
    """
    draw = draw_texts(len(examples), config.limit, config.seed, adapters[0])
    (adapter, *others), drawn = _one_output(adapters, examples, draw, config)
    return AuditRequest(adapter, drawn, config, explainers, others, synonyms, train=train, runtime=runtime, draw=draw)


def _one_output(
    adapters: Sequence[ModelAdapter], examples: Sequence[Example], draw: TextDraw, config: AuditConfig
) -> tuple[list[ModelAdapter], list[Example]]:
    """The models as models of two classes, and the drawn texts with labels of these classes."""
    drawn = draw.select(examples)
    models, convert = two_class_models(adapters, texts_of(drawn), config.target, config.threshold)
    if adapters[0].task == "classification" or all(example.label is None for example in examples):
        return models, drawn
    labels = check_labels(convert([example.label for example in examples]), minimum_classes=1)
    pairs = zip(drawn, draw.select(labels), strict=True)
    return models, [replace(example, label=label) for example, label in pairs]


def fingerprint(examples: Sequence[Example]) -> str:
    """The SHA-256 digest of all fields of the examples, in order."""
    graded = [item.graded for item in examples if item.graded is not None]
    content = [[item.text, item.question, item.label, item.rationales, item.sentences] for item in examples]
    return digest_json([*content, *graded])


def _is_same_model(first: ModelAdapter, second: ModelAdapter) -> bool:
    """True if two models have the same weights; black boxes: if they are the same function."""
    if first.fingerprint or second.fingerprint:
        return first.fingerprint == second.fingerprint
    return bool(getattr(first.model, "predict", first) == getattr(second.model, "predict", second))


def check_comparable(adapter: ModelAdapter, candidate: ModelAdapter) -> ModelAdapter:
    """Return the other model if it has the same classes and vocabulary; raise an error if not."""
    if _is_same_model(adapter, candidate):
        raise UserError(f"{candidate.name} is the audited model itself; pass a model trained with another seed")
    if not is_comparable(adapter, candidate):
        raise UserError(f"{candidate.name} cannot be compared with {adapter.name}: its labels or its vocabulary differ")
    return candidate


def training_difference(adapter: ModelAdapter, models: Sequence[ModelAdapter]) -> Note | None:
    """The first difference in training besides the seed, as far as it is known; None if there is none."""
    facts = {"kind": adapter.kind, **adapter.facts}
    for model in models:
        model_facts = {"kind": model.kind, **model.facts}
        for name in [*facts, *(model_facts.keys() - facts.keys())]:
            value, model_value = facts.get(name, "not known"), model_facts.get(name, "not known")
            if name != SEED and value != model_value:
                return note(NoteCode.TRAINED_DIFFERENTLY, model=model.name, name=name, other=model_value, here=value)
        if SEED in facts and facts[SEED] == model_facts.get(SEED):
            return note(NoteCode.SAME_SEED, model=model.name, seed=facts[SEED])
    return None


def choose_explainers(adapter: ModelAdapter, requested: Sequence[Any]) -> tuple[dict[str, Explainer], dict[str, str]]:
    """The explainers that the model supports, and the reason for each that it does not support."""
    pairs = [
        resolve_explainer(item.for_adapter(adapter) if isinstance(item, TextExplainer) else item) for item in requested
    ]
    check_distinct([name for name, _ in pairs])
    explainers = dict(pairs) or dict([resolve_explainer(None, adapter.model, pair=bool(adapter.pair))])
    reasons = {
        name: reason
        for name, explainer in explainers.items()
        if (reason := missing_capability(explainer, adapter.model))
    }
    supported = {name: explainer for name, explainer in explainers.items() if name not in reasons}
    if not supported:
        name, reason = next(iter(reasons.items()))
        raise UserError(f"{name} of {adapter.name} cannot be audited: {reason}; choose another explainer")
    return supported, reasons


@dataclass(frozen=True)
class PreparedCase:
    """An AuditCase, with the texts and tokens that the report shows."""

    adapter: ModelAdapter
    examples: Sequence[Example]
    placed: TokenizedTexts
    case: AuditCase


def prepare_all(request: AuditRequest, explainers: Mapping[str, Explainer]) -> PreparedCase:
    """Prepare the case of the model, and the same texts with the models of other seeds."""
    adapter, examples = request.adapter, request.examples
    substitutions: Substitutions = {}
    if request.synonyms is not None:
        table = model_synonyms(adapter, request.synonyms, [example.text for example in examples])
        substitutions = {name: (table, number) for name, number in SYNONYM_PROBES.items()}
    others = [check_comparable(adapter, candidate) for candidate in request.others]
    for first, second in combinations(others, 2):
        if _is_same_model(first, second):
            raise UserError(f"{first.name} and {second.name} are the same model: pass each other seed once")
    unfilled = replace(request.config, filler=None)
    prepared, *other_cases = (
        prepare(model, examples, explainers, config, substitutions, request.runtime)
        for model, config in ((adapter, request.config), *((other, unfilled) for other in others))
    )
    ids = prepared.case.data.text.permanent_ids
    if any(not np.array_equal(other.case.data.text.permanent_ids, ids) for other in other_cases):
        raise UserError("a model passed as another seed tokenizes the texts differently: pass a model of the same kind")
    return replace(prepared, case=replace(prepared.case, others=tuple(other.case for other in other_cases)))


def prepare(
    adapter: ModelAdapter,
    examples: Sequence[Example],
    explainers: Mapping[str, Explainer],
    config: ProbeConfig,
    substitutions: Substitutions | None = None,
    runtime: Runtime | None = None,
) -> PreparedCase:
    """Tokenize the texts; convert labels and rationales to class indices and token masks."""
    if not examples:
        raise UserError("there are no texts to audit: pass at least one")
    adapter = _in_doubles(adapter.for_pairs(_paired(examples)))
    placed = adapter.tokens.place([example.text for example in examples])
    questions = [example.question or "" for example in examples] if adapter.pair else None
    sentences = [example.sentences for example in examples]
    data = adapter.data(placed, questions, None if sentences.count(None) == len(sentences) else sentences)
    content = _mark(placed, [[match.span() for match in CONTENT.finditer(example.text)] for example in examples])
    case = AuditCase(
        adapter.model,
        replace(data, label=_label_codes(adapter, examples)),
        explainers,
        config,
        rationales=_mark(placed, [example.rationales for example in examples]),
        grades=_grades(placed, examples),
        first=_mark(placed, [example.sentences and example.sentences[:1] for example in examples]),
        blank=None if content is None else ~content,
        classes=tuple(adapter.classes),
        substitutions=substitutions or {},
        runtime=runtime or Runtime(),
    )
    return PreparedCase(adapter, examples, placed, replace(case, filled=_filled(adapter, examples, placed, config)))


def _filled(
    adapter: ModelAdapter, examples: Sequence[Example], placed: TokenizedTexts, config: ProbeConfig
) -> tuple[str, Tensor] | None:
    """The name of the filler, and its words in place of those of the texts; None: there is no filler."""
    if config.filler is None:
        return None
    if not os.path.isdir(config.filler):
        raise UserError(f"filler is {config.filler!r:.80}; it must be the folder of a masked language model")
    filler = MaskFiller(Path(config.filler), adapter.model.device)
    texts = [example.text for example in examples]
    return f"{Path(config.filler).name} {filler.digest}", torch.from_numpy(
        filler.fill(texts, placed, adapter.tokens, config.seed)
    )


def _label_codes(adapter: ModelAdapter, examples: Sequence[Example]) -> np.ndarray[Any, Any] | None:
    """The class index of each text; None without labels."""
    labels = [example.label for example in examples]
    given_labels = [label for label in labels if label is not None]
    if given_labels and None in labels:
        row = labels.index(None)
        raise UserError(f"labels[{row}] is missing, but other texts have a label; label every text, or none")
    return np.array(adapter.label_codes(given_labels), np.int64) if given_labels else None


def _in_doubles(adapter: ModelAdapter) -> ModelAdapter:
    """Copy a model on an Apple GPU to the CPU: the GPU has no double precision."""
    if adapter.model.device.type != "mps":
        return adapter
    return replace(adapter, model=copy.deepcopy(adapter.model).cpu())


def _paired(examples: Sequence[Example]) -> bool:
    """True if the examples are pairs (text, question)."""
    kinds = {example.question is not None for example in examples}
    if len(kinds) > 1:
        raise UserError("some texts have a question and some do not; audit them separately")
    return kinds.pop()


def _mark(placed: TokenizedTexts, spans: Sequence[Sequence[Span] | None]) -> Tensor | None:
    """(M,) bool: the tokens that overlap a character span; None if no text has spans."""
    if all(marked is None for marked in spans):
        return None
    ragged = placed.ragged
    mask = np.zeros(len(ragged.ids), np.bool_)
    mask[ragged.words] = np.concatenate(
        [mark_tokens(tokens, marked or ()) for tokens, marked in zip(placed.spans, spans, strict=True)]
    )
    return torch.from_numpy(mask)


def _grades(placed: TokenizedTexts, examples: Sequence[Example]) -> Tensor | None:
    """(M,) the mark of each token, 1 for a rationale without grades; None if no rationale is graded."""
    if all(example.graded is None for example in examples):
        return None
    marks = [
        [(*span, 1.0) for span in example.rationales or ()] if example.graded is None else example.graded
        for example in examples
    ]
    grades = np.zeros(len(placed.ragged.ids))
    grades[placed.ragged.words] = np.concatenate(
        [grade_tokens(*pair) for pair in zip(placed.spans, marks, strict=True)]
    )
    return torch.from_numpy(grades)
