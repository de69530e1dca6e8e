"""Fit an explainer to the predictions of a black box."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.model_adapter import ModelAdapter
from steadygaze.adapters.text_explainer import TextExplainer, check_removal
from steadygaze.core.arguments import choice, function, instance, integer, optional, path, sequence_of, validated
from steadygaze.core.errors import LeakageWarning, UserError
from steadygaze.core.types import Label, OnProgress, no_progress
from steadygaze.core.untrusted_files import digest_values
from steadygaze.data.batches import Data
from steadygaze.data.splits import hold_out
from steadygaze.data.text_tokenizer import Tokens
from steadygaze.data.vocabulary_lexicon import vocabulary_lexicon
from steadygaze.estimator import explainer_folder
from steadygaze.estimator.explainer_folder import SavedExplainer
from steadygaze.estimator.inputs import read_texts
from steadygaze.estimator.train_config import check_seed
from steadygaze.explainers.learned.answer_cache import AnswerCache
from steadygaze.explainers.learned.black_box_queries import query
from steadygaze.explainers.learned.fit_config import Method, method_name
from steadygaze.explainers.learned.fit_config import fit_config as fit_config
from steadygaze.explainers.learned.fitted_explainer import FitContext, QueriedTexts, measure_selection
from steadygaze.explainers.learned.l2x import SelectorConfig
from steadygaze.models.inference import BATCH, DEVICES, best_device
from steadygaze.results.leakage_warnings import CONSTANT, ONE_LABEL
from steadygaze.results.row import Row
from steadygaze.training.progress import SilentWatcher, Watcher

Read = TypeVar("Read")
Texts = tuple[list[str], list[str] | None]
"""Texts and their questions, or None."""
FEWEST = 20
"""Fewest inputs for a fit."""
FEW_WORDS = "{few:,} of {all:,} texts have no more than k = {k} words: all of their words are selected"


@validated(
    classes=optional(sequence_of),
    device=choice(*DEVICES),
    batch_size=integer(1),
    keep=optional(path),
    watcher=optional(instance(Watcher, "a Watcher")),
    on_progress=function,
)
def fit_explainer(
    black_box: Any,
    inputs: Any,
    explainer: str = "l2x",
    *,
    k: int | None = None,
    mitigation: str | None = None,
    conditioned: bool | None = None,
    validation: Any = None,
    classes: Sequence[Label] | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    device: str = "auto",
    batch_size: int = BATCH,
    keep: str | Path | None = None,
    watcher: Watcher | None = None,
    on_progress: OnProgress = no_progress,
) -> SavedExplainer:
    """Fit an explainer to a black box.

    A warning, also in `warnings` of the result, reports an explainer whose selections leak the label.

    Parameters
    ----------
    black_box : any model that `sg.load` takes, or the result of `sg.load`
        Anything with `predict_proba`, a model, a folder, or a function.
    inputs : list of str, list of (text, question), or array
        Texts, pairs, or images: an array of (N,H,W) or (N,H,W,C), or a list of arrays.
    explainer : str, default="l2x"
        l2x, vibi, ail or cxplain.
    k : int, default=None
        Number of selected words or patches; None: 10 words, 25 patches.
    mitigation : str, default=None
        Against label leakage through the mask; None: random-pretraining with `conditioned`, else none.
    conditioned : bool, default=None
        Whether the selector is conditioned on the prediction.
    validation : as inputs, default=None
        Inputs that choose the epoch and measure the fit; None: a tenth of the inputs is held out.
    classes : list of str or int, default=None
        Class names, in the order of the probabilities.
    settings : dict, default=None
        Other settings of the method, and for images `patch` (side in pixels) and `fill` (zero, mean or gray).
    seed : int, default=0
        Random seed.
    device : str, default="auto"
        auto, cpu, cuda or mps.
    batch_size : int, default=128
        Texts per query of the black box.
    keep : str or Path, default=None
        A folder that caches the black box's answers, so that a failed run can be resumed.
    watcher : Watcher, default=None
        Receives the epochs.
    on_progress : function, default=no_progress
        Receives the progress of the queries: task, done, total.

    Returns
    -------
    SavedExplainer
        `explain(inputs)`, `rows` with its scores on held-out inputs, `measure(inputs)` and `save(folder)`.

    Examples
    --------
    >>> import steadygaze as sg
    >>> def cheerful(texts): return [[0.1, 0.9] if "good" in text else [0.8, 0.2] for text in texts]
    >>> texts = [f"a {kind} film about {whom}" for kind in ("good", "dull") for whom in "abcdefghijklmnop"]
    >>> fitted = sg.fit_explainer(cheerful, texts, "l2x", k=2, classes=["no", "yes"])
    >>> fitted.explain("a good film").label
    'yes'
    >>> [row.measure for row in fitted.rows if "/" not in row.measure]  # on texts it was not fitted to
    ['post-hoc-accuracy', 'fidelity', 'probe-loss', 'independent-reader-accuracy', 'leakage-gap', 'arbitrary-selection']
    """
    order = explainer, k, mitigation, conditioned, settings
    cache = None if keep is None else Path(keep)
    run = FitRun(check_seed(seed), best_device(device), cache, watcher or SilentWatcher(), on_progress, batch_size)
    fitted: SavedExplainer
    if are_images(inputs):
        fit = resolve_name("steadygaze.images.image_explainer:fit_images")
        fitted = fit(run, black_box, classes, device, order, (inputs, validation))
    else:
        method, parts = fit_config(*order), text_splits(inputs, validation)
        fitted = run.texts(as_adapter(black_box, classes=classes, device=device), method, parts)
    _warn(fitted)
    return fitted


@validated(path=path, classes=optional(sequence_of), device=choice(*DEVICES))
def load_explainer(
    path: str | Path, black_box: Any, *, classes: Sequence[Label] | None = None, device: str = "auto"
) -> SavedExplainer:
    """Load a fitted explainer from its folder.

    Parameters
    ----------
    path : str or Path
        A folder of `save` or of `steadygaze fit-explainer`.
    black_box : any model that `sg.load` takes, or the result of `sg.load`
        The model that the explainer was fitted to.
    classes : list of str or int, default=None
        Class names, in the order of the probabilities.
    device : str, default="auto"
        auto, cpu, cuda or mps.

    Returns
    -------
    SavedExplainer
        The explainer, as returned by `sg.fit_explainer`.

    Raises
    ------
    UserError
        If the explainer was fitted to another model.

    Examples
    --------
    >>> import tempfile
    >>> import steadygaze as sg
    >>> def cheerful(texts): return [[0.1, 0.9] if "good" in text else [0.8, 0.2] for text in texts]
    >>> texts = [f"a {kind} film about {whom}" for kind in ("good", "dull") for whom in "abcdefghijklmnop"]
    >>> folder = f"{tempfile.mkdtemp()}/l2x"
    >>> sg.fit_explainer(cheerful, texts, "l2x", k=2, classes=["no", "yes"]).save(folder)
    >>> sg.load_explainer(folder, cheerful, classes=["no", "yes"]).explain("a good film").label
    'yes'
    """
    sort = "adapters.text_explainer" if explainer_folder.load(Path(path)).sort == "texts" else "images.image_explainer"
    load = resolve_name(f"steadygaze.{sort}:load_explainer")
    fitted: SavedExplainer = load(path, black_box, classes=classes, device=device)
    _warn(fitted)
    return fitted


@dataclass(frozen=True)
class FitRun:
    """Settings of a fit that depend neither on the black box nor on the method."""

    seed: int
    device: torch.device
    keep: Path | None
    watcher: Watcher
    on_progress: OnProgress
    batch_size: int = BATCH
    """Texts per query."""

    def texts(self, adapter: ModelAdapter, config: Method, parts: tuple[Texts, Texts]) -> TextExplainer:
        adapter.check_classes()
        adapter = adapter.for_pairs(parts[0][1] is not None)
        check_removal(adapter, config.removal)
        tokens = adapter.tokens
        data = [adapter.data(tokens.place(texts), questions) for texts, questions in parts]
        words = words_of(data[0], tokens)
        _warn_short(words, config.k)
        if adapter.hosted is not None:  # stored answers are the same again; other black boxes are asked twice below
            removed = 0.0 if isinstance(config, SelectorConfig) else float(words.mean())
            adapter.plan_queries(1 + removed, [text for texts, _ in parts for text in texts])
            adapter = adapter.with_noise(parts[0][0])
        names = zip(("train", "held-out"), parts, data, strict=True)
        train, held_out = (self._query(adapter, *part) for part in names)
        context = FitContext(tokens.vocabulary, tokens.kind, self.watcher, self.device, self.seed, self.on_progress)
        learned = context.learn(config, adapter.model, train, held_out)
        fitted = TextExplainer(method_name(config), adapter, learned, facts=self.facts(*parts[0]))
        measures = measure_selection(adapter.model, fitted.explainer, held_out.data)
        rows = fitted.to_rows(measures, digest_values(*parts[1]), removal="delete")
        return replace(fitted, rows=noted(rows, held_out.probs, train.probs))

    def facts(self, *inputs: object) -> dict[str, Any]:
        return {"seed": self.seed, "fitted-to": digest_values(*inputs)[:12]}

    def _query(self, adapter: ModelAdapter, name: str, part: Texts, data: Data) -> QueriedTexts:
        """Query the black box for these texts."""
        identity = {"texts": digest_values(*part), "model": adapter.fingerprint or adapter.name}
        cache = AnswerCache() if self.keep is None else AnswerCache(self.keep / name, identity)
        return QueriedTexts(data, query(adapter.model, data, cache, self.on_progress, self.batch_size), cache)


def text_splits(inputs: Any, validation: Any) -> tuple[Texts, Texts]:
    """(texts, questions) of the training and the validation split."""
    texts, questions = read_texts(inputs)
    require_enough(len(texts), "texts")
    if validation is not None:
        held_out = read_held_out(read_texts, validation, "texts, or pairs (text, question)")
        if (held_out[1] is None) != (questions is None):
            raise UserError("texts and validation texts must both be single texts, or both pairs")
        return (texts, questions), held_out
    train, held_out = (
        ([texts[i] for i in sorted(rows)], None if questions is None else [questions[i] for i in sorted(rows)])
        for rows in hold_out(len(texts))
    )
    return train, held_out


def read_held_out(read: Callable[[Any], Read], validation: Any, description: str) -> Read:
    try:
        return read(validation)
    except UserError as error:
        raise UserError(f"validation must be {description}, like the inputs, without labels: {error}") from None


def require_enough(count: int, description: str) -> None:
    if count < FEWEST:
        raise UserError(f"found {count} {description}; an explainer needs at least {FEWEST}")


def _warn(fitted: SavedExplainer) -> None:
    fitted.health.warn(stacklevel=4)
    for sentence in fitted.warnings:
        warnings.warn(sentence, LeakageWarning, stacklevel=4)


def noted(rows: list[Row], held_out: Tensor, train: Tensor | None = None) -> tuple[Row, ...]:
    """Add a note to the rows if all inputs have the same predicted label.  (N,C), (M,C)"""
    labels = set(held_out.argmax(-1).tolist())
    if len(labels) > 1:
        return tuple(rows)
    constant = train is not None and labels == set(train.argmax(-1).tolist())
    return tuple(replace(row, notes=(CONSTANT if constant else ONE_LABEL,)) for row in rows)


def words_of(data: Data, tokens: Tokens) -> NDArray[np.int64]:
    """Number of words of each text.  (N,)"""
    begins = data.text.words & ~vocabulary_lexicon(tokens.vocabulary, tokens.kind).continues[data.text.ids]
    return data.text.counts(begins)


def _warn_short(words: NDArray[np.int64], k: int) -> None:
    short_texts = int((words <= k).sum())
    if short_texts == len(words):
        raise UserError(f"no text has more than k = {k} words: all words would be selected; use a smaller k")
    if short_texts > len(words) // 10:
        warnings.warn(FEW_WORDS.format(few=short_texts, all=len(words), k=k), stacklevel=5)


def are_images(inputs: Any) -> bool:
    """True if the inputs are numeric arrays of two or more dimensions, or a list of arrays."""
    if isinstance(inputs, np.ndarray | Tensor):
        numbers = isinstance(inputs, Tensor) or inputs.dtype.kind in "biuf"
        return inputs.ndim > 1 if numbers else inputs.ndim == 1 and are_images(inputs.tolist())
    return isinstance(inputs, list | tuple) and len(inputs) > 0 and isinstance(inputs[0], np.ndarray | Tensor)
