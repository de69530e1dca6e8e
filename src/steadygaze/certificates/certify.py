"""certify: certificates of the attention weights of texts, of substitutions of their words, or of added words.

sg.certify(clf, texts, radius=0.01)                      certificates/certificate.py
sg.certify(model, texts, substitutions="table.jsonl")    certificates/substitution_certificate.py
sg.certify(model, texts, soft_stability=(0.2, 3))        certificates/soft_stability.py
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.certificates.certificate import Certificates, certify_attention
from steadygaze.certificates.soft_stability import certify_soft_stability
from steadygaze.certificates.substitution_certificate import certify_substitutions
from steadygaze.core import arguments
from steadygaze.core.arguments import choice, flag, instance, integer, number, optional, sequence_of, validated
from steadygaze.core.errors import UserError
from steadygaze.core.maths.distributions import Norm
from steadygaze.core.types import Label, OnProgress, Removal, no_progress
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models import inference
from steadygaze.results.audit_config import (
    ATTENTION_DEFAULTS,
    SubstitutionConfig,
    check_no_substitutions,
    check_only_soft_stability,
    top_and_added,
)
from steadygaze.results.soft_stability import SoftStabilities
from steadygaze.results.substitution_certificates import SubstitutionCertificates

RADIUS = 0.01


def probability(name: str, value: Any) -> float:
    """A number between 0 and 1, both excluded."""
    level: float = number()(name, value)
    if not 0 < level < 1:
        raise arguments.argument_error(name, "a number between 0 and 1", value)
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
    classes=optional(sequence_of),
    soft_stability=optional(top_and_added),
    removal=choice(*get_args(Removal)),
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
    soft_stability: tuple[float, int] | None = None,
    explainer: Any = None,
    removal: Removal = "delete",
    classes: Sequence[Label] | None = None,
    device: str = "auto",
    seed: int = 0,
    batch_size: int = inference.BATCH,
    on_progress: OnProgress = no_progress,
) -> Certificates | SubstitutionCertificates | SoftStabilities:
    """Certify, per text, that no change of its attention weights, or of its words, changes the label or the top words.

    By default, the certificate covers every change of the attention weights up to `radius`.  With `substitutions`, it
    covers every rewrite of a text by a synonym table.  With `soft_stability`, it bounds how often the label of the top
    words stays when other words of the text are added.

    Parameters
    ----------
    model : TextClassifier, str or Path, or any model with `substitutions` or `soft_stability`
        A fitted classifier or its folder: other models have no attention layer to certify.  With `substitutions` or
        `soft_stability`, any model that `sg.load` takes.
    texts : list of str, or list of (text, question)
        The texts.
    radius : float, default=None
        Largest change of the weights; None: 0.01.
    norm : "linf" or "l2", default="linf"
        Largest change of a weight, or root of the summed squared changes.
    k : int, default=7
        Number of top words to certify.
    simplex : bool, default=False
        Only changes that keep the sum of the weights; certifies more.
    reference : TextClassifier, default=None
        Another classifier of the same labels that splits texts into the same tokens, for β and γ.
    lower_bound : bool, default=False
        For a nonlinear decoder: a lower bound by gradient ascent, without certificate.
    substitutions : str, Path or dict, default=None
        A synonym table: a file, or a mapping of words to lists of words.
    max_substitutions : int, default=None
        Largest number of substitutions that the model reads differently; None: all words.
    samples : int, default=1000
        Rewrites, or sets of added words, to evaluate per text: all of them if there are no more, else random samples.
        The worst rewrite of an `average` or `cnn` encoder may cost as much.
    confidence : float, default=0.99
        Confidence of claims that rest on samples, for each text.
    set_size : int, default=100
        Largest size of a perturbation set, for sampling.
    soft_stability : (number, int), default=None
        K and R: the number of top words, or their share below 1, and the largest number of added words.
    explainer : str, Explainer, Captum method or fitted explainer, default=None
        With `soft_stability`: what ranks the words, as for `sg.explain`.
    removal : "delete", "pad" or "zero", default="delete"
        With `soft_stability`: how the other words are erased.
    classes : list of str or int, default=None
        With `substitutions` or `soft_stability`: class names, in the order of the probabilities.
    device : str, default="auto"
        Device of a model that this call loads.
    seed : int, default=0
        Random seed of the samples.
    batch_size : int, default=128
        Texts per batch.
    on_progress : function, default=no_progress
        Called with the task, the number of finished texts and the total.

    Returns
    -------
    Certificates, SubstitutionCertificates or SoftStabilities
        One certificate per text; `share_certified`, or `mean_rate`, summarizes them.

    Examples
    --------
    >>> import steadygaze as sg
    >>> def cheerful(texts): return [[0.1, 0.9] if "good" in text else [0.8, 0.2] for text in texts]
    >>> table = {"film": ["movie"], "good": ["fine"]}
    >>> certificates = sg.certify(cheerful, ["a good film"], substitutions=table, classes=["no", "yes"])
    >>> certificates[0].certified, certificates[0].counterexample
    (False, 'a fine film')
    """
    config = SubstitutionConfig(
        k=k, max_substitutions=max_substitutions, samples=samples, confidence=confidence, set_size=set_size, seed=seed
    )
    attention: dict[str, Any] = {
        "radius": radius,
        "norm": norm,
        "simplex": simplex,
        "lower_bound": lower_bound,
        "reference": reference,
    }
    if soft_stability is not None:
        check_only_soft_stability({**attention, "substitutions": substitutions}, config)
        adapter = as_adapter(model, classes=classes, device=device)
        sampled = config, batch_size, on_progress
        return certify_soft_stability(adapter, texts, soft_stability, explainer, removal, *sampled)
    if explainer is not None or removal != "delete":
        raise UserError("explainer and removal are about soft stability: pass soft_stability= (--soft-stability K,R)")
    if substitutions is None:
        check_no_substitutions(
            classes=None if classes is None else list(classes),
            max_substitutions=max_substitutions,
            samples=samples,
            confidence=confidence,
            set_size=set_size,
        )
        level = RADIUS if radius is None else radius
        bounded = norm, k, simplex, reference, lower_bound, batch_size, device, on_progress
        return certify_attention(model, texts, level, *bounded)
    if attention != ATTENTION_DEFAULTS:
        raise UserError(
            "radius, norm, simplex, reference and lower_bound are about attention weights: leave them out with "
            "substitutions="
        )
    adapter = as_adapter(model, classes=classes, device=device)
    return certify_substitutions(adapter, texts, substitutions, config, batch_size, on_progress)
