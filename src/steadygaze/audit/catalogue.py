"""MEASURES: what each number is, once.  Read by the tests, the report and `steadygaze list measures`."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from steadygaze.audit.measure import agreement, calibration, erasure, plausibility, sparsity, stability

Better = Literal["higher", "lower", "neither"]


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure: the function and the facts about it."""

    fn: Callable[..., Any]
    bounds: tuple[float, float]
    better: Better
    """Neither: a number that is good under one change and bad under another, or no merit at all."""
    symmetric: bool
    """Whether the first two arguments may change places."""
    neutral: float | None
    """The value where the first two arguments are identical; None where they cannot be."""
    cite: str
    about: str
    per_example: bool = True
    """False: one number for a whole set, which has no mean over examples."""


_LN2 = math.log(2)
_ERASER = "DeYoung et al. 2020"

MEASURES: dict[str, Measure] = {
    "jensen-shannon": Measure(
        stability.jensen_shannon,
        bounds=(0, _LN2),
        better="neither",
        symmetric=True,
        neutral=0,
        cite="Lin 1991",
        about="How far the attention moved, in nats.",
    ),
    "total-variation": Measure(
        stability.total_variation,
        bounds=(0, 1),
        better="neither",
        symmetric=True,
        neutral=0,
        cite="—",
        about="How much of the attention moved to other words.",
    ),
    "top-k-overlap": Measure(
        stability.overlap,
        bounds=(0, 1),
        better="neither",
        symmetric=True,
        neutral=1,
        cite="Hu et al. 2022",
        about="Which part of the k heaviest words stayed among them.",
    ),
    "prediction-change": Measure(
        stability.prediction_change,
        bounds=(0, 1),
        better="neither",
        symmetric=True,
        neutral=0,
        cite="Jain & Wallace 2019",
        about="How much of the predicted probability moved to other classes.",
    ),
    "flipped": Measure(
        stability.flipped,
        bounds=(0, 1),
        better="neither",
        symmetric=True,
        neutral=0,
        cite="—",
        about="How often the predicted class changed.",
    ),
    "comprehensiveness": Measure(
        erasure.comprehensiveness,
        bounds=(-1, 1),
        better="higher",
        symmetric=False,
        neutral=0,
        cite=_ERASER,
        about="What the predicted class loses when the heaviest words are erased.",
    ),
    "sufficiency": Measure(
        erasure.sufficiency,
        bounds=(-1, 1),
        better="lower",
        symmetric=False,
        neutral=0,
        cite=_ERASER,
        about="What the predicted class loses when only the heaviest words are left.",
    ),
    "pearson": Measure(
        agreement.pearson,
        bounds=(-1, 1),
        better="higher",
        symmetric=True,
        neutral=1,
        cite="Kitada & Iyatomi 2021",
        about="Whether two explanations give the same words the same share.",
    ),
    "kendall": Measure(
        agreement.kendall,
        bounds=(-1, 1),
        better="higher",
        symmetric=True,
        neutral=1,
        cite="Jain & Wallace 2019",
        about="Whether two explanations put the words in the same order.",
    ),
    "token-precision": Measure(
        plausibility.token_precision,
        bounds=(0, 1),
        better="higher",
        symmetric=False,
        neutral=1,
        cite=_ERASER,
        about="Which part of the chosen words a person marked too.",
    ),
    "token-recall": Measure(
        plausibility.token_recall,
        bounds=(0, 1),
        better="higher",
        symmetric=False,
        neutral=1,
        cite=_ERASER,
        about="Which part of the words a person marked was chosen.",
    ),
    "token-f1": Measure(
        plausibility.token_f1,
        bounds=(0, 1),
        better="higher",
        symmetric=False,
        neutral=1,
        cite=_ERASER,
        about="Precision and recall of the chosen words in one number.",
    ),
    "iou-f1": Measure(
        plausibility.iou_f1,
        bounds=(0, 1),
        better="higher",
        symmetric=False,
        neutral=1,
        cite=_ERASER,
        about="Precision and recall of runs of words that match by half or more.",
    ),
    "evidence-mass": Measure(
        plausibility.evidence_mass,
        bounds=(0, 1),
        better="higher",
        symmetric=False,
        neutral=1,
        cite="—",
        about="Which part of the weight lies on words a person marked.",
    ),
    "auprc": Measure(
        plausibility.auprc,
        bounds=(0, 1),
        better="higher",
        symmetric=False,
        neutral=1,
        cite=_ERASER,
        about="How well the weights rank marked words above the others.",
    ),
    "first-sentence-share": Measure(
        plausibility.first_sentence_share,
        bounds=(0, 1),
        better="neither",
        symmetric=False,
        neutral=1,
        cite="Yu et al. 2021",
        about="Which part of the weight lies in the first sentence: a place, not a reason.",
    ),
    "evenness": Measure(
        sparsity.evenness,
        bounds=(0, 1),
        better="neither",
        symmetric=False,
        neutral=None,
        cite="—",
        about="1: all words weigh alike; 0: one word has all the weight.",
    ),
    "from-uniform": Measure(
        sparsity.from_uniform,
        bounds=(0, _LN2),
        better="neither",
        symmetric=False,
        neutral=None,
        cite="Lin 1991",
        about="How far the weights are from all alike, in nats.",
    ),
    "expected-calibration-error": Measure(
        calibration.expected_calibration_error,
        bounds=(0, 1),
        better="lower",
        symmetric=False,
        neutral=None,
        cite="Guo et al. 2017",
        about="How far the stated confidence is from the share of right answers.",
        per_example=False,
    ),
}
