"""The settings of a hyper-parameter search."""

from dataclasses import dataclass
from typing import Annotated, Any

from steadygaze.core.errors import UserError, unknown
from steadygaze.core.search_space import SearchChoice, SearchRange, SearchSpace, declared_spaces
from steadygaze.core.settings import Field, settings
from steadygaze.data.splits import DataConfig
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.estimator.train_config import LARGEST_SEED, TextConfig, TrainConfig, setting_defaults, train_config
from steadygaze.models.classifier import Architecture
from steadygaze.properties import check_name, columns, measure_of
from steadygaze.results.audit_config import ProbeConfig
from steadygaze.study.study_options import LEAST_TRIALS, TuneOptions, untrained
from steadygaze.techniques import find_technique
from steadygaze.training.optimizers import Training


@dataclass(frozen=True)
class Objective:
    measure: str
    direction: str
    """maximize or minimize."""


@settings
class TuneConfig(TuneOptions, ProbeConfig, DataConfig):
    """The settings that determine the trials, besides versions and hardware."""

    seed: Annotated[int, Field(ge=0, le=LARGEST_SEED - LEAST_TRIALS)] = 0
    """Seed of the search and of every trial."""
    settings: dict[str, Any] = Field(default_factory=dict)
    spaces: dict[str, Any] = Field(default_factory=dict)
    """Setting -> SearchRange or SearchChoice.  Empty: those that the technique declares."""

    def seed_of(self, number: int) -> int:
        """The seed of a trial."""
        return self.seed + number if self.vary_seed else self.seed

    def classifier(self, number: int, values: dict[str, Any], device: str = "auto") -> TextClassifier:
        """The untrained classifier of a trial."""
        return untrained(self, self.technique, self.seed_of(number), values, device)

    def training(self, number: int, values: dict[str, Any]) -> TrainConfig:
        return train_config(self.classifier(number, values).get_params(deep=False))


def search_spaces(config: TuneConfig) -> dict[str, SearchSpace]:
    """The space of every setting that the search varies, by name."""
    technique = declared_spaces(find_technique(config.technique))
    declared = {
        **declared_spaces(Architecture),
        **declared_spaces(Training),
        **declared_spaces(TextConfig),
        **technique,
    }
    for name in config.search:
        if name not in declared:
            raise unknown("setting with a search space", name, declared)
    spaces = {**{name: declared[name] for name in config.search}, **config.spaces}
    if not spaces:
        spaces = technique or {"learning_rate": declared["learning_rate"]}
    spaces = {name: space for name, space in spaces.items() if name not in config.settings}
    if not spaces:
        raise UserError("every setting is fixed: vary one, for example --set learning_rate=0.0001:0.01:log")
    for name, space in spaces.items():  # both ends must be valid
        if not isinstance(space, SearchRange | SearchChoice):
            raise UserError(f"the search space of {name} is {space!r:.80}: pass spaces as search={{name: space}}")
        ends = space.values if isinstance(space, SearchChoice) else (space.low, space.high)
        for value in ends:
            config.training(0, {name: value})
    return spaces


def default_values(config: TuneConfig, spaces: dict[str, SearchSpace]) -> dict[str, Any] | None:
    """The default of every varied setting, for the first trial; None if one lies outside its space."""
    defaults = setting_defaults(config.technique)
    values = {name: defaults[name] for name in spaces}
    inside = [
        values[name] in space.values
        if isinstance(space, SearchChoice)
        else isinstance(values[name], int | float) and space.low <= values[name] <= space.high
        for name, space in spaces.items()
    ]
    return values if all(inside) else None


def objectives(config: TuneConfig) -> tuple[Objective, ...]:
    """The objectives with their directions."""
    if not config.objectives or len(set(config.objectives)) < len(config.objectives):
        raise UserError(f"objectives must be different measures, found {', '.join(config.objectives) or 'none'}")
    return tuple(map(_objective, config.objectives))


def _objective(name: str) -> Objective:
    """The direction is that of the column of a comparison, or else of the measure."""
    check_name(name)
    directions = {column.measure: column.direction for column in columns()}
    direction = directions.get(name, measure_of(name).direction)
    if direction == "neither":
        known = ", ".join(column for column, better in directions.items() if better != "neither")
        raise UserError(f"{name} has no better direction: it cannot be an objective; for example: {known}")
    return Objective(name, "minimize" if direction == "lower" else "maximize")
