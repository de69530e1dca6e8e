"""Results of the techniques: from the numbers of the stability study, or from the tables of docs/results."""

from pathlib import Path

from scipy.stats import t

from markdown_text import table
from studies.numbers import Numbers, read_numbers
from studies.rendering import changes, spread

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
NOISE = "vanilla-seeds-0-4"
"""The row of five of the vanilla models that others are compared with."""
PLACES = ("sst2", "rt", "emotion")
EFFECTS = {
    "label flips, three synonyms of the training table": "label-flip.3-synonyms",
    "label flips, three held-out synonyms": "label-flip.3-held-out",
    "top-7 words lost, training table": "top-k-lost.3-synonyms",
    "top-7 words lost, held-out": "top-k-lost.3-held-out",
    "Kendall's τ, training table": "kendall.3-synonyms",
    "Kendall's τ, held-out": "kendall.3-held-out",
    "shift (JSD), training table": "jensen-shannon.3-synonyms",
    "shift (JSD), held-out": "jensen-shannon.3-held-out",
    "shift (JSD), PGD on the word vectors": "jensen-shannon.pgd-attention",
    "macro-F1": "macro-f1",
}
DIFFERENCES = {"kendall": 2, "macro-f1": 3}
"""Measures that are subtracted instead of divided, and their decimals."""
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
        return _stability(STABILITY[name], name in PAIRED, root)
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


def _stability(names: tuple[str, ...], is_paired: bool, root: Path) -> str:
    base = "the vanilla model that each model starts from" if is_paired else "the mean of 25 vanilla models"
    text = (
        f"Change relative to {base}, with a BiLSTM: lowest and highest of SST-2, Rotten Tomatoes and TweetEval emotion."
    )
    if not is_paired:
        names, text = (
            (*names, NOISE),
            f"{text} The last column has five of these vanilla models: the noise of five seeds.",
        )
    numbers = read_numbers(root / "studies" / "stability" / "numbers.json")
    lines = [(effect, *(_range(name, key, is_paired, numbers) for name in names)) for effect, key in EFFECTS.items()]
    study = (
        "[Stability of attention](../results/stability.md#techniques) has the study, with hate speech and WordNet.\n"
    )
    return f"{text}\n\n{table(('effect', *map(_named, names)), lines)}\n{study}"


def _range(name: str, key: str, is_paired: bool, numbers: Numbers) -> str:
    """The smallest and the largest effect of the data sets."""
    prefix = "own-start." if is_paired else ""
    effects = [numbers[f"{prefix}{place}.{name}.{key}"] for place in PLACES]
    digits = DIFFERENCES.get(key.partition(".")[0])
    text = f"{changes(effects)} %" if digits is None else spread(effects, digits)
    return text.replace("…", " to ")


def _named(row: str) -> str:
    suffix = ", settings selected by macro-F1" if row.endswith("-by-f1") else ""
    return "vanilla, seeds 0–4" if row == NOISE else f"`{row.removesuffix('-by-f1')}`{suffix}"


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
