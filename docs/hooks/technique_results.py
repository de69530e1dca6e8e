"""Results of the techniques, from the numbers of the studies."""

from pathlib import Path

from markdown_text import table
from studies.numbers import Number, Numbers
from studies.rendering import changes, spread
from studies.study import STUDIES

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
    "rnp": {"RNP, REINFORCE": "rnp", "RNP, straight-through": "rnp-straight-through"},
    "three-player": {"3PLAYER": "three-player"},
    "hardkuma": {"HardKuma, as shipped": "hardkuma"},
    "a2r": {"A2R": "a2r", "A2R on MiniLM": "a2r-minilm"},
    "fresh": {"FRESH on MiniLM": "minilm.fresh", "FRESH with GloVe vectors": "movies.fresh"},
}
"""Technique -> its rows of movie reviews, and their names in the numbers."""
GAPS = {"mass": (1, 100.0), "gap": (2, 1.0)}
"""Number of attention on default tokens -> decimals and scale."""
LEAKAGE = ("random-pretraining", "mask-neutral")


def result(name: str, root: Path) -> str:
    if name in STABILITY:
        return _stability(STABILITY[name], name in PAIRED)
    if name in RATIONALES:
        return _rationales(name)
    if name in LEAKAGE:
        return _leakage(name)
    if name == "vanilla":
        return "Vanilla is the baseline of every [study](../results/index.md).\n"
    return "No study: the technique is an instrument of the audit.\n"


def _stability(names: tuple[str, ...], is_paired: bool) -> str:
    base = "the vanilla model that each model starts from" if is_paired else "the mean of 25 vanilla models"
    text = (
        f"Change relative to {base}, with a BiLSTM: lowest and highest of SST-2, Rotten Tomatoes and TweetEval emotion."
    )
    if not is_paired:
        names, text = (
            (*names, NOISE),
            f"{text} The last column has five of these vanilla models: the noise of five seeds.",
        )
    numbers = STUDIES["stability"].numbers
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


def _rationales(name: str) -> str:
    study = "fresh" if name == "fresh" else "movies"
    numbers = STUDIES[study].numbers
    lines = [
        (label, _mean(numbers[f"f1.{row}"]), _mean(numbers[f"accuracy.{row}"]))
        for label, row in RATIONALES[name].items()
    ]
    text = "Movie reviews, at most 20 % of the words in 10 spans. In %, with 95 % t intervals over seeds."
    header = ("model", "F1 with human rationales", "accuracy")
    return f"{text}\n\n{table(header, lines)}\n[Rationales and interlocking](../results/rationales.md) has the study.\n"


def _mean(number: Number, digits: int = 1, scale: float = 100) -> str:
    """Mean and interval."""
    assert number.interval is not None
    mean, low, high = (f"{scale * value:.{digits}f}" for value in (float(number), *number.interval))
    return f"{mean} ({low} to {high})"


def _leakage(name: str) -> str:
    numbers = STUDIES["default_tokens"].numbers
    lines = [
        (label, technique, *(_mean(numbers[f"{key}.{encoder}.{technique}"], *form) for key, form in GAPS.items()))
        for encoder, label in (("pooling", "pooling"), ("rcnn", "RCNN"))
        for technique in ("vanilla", name)
    ]
    text = "Attention on four tokens without meaning before each IMDB review, in %, with 95 % t intervals over 5 seeds."
    header = ("decoder", "technique", "attention on the four tokens", "distance between the classes")
    return f"{text}\n\n{table(header, lines)}\n[Label leakage](../results/shortcuts.md) has the study.\n"
