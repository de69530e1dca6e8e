"""ServedModel: a model of the workbench; predictions, explanations, synonyms and shifts as plain data."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any

import numpy as np
import torch

from steadygaze.adapters.black_box import TextWords
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.certificates.certificate import certify_attention
from steadygaze.certificates.certify import RADIUS
from steadygaze.certificates.substitution_certificate import certificate_rows
from steadygaze.certificates.substitution_plans import model_substitutions, substituted_positions
from steadygaze.core.errors import UserError
from steadygaze.core.maths.distributions import jensen_shannon, top_k_overlap
from steadygaze.core.types import Example
from steadygaze.data.batches import collate
from steadygaze.data.substitutions import Substitutions
from steadygaze.data.synonym_groups import fold_word
from steadygaze.data.synonym_rewriting import cased_alternatives
from steadygaze.data.synonym_tables import as_table
from steadygaze.estimator.explain_request import ExplainRequest
from steadygaze.estimator.inputs import read_texts
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.explainer import missing_capability
from steadygaze.explainers.resolve_explainer import default_explainer
from steadygaze.models import inference
from steadygaze.models.classifier import has_extension_points
from steadygaze.results.audit_config import SubstitutionConfig
from steadygaze.results.explanation import Explanation
from steadygaze.results.substitution_certificates import SubstitutionCertificate

TOP = 5
"""Words of the overlap."""
CERTIFIED = SubstitutionConfig()
"""Settings of certificates: those of the command `certify`."""
EXPENSIVE = 25
"""Forward passes of an expensive explanation."""
MOST_PIECES = 200_000
"""Words that the server remembers for a black box."""
MOST_MATCHES = 100_000
"""Pairs of equal words among which an alignment is searched."""
WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")


NO_CERTIFICATE = "a certificate needs the attention layer of a classifier of train"
NO_TABLE = "the server was started without synonyms of words"


@dataclass(frozen=True)
class ServedData:
    """The texts that the server offers."""

    name: str
    examples: Sequence[Example]


@dataclass(frozen=True)
class ServedModel:
    """A model and the synonyms that the workbench offers for its words."""

    name: str
    adapter: ModelAdapter
    table: Mapping[str, Sequence[str]]
    batch_size: int | None = None
    """Texts per batch; None: the defaults of predictions and of audits."""

    @property
    def batch(self) -> int:
        """Texts per batch of predictions, explanations and certificates."""
        return self.batch_size or inference.BATCH

    @cached_property
    def substitutions(self) -> Substitutions | None:
        """The usable pairs of the table, as the model reads them; None: there are none.  Slow for a large table."""
        try:
            return model_substitutions(self.adapter.tokens, as_table(self.table, folded=True), CERTIFIED.set_size)
        except UserError:
            return None

    @property
    def synonyms(self) -> Mapping[str, Sequence[str]]:
        """Word in lower case -> the words that replace it."""
        return {} if self.substitutions is None else self.substitutions.alternatives

    @cached_property
    def explainers(self) -> list[str]:
        """The explainers that this model supports, its default first."""
        model = self.adapter.for_output(None if not self.adapter.outputs else self.adapter.classes[0]).model
        names = [
            name for name, kind in EXPLAINERS.items() if name != "random" and not missing_capability(kind(), model)
        ]
        first = default_explainer(model, bool(self.adapter.pair))
        return [first, *(name for name in names if name != first)]

    @property
    def health(self) -> list[dict[str, Any]]:
        """Known-bad states of the model, as values for JSON."""
        return self.adapter.health.to_list()

    @property
    def facts(self) -> dict[str, Any]:
        adapter = self.adapter
        return {
            "name": self.name,
            "health": self.health,
            "kind": adapter.kind,
            "task": adapter.task,
            "classes": [str(label) for label in adapter.classes],
            "pair": adapter.pair,
            "explainers": self.explainers,
            "synonyms": len(self.synonyms),
            "certificate": self.has_certificate,
        }

    @property
    def has_certificate(self) -> bool:
        """True if changes of its attention weights can be certified."""
        return self.adapter.is_classifier and has_extension_points(self.adapter.model)

    @cached_property
    def classifier(self) -> Any:
        return self.adapter.classifier

    def bound_vocabulary(self) -> None:
        """Forget the words of earlier texts, if they are too many: a black box has a vocabulary that grows."""
        tokens = self.adapter.tokens
        if isinstance(tokens, TextWords) and len(tokens) > MOST_PIECES:
            tokens.clear()

    def predict(self, inputs: Sequence[Any]) -> list[dict[str, float]]:
        """Class, or output -> probability, or value, of each text or pair."""
        values, _ = self.adapter.predict_covered(list(inputs), self.batch)
        names = [str(label) for label in self.adapter.classes]
        return [dict(zip(names, row, strict=True)) for row in values.tolist()]

    def explain(self, inputs: Sequence[Any], request: ExplainRequest) -> list[Explanation]:
        """Explain texts, none of them empty, in batches of the server."""
        self.check_explainer(request.explainer)
        is_default = request.explainer == self.explainers[0]  # it has settings of its own
        request = replace(request, explainer=None if is_default else request.explainer, batch_size=self.batch)
        return list(self.adapter.explain_function(request)(list(inputs)))

    def is_expensive(self, explainer: str | None) -> bool:
        """True if an explanation needs many forward passes; None: the default explainer."""
        return EXPLAINERS[explainer or self.explainers[0]].forward_passes >= EXPENSIVE

    def check_explainer(self, explainer: str | None) -> None:
        if explainer is not None and explainer not in self.explainers:
            known = ", ".join(self.explainers)
            raise UserError(f"{self.name} does not support the explainer {explainer!r:.40}; it supports: {known}")

    def certify(self, inputs: Sequence[Any]) -> list[dict[str, Any]]:
        """Certificates of each text: `attention` against changes of the weights, `words` against substitutions.

        They are those of `certify` with its defaults, for weights that keep their sum.  A missing certificate is a
        sentence that says why.  A vacuous one holds for any model.
        """
        attention: list[Any] = [NO_CERTIFICATE] * len(inputs)
        words: list[Any] = [NO_TABLE] * len(inputs)
        if self.has_certificate:
            k = CERTIFIED.k
            rows = certify_attention(self.classifier, list(inputs), RADIUS, "linf", k, True, None, False, self.batch)
            few = self._has_few_tokens(inputs)
            names = dict(zip(self.classifier.stored_.description.classes, self.adapter.classes, strict=True))
            attention = [
                {**row.to_dict(), "label": names[row.label], "vacuous_top_k": vacuous}
                for row, vacuous in zip(rows, few, strict=True)
            ]
        if self.adapter.outputs:
            words = ["substitutions of words are certified for models with classes"] * len(inputs)
        elif self.substitutions is not None:
            read = read_texts(list(inputs))
            certificates = certificate_rows(self.adapter, *read, self.substitutions, CERTIFIED, self.batch)
            words = [_certificate_of_words(row) for row in certificates]
        return [
            {"attention": a, "words": w, "covered_words": self._covered(item, w)}
            for item, a, w in zip(inputs, attention, words, strict=True)
        ]

    def _has_few_tokens(self, inputs: Sequence[Any]) -> list[bool]:
        """True if each text has so few tokens with attention weights that its top words are all of them."""
        stored = self.classifier.stored_
        data = stored.data(*read_texts(list(inputs)))
        few: list[bool] = (collate(data, np.arange(len(inputs))).mask.sum(-1) <= CERTIFIED.k).tolist()
        return few

    def _covered(self, item: Any, certificate: Any) -> list[str]:
        """The words of a text whose synonyms the model all reads the same as the word."""
        if isinstance(certificate, str):
            return []
        uncovered = {word.lower() for word in certificate["uncovered"]}
        words = WORD.findall((item if isinstance(item, str) else item[0]).lower())
        return sorted({word for word in words if word in self.synonyms} - uncovered)

    def alternatives(self, word: str, text: str | None = None, start: int = 0) -> list[str]:
        """The words by which certified rewrites replace a word, with its capitals.

        `text`: the text with the word at `start`; a part of a longer word, as in well-known_film, is not replaced.
        """
        if self.substitutions is None:
            return []
        if text is not None:
            (positions,) = substituted_positions([text], self.substitutions)
            start += len(text[start:]) - len(text[start:].lstrip())
            if (start, word) not in zip(positions.starts, positions.words, strict=True):
                return []
        return list(cased_alternatives(word, self.synonyms.get(fold_word(word) or "", ())))


def _certificate_of_words(row: SubstitutionCertificate) -> dict[str, Any]:
    return {
        **asdict(row),
        "uncovered": list(row.uncovered),
        "model_certified": row.model_certified,
        "confidence": CERTIFIED.confidence,
        "samples": CERTIFIED.samples,
        "k": CERTIFIED.k,
        "vacuous": row.is_vacuous(),
        "vacuous_top_k": row.is_vacuous(CERTIFIED.k),
    }


def shift(before: Explanation, after: Explanation) -> dict[str, Any]:
    """How far prediction and explanation differ between a text and its rewrite.

    Words are aligned in order: equal words with each other, and replaced words with their replacements.  A word
    without a counterpart has the weight 0 in the other text.
    """
    pairs = aligned(before.tokens, after.tokens)
    p = torch.tensor([0.0 if i is None else abs(before.weights[i]) for i, _ in pairs], dtype=torch.float64)
    q = torch.tensor([0.0 if j is None else abs(after.weights[j]) for _, j in pairs], dtype=torch.float64)
    mask = torch.ones_like(p, dtype=torch.bool)
    k = min(TOP, len(pairs))
    classes = before.probabilities.keys() & after.probabilities.keys()
    distance = max((abs(before.probabilities[c] - after.probabilities[c]) for c in classes), default=None)
    positive = bool(p.sum() > 0) and bool(q.sum() > 0)
    return {
        "label_flip": before.label != after.label,
        "prediction_change": distance,
        "jensen_shannon": float(jensen_shannon(p / p.sum(), q / q.sum(), mask)) if positive else None,
        "top_k": k,
        "top_k_overlap": float(top_k_overlap(p, q, mask, k)) if k else None,
        "aligned": [list(pair) for pair in pairs],
    }


def aligned(before: Sequence[str], after: Sequence[str]) -> list[tuple[int | None, int | None]]:
    """Positions of counterparts.

    >>> aligned(["a", "good", "film"], ["a", "fine", "film"])
    [(0, 0), (1, 1), (2, 2)]
    >>> aligned(["a", "good", "film"], ["a", "film"])
    [(0, 0), (1, None), (2, 1)]
    """
    first = _shared_length(before, after)
    last = _shared_length(before[first:][::-1], after[first:][::-1])
    middle, other_middle = before[first : len(before) - last], after[first : len(after) - last]
    pairs: list[tuple[int | None, int | None]] = [(i, i) for i in range(first)]
    for start, end, other, other_end in _blocks(middle, other_middle):
        shared = min(end - start, other_end - other)
        pairs += [(first + start + i, first + other + i) for i in range(shared)]
        pairs += [(first + i, None) for i in range(start + shared, end)]
        pairs += [(None, first + j) for j in range(other + shared, other_end)]
    ends = range(last, 0, -1)
    return pairs + [(len(before) - i, len(after) - i) for i in ends]


def _shared_length(before: Sequence[str], after: Sequence[str]) -> int:
    """Number of equal words at the beginning."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((i for i, (word, other) in pairs if word != other), min(len(before), len(after)))


def _blocks(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int, int, int]]:
    """Ranges of counterparts; one range for everything if the search would take long, as for one word repeated."""
    counts = Counter(before)
    if sum(counts[word] for word in after) > MOST_MATCHES:
        return [(0, len(before), 0, len(after))]
    return [block[1:] for block in SequenceMatcher(None, before, after, autojunk=False).get_opcodes()]
