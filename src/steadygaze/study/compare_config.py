"""COLUMNS: what techniques are compared by, in the order of the table, and which end of each is the good one.

What a comparison was asked to do, checked before anything is read or written.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from steadygaze.core.errors import UserError, unknown
from steadygaze.core.settings import Field, field_names, settings
from steadygaze.data.synonyms import read_synonyms
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.estimator.train_config import LARGEST_SEED, TextConfig
from steadygaze.estimator.train_config import TrainConfig as ModelOrder
from steadygaze.estimator.train_config import train_config as ordered
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.resolve import default_explainer, missing_capability
from steadygaze.models.classifier import Architecture
from steadygaze.results.comparison import Column
from steadygaze.techniques import TECHNIQUES
from steadygaze.training.optimizers import Training

BETWEEN = "jensen-shannon/seeds"
"""The one number that no model has alone."""
COLLAPSED = "collapsed"

COLUMNS = (
    Column("macro-f1", "macro-F1", "F1 of each class, every class counting alike", "higher"),
    Column("accuracy", "accuracy", "how often the predicted label is right", "higher", brief=False),
    Column(
        "expected-calibration-error",
        "calibration error",
        "how far the stated confidence is from the share of right answers",
        "lower",
        brief=False,
    ),
    Column(
        "jensen-shannon/noise", "JSD noise", "how far the weights move under a little noise", "lower", stability=True
    ),
    Column(
        "jensen-shannon/fgm-label",
        "JSD worst",
        "how far they move under the worst little change of the vectors",
        "lower",
        stability=True,
    ),
    Column(
        "jensen-shannon/1-synonym",
        "JSD 1 synonym",
        "how far they move when one word is exchanged for a synonym",
        "lower",
        stability=True,
    ),
    Column(
        "jensen-shannon/3-synonyms",
        "JSD 3 synonyms",
        "how far they move when three words are exchanged",
        "lower",
        stability=True,
    ),
    Column("label-flip/3-synonyms", "flips", "how often the label changes when three words are exchanged", "lower"),
    Column(
        "comprehensiveness/above-random",
        "compreh. above random",
        "what the label loses without the heaviest words, beyond what it loses without random ones",
        "higher",
    ),
    Column(
        "normalized-entropy",
        "normalized-entropy",
        "1: all words weigh alike; 0: one word has all the weight",
        "neither",
    ),
    Column(
        BETWEEN,
        "JSD seeds",
        "how far two models that differ by their seed alone are apart",
        "lower",
        stability=True,
    ),
)


@settings
class CompareConfig:
    """What the numbers depend on, besides versions and hardware."""

    data: str
    techniques: tuple[str, ...]
    """The first is the baseline that the others are held against."""
    seeds: Annotated[int, Field(ge=1, le=1000)] = 3
    """How many models each technique trains."""
    seed: Annotated[int, Field(ge=0, le=LARGEST_SEED - 1000)] = 0
    """The first of them, the others following; whatever an audit draws is drawn from it too."""
    encoder: str = "bilstm"
    vectors: str | None = None
    epochs: int | None = None
    batch_size: int | None = None
    """Texts in a step of training."""
    settings: dict[str, Any] = Field(default_factory=dict)
    """Of all techniques."""
    settings_for: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Technique -> what is set for it alone."""
    explainer: str | None = None
    """None: what each model shows of itself, attention or a rationale."""
    synonyms: str | dict[str, list[str]] | None = None
    """For the audit: a file or a mapping.  None: no word is substituted."""
    split: str | None = None
    """What is audited.  None: test; where there is none, a part of the training texts is kept out of training."""
    limit: Annotated[int, Field(ge=1)] | None = None
    """Texts audited, drawn by the seed; None: all."""
    text: tuple[str, ...] = ("text",)
    label: str = "label"
    rationales: str | None = None
    drop_empty: bool = False

    @property
    def numbers(self) -> tuple[int, ...]:
        """The seeds themselves."""
        return tuple(range(self.seed, self.seed + self.seeds))

    @property
    def baseline(self) -> str:
        return self.techniques[0]

    def explains(self, technique: str) -> str:
        """The explainer that its models are asked for."""
        return default_explainer(TECHNIQUES[technique].kind) if self.explainer is None else self.explainer

    def classifier(self, technique: str, seed: int, device: str = "auto") -> TextClassifier:
        """One that has not been trained yet."""
        return TextClassifier(
            self.encoder,
            technique,
            seed=seed,
            epochs=self.epochs,
            vectors=self.vectors,
            settings={**self.settings, **self.settings_for.get(technique, {})},
            batch_size=self.batch_size,
            device=device,
            verbose=False,
        )

    def training(self, technique: str, seed: int | None = None) -> ModelOrder:
        """Every setting of it, the defaults too."""
        number = self.seed if seed is None else seed
        return ordered(self.classifier(technique, number).get_params(deep=False))


def check(order: CompareConfig) -> None:
    """All that can be refused before the data are read."""
    for name in order.techniques:
        if name not in TECHNIQUES:
            raise unknown("technique", name, TECHNIQUES)
    if len(set(order.techniques)) < len(order.techniques):
        twice = next(name for name in order.techniques if order.techniques.count(name) > 1)
        raise UserError(f"{twice} is named twice among the techniques")
    if len(order.techniques) < 2:
        found = ", ".join(order.techniques) or "none"
        raise UserError(f"a comparison needs two techniques or more, found {found}: --techniques vanilla,consensus")
    for name in order.settings_for:
        if name not in order.techniques:
            raise unknown("technique of this comparison", name, order.techniques)
    _explainers(order)
    _settings_of_all(order.techniques, order.settings)
    for name in order.techniques:
        order.training(name)
    if isinstance(order.synonyms, str):
        read_synonyms(order.synonyms)


def _explainers(order: CompareConfig) -> None:
    """What cannot explain every model is refused before the first is trained."""
    for name in order.techniques:
        asked = order.explains(name)
        if asked not in EXPLAINERS:
            raise unknown("explainer", asked, EXPLAINERS)
        if why := missing_capability(EXPLAINERS[asked](), TECHNIQUES[name].kind):
            raise UserError(
                f"{asked} cannot explain models of {name}: {why}; without --explainer each is asked for what it shows"
            )


def _settings_of_all(techniques: tuple[str, ...], given: Mapping[str, Any]) -> None:
    """What only some of the techniques know is set for them, by name: it may mean another thing in each."""
    shared = {name for cls in (Architecture, Training, TextConfig) for name in field_names(cls)}
    for key in given.keys() - shared:
        owners = [name for name in techniques if key in field_names(TECHNIQUES[name])]
        others = [name for name in techniques if name not in owners]
        if owners and others:
            raise UserError(
                f"{others[0]} has no setting {key!r}, and --set is for all techniques: "
                f"--set-for {owners[0]}:{key}={given[key]}"
            )
