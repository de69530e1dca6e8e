"""Interlocking made visible: the two-sentence toy of the A2R paper (Yu et al. 2021, Fig. 2), computed.

    python examples/interlocking.py [interlocking.png]

Two sentences of one word; x₁ tells the label in 85 % of texts, x₂ in 80 %, but a word that praises in x₁ blames in x₂.
The picture has three parts, each a loss over π₁, the chance that x₁ is selected (or its share of the attention):

    selection        concave.  A predictor that is not told which sentence it sees makes both ends a minimum
    attention        convex, with its least in between; not convex where the predictor cannot tell the sentences apart
    A2R              between the two.  Dots: where a generator ends that starts at π₁ = 0.05 and follows its slope

A small λ ends between the sentences (unfaithful), a middling one at the better sentence, a large one locks again.
What is computed and why it is so: steadygaze/maths/interlocking.py.
"""

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from steadygaze.maths.interlocking import a2r, assumptions, attention, descend, selection, selection_slope, toy

STRENGTHS = (0.3, 1.0, 2.0, 5.0)
START = 0.05
SHARES = np.linspace(0, 1, 51)
MISSING = "The picture needs two more packages: pip install 'steadygaze[report]'."
COLOURS = {
    "selection": "#c0392b",
    "selection, told which": "#e59a8f",
    "attention": "#1f5fa8",
    "attention, not told which": "#8fb3dd",
    "A2R, λ = 0.3": "#cccccc",
    "A2R, λ = 1": "#999999",
    "A2R, λ = 2": "#5f5f5f",
    "A2R, λ = 5": "#1a1a1a",
}
PARTS = {
    "Selection: concave": ("selection", "selection, told which"),
    "Attention: convex": ("attention", "attention, not told which"),
    "A2R: between": ("selection", "attention", *(name for name in COLOURS if name.startswith("A2R"))),
}


def main(out: Path) -> None:
    joint = toy()
    losses = {name: list(curve) for name, curve in curves(joint)}
    ends = dict(paths(joint))
    print(f"{'':28}π₁ = 0    0.5      1   from {START:g} to")
    for name, curve in losses.items():
        end = f"{ends[name]:.2f}" if name in ends else ""
        print(f"{name:28}{curve[0]:.4f} {curve[len(curve) // 2]:.4f} {curve[-1]:.4f}   {end}")
    for told in (True, False):
        strong, regret = assumptions(joint, SHARES.tolist(), told)
        said = "hold" if strong >= regret else "do not hold"
        print(f"attention, {'' if told else 'not '}told which: μ = {strong:.3f}, l = {regret:.3f}: assumptions {said}")
    draw(losses, ends, out)
    print(out)


def curves(joint: Any) -> Iterator[tuple[str, Any]]:
    """Name -> the loss at each of SHARES."""
    yield "selection", selection(joint, SHARES[:, None, None])
    yield "selection, told which", selection(joint, SHARES[:, None, None], told=True)
    yield "attention", (attention(joint, share).loss for share in SHARES)
    yield "attention, not told which", (attention(joint, share, told=False).loss for share in SHARES)
    for strength in STRENGTHS:
        yield f"A2R, λ = {strength:g}", (a2r(joint, share, strength).loss for share in SHARES)


def paths(joint: Any) -> Iterator[tuple[str, float]]:
    """Name -> where a generator ends that begins at the worse sentence."""
    yield "selection", descend(partial(selection_slope, joint), START)[-1]
    yield "attention", descend(lambda share: attention(joint, share).slope, START)[-1]
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
    colour = alt.Color("loss:N", title=None, scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())))
    x = alt.X("share:Q", title="share of sentence 1", axis=alt.Axis(values=[0, 0.5, 1]))
    y = alt.Y("nats:Q", title="loss (nats)", scale=alt.Scale(domain=[0.35, 0.7]))
    lines = alt.Chart(alt.InlineData(values=points)).mark_line(strokeWidth=2).encode(x, y, colour)
    size = alt.Size("size:Q", scale=None)
    marks = alt.Chart(alt.InlineData(values=dots)).mark_point(filled=True, opacity=1).encode(x, y, colour, size)
    return alt.layer(lines, marks, title=title, width=260, height=260)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "interlocking.png"))
