"""A report as an audit makes it, typed in by hand, with the descriptions of the measures and probes."""

import math
import random
import re
from dataclasses import replace
from functools import cache

from steadygaze.properties import conditions, facts, property_facts
from steadygaze.results.evaluation import Evaluation, ReliabilityBin, WrongPrediction
from steadygaze.results.explanation import Explanation, Explanations
from steadygaze.results.note import text_note
from steadygaze.results.recommendation import recommend
from steadygaze.results.report import Report
from steadygaze.results.row import Row, Shift, Verdict

NAN = math.nan
LN2 = math.log(2)
KNOWN = {"corpus": "planted-reviews", "split": "test", "data": "3f6c1a9be0d2", "model": "a41c77e05b19", "seed": 0}
STABILITY_TITLE, FAITHFULNESS_TITLE = "Stability under rewording", "Faithfulness"
SEEDS, SHORTCUT = "Seed consistency", "No shortcut leakage"
PLAUSIBILITY_TITLE = "Plausibility"
ABOUT = {name: conditions()[name] for name in ("noise", "3-synonyms", "reworded", "reworded-top", "above-random")}
LIMITS = {
    "collapsed": (0.0, 1.0),
    "weight-correlation/reworded": (0.7, 0.65),
    "weight-correlation/reworded-top": (0.7, 0.65),
    "comprehensiveness/above-random": (0.05, 0.02),
    "position-leak": (0.05, 0.1),
}
MEANINGS = {
    name: facts()[name]
    for name in (
        "accuracy",
        "collapsed",
        "jensen-shannon",
        "weight-correlation",
        "top-k-overlap",
        "comprehensiveness",
        "sufficiency",
        "position-leak",
        "auprc",
        "normalized-entropy",
    )
}


def row(measure: str, value: float, spread: float | None = None, explain: str | None = "attention", **more) -> Row:
    """One number of 400 texts; NaN: not applicable."""
    notes, absent, n = more.pop("notes", ()), more.pop("absent", None), 0 if math.isnan(value) else 400
    settings = {**KNOWN, **more, "v": "0.1.0", **({"explainer": explain} if explain else {})}
    return Row(
        measure, value, n, None if spread is None else (value - spread, value + spread), settings, notes, absent=absent
    )


ALONE = text_note("only one model was given: name others trained alike, with other seeds")
ROWS = (
    row("accuracy", 0.9125, 0.028, None),
    row("collapsed", 0.0),
    row("normalized-entropy", 0.413, 0.02),
    row("weight-correlation/reworded", 0.812, 0.02, share=0.1),
    row("weight-correlation/reworded-top", 0.681, 0.024, share=0.1),
    row("jensen-shannon/noise", 0.0031, 0.0006, radius=0.1),
    row("jensen-shannon/3-synonyms", 0.0712, 0.011),
    row("top-k-overlap/3-synonyms", 0.78, 0.03, k=7),
    row("jensen-shannon/noise", 0.0524, 0.006, "gradient", radius=0.1),
    row("jensen-shannon/3-synonyms", 0.1412, 0.02, "gradient"),
    row("comprehensiveness", 0.412, 0.03, erase="delete", sizes="1,5,10,20,50%"),
    row("comprehensiveness/above-random", 0.301, 0.03, erase="delete", sizes="1,5,10,20,50%"),
    row("sufficiency", 0.04, 0.02, erase="delete", sizes="1,5,10,20,50%"),
    row("comprehensiveness", 0.111, 0.02, "random", erase="delete", sizes="1,5,10,20,50%"),
    row("comprehensiveness", 0.436, 0.03, "gradient", erase="delete", sizes="1,5,10,20,50%"),
    row("position-leak", 0.132, 0.02),
    row("jensen-shannon/seeds", NAN, absent=ALONE),
    row("top-k-overlap/seeds", NAN, absent=ALONE),
    row("auprc", NAN, absent=text_note("nobody marked words in these texts")),
)


def signed(measure: str) -> str:
    return next(row.signature for row in ROWS if row.measure == measure)


def limited(*measures: str) -> dict:
    return {"rows": tuple(map(signed, measures)), "thresholds": {name: LIMITS[name] for name in measures}}


