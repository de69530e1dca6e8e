"""Settings of audits and certificates.

AuditConfig: the settings that the numbers of an audit depend on; Runtime: those that they do not depend on.
SubstitutionConfig: the settings of the certificate of word substitutions; SoftStabilityConfig: of soft stability.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge, Interval

from steadygaze.core.arguments import Option, argument_error, integer
from steadygaze.core.errors import UserError
from steadygaze.core.rounding import percent
from steadygaze.core.types import OnProgress, Removal, no_progress
from steadygaze.data.splits import COUNT, DataConfig
from steadygaze.results.model_options import ModelOptions

CERTIFICATE_PANEL = "Substitution certificate"
ATTENTION_DEFAULTS = {"radius": None, "norm": "linf", "simplex": False, "lower_bound": False, "reference": None}
"""Options of the certificate of attention weights."""
SYNONYM_TABLE = "Synonym table (.jsonl, .parquet, .json, .csv, .tsv, MyThes .dat) or WordNet folder."


@dataclass(frozen=True, kw_only=True)
class ProbeConfig:
    """Settings of the probes and protocols: keyword arguments of `sg.audit`, and options of the command."""

    radius: Annotated[
        float, Interval(ge=0, le=10), Option("Audit", "Perturbation of word vectors, in standard deviations.")
    ] = 0.1
    removal: Annotated[Removal, Option("Audit", "How words are erased.")] = "delete"
    filler: Annotated[
        str | None,
        Option("Audit", "Masked language model whose words replace erased ones.", "FOLDER", "words of other texts"),
    ] = None
    k: Annotated[int, COUNT, Option("Audit", "Top-k words for the overlap.", "N")] = 7
    sample: Annotated[
        int | None, COUNT, Option("Audit", "Texts for expensive measures.", "N", "100; Hugging Face models: 50")
    ] = None
    thorough: Annotated[bool, Option("Audit", "Run slow checks as well.")] = False
    skewed_epochs: Annotated[int, COUNT, Option("Training", "With --train: epochs on first sentences alone.", "N")] = 10
    seed: Annotated[int, Ge(0)] = 0


@dataclass(frozen=True, kw_only=True)
class AuditConfig(ModelOptions, ProbeConfig, DataConfig):
    """The settings of an audit, which a bundle of the command stores; models and data by name."""

    model: str
    synonyms: Annotated[str | None, Option("Data", SYNONYM_TABLE, "FILE")] = None
    other_seeds: Annotated[
        tuple[str, ...],
        Option("Model", "Same model, trained with another seed; repeatable.", "MODEL", name="--other-seed"),
    ] = ()
    train: Annotated[
        str | None, Option("Training", "Training data: retrain the model to test attention or interlocking.", "DATA")
    ] = None
    explainers: Annotated[
        tuple[str, ...],
        Option(
            "Audit",
            "Explainer (see: list explainers) or folder of fit-explainer; repeatable: requirements concern the first.",
            default="the model's",
            name="--explainer",
        ),
    ] = ()
    imports: tuple[str, ...] = ()
    """Modules that the user typed (--import).  A bundle records them; only typed ones are imported."""


def ignore(sentence: str) -> None:
    """Print nothing."""


@dataclass(frozen=True)
class Runtime:
    data_dir: Path | None = None
    device: str = "auto"
    batch_size: int = 256
    max_tokens: int = 1 << 13
    """Tokens in one forward pass with erased words; bounds the memory."""
    on_progress: OnProgress = no_progress
    """Progress callback: the task, the number of finished texts and the total."""
    announce: Callable[[str], None] = ignore
    """Prints a sentence before long work."""
    importable: frozenset[str] = frozenset()
    """Models MODULE:NAME that may be imported, which runs code: those that the user typed."""


@dataclass(frozen=True, kw_only=True)
class SubstitutionConfig:
    """Settings of the certificate: keyword arguments of `sg.certify`, and options of the command."""

    k: Annotated[int, Option("Model", "Top-k words to certify.", "N")] = 7
    max_substitutions: Annotated[
        int | None,
        Option(CERTIFICATE_PANEL, "Most substitutions that the model reads differently.", "N", "every word"),
    ] = None
    samples: Annotated[int, Option(CERTIFICATE_PANEL, "Rewrites to evaluate per text.", "N")] = 1000
    confidence: Annotated[float, Option(CERTIFICATE_PANEL, "Confidence of claims by sampling, for each text.")] = 0.99
    set_size: Annotated[int, Option(CERTIFICATE_PANEL, "Largest perturbation set of a word, for sampling.", "N")] = 100
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class SoftStabilityConfig:
    """Settings of the soft stability of texts."""

    top: float
    """Number of selected words, or a share of the words below 1."""
    added: int
    """Largest number of added words."""
    explainer: str = ""
    removal: Removal = "delete"
    """How words that are not selected are erased."""
    samples: int = SubstitutionConfig.samples
    confidence: float = SubstitutionConfig.confidence
    seed: int = 0

    @property
    def top_words(self) -> str:
        """
        >>> SoftStabilityConfig(top=0.2, added=3).top_words, SoftStabilityConfig(top=5, added=3).top_words
        ('20 %', '5')
        """
        return percent(self.top) if self.top < 1 else f"{self.top:,.0f}"


def top_and_added(name: str, value: Any) -> tuple[float, int]:
    """K and R of soft stability: a pair, or "K,R".

    >>> top_and_added("soft_stability", "5,3"), top_and_added("soft_stability", (0.2, 3))
    ((5, 3), (0.2, 3))
    """
    parts: Any = [_number(part) for part in value.split(",")] if isinstance(value, str) else value
    if not isinstance(parts, Sequence) or len(parts) != 2:
        raise argument_error(
            name, 'a pair K,R, such as "5,3" or "0.2,3": top words or their share, and added words', value
        )
    top, added = parts
    is_share = isinstance(top, float) and 0 < top < 1
    if not is_share and (not isinstance(top, int) or isinstance(top, bool) or top < 1):
        raise argument_error(f"K of {name}", "a whole number of words from 1 up, or a share between 0 and 1", top)
    return top, integer(1)(f"R of {name}", added)


def _number(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def check_no_substitutions(**options: Any) -> None:
    """Refuse options that have no effect without a synonym table; options with their default are allowed."""
    defaults = {"attention": AuditConfig.attention, **vars(SubstitutionConfig())}
    changed = [name for name, value in options.items() if value is not None and value != defaults.get(name)]
    if changed:
        verb = "needs" if len(changed) == 1 else "need"
        raise UserError(f"{', '.join(changed)} {verb} a synonym table: pass it as substitutions= (--substitutions)")


def check_only_soft_stability(others: Mapping[str, Any], config: SubstitutionConfig) -> None:
    """Refuse options of the other certificates; `others`: those of attention weights, and the synonym table."""
    used = [name for name, value in others.items() if value != ATTENTION_DEFAULTS.get(name)]
    defaults = SubstitutionConfig()
    used += [
        name for name in ("k", "max_substitutions", "set_size") if getattr(config, name) != getattr(defaults, name)
    ]
    if used:
        raise UserError(
            f"{', '.join(used)} cannot be combined with soft_stability= (--soft-stability K,R), which has its own "
            "number of words: certify each on its own"
        )
