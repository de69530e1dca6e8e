"""Results of the techniques, read from the tables of docs/results."""

import re
from pathlib import Path

from scipy.stats import t

from markdown_text import table

STABILITY = {
    "synonym-augmentation": ("synonym-augmentation",),
    "word-at": ("word-at",),
    "word-iat": ("word-iat-by-f1",),
    "attention-rp": ("attention-rp-by-f1",),
    "attention-at": ("attention-at-by-f1",),
    "attention-iat": ("attention-iat-word-by-f1",),
    "seat": ("seat-paper-ce", "seat-joint-kl"),
    "anchored": ("anchored",),
    "consensus": ("consensus", "consensus-word-at"),
}
"""Technique -> its rows in the table of three data sets."""
PAIRED = ("seat", "anchored")
"""Techniques that start from a vanilla model of the study: each is compared with that model."""
NOISE = "vanilla, seeds 0–4"
SHIFTS = {
    "JSD 3 syn": "shift under three synonyms of the training table",
    "JSD 3 held-out": "shift under three held-out synonyms",
    "JSD PGD": "shift under PGD on the word vectors",
    "flips 3 syn": "label flips under three synonyms",
}
RATIONALES = {
    "rnp": ("RNP, REINFORCE", "RNP, straight-through"),
    "three-player": ("3PLAYER",),
    "hardkuma": ("HardKuma, as shipped",),
    "a2r": ("A2R", "A2R on MiniLM"),
}
"""Technique -> its rows in the table of movie reviews."""
LEAKAGE = ("random-pretraining", "mask-neutral")


def result(name: str, root: Path) -> str:
    pages = root / "docs" / "results"
    if name in STABILITY:
        page = (pages / "stability-tables.md").read_text(encoding="utf-8")
        return (_paired if name in PAIRED else _stability)(STABILITY[name], page)
    if name in RATIONALES or name == "fresh":
        return _rationales(name, (pages / "rationales.md").read_text(encoding="utf-8"))
    if name in LEAKAGE:
        return _leakage(name, (pages / "shortcuts.md").read_text(encoding="utf-8"))
    if name == "vanilla":
        return "Vanilla is the baseline of every [study](../results/index.md).\n"
    return "No study: the technique is an instrument of the audit.\n"


def rows_of(page: str, first: str) -> list[dict[str, str]]:
    """The rows of the first table whose header begins with these cells."""
    lines = page.splitlines()
    start = next(i for i, line in enumerate(lines) if line.replace("| ", "|").startswith(first.replace("| ", "|")))
    header = _cells(lines[start])
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(dict(zip(header, _cells(line), strict=True)))
    return rows


def _cells(line: str) -> list[str]:
    return [cell.strip().replace("**", "") for cell in line.strip().strip("|").split("|")]


def _stability(names: tuple[str, ...], page: str) -> str:
    text = (
        "Change relative to the mean of 25 vanilla models over three data sets with a BiLSTM, with 95 % t "
        "intervals over seeds. The last column has five of these vanilla models: the noise of five seeds."
    )
    return _changes(text, (*names, NOISE), page[page.index("## Three data sets, against vanilla") :])


def _paired(names: tuple[str, ...], page: str) -> str:
    text = (
        "Change relative to the vanilla model that each model starts from, over three data sets with a BiLSTM, with "
        "95 % t intervals over five seeds. The study's first table divides by the mean of 25 vanilla models instead."
    )
    return _changes(
        text, names, page[page.index("### Three data sets: each model against the vanilla model it starts from") :]
    )


def _changes(text: str, names: tuple[str, ...], page: str) -> str:
    """The table of these rows of the first table of the page."""
    rows = {row["technique"]: row for row in rows_of(page, "| technique")}
    lines = [(effect, *(_change(rows[name][column]) for name in names)) for column, effect in SHIFTS.items()]
    lines.append(("difference of macro-F1", *(_interval(rows[name]["F1 (difference)"]) for name in names)))
    study = "[Stability of attention](../results/stability.md) has the study.\n"
    return f"{text}\n\n{table(('effect', *map(_named, names)), lines)}\n{study}"


def _named(row: str) -> str:
    suffix = ", settings selected by macro-F1" if row.endswith("-by-f1") else ""
    return NOISE if row == NOISE else f"`{row.removesuffix('-by-f1')}`{suffix}"


def _change(cell: str) -> str:
    """0.24 [0.22, 0.26] as a change in percent."""
    value, low, high = (float(number) for number in re.findall(r"-?\d+\.\d+", cell))
    if value == 1:
        text = f"0 % ({100 * (low - 1):.0f} to {100 * (high - 1):.0f} %)"
    elif value < 1:
        text = f"{100 * (1 - value):.0f} % lower ({100 * (1 - high):.0f} to {100 * (1 - low):.0f} %)"
    else:
        text = f"{100 * (value - 1):.0f} % higher ({100 * (low - 1):.0f} to {100 * (high - 1):.0f} %)"
    return text.replace("-", "−")


def _interval(cell: str) -> str:
    value, low, high = re.findall(r"[−+]?\d+\.\d+", cell)
    return f"{value} ({low} to {high})"


def _rationales(name: str, page: str) -> str:
    if name == "fresh":
        rows = [row for row in rows_of(page, "| texts | row | seeds | accuracy") if row["row"] == "FRESH"][:2]
        named = [("FRESH on MiniLM", rows[0], "F1"), ("FRESH with GloVe vectors", rows[1], "F1")]
    else:
        rows = {row["row"]: row for row in rows_of(page, "| row | seeds | learning rate")}
        named = [(row, rows[row], "F1, test") for row in RATIONALES[name]]
    lines = [
        (label, _mean(row[f1], int(row["seeds"])), _mean(row["accuracy"], int(row["seeds"])))
        for label, row, f1 in named
    ]
    text = "Movie reviews, at most 20 % of the words in 10 spans. In %, with 95 % t intervals over seeds."
    header = ("model", "F1 with human rationales", "accuracy")
    return f"{text}\n\n{table(header, lines)}\n[Rationales and interlocking](../results/rationales.md) has the study.\n"


def _mean(cell: str, seeds: int) -> str:
    """Mean ± standard deviation as mean and interval."""
    mean, deviation = (float(number) for number in cell.split(" ± "))
    half = float(t.ppf(0.975, seeds - 1)) * deviation / seeds**0.5
    return f"{mean:.1f} ({mean - half:.1f} to {mean + half:.1f})"


def _leakage(name: str, page: str) -> str:
    rows = [row for row in rows_of(page, "| decoder | technique | label") if row["decoder"]]
    lines = [
        (row["decoder"], row["technique"], _mean(row["both labels"], 5), row["gap"])
        for row in rows
        if row["technique"] in ("vanilla", name)
    ]
    text = "Attention on four tokens without meaning before each IMDB review, in %, with 95 % t intervals over 5 seeds."
    header = (
        "decoder",
        "technique",
        "attention on the four tokens",
        "distance between the classes (± standard deviation)",
    )
    return f"{text}\n\n{table(header, lines)}\n[Label leakage](../results/shortcuts.md) has the study.\n"
