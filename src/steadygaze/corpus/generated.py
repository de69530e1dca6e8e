"""Generated: a corpus that a function makes from a seed and options, as in `planted-reviews:aspect=palate`."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError, validate_call

from steadygaze.config import sentence
from steadygaze.corpus.corpus import Corpus
from steadygaze.errors import UserError, unknown
from steadygaze.types import Example


@dataclass(frozen=True)
class Generated:
    """The function's keyword arguments are the options; `seed=` among them fixes the texts whatever the run's seed."""

    about: str
    generate: Callable[..., dict[str, list[Example]]]

    def load(self, name: str, options: Mapping[str, Any], data_dir: Path | None, seed: int) -> Corpus:
        """Made anew, the same for the same seed and options; nothing is read."""
        known = inspect.signature(self.generate).parameters
        for option in options:
            if option not in known:
                raise unknown(f"option of {name}", option, known)
        try:
            splits = validate_call(self.generate)(**{"seed": seed, **options})
        except ValidationError as error:
            raise UserError(f"{name}: {sentence(error)}") from None
        written = ",".join(f"{key}={value}" for key, value in options.items())
        return Corpus(f"{name}:{written}" if written else name, splits, source="generated")
