"""Plot of docs/results/synonym-groups.md: label flips by technique and source of the groups."""

import altair as alt
import pandas as pd

from studies.figures.style import COLORS, Chart, panels, rounded, wide
from studies.synonyms.runs import BASE, study_records

LONG_STUDENT = "4-4-t2-e8-own-x0.5-s4"
GROUPED = {
    "vanilla": "vanilla",
    "word-at": "word-at",
    "4-4-t2-e2": "consensus with two short teachers",
    LONG_STUDENT: "consensus, long student",
}
GROUPS = {
    "none": "no groups",
    "cf": "counter-fitted table",
    "wn": "WordNet",
    "both": "both tables",
    "linked": "both tables, linked",
}
TABLES = {"cf3": "3 substitutions, counter-fitted table", "wn3": "3 substitutions, WordNet"}


def synonym_flips() -> Chart:
    records = study_records("long_student five_seeds", ["rotten_tomatoes", "sst2", "tweet_emotion"])
    lines = []
    for technique, name in GROUPED.items():
        for group, groups in GROUPS.items():
            if not records.present(row := (technique, group)):
                continue
            for probe, panel in TABLES.items():
                estimate = records.estimated_ratio(row, f"label-flip/{probe}")
                if row == BASE:
                    estimate = type(estimate)(1.0, 1.0, 1.0, 1.0)  # the denominator
                lines.append({"technique": name, "groups": groups, "panel": panel, **estimate._asdict()})
    names = list(GROUPED.values())
    base = alt.Chart(pd.DataFrame([rounded(line) for line in lines])).encode(
        y=alt.Y("groups:N", sort=list(GROUPS.values()), title="groups from"),
        yOffset=alt.YOffset("technique:N", sort=names),
        color=alt.Color("technique:N", sort=names, scale=alt.Scale(domain=names, range=COLORS), **wide()),
    )
    x = alt.X("low:Q", title="← fewer label flips; ratio to vanilla", scale=alt.Scale(domain=[0, 1.05], nice=False))
    bars = base.mark_rule(strokeWidth=2).encode(x=x, x2="high:Q")
    shape = alt.Shape("technique:N", sort=names, scale=alt.Scale(domain=names), **wide())
    points = base.mark_point(filled=True, size=45, opacity=1).encode(x="value:Q", shape=shape)
    chart: Chart = (bars + points).properties(width=250, height=150).facet(panels(TABLES.values()), columns=2)
    return chart
