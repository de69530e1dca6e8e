"""Fitting an explainer: what the black box said is kept until the explainer is whole."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from steadygaze.adapters.fit_explainer import fit_explainer as teach
from steadygaze.adapters.fit_explainer import text_splits
from steadygaze.adapters.text_explainer import TextExplainer, load_explainer
from steadygaze.core.atomic_files import exclusive, remove_folder, remove_leftovers, unknown_entries
from steadygaze.core.errors import UserError
from steadygaze.data.corpus import Corpus
from steadygaze.estimator import explainer_folder
from steadygaze.estimator.resumable_training import texts, unfinished_folder
from steadygaze.explainers.learned.answer_cache import UnusableCache, digest
from steadygaze.explainers.learned.fit_config import fit_config, method_name

ASKED = ("train", "held-out")
"""The answers to each split, while a black box is asked."""


def check_fit_explainer(out: Path, replace: bool, asked: Mapping[str, Any], seed: int = 0) -> None:
    """All that can be refused before anything is read."""
    how = fit_config(**asked)
    explainer_folder.check_explainer_folder(out)
    kept = unfinished_folder(out)
    if kept.is_symlink() or (kept.exists() and (not kept.is_dir() or unknown_entries(kept, ASKED))):
        raise UserError(f"{kept} holds something else than a black box's answers; name another folder than {out}")
    if explainer_folder.is_fitted(out) and not replace:
        config = explainer_folder.load(out).config
        _same(out, config, {"explainer": method_name(how), "settings": asdict(how), "seed": seed})


def fit_explainer_resumable(
    black_box: str, corpus: Corpus, out: Path, *, replace: bool = False, seed: int = 0, **asked: Any
) -> TextExplainer:
    """Fit and save.  What the black box says is kept as it comes: the same call goes on after a failure.

    Where the same call was finished before, it returns the explainer that is there.
    """
    split = "train" if "train" in corpus.splits else corpus.choose(None)
    given = texts(corpus.splits[split])
    held_out = texts(corpus.splits["validation"]) if "validation" in corpus.splits else None
    kept = unfinished_folder(out)
    remove_leftovers(kept)
    if explainer_folder.is_fitted(out) and not replace:
        parts = text_splits(given, held_out)
        _same(
            out,
            explainer_folder.load(out).config,
            {"texts": digest(*parts[0])[:12], "held-out texts": digest(*parts[1])[:12]},
        )
        fitted = load_explainer(out, black_box, device=asked.get("device", "auto"))
        remove_folder(kept)
        return fitted
    kept.mkdir(parents=True, exist_ok=True)
    with exclusive(kept, "fitting an explainer"):
        run = {"validation": held_out, "keep": kept, "seed": seed, **asked}
        try:
            found = _fitted(black_box, given, replace, run)
        finally:
            with suppress(OSError):  # it holds answers: they are kept
                kept.rmdir()
        found.save(out)
        remove_folder(kept)
    return found


def _fitted(black_box: str, given: list[Any], replace: bool, run: dict[str, Any]) -> TextExplainer:
    """Fit.  Answers for another fit are discarded where the explainer of that fit is replaced."""
    try:
        fitted = teach(black_box, given, **run)
    except UnusableCache:
        if not replace:
            raise
        for name in ASKED:
            remove_folder(run["keep"] / name)
        fitted = teach(black_box, given, **run)
    assert isinstance(fitted, TextExplainer)  # a corpus is texts
    return fitted


def _same(out: Path, config: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """An explainer that is there stands for a fit only if that fit would have ended in it."""
    facts, rows = config.get("facts"), config.get("rows")
    facts = facts if isinstance(facts, dict) else {}
    first = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
    measured = first.get("settings")
    found = {
        "explainer": config.get("explainer"),
        "settings": config.get("settings"),
        "seed": facts.get("seed"),
        "texts": facts.get("fitted-to"),
        "held-out texts": measured.get("data") if isinstance(measured, dict) else None,
    }
    for name, value in wanted.items():
        if found[name] != json.loads(json.dumps(value)):
            raise UserError(
                f"{out} holds an explainer that was fitted with other {name}: --replace fits this one in its place, "
                "or name another folder"
            )
