"""SubstitutionConfig: the settings of the certificate of word substitutions."""

from dataclasses import dataclass
from typing import Annotated

from steadygaze.core.arguments import Option

PANEL = "Substitution certificate"


@dataclass(frozen=True, kw_only=True)
class SubstitutionConfig:
    """Settings of the certificate: keyword arguments of `sg.certify`, and options of the command."""

    k: Annotated[int, Option("Model", "Top-k words to certify.", "N")] = 7
    max_substitutions: Annotated[
        int | None, Option(PANEL, "Most substitutions that the model reads differently.", "N", "every word")
    ] = None
    samples: Annotated[int, Option(PANEL, "Rewrites to evaluate per text.", "N")] = 1000
    confidence: Annotated[float, Option(PANEL, "Confidence of claims by sampling, for each text.")] = 0.99
    set_size: Annotated[int, Option(PANEL, "Largest perturbation set of a word, for sampling.", "N")] = 100
    seed: int = 0
