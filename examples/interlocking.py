"""Why a rationalizer may interlock on the worse sentence: the losses of texts with two sentences, computed.

    python examples/interlocking.py [interlocking.png]

Every text has two sentences.  The better one agrees with the label in 85 of 100 texts, the worse one in 80.  A word
that is positive in one sentence is negative in the other.  A predictor with one set of weights for both must therefore
rely on one of them.

A generator selects the better sentence with some probability.  The example prints and plots the loss of the best
predictors for each probability.  Each generator follows the gradient of its loss.  All start at the worse sentence,
with a probability of 0.05 for the better one.

    selection    The predictor reads one sentence.  Both ends are minima: the generator stays at the worse sentence.
    attention    The predictor reads both, weighted by the probability.  The minimum lies between the sentences and
                 explains neither.
    A2R          Both predictors, tied by λ (`agreement`).  With a small λ the generator ends where attention does, on
                 the side of the better sentence.  With a large λ it stays on the side where it started.

The result depends on whether the predictor is conditioned on the index of its sentence.  Selection with such a
predictor does not interlock; attention without it does.  The plot follows Fig. 2 of Yu et al. 2021 (A2R).
interlocking_theory.py, in the same folder, has the equations.
"""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from interlocking_theory import a2r, assumptions, attention, descend, selection, selection_slope, toy

STRENGTHS = (0.3, 1.0, 2.0, 5.0)
START = 0.05
SHARES = np.linspace(0, 1, 51)
NEAR = 0.01
"""The largest distance to 0 or 1 of a probability that counts as 0 or 1."""
MISSING = "The plot needs two more packages: pip install 'steadygaze[examples]'."
COLORS = {
    "selection": "#c0392b",
    "selection, conditioned": "#e59a8f",
    "attention": "#1f5fa8",
    "attention, not conditioned": "#8fb3dd",
    "A2R, λ = 0.3": "#cccccc",
    "A2R, λ = 1": "#999999",
    "A2R, λ = 2": "#5f5f5f",
    "A2R, λ = 5": "#1a1a1a",
}
PARTS = {
    "Selection: minima at both ends": ("selection", "selection, conditioned"),
    "Attention: minimum between the ends": ("attention", "attention, not conditioned"),
    "A2R: between the two; dots: end of training": (
        "selection",
        "attention",
        *(name for name in COLORS if name.startswith("A2R")),
    ),
}
AXIS = "datum.value == 0 ? 'never' : datum.value == 1 ? 'always' : 'in half of the texts'"


def main(out: Path) -> None:
    joint = toy()
    losses = {name: list(curve) for name, curve in curves(joint)}
    ends = dict(paths(joint))
    print("Loss in nats if the better sentence is selected")
    print(f"{'':32}never     half    always   started at {START:g}, a model ends at")
    for name, curve in losses.items():
        end = f"{ends[name]:.2f}: {where(ends[name])}"
        print(f"{name:32}{curve[0]:.4f}    {curve[len(curve) // 2]:.4f}  {curve[-1]:.4f}   {end}")
    print("\nTheorem 2 of the paper: the loss of attention is convex if μ ≥ l:")
    for name, conditioned in (("attention", True), ("attention, not conditioned", False)):
        strong, regret = assumptions(joint, SHARES.tolist(), conditioned)
        comment = "μ ≥ l" if strong >= regret else "μ < l"
        print(f"{name:32}μ = {strong:.3f}, l = {regret:.3f}, {comment}")
    draw(losses, ends, out)
    print(f"\nwrote {out}")


def where(end: float) -> str:
    side = "better" if end > 0.5 else "worse"
    if NEAR < end < 1 - NEAR:
        return f"between them, the {side} one more probable"
    return "the better one" if side == "better" else "the worse one, interlocked"


def curves(joint: Any) -> Iterator[tuple[str, Any]]:
    """Name -> the loss at each of SHARES."""
    yield "selection", selection(joint, SHARES[:, None, None])
    yield "selection, conditioned", selection(joint, SHARES[:, None, None], conditioned=True)
    yield "attention", (attention(joint, share).loss for share in SHARES)
    yield "attention, not conditioned", (attention(joint, share, conditioned=False).loss for share in SHARES)
    for strength in STRENGTHS:
        yield f"A2R, λ = {strength:g}", (a2r(joint, share, strength).loss for share in SHARES)


def paths(joint: Any) -> Iterator[tuple[str, float]]:
    """Name -> the end of a generator that starts at the worse sentence."""
    yield "selection", descend(partial(selection_slope, joint), START)[-1]
    worse, better = (selection(joint, end, conditioned=True) for end in (0.0, 1.0))  # the ends of a straight line
    yield "selection, conditioned", descend(lambda _: float(better - worse), START)[-1]
    yield "attention", descend(lambda share: attention(joint, share).slope, START)[-1]
    yield (
        "attention, not conditioned",
        descend(lambda share: attention(joint, share, conditioned=False).slope, START)[-1],
    )
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
    """One part of the plot; the last one has the dots and the names."""
    last = title == list(PARTS)[-1]
    points = [{"share": x, "nats": y, "loss": n} for n in names for x, y in zip(SHARES, losses[n], strict=True)]
    dots = [  # the first is the largest, so that two at the same position are both visible
        {"share": ends[name], "nats": float(np.interp(ends[name], SHARES, losses[name])), "loss": name, "size": size}
        for name, size in zip(names, (260, *[90] * len(names)), strict=False)
        if last
    ]
    color = alt.Color("loss:N", title=None, scale=alt.Scale(domain=list(COLORS), range=list(COLORS.values())))
    x = alt.X("share:Q", title="the better sentence is selected", axis=alt.Axis(values=[0, 0.5, 1], labelExpr=AXIS))
    y = alt.Y("nats:Q", title="loss in nats, lower is better", scale=alt.Scale(domain=[0.35, 0.7]))
    lines = alt.Chart(alt.InlineData(values=points)).mark_line(strokeWidth=2).encode(x, y, color)
    size = alt.Size("size:Q", scale=None)
    marks = alt.Chart(alt.InlineData(values=dots)).mark_point(filled=True, opacity=1).encode(x, y, color, size)
    return alt.layer(lines, marks, title=title, width=260, height=260)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "interlocking.png"))
