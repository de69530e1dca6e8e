"""Why a model that selects its rationales may lock on to the worse sentence: a toy of two sentences, computed.

    python examples/interlocking.py [interlocking.png]

Every text has two sentences.  The better one tells the label in 85 of 100 texts, the worse one in 80; but a word that
praises in the one blames in the other.  Who reads both by one rule must go by one sentence or be confused.

A model chooses the better sentence with some chance, from never to always.  For each chance the loss is shown that the
best predictors would have, the lower the better.  Models go downhill as they hear it, and all begin where the worse
sentence is chosen in 95 of 100 texts: do they arrive at the better one?

    selection    one sentence is read.  Uphill from either end: the model stays at the worse sentence, locked
    attention    both are read, weighted by the chance.  Downhill to a place between them, which explains neither
    A2R          both at once, tied together by λ (`agreement`).  With a small λ it ends where attention does, on the
                 side of the better sentence; with a large one it stays on the side where it began

Much depends on whether the predictor is told which sentence it reads: selection that is told does not lock, attention
that is not told does.  After Fig. 2 of Yu et al. 2021 (A2R); how it is computed: steadygaze/maths/interlocking.py.
"""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from examples.interlocking_theory import a2r, assumptions, attention, descend, selection, selection_slope, toy

STRENGTHS = (0.3, 1.0, 2.0, 5.0)
START = 0.05
SHARES = np.linspace(0, 1, 51)
NEAR = 0.01
"""From an end: nearer than this is at the end."""
MISSING = "The picture needs two more packages: pip install 'steadygaze[examples]'."
COLORS = {
    "selection": "#c0392b",
    "selection, told which sentence": "#e59a8f",
    "attention": "#1f5fa8",
    "attention, not told which": "#8fb3dd",
    "A2R, λ = 0.3": "#cccccc",
    "A2R, λ = 1": "#999999",
    "A2R, λ = 2": "#5f5f5f",
    "A2R, λ = 5": "#1a1a1a",
}
PARTS = {
    "Selection: lowest at an end, either end": ("selection", "selection, told which sentence"),
    "Attention: lowest in between": ("attention", "attention, not told which"),
    "A2R: between the two; dots: where models end": (
        "selection",
        "attention",
        *(name for name in COLORS if name.startswith("A2R")),
    ),
}
AXIS = "datum.value == 0 ? 'never' : datum.value == 1 ? 'always' : 'half of the time'"


def main(out: Path) -> None:
    joint = toy()
    losses = {name: list(curve) for name, curve in curves(joint)}
    ends = dict(paths(joint))
    print("Loss in nats where the better sentence is chosen")
    print(f"{'':32}never     half    always   begun at {START:g}, a model ends at")
    for name, curve in losses.items():
        end = f"{ends[name]:.2f}: {where(ends[name])}"
        print(f"{name:32}{curve[0]:.4f}    {curve[len(curve) // 2]:.4f}  {curve[-1]:.4f}   {end}")
    print("\nThe paper proves that attention has one lowest place, if μ ≥ l:")
    for name, told in (("attention", True), ("attention, not told which", False)):
        strong, regret = assumptions(joint, SHARES.tolist(), told)
        comment = "so it has" if strong >= regret else "which is not so here"
        print(f"{name:32}μ = {strong:.3f}, l = {regret:.3f}, {comment}")
    draw(losses, ends, out)
    print(f"\nthe picture is in {out}")


def where(end: float) -> str:
    side = "better" if end > 0.5 else "worse"
    if NEAR < end < 1 - NEAR:
        return f"between them, the {side} one likelier"
    return "the better one" if side == "better" else "the worse one, locked"


def curves(joint: Any) -> Iterator[tuple[str, Any]]:
    """Name -> the loss at each of SHARES."""
    yield "selection", selection(joint, SHARES[:, None, None])
    yield "selection, told which sentence", selection(joint, SHARES[:, None, None], told=True)
    yield "attention", (attention(joint, share).loss for share in SHARES)
    yield "attention, not told which", (attention(joint, share, told=False).loss for share in SHARES)
    for strength in STRENGTHS:
        yield f"A2R, λ = {strength:g}", (a2r(joint, share, strength).loss for share in SHARES)


def paths(joint: Any) -> Iterator[tuple[str, float]]:
    """Name -> where a generator ends that begins at the worse sentence."""
    yield "selection", descend(partial(selection_slope, joint), START)[-1]
    worse, better = (selection(joint, end, told=True) for end in (0.0, 1.0))  # the ends of a straight line
    yield "selection, told which sentence", descend(lambda _: float(better - worse), START)[-1]
    yield "attention", descend(lambda share: attention(joint, share).slope, START)[-1]
    yield "attention, not told which", descend(lambda share: attention(joint, share, told=False).slope, START)[-1]
    for strength in STRENGTHS:
        path = descend(lambda share, strength=strength: a2r(joint, share, strength).slope, START)
        yield f"A2R, λ = {strength:g}", path[-1]


def draw(losses: dict[str, list[float]], ends: dict[str, float], out: Path) -> None:
    try:
        import altair as alt
        import vl_convert
    except ImportError:
        sys.exit(MISSING)
    parts = [_part(alt, title, names, losses, ends) for title, names in PARTS.items()]
    chart = alt.hconcat(*parts, background="white").configure_view(stroke="#cccccc").configure_axis(grid=False)
    out.write_bytes(vl_convert.vegalite_to_png(chart.to_dict(), scale=2))


def _part(alt: Any, title: str, names: tuple[str, ...], losses: dict[str, list[float]], ends: dict[str, float]) -> Any:
    """One part of the picture; the last one has the dots and the names."""
    last = title == list(PARTS)[-1]
    points = [{"share": x, "nats": y, "loss": n} for n in names for x, y in zip(SHARES, losses[n], strict=True)]
    dots = [  # the first is the largest: two that end in the same place are both seen
        {"share": ends[name], "nats": float(np.interp(ends[name], SHARES, losses[name])), "loss": name, "size": size}
        for name, size in zip(names, (260, *[90] * len(names)), strict=False)
        if last
    ]
    color = alt.Color("loss:N", title=None, scale=alt.Scale(domain=list(COLORS), range=list(COLORS.values())))
    x = alt.X("share:Q", title="the better sentence is chosen", axis=alt.Axis(values=[0, 0.5, 1], labelExpr=AXIS))
    y = alt.Y("nats:Q", title="loss in nats, lower is better", scale=alt.Scale(domain=[0.35, 0.7]))
    lines = alt.Chart(alt.InlineData(values=points)).mark_line(strokeWidth=2).encode(x, y, color)
    size = alt.Size("size:Q", scale=None)
    marks = alt.Chart(alt.InlineData(values=dots)).mark_point(filled=True, opacity=1).encode(x, y, color, size)
    return alt.layer(lines, marks, title=title, width=260, height=260)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "interlocking.png"))
