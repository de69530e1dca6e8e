"""Settings of studies that are options of their commands.  Importing this module imports no torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import Ge, Interval

from steadygaze.core.arguments import Option
from steadygaze.results.audit_config import SYNONYM_TABLE

if TYPE_CHECKING:
    from steadygaze.estimator.text_classifier import TextClassifier

SCORE = "macro-f1"
"""The validation score of every epoch, by which trials are pruned."""
LEAST_TRIALS = 10_000
Table = str | dict[str, list[str]] | None
"""A file or a mapping."""
Epochs = Annotated[int | None, Ge(1), Option("Training", "Epochs.", "N", "8; more for small datasets")]
Vectors = Annotated[str | None, Option("Model", "Word vectors: GloVe file (.txt, .gz) or glove-50d.", default="random")]
SynonymTable = Annotated[Table, Option("Data", SYNONYM_TABLE, "FILE")]
MODELS_OF_A_TECHNIQUE = Option("Training", "Models per technique: --seed, --seed + 1, …", "N")


@dataclass(frozen=True, kw_only=True)
class StudyOptions:
    """How the models of a study are trained and audited."""

    encoder: Annotated[str, Option("Model", "Encoder; see: list encoders.")] = "bilstm"
    vectors: Vectors = None
    epochs: Epochs = None
    batch_size: int | None = None
    """Texts per training batch."""
    settings: dict[str, Any] = field(default_factory=dict)
    """Settings of all techniques; of a search: fixed settings."""
    synonyms: SynonymTable = None
    """For the audits.  None: no word is substituted."""
    synonym_groups: Annotated[Table, Option("Model", "Synonym groups (.json) or synonym table.", "FILE", "none")] = None
    """For all models.  None: every word has its own id."""


@dataclass(frozen=True, kw_only=True)
class CompareOptions(StudyOptions):
    """The techniques of a comparison."""

    techniques: Annotated[
        tuple[str, ...],
        Option("Training", "Techniques; the first is the baseline; see: list techniques.", "A,B,…", comma=True),
    ]
    seeds: Annotated[int, Interval(ge=1, le=1000), MODELS_OF_A_TECHNIQUE] = 3
    explainer: Annotated[str | None, Option("Model", "Explainer; see: list explainers.", default="the model's")] = None
    """None: the default of each model, attention or a rationale."""


@dataclass(frozen=True, kw_only=True)
class TuneOptions(StudyOptions):
    """The trials of a search."""

    technique: Annotated[str, Option("Training", "Technique; see: list techniques.")]
    trials: Annotated[int, Interval(ge=1, le=LEAST_TRIALS), Option("Training", "Models to train.", "N")] = 20
    objectives: Annotated[
        tuple[str, ...],
        Option(
            "Training",
            "Measures on validation texts; see: list measures.",
            "A,B",
            SCORE,
            name="--objective",
            comma=True,
        ),
    ] = (SCORE,)
    search: Annotated[tuple[str, ...], Option("Training", "Setting to vary in its own space; repeatable.", "KEY")] = ()
    """Settings to vary in their declared space, besides `spaces`."""
    prune: Annotated[
        bool, Option("Training", "Stop trials below the median of earlier ones.", name="--prune/--no-prune")
    ] = True
    """At the same epoch, by the validation score."""
    vary_seed: Annotated[bool, Option("Training", "Train each trial with another seed.")] = False
    """Trial n has the seed `seed` + n.  Otherwise all have the same: only their settings differ."""
    parallel: Annotated[int, Interval(ge=1, le=1000), Option("Runtime", "Trials that are proposed together.", "N")] = 4
    """From the results of all earlier ones; the number of workers may differ."""


@dataclass(frozen=True, kw_only=True)
class ReproduceOptions:
    """The choices of a run of a published table; the rest is in the table."""

    only: Annotated[
        tuple[str, ...],
        Option("Training", "Corpora, encoders, techniques or variants.", "A,B,…", "all of the table", comma=True),
    ] = ()
    """By our name or the paper's."""
    seeds: Annotated[int, Ge(1), MODELS_OF_A_TECHNIQUE] = 5
    seed: int = 0
    epochs: Epochs = None
    batch_size: int | None = None
    limit: Annotated[int | None, Ge(1), Option("Data", "Test texts.", "N", "all")] = None
    train_limit: Annotated[int | None, Ge(1), Option("Data", "Training texts, sampled at random.", "N", "all")] = None
    vectors: Vectors = None
    synonyms: SynonymTable = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Settings of all techniques."""
    notes: Annotated[
        tuple[str, ...],
        Option("Output", "Departure of this run, printed with the table; repeatable.", "TEXT", name="--note"),
    ] = ()


def untrained(
    options: StudyOptions, technique: str, seed: int, settings: Mapping[str, Any], device: str
) -> "TextClassifier":
    """The untrained classifier of a study; `settings`: those of this model, beside those of all."""
    from steadygaze.estimator.text_classifier import TextClassifier

    return TextClassifier(
        options.encoder,
        technique,
        seed=seed,
        epochs=options.epochs,
        vectors=options.vectors,
        settings={**options.settings, **settings},
        batch_size=options.batch_size,
        synonym_groups=options.synonym_groups,
        device=device,
        verbose=False,
    )
