"""Fit an explainer with a cache of the black box's answers, so that a failed fit can be resumed."""

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
from steadygaze.core.types import texts_of
from steadygaze.core.untrusted_files import digest_values
from steadygaze.data.corpus import Corpus
from steadygaze.estimator import explainer_folder
from steadygaze.estimator.resumable_training import unfinished_folder
from steadygaze.explainers.learned.answer_cache import UnusableCache
from steadygaze.explainers.learned.fit_config import fit_config, method_name

SPLITS = ("train", "held-out")
"""Folders of the answers to each split."""


def check_fit_explainer(out: Path, replace: bool, options: Mapping[str, Any], seed: int = 0) -> None:
    """Checks before any data is read."""
    config = fit_config(**options)
    explainer_folder.check_explainer_folder(out)
    cache = unfinished_folder(out)
    if cache.is_symlink() or (cache.exists() and (not cache.is_dir() or unknown_entries(cache, SPLITS))):
        raise UserError(f"{cache} contains other files than a black box's answers; choose another folder than {out}")
    if explainer_folder.is_fitted(out) and not replace:
        _check_same_fit(out, {"explainer": method_name(config), "settings": asdict(config), "seed": seed})


def fit_explainer_resumable(
    black_box: Any, corpus: Corpus, out: Path, *, replace: bool = False, seed: int = 0, **options: Any
) -> TextExplainer:
    """Fit and save.  The black box's answers are cached: the same call resumes after a failure.

    If the same call was finished before, it returns the existing explainer.
    """
    split = "train" if "train" in corpus.splits else corpus.choose(None)
    inputs = texts_of(corpus.splits[split])
    held_out = texts_of(corpus.splits["validation"]) if "validation" in corpus.splits else None
    cache = unfinished_folder(out)
    remove_leftovers(cache)
    if explainer_folder.is_fitted(out) and not replace:
        parts = text_splits(inputs, held_out)
        digests = [digest_values(*part)[:12] for part in parts]
        _check_same_fit(out, dict(zip(("texts", "held-out texts"), digests, strict=True)))
        fitted = load_explainer(out, black_box, device=options.get("device", "auto"))
        remove_folder(cache)
        return fitted
    cache.mkdir(parents=True, exist_ok=True)
    with exclusive(cache, "fitting an explainer"):
        run = {"validation": held_out, "keep": cache, "seed": seed, **options}
        try:
            result = _fit(black_box, inputs, replace, run)
        finally:
            with suppress(OSError):  # fails if it contains answers
                cache.rmdir()
        result.save(out)
        remove_folder(cache)
    return result


def _fit(black_box: Any, inputs: list[Any], replace: bool, run: dict[str, Any]) -> TextExplainer:
    """Fit.  With `replace`, answers of another fit are discarded."""
    try:
        fitted = teach(black_box, inputs, **run)
    except UnusableCache:
        if not replace:
            raise
        for name in SPLITS:
            remove_folder(run["keep"] / name)
        fitted = teach(black_box, inputs, **run)
    assert isinstance(fitted, TextExplainer)  # a corpus is texts
    return fitted


def _check_same_fit(out: Path, expected: Mapping[str, Any]) -> None:
    """Raise an error if the existing explainer is from another fit."""
    config = explainer_folder.load(out).config
    facts, rows = config.get("facts"), config.get("rows")
    facts = facts if isinstance(facts, dict) else {}
    first = rows[0] if isinstance(rows, list) and rows and isinstance(rows[0], dict) else {}
    row_settings = first.get("settings")
    stored = {
        "explainer": config.get("explainer"),
        "settings": config.get("settings"),
        "seed": facts.get("seed"),
        "texts": facts.get("fitted-to"),
        "held-out texts": row_settings.get("data") if isinstance(row_settings, dict) else None,
    }
    for name, value in expected.items():
        if stored[name] != json.loads(json.dumps(value)):
            raise UserError(
                f"{out} has an explainer that was fitted with other {name}: pass --replace to replace it, "
                "or choose another folder"
            )