VERDICTS = (
    Verdict(
        STABILITY_TITLE,
        "undecided",
        (text_note("with the highlighted words reworded, the weights correlate 0.681"),),
        key="stability",
        **limited("weight-correlation/reworded-top", "weight-correlation/reworded"),
    ),
    Verdict(
        FAITHFULNESS_TITLE,
        "yes",
        (text_note("erasing the highlighted words costs the label 0.301 more probability than erasing random ones"),),
        key="faithfulness",
        **limited("comprehensiveness/above-random"),
    ),
    Verdict(SEEDS, "not measured", (ALONE,), key="seed-consistency"),
    Verdict(
        SHORTCUT,
        "no",
        (text_note("the place of the highlighted words alone gives the label away (0.132 above guessing)"),),
        key="shortcut-leakage",
        **limited("position-leak"),
    ),
    Verdict(PLAUSIBILITY_TITLE, "not measured", (text_note("nobody marked words in these texts"),), key="plausibility"),
)


def explanation(text: str, weights: dict[str, float], label: str, sure: float) -> Explanation:
    """Every word that is not named shares what is left."""
    result = list(re.finditer(r"\w+|[^\w\s]", text))
    rest = (1 - sum(weights.values())) / max(1, sum(word.group() not in weights for word in result))
    return Explanation(
        text,
        tuple(word.group() for word in result),
        tuple(word.span() for word in result),
        tuple(weights.get(word.group(), rest) for word in result),
        label,
        {label: sure, "negative" if label == "positive" else "positive": 1 - sure},
    )


LONG = "The plot wanders from the harbor to the hills and back, and nobody on the screen seems to mind. " * 25
SHIFTS = (
    Shift(
        "3-synonyms",
        0.2131,
        explanation("The acting is superb, but the story drags on.", {"superb": 0.7, "drags": 0.1}, "positive", 0.81),
        explanation("The acting is great, but the tale plods on.", {"great": 0.2, "plods": 0.6}, "negative", 0.64),
    ),
    Shift(
        "3-synonyms",
        0.0932,
        explanation("A gorgeous, witty, seductive movie.", {"gorgeous": 0.5, "witty": 0.3}, "positive", 0.98),
        explanation("A gorgeous, funny, alluring film.", {"gorgeous": 0.8, "funny": 0.1}, "positive", 0.97),
    ),
    Shift(
        "3-synonyms",
        0.0411,
        explanation("Nothing here is worth two hours.", {"Nothing": 0.4, "worth": 0.4}, "negative", 0.93),
        explanation("Nothing here merits two hours.", {"Nothing": 0.5, "merits": 0.3}, "negative", 0.91),
    ),
    Shift(
        "noise",
        0.0144,
        explanation(LONG + "It is dull.", {"dull": 0.5}, "negative", 0.7),
        explanation(LONG + "It is dull.", {"dull": 0.4, "mind": 0.008}, "negative", 0.66),
    ),
)  # fmt: skip


@cache
def plots() -> dict[str, list[dict[str, str | float]]]:
    """Points that look as an audit's do, the same every time."""
    generator = random.Random(0)
    probes = {"noise": 0.004, "1-synonym": 0.03, "3-synonyms": 0.07, "fgm-label": 0.05, "pgd-attention": 0.16}
    share = [generator.betavariate(1.2, 3) for _ in range(600)]
    losses = {"attention": 0.5, "gradient": 0.55, "leave-one-out": 0.6, "random": 0.15}
    sizes = (0.01, 0.05, 0.1, 0.2, 0.5)
    words = [generator.betavariate(0.3, 6) for _ in range(1000)]
    return {
        "moves": [
            {"probe": name, "distance": round(min(LN2, generator.gammavariate(1.5, mean / 1.5)), 5)}
            for name, mean in probes.items()
            for _ in range(200)
        ],
        "seeds": [
            {"max": round(m, 4), "distance": round(0.5 * generator.betavariate(2, 3 + 14 * m), 5)} for m in share
        ],
        "aopc": [
            {"explainer": name, "share": size, "erased": most * size**0.4, "kept": 0.6 * (1 - size) ** 3 * (0.7 - most)}
            for name, most in losses.items()
            for size in sizes
        ],
        "gradient": [
            {"attention": round(w, 4), "gradient": round(min(1.0, w * generator.lognormvariate(0, 0.7)), 4)}
            for w in words
        ],
    }


