"""SubstitutionCertificates: per text, whether substitutions of words can change the label or the top words.

Does not import torch.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any, Literal, get_args

from steadygaze.core.errors import one_line, printable
from steadygaze.core.rounding import percent
from steadygaze.core.types import Label
from steadygaze.results.audit_config import SubstitutionConfig
from steadygaze.results.explanation import LABEL
from steadygaze.results.text_results import TextResults, count_share

Method = Literal["exact", "sampling", "none"]
Claim = Literal["certified", "top_k_certified"]
SCOPE = "substitutions by the pairs of the table that are not left out, not other rewrites, inserted or deleted words"
METHODS: tuple[Method, ...] = get_args(Method)
LISTED = 8
"""Words of the summary that are not covered."""


@dataclass(frozen=True, slots=True)
class SubstitutionCertificate:
    """The effect of substitutions on one text."""

    text: str
    label: Label
    """The predicted label; with the method "sampling", that of the smoothed model."""
    model_label: Label
    """The label that the model itself predicts."""
    method: Method
    certified: bool
    """True if no rewrite can change the label; with the method "sampling", that of the smoothed model."""
    top_k_certified: bool | None
    """True if no rewrite can change the set of top-k words.  None: the model has no word weights.
    False also if rewrites differ in their number of words."""
    positions: int
    """Words with alternatives in the table."""
    covered_positions: int
    """Words that the model reads the same as each of their alternatives."""
    alternatives: int
    covered_alternatives: int
    """Alternatives that the model reads the same as the word: any number of them changes nothing."""
    rewrites: int
    """Number of rewrites that the model can distinguish, the text itself included."""
    evaluated: int
    """Rewrites that were evaluated."""
    total_variation: float | None
    """Upper bound for the sampling distributions of the text and of a rewrite.  None: nothing was sampled."""
    probability: float | None
    """exact: lower bound of the label's probability in any rewrite.  sampling: lower confidence bound of the share of
    samples with the label, for the worst rewrite.  None: not bounded."""
    weight_shift: float | None
    """Upper bound of the change of a word's weight, or of its mean over samples.  None: not bounded."""
    uncovered: tuple[str, ...]
    """Words with alternatives that the model reads differently."""
    words: int | None = None
    """Words of the text that the model reads.  None: the model has no word weights."""
    counterexample: str | None = None
    """A rewrite with another label, if the method "exact" found one."""
    question: str | None = None

    @property
    def model_certified(self) -> bool | None:
        """True if no rewrite changes `model_label`; None: not known, as for all texts that are sampled."""
        if self.counterexample is not None:
            return False
        return True if self.method == "exact" and self.certified else None

    def is_vacuous(self, k: int | None = None) -> bool:
        """True if the claim holds for any model: no word has an alternative.  `k`: or at most k words, for top-k."""
        return not self.positions or (k is not None and self.words is not None and self.words <= k)

    def line(self) -> str:
        """Certificate, label and text, separated by tabs."""
        claims = [name for name, holds in (("label", self.certified), ("top-k", self.top_k_certified)) if holds]
        text = printable(" ".join(self.text.split()))
        label = one_line(self.label, LABEL)
        if self.label != self.model_label:
            label += f" (smoothed; model: {one_line(self.model_label, LABEL)})"
        return f"{self.method}\t{'+'.join(claims) or 'not certified'}\t{label}\t{text}"


