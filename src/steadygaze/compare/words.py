"""What a comparison says of itself, in plain words: what was done, and what the numbers can and cannot tell."""

from collections.abc import Sequence

from steadygaze.compare.identity import encoder, explainers, synonyms
from steadygaze.compare.material import HELD_OUT, KEPT_OUT, Material
from steadygaze.compare.order import Order
from steadygaze.compare.statistics import DRAWS, RESAMPLES, stretching
from steadygaze.report.comparison import SIGNIFICANT, Standing
from steadygaze.report.words import counted


def facts(order: Order, given: Material) -> dict[str, str]:
    sizes = ", ".join(f"{size:,} {name}" for name, size in given.corpus.sizes.items())
    return {
        "data": f"{given.corpus.name}: {sizes}",
        "audited with": f"{counted(len(given.examples), 'text')} of the split {given.split}",
        "techniques": ", ".join(order.techniques),
        "held against": order.baseline,
        "seeds": ", ".join(map(str, order.numbers)),
        "encoder": encoder(order),
        "explanation": explainers(order),
        "synonyms": synonyms(order) or "none: --synonyms FILE (synonyms=) gives a table of them",
    }


def notes(order: Order, given: Material, made: Sequence[Standing]) -> tuple[str, ...]:
    said = [_intervals(order), *_test(order), *_texts(order, given)]
    baseline = made[0]
    if baseline.silent:
        said.append(
            f"The baseline itself collapsed in {baseline.silent} of {len(order.numbers)} seeds: weights that say the "
            "same whatever the text hold still, so that whatever says something looks worse than it."
        )
    return tuple(said)


def _intervals(order: Order) -> str:
    if order.seeds == 1:
        return (
            f"Intervals are 95 % bootstrap intervals over texts alone ({DRAWS:,} draws).  One seed was trained: "
            "nothing here says what another seed would change.  Numbers for a whole set (macro-F1, calibration error) "
            "have none."
        )
    times = f"{stretching(order.seeds):.1f}"
    return (
        f"Intervals are 95 % bootstrap intervals: seeds and texts are drawn anew, {DRAWS:,} times, the same for all "
        "techniques.  Numbers for a whole set (macro-F1, calibration error) are drawn over seeds alone.  What lies "
        "between seeds belongs to pairs of them: what each seed adds is found by leaving it out, and two seeds are too "
        f"few to mark it.  {order.seeds} seeds say little of others: in the interval of a difference "
        f"what they differ by counts {times} times, as in Student's t."
    )


def _test(order: Order) -> list[str]:
    return [
        f"A technique is held against {order.baseline} text by text, each text's difference being the mean over seeds."
        f"  p: how often differences whose signs are thrown by a coin lie as far from 0 ({RESAMPLES:,} throws, or "
        "every pattern where there are few).  Holm's method corrects it for all comparisons of this table.",
        "The p is about texts: whether these very models would differ on other texts of the same kind.  It is not "
        "about training again.  That is for the interval of the difference, and for how many seeds have its sign.",
        f"A difference is marked where the corrected p is under {SIGNIFICANT} and its interval leaves out 0.  Better "
        "stability of weights that say the same whatever the text is bought, not earned, and is marked so.",
    ]


def _texts(order: Order, given: Material) -> list[str]:
    if given.split == HELD_OUT:
        return [
            f"The data have no test split: of every class one text in {KEPT_OUT} was kept out of training, by a seed "
            "that is always the same."
        ]
    if given.split == "validation":
        return ["The audited texts also chose the epoch of every model: what is said of the labels is too good."]
    return []
