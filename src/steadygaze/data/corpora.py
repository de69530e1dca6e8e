"""Disk, hub or generator -> Example.  CORPORA holds what has a name; a user's own files need none.

Any corpus with a shortcut put in front: one token that agrees with the label as often as it is told to.

    biased=0.8:planted-reviews:aspect=palate          , The pour was black. … The mouthfeel is silky.

Yu et al. 2021 (A2R), §5.3, Beer-Biased: whoever reads the token alone is right in a share α of the texts, so a model
that selects sentences may lock on to the first one.  Every class has a token of its own, in the order of the labels:

    token   with chance α that of the text's own class, else that of another class, all others alike

so α = 1 / classes says nothing, α = 1 says all, and α = 0 of two classes says all, the other way round.  All splits are
treated alike.  The token is followed by a space, is part of the first sentence and never rationales.

A coin belongs to its text: the same text (and question) draws the same in whatever split or file it stands.

Departs from the paper: it has "," and ".".  A "." ends a sentence wherever sentences are read off the tokens, and would
be the whole first sentence of its text: ours are marks that end none.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any

from steadygaze.core.arguments import flag, integer, optional, path, path_or_name, text_columns, validated
from steadygaze.core.arguments import text as a_text
from steadygaze.core.errors import UserError, unknown
from steadygaze.core.settings import Field, build, non_default, parse, settings
from steadygaze.core.types import Example, Label, Span
from steadygaze.data.corpus import Corpus, GeneratedCorpus, PublishedCorpus
from steadygaze.data.planted.reviews import planted_code, planted_pairs, planted_reviews
from steadygaze.data.published_corpora import NAMED
from steadygaze.data.tables import NoColumn
from steadygaze.data.text_checks import check_labels as check_labels
from steadygaze.data.text_checks import check_texts as check_texts
from steadygaze.data.user_files import ColumnNames, load_files
from steadygaze.data.user_files import stream as stream

TOKENS = (",", ";", ":", "-", "/", "*", "+", "=", "&", "%")
"""One for each class; more classes need tokens of the user's own."""
MARK = "biased="
WRITTEN = re.compile(MARK + r'(?:"(?:\\.|[^"\\])*"|[^:])*')
"""Up to the first colon that is no token in quotes."""


@settings
class Bias:
    agreement: Annotated[float, Field(ge=0, le=1)] = 0.8
    """The chance that the token is that of the text's own class."""
    seed: int = 0
    tokens: tuple[str, ...] = TOKENS
    """One for each class, in the order of the labels."""


def add_shortcut(corpus: Corpus, agreement: float = 0.8, seed: int = 0, tokens: Sequence[str] = TOKENS) -> Corpus:
    """The same corpus with a token before every text that agrees with its label with a chance of `agreement`."""
    return prefix_token(corpus, build(Bias, {"agreement": agreement, "seed": seed, "tokens": tokens}))


def read_bias(options: Mapping[str, Any]) -> Bias:
    """What is written before a corpus: `biased` is the agreement; `seed` and `tokens` may follow."""
    return build(Bias, {"agreement" if key == "biased" else key: value for key, value in options.items()})


def divided(data: str) -> tuple[str, str]:
    """What is written before a corpus, and the corpus.

    >>> divided("biased=0.8:sst2"), divided("sst2")
    (('biased=0.8', 'sst2'), ('', 'sst2'))
    """
    found = WRITTEN.match(data)
    return ("", data) if found is None else (found[0], data[found.end() + 1 :])


def prefix_token(corpus: Corpus, bias: Bias) -> Corpus:
    """Every text of the corpus with its token before it."""
    own = _own(corpus, bias.tokens)
    splits = {
        name: [_led(example, _drawn(example, own, bias)) for example in examples]
        for name, examples in corpus.splits.items()
    }
    return replace(corpus, name=f"{_written(bias)}:{corpus.name}", splits=splits)


def _own(corpus: Corpus, tokens: Sequence[str]) -> dict[Label, str]:
    """The token of each class."""
    classes = corpus.label_names
    if any(example.label is None for examples in corpus.splits.values() for example in examples):
        raise UserError(f"{corpus.name} has texts without a label, with which no token can agree; name their column.")
    if len(classes) < 2:
        raise UserError(f"{corpus.name} has {len(classes)} class; a token agrees with one of at least two.")
    if wrong := [token for token in tokens if not token or token.split() != [token]]:
        raise UserError(f"a token to put before a text is one word or mark without white space; found {wrong[0]!r}.")
    if len(set(tokens)) < len(tokens) or len(tokens) < len(classes):
        raise UserError(
            f"{corpus.name} has {len(classes)} classes, each of which needs a token of its own; "
            f"found {len(set(tokens))} different ones, {' '.join(tokens[:20])}: give as many with tokens=."
        )
    return dict(zip(classes, tokens, strict=False))


