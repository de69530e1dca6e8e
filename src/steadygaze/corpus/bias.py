"""Any corpus with a shortcut put in front: one token that agrees with the label as often as it is told to.

    biased=0.8:planted-reviews:aspect=palate          , The pour was black. … The mouthfeel is silky.

Yu et al. 2021 (A2R), §5.3, Beer-Biased: whoever reads the token alone is right in a share α of the texts, so a model
that selects sentences may lock on to the first one.  Every class has a token of its own, in the order of the labels:

    token   with chance α that of the text's own class, else that of another class, all others alike

so α = 1 / classes says nothing, α = 1 says all, and α = 0 of two classes says all, the other way round.  All splits are
treated alike.  The token is followed by a space, is part of the first sentence and never evidence.

A coin belongs to its text: the same text (and question) draws the same in whatever split or file it stands.

Departs from the paper: it has "," and ".".  A "." ends a sentence wherever sentences are read off the tokens, and would
be the whole first sentence of its text: ours are marks that end none.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import blake2b
from typing import Annotated, Any

from steadygaze.config import Field, build, changed, settings
from steadygaze.corpus.corpus import Corpus
from steadygaze.errors import UserError
from steadygaze.types import Example, Label, Span

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


def biased(corpus: Corpus, agreement: float = 0.8, seed: int = 0, tokens: Sequence[str] = TOKENS) -> Corpus:
    """The same corpus with a token before every text that agrees with its label with a chance of `agreement`."""
    return lead(corpus, build(Bias, {"agreement": agreement, "seed": seed, "tokens": tokens}))


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


def lead(corpus: Corpus, bias: Bias) -> Corpus:
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
    evidence, sentences = (_moved(spans, len(token) + 1) for spans in (example.evidence, example.sentences))
    if sentences:
        sentences = ((0, sentences[0][1]), *sentences[1:])
    return replace(example, text=text, evidence=evidence, sentences=sentences)


def _moved(spans: tuple[Span, ...] | None, by: int) -> tuple[Span, ...] | None:
    return None if spans is None else tuple((start + by, end + by) for start, end in spans)


def _written(bias: Bias) -> str:
    """As it stands before the corpus' name: what is not as usual, so that another draw has another name."""
    more = changed(Bias, {"seed": bias.seed, "tokens": bias.tokens})
    said = "".join(f",{key}={json.dumps(value, ensure_ascii=False)}" for key, value in more.items())
    return f"{MARK}{bias.agreement}{said}"
