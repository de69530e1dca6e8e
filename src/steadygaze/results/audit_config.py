"""Settings of audits and certificates.

AuditConfig: the settings that the numbers of an audit depend on; Runtime: those that they do not depend on.
SubstitutionConfig: the settings of the certificate of word substitutions.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge, Interval

from steadygaze.core.arguments import Option
from steadygaze.core.errors import UserError
from steadygaze.core.types import OnProgress, Removal, no_progress
from steadygaze.data.splits import COUNT, DataConfig
from steadygaze.results.model_options import ModelOptions

CERTIFICATE_PANEL = "Substitution certificate"
SYNONYM_TABLE = "Synonym table (.jsonl, .parquet, .json, .csv, .tsv, MyThes .dat) or WordNet folder."


@dataclass(frozen=True, kw_only=True)
class ProbeConfig:
    """Settings of the probes and protocols: keyword arguments of `sg.audit`, and options of the command."""

    radius: Annotated[
        float, Interval(ge=0, le=10), Option("Audit", "Perturbation of word vectors, in standard deviations.")
    ] = 0.1
    removal: Annotated[Removal, Option("Audit", "How words are erased.")] = "delete"
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


def check_no_substitutions(**options: Any) -> None:
    """Refuse options that have no effect without a synonym table; options with their default are allowed."""
    defaults = {"attention": AuditConfig.attention, **vars(SubstitutionConfig())}
    changed = [name for name, value in options.items() if value is not None and value != defaults.get(name)]
    if changed:
        verb = "needs" if len(changed) == 1 else "need"
        raise UserError(f"{', '.join(changed)} {verb} a synonym table: pass it as substitutions= (--substitutions)")