def _drawn(example: Example, own: dict[Label, str], bias: Bias) -> str:
    """Which token stands before this text."""
    agrees, other = _uniform(example, bias.seed)
    right = own[example.label]  # type: ignore[index]  # every text has a label: see _own
    if agrees < bias.agreement:
        return right
    others = [token for token in own.values() if token != right]
    return others[int(other * len(others))]


def _uniform(example: Example, seed: int) -> tuple[float, float]:
    """Two numbers in [0, 1) that are this text's own."""
    digest = blake2b(json.dumps([seed, example.text, example.question]).encode(), digest_size=16).digest()
    return tuple((int.from_bytes(half) >> 11) * 2.0**-53 for half in (digest[:8], digest[8:]))  # type: ignore[return-value]


def _led(example: Example, token: str) -> Example:
    """The text with the token before it; what was marked moves along, the first sentence begins with the token."""
    text = f"{token} {example.text}"
    rationales, sentences = (_moved(spans, len(token) + 1) for spans in (example.rationales, example.sentences))
    if sentences:
        sentences = ((0, sentences[0][1]), *sentences[1:])
    return replace(example, text=text, rationales=rationales, sentences=sentences)


def _moved(spans: tuple[Span, ...] | None, by: int) -> tuple[Span, ...] | None:
    return None if spans is None else tuple((start + by, end + by) for start, end in spans)


def _written(bias: Bias) -> str:
    """As it stands before the corpus' name: what is not as usual, so that another draw has another name."""
    more = non_default(Bias, {"seed": bias.seed, "tokens": bias.tokens})
    said = "".join(f",{key}={json.dumps(value, ensure_ascii=False)}" for key, value in more.items())
    return f"{MARK}{bias.agreement}{said}"


CORPORA: dict[str, GeneratedCorpus | PublishedCorpus] = {
    "planted-reviews": GeneratedCorpus("made-up beer reviews; the label is one aspect's sentiment", planted_reviews),
    "planted-pairs": GeneratedCorpus("made-up beer reviews with a question about one aspect", planted_pairs),
    "planted-code": GeneratedCorpus("made-up words; a selection can say the label in code", planted_code),
    **NAMED,
}


@validated(
    data=path_or_name,
    text=text_columns,
    label=optional(a_text),
    rationales=optional(a_text),
    data_dir=optional(path),
    seed=integer(0),
    drop_empty=flag,
)
def load_corpus(
    data: str | Path,
    *,
    text: Sequence[str] = ("text",),
    label: str | None = "label",
    rationales: str | None = None,
    data_dir: Path | None = None,
    seed: int = 0,
    drop_empty: bool = False,
) -> Corpus:
    """A corpus by name (`sst2`, `planted-reviews:aspect=palate`), or from a file or folder of the user's own.

    The columns are for files, the seed is for generated corpora.  A name wins over a folder of that name (./sst2).
    With label=None a file may do without labels: the column `label` is read where there is one.
    Before any of these `biased=0.8:` puts a token before every text (see `biased`), drawn by the seed too.
    """
    before, rest = divided(data) if isinstance(data, str) else ("", data)
    if before:
        if not rest:
            raise UserError(f"{data!r} does not say what is biased; for example {before}:planted-reviews.")
        bias = read_bias({"seed": seed, **_options(before)})  # first, so that a wrong one is known before much is read
        how: dict[str, Any] = {"text": text, "label": label, "rationales": rationales, "drop_empty": drop_empty}
        return prefix_token(load_corpus(rest, **how, data_dir=data_dir, seed=seed), bias)
    name, _, options = str(data).partition(":")
    columns = ColumnNames(tuple(text), label or "label", rationales)
    if isinstance(data, Path) or name not in CORPORA:
        if not _is_path(data):
            raise unknown("corpus", name, CORPORA)
        try:
            return load_files(Path(data), columns, drop_empty)
        except NoColumn as lacking:
            if label is not None or lacking.column != columns.label:
                raise
            return load_files(Path(data), replace(columns, label=None), drop_empty)
    if columns != ColumnNames(("text",), "label"):
        raise UserError(f"{name} has columns of its own; columns are chosen for a file.")
    return CORPORA[name].load(name, _options(options), data_dir, seed)


def _is_path(data: str | Path) -> bool:
    """Something with a folder or an extension was meant as a path, whether it exists or not."""
    path = Path(data)
    return isinstance(data, Path) or path.exists() or bool(path.suffix) or path.name != str(data)


def _options(written: str) -> dict[str, Any]:
    """`aspect=palate,sizes=[100,10,10]` -> keyword arguments."""
    pairs = re.split(r",(?=\s*\w+=)", written) if written else []
    for pair in pairs:
        if "=" not in pair:
            raise UserError(f"found {pair!r} after the corpus' name; options are key=value, for example aspect=palate.")
    return parse(pairs)