ANNOTATED = replace(
    explanation("The acting is superb, but the story drags on.", {"superb": 0.7, "drags": 0.1}, "positive", 0.81),
    true_label="negative",
    rationales=((14, 20), (36, 44)),
)
LONG_ANNOTATED = replace(SHIFTS[3].before, rationales=((4, 17), (len(LONG), len(LONG) + 11)))
UNEXPLAINED = WrongPrediction(7, "pneumonoultramicroscopic" * 20, "positive", "negative", 0.6)


RELIABILITY = (
    ReliabilityBin(0.5, 0.6, 24, 0.55, 0.5, (0.314, 0.686)),
    ReliabilityBin(0.6, 0.7, 52, 0.66, 0.75, (0.618, 0.848)),
    ReliabilityBin(0.9, 1.0, 324, 0.97, 0.972, (0.948, 0.985)),
)


def evaluation() -> Evaluation:
    errors = (WrongPrediction(3, ANNOTATED.text, "negative", "positive", 0.81, ANNOTATED), UNEXPLAINED)
    counts = ((180, 20), (14, 186))
    return Evaluation("reviews-model", ("negative", "positive"), ROWS[:1], counts, errors, reliability=RELIABILITY)


def full_report(**changes) -> Report:
    parts = {
        "title": "Audit of the explanations",
        "rows": ROWS,
        "verdicts": VERDICTS,
        "shifts": SHIFTS,
        "plots": plots(),
        "facts": {
            "model": "reviews-model",
            "model type": "a steadygaze classifier",
            "encoder": "bilstm",
            "technique": "consensus",
            "explanation": "attention",
            "texts": "400 texts",
            "corpus": "planted-reviews",
            "split": "test",
        },
        "notes": (text_note("Four texts were longer than the model reads."),),
        "measures": MEANINGS,
        "properties": property_facts(),
        "probes": ABOUT,
        "sections": {
            "accuracy": "Correctness",
            **dict.fromkeys(
                (
                    "collapsed",
                    "normalized-entropy",
                    "weight-correlation/reworded",
                    "weight-correlation/reworded-top",
                    "jensen-shannon/noise",
                    "jensen-shannon/3-synonyms",
                ),
                STABILITY_TITLE,
            ),
            "top-k-overlap/3-synonyms": STABILITY_TITLE,
            **dict.fromkeys(("comprehensiveness", "comprehensiveness/above-random", "sufficiency"), FAITHFULNESS_TITLE),
            **dict.fromkeys(("jensen-shannon/seeds", "top-k-overlap/seeds"), SEEDS),
            "position-leak": SHORTCUT,
            "auprc": PLAUSIBILITY_TITLE,
        },
        "evaluation": evaluation(),
        "explanations": Explanations([ANNOTATED, SHIFTS[1].before, LONG_ANNOTATED]),
        "command": ("steadygaze", "audit", "model/", "--data", "planted-reviews", "--bundle", "my bundle/"),
        "versions": {"steadygaze": "0.1.0", "torch": "2.13.0", "numpy": "2.4.6", "python": "3.11.9"},
    }
    return Report(**{**parts, **changes})


OTHER_ANSWERS = {
    "gradient": ("no", "no", "not measured", "undecided", "yes"),
    "integrated-gradients": ("undecided", "yes", "not measured", "yes", "yes"),
}


def answered(*answers: str) -> tuple[Verdict, ...]:
    """Verdicts with these answers, in the order of `VERDICTS`."""
    return tuple(replace(verdict, answer=answer) for verdict, answer in zip(VERDICTS, answers, strict=True))


def several_explainers(**changes) -> Report:
    """A report about three explainers; the last is recommended."""
    others = {name: answered(*answers) for name, answers in OTHER_ANSWERS.items()}
    report = full_report(other_verdicts=others, **changes)
    return replace(report, recommendation=recommend(report.verdicts_by))
