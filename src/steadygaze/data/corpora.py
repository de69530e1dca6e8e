"""Load corpora by name (CORPORA), from files, or with a planted shortcut.

The shortcut is one token before every text that agrees with the label with a given probability:

    biased=0.8:planted-reviews:aspect=palate          , The pour was black. … The mouthfeel is silky.

Yu et al. 2021 (A2R), §5.3, Beer-Biased: the token alone predicts the label of a share α of the texts.  A model that
selects sentences may therefore interlock on the first one.  Every class has its own token, in the order of the labels:

    token   with probability α that of the text's class, else that of another class, uniformly

so α = 1 / classes is uninformative, and α = 1 determines the label.  All splits are treated alike.  The token is
followed by a space.  It is part of the first sentence and never part of a rationale.

The draw depends only on the text, the question and the seed.

Departs from the paper, which uses "," and ".": a "." would be a sentence of its own, so only marks that do not end a
sentence are used.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any, get_args

from steadygaze.core.arguments import choice, flag, integer, optional, path, path_or_name, text_columns, validated
from steadygaze.core.arguments import text as a_text
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.settings import Field, build, non_default, parse, settings
from steadygaze.core.types import Example, Label, Task
from steadygaze.data.corpus import Corpus, GeneratedCorpus, PublishedCorpus
from steadygaze.data.planted.reviews import planted_code, planted_pairs, planted_reviews
from steadygaze.data.published_corpora import PUBLISHED_CORPORA
from steadygaze.data.tables import NoColumn
from steadygaze.data.user_files import ColumnNames, check_files, load_files

TOKENS = (",", ";", ":", "-", "/", "*", "+", "=", "&", "%")
"""One for each class; more classes need other tokens."""
MARK = "biased="
PREFIX_PATTERN = re.compile(MARK + r'(?:"(?:\\.|[^"\\])*"|[^:])*')
"""Up to the first colon outside quotes."""


@settings
class Bias:
    agreement: Annotated[float, Field(ge=0, le=1)] = 0.8
    """The probability that the token is that of the text's class."""
    seed: int = 0
    tokens: tuple[str, ...] = TOKENS
    """One for each class, in the order of the labels."""


def add_shortcut(corpus: Corpus, agreement: float = 0.8, seed: int = 0, tokens: Sequence[str] = TOKENS) -> Corpus:
    """Add a token before every text that agrees with its label with probability `agreement`."""
    return prefix_token(corpus, build(Bias, {"agreement": agreement, "seed": seed, "tokens": tokens}))


def divided(data: str) -> tuple[str, str]:
    """Split into the prefix and the corpus.

    >>> divided("biased=0.8:sst2"), divided("sst2")
    (('biased=0.8', 'sst2'), ('', 'sst2'))
    """
    match = PREFIX_PATTERN.match(data)
    return ("", data) if match is None else (match[0], data[match.end() + 1 :])


def prefix_token(corpus: Corpus, bias: Bias) -> Corpus:
    """Add its token before every text."""
    class_tokens = _own(corpus, bias.tokens)
    splits = {
        name: [_with_token(example, _draw_token(example, class_tokens, bias)) for example in examples]
        for name, examples in corpus.splits.items()
    }
    return replace(corpus, name=f"{_prefix(bias)}:{corpus.name}", splits=splits)


def _own(corpus: Corpus, tokens: Sequence[str]) -> dict[Label, str]:
    classes = corpus.label_names
    if any(example.label is None for examples in corpus.splits.values() for example in examples):
        raise UserError(
            f"{corpus.name} has texts without a label; a shortcut token needs labels: name the label column."
        )
    if len(classes) < 2:
        raise UserError(f"{corpus.name} has {len(classes)} class; shortcut tokens need at least two classes.")
    if invalid := [token for token in tokens if not token or token.split() != [token]]:
        raise UserError(f"a shortcut token must be one word or mark without white space; found {invalid[0]!r}.")
    if len(set(tokens)) < len(tokens) or len(tokens) < len(classes):
        raise UserError(
            f"{corpus.name} has {len(classes)} classes and needs a different token for each; "
            f"found {len(set(tokens))} different ones, {' '.join(tokens[:20])}: pass one token per class with tokens=."
        )
    return dict(zip(classes, tokens, strict=False))


def _draw_token(example: Example, class_tokens: dict[Label, str], bias: Bias) -> str:
    """Draw the token of a text from two numbers in [0, 1), determined by the text and the seed."""
    digest = blake2b(json.dumps([bias.seed, example.text, example.question]).encode(), digest_size=16).digest()
    agrees, choice = ((int.from_bytes(half) >> 11) * 2.0**-53 for half in (digest[:8], digest[8:]))
    class_token = class_tokens[example.label]  # type: ignore[index]  # every text has a label: see _own
    if agrees < bias.agreement:
        return class_token
    other_tokens = [token for token in class_tokens.values() if token != class_token]
    return other_tokens[int(choice * len(other_tokens))]


def _with_token(example: Example, token: str) -> Example:
    """Add the token; shift the rationales, and start the first sentence with the token."""
    by = len(token) + 1
    rationales, sentences, graded = (
        spans and tuple((start + by, end + by, *mark) for start, end, *mark in spans)
        for spans in (example.rationales, example.sentences, example.graded)
    )
    if sentences:
        sentences = ((0, sentences[0][1]), *sentences[1:])
    annotations: dict[str, Any] = {"rationales": rationales, "sentences": sentences, "graded": graded}
    return replace(example, text=f"{token} {example.text}", **annotations)


