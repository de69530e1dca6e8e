"""Disk, hub or generator -> Example.  CORPORA holds what has a name; a user's own files need none."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from steadygaze.arguments import checked, flag, optional, path, path_or_name, text_columns, whole
from steadygaze.arguments import text as a_text
from steadygaze.config import parse
from steadygaze.corpus.bias import biased as biased
from steadygaze.corpus.bias import divided, lead, read_bias
from steadygaze.corpus.check import check_labels as check_labels
from steadygaze.corpus.check import check_texts as check_texts
from steadygaze.corpus.corpus import Corpus as Corpus
from steadygaze.corpus.files import Columns, load_files
from steadygaze.corpus.files import stream as stream
from steadygaze.corpus.generated import Generated
from steadygaze.corpus.named import Named
from steadygaze.corpus.planted import planted_pairs, planted_reviews
from steadygaze.corpus.planted.code import planted_code
from steadygaze.corpus.published import NAMED
from steadygaze.corpus.table import NoColumn
from steadygaze.errors import UserError, unknown

CORPORA: dict[str, Generated | Named] = {
    "planted-reviews": Generated("made-up beer reviews; the label is one aspect's sentiment", planted_reviews),
    "planted-pairs": Generated("made-up beer reviews with a question about one aspect", planted_pairs),
    "planted-code": Generated("made-up words; a selection can say the label in code", planted_code),
    **NAMED,
}


@checked(
    data=path_or_name,
    text=text_columns,
    label=optional(a_text),
    evidence=optional(a_text),
    data_dir=optional(path),
    seed=whole(0),
    drop_empty=flag,
)
def load_corpus(
    data: str | Path,
    *,
    text: Sequence[str] = ("text",),
    label: str | None = "label",
    evidence: str | None = None,
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
        how: dict[str, Any] = {"text": text, "label": label, "evidence": evidence, "drop_empty": drop_empty}
        return lead(load_corpus(rest, **how, data_dir=data_dir, seed=seed), bias)
    name, _, options = str(data).partition(":")
    columns = Columns(tuple(text), label or "label", evidence)
    if isinstance(data, Path) or name not in CORPORA:
        if not _is_path(data):
            raise unknown("corpus", name, CORPORA)
        try:
            return load_files(Path(data), columns, drop_empty)
        except NoColumn as lacking:
            if label is not None or lacking.column != columns.label:
                raise
            return load_files(Path(data), replace(columns, label=None), drop_empty)
    if columns != Columns(("text",), "label"):
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
