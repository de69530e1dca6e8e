"""Fitting an explainer: what the black box said is kept until the explainer is whole."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from steadygaze.corpus import Corpus
from steadygaze.errors import UserError
from steadygaze.explain.learned import folder
from steadygaze.explain.learned.order import ordered
from steadygaze.explain_fitting import explain_fit as teach
from steadygaze.text_explainer import TextExplainer
from steadygaze.verbs.given import texts, unfinished

ASKED = {"train", "held-out"}
"""The answers to each split, while a black box is asked."""


def check_explain_fit(out: Path, replace: bool, asked: Mapping[str, Any]) -> None:
    """All that can be refused before anything is read."""
    ordered(**asked)
    folder.refuse_foreign(out)
    if folder.is_fitted(out) and not replace:
        raise UserError(f"{out} holds an explainer: --replace fits another in its place, or name another folder")
    kept = unfinished(out)
    if kept.exists() and (not kept.is_dir() or {path.name for path in kept.iterdir()} - ASKED):
        raise UserError(f"{kept} holds something else than a black box's answers; name another folder than {out}")


def explain_fit(black_box: str, corpus: Corpus, out: Path, **asked: Any) -> TextExplainer:
    """Fit and save.  What the black box says is kept as it comes: the same call goes on after a failure."""
    split = "train" if "train" in corpus.splits else corpus.choose(None)
    held_out = texts(corpus.splits["validation"]) if "validation" in corpus.splits else None
    kept = unfinished(out)
    fitted = teach(black_box, texts(corpus.splits[split]), validation=held_out, keep=kept, **asked)
    assert isinstance(fitted, TextExplainer)  # a corpus is texts
    fitted.save(out)
    shutil.rmtree(kept, ignore_errors=True)
    return fitted
