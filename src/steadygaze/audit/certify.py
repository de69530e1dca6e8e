"""certify: certificates of the attention weights of texts, or of substitutions of their words.

sg.certify(clf, texts, radius=0.01)                   audit/certificate.py
sg.certify(model, texts, substitutions="table.jsonl")    audit/substitution_certificate.py
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from steadygaze.audit.certificate import Certificates, certify_attention
from steadygaze.audit.substitution_certificate import certify_substitutions
from steadygaze.core.arguments import argument_error, choice, flag, instance, integer, number, optional, validated
from steadygaze.core.errors import UserError
from steadygaze.core.maths.ranking import Norm
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models import inference
from steadygaze.results.substitution_certificates import SubstitutionCertificates
from steadygaze.results.substitution_config import SubstitutionConfig

RADIUS = 0.01


def probability(name: str, value: Any) -> float:
    """A number between 0 and 1, both excluded."""
    level: float = number()(name, value)
    if not 0 < level < 1:
        raise argument_error(name, "a number between 0 and 1", value)
    return level


@validated(
    radius=optional(number(above=0)),
    norm=choice(*get_args(Norm)),
    k=integer(1),
    simplex=flag,
    reference=optional(instance(TextClassifier, "a TextClassifier")),
    lower_bound=flag,
    max_substitutions=optional(integer(1)),
    samples=integer(2),
    confidence=probability,
    set_size=integer(1),
    seed=integer(0),
    batch_size=integer(1),
)
def certify(
    model: Any,
    texts: Any,
    radius: float | None = None,
    norm: Norm = "linf",
    k: int = 7,
    simplex: bool = False,
    reference: TextClassifier | None = None,
    *,
    lower_bound: bool = False,
    substitutions: str | Path | Mapping[str, Sequence[str]] | None = None,
    max_substitutions: int | None = None,
    samples: int = 1000,
    confidence: float = 0.99,
    set_size: int = 100,
    seed: int = 0,
    batch_size: int = inference.BATCH,
) -> Certificates | SubstitutionCertificates:
    """Certify, per text, that no change of its attention weights, or of its words, changes the label or the top words.

    Without `substitutions`: every change of the attention weights up to `radius`.  `model` is a fitted TextClassifier,
    or its folder; other models have no attention layer to certify.  Returns Certificates.

    radius      largest change of the weights; None: 0.01
    norm        "linf": largest change of a weight; "l2": root of the summed squared changes
    simplex     only changes that keep the sum of the weights; certifies more
    reference   another fitted classifier of the same labels that splits texts into the same tokens, for β and γ
    lower_bound for a nonlinear decoder: a lower bound by gradient ascent, without certificate

    With `substitutions`, a synonym table (a file, or a mapping of words to lists of words): every rewrite of a text by
    the table.  Any model, as for `steadygaze.load`.  Returns SubstitutionCertificates.

    max_substitutions  largest number of substitutions that the model reads differently; None: all words
    samples            rewrites to evaluate per text: all of them if there are no more, else random samples; the
                       worst rewrite of an `average` or `cnn` encoder may cost as much
    confidence         of claims that rest on samples, for each text
    set_size           largest size of a perturbation set, for sampling
    """
    if substitutions is None:
        if max_substitutions is not None:
            raise UserError("max_substitutions needs a synonym table: pass it as substitutions= (--substitutions)")
        level = RADIUS if radius is None else radius
        return certify_attention(model, texts, level, norm, k, simplex, reference, lower_bound, batch_size)
    if radius is not None or norm != "linf" or simplex or lower_bound or reference is not None:
        raise UserError(
            "radius, norm, simplex, reference and lower_bound are about attention weights: leave them out with "
            "substitutions="
        )
    config = SubstitutionConfig(
        k=k,
        max_substitutions=max_substitutions,
        samples=samples,
        confidence=confidence,
        set_size=set_size,
        seed=seed,
    )
    return certify_substitutions(model, texts, substitutions, config, batch_size)
