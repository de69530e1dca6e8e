"""A report in which every word that somebody else may choose was chosen badly."""

import dataclasses
import math

from report.audited import explanation
from steadygaze.results.evaluation import Evaluation, WrongPrediction
from steadygaze.results.explanation import Explanations
from steadygaze.results.note import text_note
from steadygaze.results.recommendation import Recommendation, Tally
from steadygaze.results.report import Report
from steadygaze.results.row import Fact, PropertyFact, Row, Shift, Verdict

SCRIPT = "<script>document.title = 'ran'</script>"
IMAGE = "<img src=http://192.0.2.1/x onerror=\"document.title='ran'\">"


def hostile(bad: str) -> Report:
    """Every word that somebody else may choose, chosen badly."""
    e = explanation(f"very good {bad}", {"good": 0.5}, f"p{bad}", 0.9)
    e = dataclasses.replace(e, question=f"q{bad}", explainer=f"x{bad}")
    worse = dataclasses.replace(e, text=f"very bad. {bad}", label=f"n{bad}", tokens=("bad.", *e.tokens[1:]))
    rows = (
        Row(
            f"m{bad}", 0.5, 10, (0.4, 0.6), {"explainer": f"x{bad}", f"k{bad}": f"v{bad}"}, (text_note(f"note {bad}"),)
        ),
        Row(f"absent{bad}", math.nan, 0, absent=text_note(bad)),
        Row("collapsed", 1.0, 10, None, {"explainer": f"x{bad}"}, (text_note(f"all alike {bad}"),)),
    )
    marked = dataclasses.replace(e, rationales=((5, len(e.text)),), true_label=f"t{bad}")
    errors = (
        WrongPrediction(0, e.text, f"t{bad}", f"p{bad}", 0.9, marked),
        WrongPrediction(1, f"text {bad}", f"t{bad}", f"p{bad}", 0.8),
    )
    return Report(
        f"Title {bad}",
        rows,
        (
            Verdict(
                f"Question {bad}?",
                "no",
                (text_note(f"Because {bad}"),),
                (rows[0].signature,),
                f"key{bad}",
                {f"m{bad}": (0.1, 0.2)},
            ),
        ),
        (Shift(f"probe{bad}", 0.1, e, worse),),
        {
            "moves": [{"probe": f"probe{bad}", "distance": 0.1}, {"probe": "b", "distance": 0.2}],
            "aopc": [{"explainer": f"x{bad}", "share": s, "erased": s, "kept": s} for s in (0.1, 0.5)],
        },
        {"explanation": f"x{bad}", f"fact{bad}": f"value{bad}"},
        (text_note(f"Mind {bad}"),),
        {f"m{bad}": Fact(f"How much {bad}.", 0, 1, "lower", f"Somebody {bad}")},
        {f"probe{bad}": f"It was shaken {bad}."},
        {f"m{bad}": f"Heading {bad}"},
        ("steadygaze", bad),
        {f"package{bad}": f"1.0{bad}"},
        evaluation=Evaluation(f"model{bad}", (f"t{bad}", f"p{bad}"), rows[:1], ((0, 2), (0, 1)), errors),
        explanations=Explanations([marked]),
        properties=(
            PropertyFact(
                f"key{bad}",
                f"Question {bad}",
                f"Is it {bad}?",
                f"Short {bad}?",
                {f"m{bad}": f"Label {bad}"},
                {"no": f"It means {bad}."},
                f"noun {bad}",
            ),
        ),
        other_verdicts={f"y{bad}": (Verdict(f"Question {bad}?", "yes", (text_note(bad),), key=f"key{bad}"),)},
        recommendation=Recommendation(
            f"y{bad}", "fewer-no", (f"key{bad}",), (Tally(f"y{bad}"), Tally(f"x{bad}", (), (f"key{bad}",)))
        ),
    )
