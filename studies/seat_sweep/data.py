"""Texts of the sweep, and the folders of its reference models."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from steadygaze.data.corpora import load_corpus
from studies.data_folder import data_folder
from studies.seat_sweep.plan import DATA, TWO_EMOTIONS
from studies.stability.models import ModelOptions


@dataclass(frozen=True, kw_only=True)
class Options(ModelOptions):
    def examples(self, setting: str, split: str) -> list[Any]:
        return list(_split(setting, split, self.limit))

    def reference(self, setting: str, seed: int) -> Path:
        """The folder of the vanilla model that others start from or are compared with."""
        return self.out / "models" / f"{setting}.s{seed}"


@cache
def _split(setting: str, split: str, limit: int | None) -> tuple[Any, ...]:
    examples = load_corpus(DATA[setting], data_dir=data_folder(DATA[setting])).splits[split]
    if setting == "emotion-2":
        examples = [example for example in examples if example.label in TWO_EMOTIONS]
    return tuple(examples[:: max(1, len(examples) // limit) if limit else 1])