def _prefix(bias: Bias) -> str:
    """The prefix of the name, with settings that differ from the defaults."""
    changed = non_default(Bias, {"seed": bias.seed, "tokens": bias.tokens})
    options = "".join(f",{key}={json.dumps(value, ensure_ascii=False)}" for key, value in changed.items())
    return f"{MARK}{bias.agreement}{options}"


CORPORA: dict[str, GeneratedCorpus | PublishedCorpus] = {
    "planted-reviews": GeneratedCorpus("made-up beer reviews; the label is one aspect's sentiment", planted_reviews),
    "planted-pairs": GeneratedCorpus("made-up beer reviews with a question about one aspect", planted_pairs),
    "planted-code": GeneratedCorpus("made-up words; a selection can leak the label", planted_code),
    **PUBLISHED_CORPORA,
}


DATA_AND_COLUMNS = {
    "data": path_or_name,
    "text": text_columns,
    "label": optional(a_text),
    "rationales": optional(a_text),
    "sentences": optional(a_text),
}
"""Checks of these arguments."""


@validated(
    **DATA_AND_COLUMNS,
    data_dir=optional(path),
    seed=integer(0),
    drop_empty=flag,
    task=choice(*get_args(Task)),
)
def load_corpus(
    data: str | Path,
    *,
    text: Sequence[str] = ("text",),
    label: str | None = "label",
    rationales: str | None = None,
    sentences: str | None = None,
    data_dir: Path | None = None,
    seed: int = 0,
    drop_empty: bool = False,
    task: Task = "classification",
) -> Corpus:
    """Load a corpus by name, or from a file or folder.

    A name takes precedence over a folder (./sst2).  The prefix `biased=0.8:` adds a shortcut token to every text.

    Parameters
    ----------
    data : str or Path
        A name with options (`sst2`, `planted-reviews:aspect=palate`), a .csv, .tsv, .jsonl or .parquet file, or a
        folder.
    text : list of str, default=("text",)
        Text column of a file; two columns for pairs.
    label : str, default="label"
        Label column of a file; None: the column `label` is optional.
    rationales : str, default=None
        Column of human rationales.
    sentences : str, default=None
        Column of sentences, for models that select sentences: character spans or strings; None: a splitter finds them.
    data_dir : Path, default=None
        Folder of published corpora; None: $STEADYGAZE_DATA.
    seed : int, default=0
        Random seed of generated corpora.
    drop_empty : bool, default=False
        Skip rows without text or label instead of raising an error; `dropped` of the result counts them.
    task : str, default="classification"
        That of the model.  Labels are lists for "multi-label", and numbers, as strings, for "regression".

    Returns
    -------
    Corpus
        `splits` has the examples, each with `text`, `label`, `rationales` and `sentences`.

    Examples
    --------
    >>> import steadygaze as sg
    >>> corpus = sg.load_corpus("planted-reviews:sizes=[4,2,2]")
    >>> corpus.sizes, corpus.label_names
    ({'train': 4, 'validation': 2, 'test': 2}, ['negative', 'positive'])
    """
    prefix, source = divided(data) if isinstance(data, str) else ("", data)
    if prefix:
        if not source:
            raise UserError(f"{data!r} names no corpus after the prefix; for example {prefix}:planted-reviews.")
        options = {"seed": seed, **_options(prefix.replace("biased=", "agreement=", 1))}
        bias = build(Bias, options)  # check it before reading the data
        arguments: dict[str, Any] = {"text": text, "label": label, "drop_empty": drop_empty}
        arguments |= {"rationales": rationales, "sentences": sentences}
        return prefix_token(load_corpus(source, **arguments, data_dir=data_dir, seed=seed, task=task), bias)
    columns = ColumnNames(tuple(text), label or "label", rationales, task, sentences)
    if _is_file(data, columns):
        try:
            return load_files(Path(data), columns, drop_empty)
        except NoColumn as error:
            if label is not None or error.column != columns.label:
                raise
            return load_files(Path(data), replace(columns, label=None), drop_empty)
    name, _, written = str(data).partition(":")
    return CORPORA[name].load(name, _options(written), data_dir, seed)


@validated(**DATA_AND_COLUMNS)
def check_columns(
    data: str | Path,
    *,
    text: Sequence[str] = ("text",),
    label: str | None = None,
    rationales: str | None = None,
    sentences: str | None = None,
) -> None:
    """Refuse an unknown corpus, a missing file or a missing column; for use before a model is loaded.

    Reads the first rows of each file.  With label=None, labels are optional.
    """
    source = divided(data)[1] if isinstance(data, str) else data
    columns = ColumnNames(tuple(text), label, rationales, sentences=sentences)
    if _is_file(source, replace(columns, label=label or "label")):
        check_files(Path(source), columns)


def _is_file(data: str | Path, columns: ColumnNames) -> bool:
    """True for a file or folder.  Refuses unknown names, and other columns of a corpus with a name."""
    name = str(data).partition(":")[0]
    if isinstance(data, Path) or name not in CORPORA:
        # A name with a folder or an extension is a path, even if it does not exist.
        if isinstance(data, str) and not (Path(data).exists() or Path(data).suffix or Path(data).name != data):
            raise unknown("corpus", name, CORPORA)
        return True
    if columns != ColumnNames(("text",), "label"):
        raise UserError(f"{name} has fixed columns; remove the column options, which are for files.")
    return False


def _options(text: str) -> dict[str, Any]:
    """`aspect=palate,sizes=[100,10,10]` -> keyword arguments."""
    pairs = re.split(r",(?=\s*\w+=)", text) if text else []
    for pair in pairs:
        if "=" not in pair:
            raise UserError(f"found {pair!r} after the corpus' name; options are key=value, for example aspect=palate.")
    return parse(pairs)