@dataclass(frozen=True, repr=False)
class SubstitutionCertificates(TextResults[SubstitutionCertificate]):
    """One SubstitutionCertificate per text, in the order of the texts."""

    config: SubstitutionConfig
    """The settings."""
    table_pairs: int
    """Pairs of a word and a synonym in the table."""
    excluded_pairs: int
    """Pairs that are left out, for example with function words or other inflections (data/substitutable_pairs.py)."""
    scope = SCOPE

    @property
    def share_certified(self) -> float:
        """Share of the texts whose label of the model no rewrite changes (method "exact")."""
        return self._share("certified", "exact")

    @property
    def share_certified_smoothed(self) -> float:
        """Share of the texts whose label of the smoothed model no rewrite changes (method "sampling").

        This is not a statement about the model itself.
        """
        return self._share("certified", "sampling")

    @property
    def share_top_k_certified(self) -> float | None:
        """Share of the texts whose top-k words no rewrite changes (method "exact"); None: no word weights."""
        return self._share("top_k_certified", "exact") if self._has_weights else None

    @property
    def share_top_k_certified_smoothed(self) -> float | None:
        """The same for the smoothed explanation (method "sampling")."""
        return self._share("top_k_certified", "sampling") if self._has_weights else None

    @property
    def _has_weights(self) -> bool:
        return any(row.top_k_certified is not None for row in self.rows)

    def _count(self, claim: Claim, method: Method) -> int:
        return sum(row.method == method and bool(getattr(row, claim)) for row in self.rows)

    def _share(self, claim: Claim, method: Method) -> float:
        return self._count(claim, method) / len(self) if self.rows else 0.0

    def _not_vacuous(self, claim: Claim) -> "SubstitutionCertificates":
        """The texts for which the claim does not hold for any model."""
        k = self.config.k if claim == "top_k_certified" else None
        return replace(self, rows=tuple(row for row in self.rows if not row.is_vacuous(k)))

    def summary(self) -> dict[str, Any]:
        """Counts, shares and means over all texts.

        A certificate is vacuous if it holds for any model.  Certificates of texts without a word that has an
        alternative are vacuous, and those of the top-k words of texts with at most k words.  Shares `_not_vacuous` are
        over the other texts.

        Returns
        -------
        dict
            Name -> number; None: not defined.
        """
        methods = Counter(row.method for row in self.rows)
        alternatives = sum(row.alternatives for row in self.rows)
        covered = sum(row.covered_alternatives for row in self.rows)
        others, longer = self._not_vacuous("certified"), self._not_vacuous("top_k_certified")
        return {
            "texts": len(self),
            "certified": self._count("certified", "exact"),
            "share_certified": self.share_certified,
            "certified_smoothed": self._count("certified", "sampling"),
            "share_certified_smoothed": self.share_certified_smoothed,
            "smoothed_label_differs": sum(row.label != row.model_label for row in self.rows),
            "share_top_k_certified": self.share_top_k_certified,
            "share_top_k_certified_smoothed": self.share_top_k_certified_smoothed,
            "vacuous": len(self) - len(others),
            "share_certified_not_vacuous": others.share_certified if others.rows else None,
            "share_certified_smoothed_not_vacuous": others.share_certified_smoothed if others.rows else None,
            "vacuous_top_k": len(self) - len(longer) if self._has_weights else None,
            "share_top_k_certified_not_vacuous": longer.share_top_k_certified,
            "share_top_k_certified_smoothed_not_vacuous": longer.share_top_k_certified_smoothed,
            "methods": {name: methods[name] for name in METHODS},
            "counterexamples": sum(row.counterexample is not None for row in self.rows),
            "mean_positions": _mean([row.positions for row in self.rows]),
            "mean_covered_positions": _mean([row.covered_positions for row in self.rows]),
            "mean_alternatives": _mean([row.alternatives for row in self.rows]),
            "mean_covered_alternatives": _mean([row.covered_alternatives for row in self.rows]),
            "share_covered_alternatives": covered / alternatives if alternatives else 1.0,
            "uncovered_words": dict(self.uncovered_words()),
            "table_pairs": self.table_pairs,
            "excluded_pairs": self.excluded_pairs,
        }

    def uncovered_words(self, count: int = LISTED) -> list[tuple[str, int]]:
        """The most frequent words with alternatives that synonym groups do not cover.

        Parameters
        ----------
        count : int, default=8
            Number of words.

        Returns
        -------
        list of (str, int)
            Word and number of its texts, in descending order.
        """
        words = Counter(word for row in self.rows for word in dict.fromkeys(map(str.lower, row.uncovered)))
        return words.most_common(count)

    def _settings(self) -> dict[str, Any]:
        return {"settings": asdict(self.config)}

    def lines(self) -> list[tuple[str, str]]:
        """The summary for a terminal.

        Returns
        -------
        list of (str, str)
            Description and value.
        """
        summary, total = self.summary(), len(self)
        if not total:
            return [("texts", "0")]
        most = self.config.max_substitutions
        limit = "any number of" if most is None else f"up to {most:,}"
        lines = [
            (f"texts whose label cannot change by {limit} substitutions", count_share(summary["certified"], total))
        ]
        lines += self._vacuous_lines("certified", "without a word that has alternatives in the table")
        methods = summary["methods"]
        if methods["sampling"]:
            count, others = summary["certified_smoothed"], summary["smoothed_label_differs"]
            lines += [
                ("texts whose label cannot change in the smoothed model", count_share(count, total)),
                ("  sampled texts with another label of the model itself", f"{others:,} of {methods['sampling']:,}"),
            ]
            if undecided := methods["sampling"] - count:
                lines.append(("  sampled texts that are undecided", f"{undecided:,} of {methods['sampling']:,}"))
        if methods["none"]:
            lines.append(("texts without any statement: too many rewrites, sets differ", f"{methods['none']:,}"))
        lines.append(("texts with a rewrite that changes the label", f"{summary['counterexamples']:,}"))
        if self.share_top_k_certified is not None:
            words = f"texts whose top {self.config.k} words cannot change"
            lines.append((words, count_share(self._count("top_k_certified", "exact"), total)))
            reason = f"without such a word, or with at most {self.config.k} words"
            lines += self._vacuous_lines("top_k_certified", reason)
            if methods["sampling"]:
                count = self._count("top_k_certified", "sampling")
                lines.append((f"{words} in the smoothed model", count_share(count, total)))
        means = [summary[f"mean_{name}"] for name in ("covered_alternatives", "alternatives")]
        lines.append(("mean alternatives per text that the model reads the same", f"{means[0]:.1f} of {means[1]:.1f}"))
        lines.append(("pairs of the table that are left out", count_share(self.excluded_pairs, self.table_pairs)))
        words = ", ".join(f"{one_line(word, 32)} ({count:,})" for word, count in self.uncovered_words())
        return [*lines, ("words that are most often not covered (texts)", words)] if words else lines

    def _vacuous_lines(self, claim: Claim, reason: str) -> list[tuple[str, str]]:
        """The number of vacuous certificates, and the exact certificates of the other texts."""
        others = self._not_vacuous(claim)
        if len(others) == len(self):
            return []
        lines = [(f"  vacuous: texts {reason}", f"{len(self) - len(others):,} of {len(self):,}")]
        if others.rows:
            lines.append(("  of the other texts", count_share(others._count(claim, "exact"), len(others))))
        return lines

    def _notes(self) -> list[str]:
        return [self.confidence_note()]

    def confidence_note(self) -> str:
        """The meaning of the confidence level.

        Returns
        -------
        str
            One or two sentences.
        """
        level = percent(self.config.confidence, 1)
        note = f"Claims about the smoothed model hold for each text with a confidence of {level}; others always."
        undecided = sum(row.method == "sampling" and not row.certified for row in self.rows)
        if not undecided:
            return note
        return (
            f"{note}  A sampled text is undecided if too few of its {self.config.samples:,} samples have the label "
            "to exclude another after the worst substitutions: more samples (--samples N, samples=) can decide some."
        )


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
