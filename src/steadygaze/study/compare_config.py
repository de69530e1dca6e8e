"""The settings of a comparison."""

from collections.abc import Mapping
from typing import Annotated, Any

from steadygaze.core.errors import UserError, unknown
from steadygaze.core.settings import Field, field_names, settings
from steadygaze.data.splits import DataConfig
from steadygaze.data.synonym_tables import read_synonyms
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.estimator.train_config import LARGEST_SEED, TextConfig, TrainConfig, train_config
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.explainer import missing_capability
from steadygaze.explainers.resolve_explainer import default_explainer, unknown_explainer
from steadygaze.models.classifier import Architecture
from steadygaze.properties import check_name
from steadygaze.results.audit_config import ProbeConfig
from steadygaze.results.row import MeasureKey
from steadygaze.study.study_options import CompareOptions, untrained
from steadygaze.techniques import TECHNIQUES, find_technique
from steadygaze.training.optimizers import Training

BETWEEN = MeasureKey("jensen-shannon", "seeds")
"""The only measure between models."""
COLLAPSED = "collapsed"


@settings
class CompareConfig(CompareOptions, ProbeConfig, DataConfig):
    """The settings that determine the scores, besides versions and hardware.

    The audits use the fields of ProbeConfig, on the split of DataConfig: by default test, or else held-out texts.
    """

    seed: Annotated[int, Field(ge=0, le=LARGEST_SEED - 1000)] = 0
    """The first seed; also the seed of the audits."""
    settings: dict[str, Any] = Field(default_factory=dict)
    settings_for: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Technique -> its own settings."""
    train_limit: Annotated[int, Field(ge=1)] | None = None
    """At most so many training texts, drawn at random with the seed 0.  None: all."""
    measures: tuple[str, ...] = ()
    """Rows of the audits; other checks are left out if possible.  Empty: all."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """The seeds themselves."""
        return tuple(range(self.seed, self.seed + self.seeds))

    @property
    def baseline(self) -> str:
        return self.techniques[0]

    @property
    def compares_seeds(self) -> bool:
        """True if the divergence between seeds is measured."""
        return self.seeds > 1 and (not self.measures or str(BETWEEN) in self.measures)

    def explains(self, technique: str) -> str:
        """The explainer of the models of a technique."""
        return default_explainer(TECHNIQUES[technique].kind) if self.explainer is None else self.explainer

    def classifier(self, technique: str, seed: int, device: str = "auto") -> TextClassifier:
        """An untrained classifier."""
        return untrained(self, technique, seed, self.settings_for.get(technique, {}), device)

    def training(self, technique: str, seed: int | None = None) -> TrainConfig:
        """All settings of a technique, including defaults."""
        number = self.seed if seed is None else seed
        return train_config(self.classifier(technique, number).get_params(deep=False))


def check(config: CompareConfig) -> None:
    """Check the settings before the data are read."""
    for name in config.techniques:
        find_technique(name)
    if len(set(config.techniques)) < len(config.techniques):
        duplicate = next(name for name in config.techniques if config.techniques.count(name) > 1)
        raise UserError(f"{duplicate} is named twice among the techniques")
    if len(config.techniques) < 2:
        names = ", ".join(config.techniques) or "none"
        raise UserError(f"a comparison needs two techniques or more, found {names}: --techniques vanilla,consensus")
    for name in config.measures:
        check_name(name)
    for name in config.settings_for:
        if name not in config.techniques:
            raise unknown("technique of this comparison", name, config.techniques)
    _explainers(config)
    _settings_of_all(config.techniques, config.settings)
    for name in config.techniques:
        config.training(name)
    if isinstance(config.synonyms, str):
        read_synonyms(config.synonyms)


def _explainers(config: CompareConfig) -> None:
    """Refuse an explainer that does not support every technique."""
    for name in config.techniques:
        explainer = config.explains(name)
        if explainer not in EXPLAINERS:
            raise unknown_explainer(explainer)
        if reason := missing_capability(EXPLAINERS[explainer](), TECHNIQUES[name].kind):
            raise UserError(
                f"{explainer} cannot explain models of {name}: {reason}; without --explainer each has its default"
            )


def _settings_of_all(techniques: tuple[str, ...], values: Mapping[str, Any]) -> None:
    """Refuse a setting of all techniques that only some of them have."""
    common = {name for cls in (Architecture, Training, TextConfig) for name in field_names(cls)}
    for key in values.keys() - common:
        owners = [name for name in techniques if key in field_names(TECHNIQUES[name])]
        without_setting = [name for name in techniques if name not in owners]
        if owners and without_setting:
            raise UserError(
                f"{without_setting[0]} has no setting {key!r}, and --set is for all techniques: "
                f"--set-for {owners[0]}:{key}={values[key]}"
            )
