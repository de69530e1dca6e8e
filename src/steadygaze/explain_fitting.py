"""sg.explain_fit: an explainer that learns from what a black box says of many inputs what its reasons are."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from steadygaze import image_explainer, text_explainer
from steadygaze.arguments import checked, choice, function, instance, optional, path, several
from steadygaze.batch import Data
from steadygaze.errors import UserError
from steadygaze.explain.learned import folder
from steadygaze.explain.learned.asking import Watch, ask, silent
from steadygaze.explain.learned.cxplain import CXPlain
from steadygaze.explain.learned.images import Canvas
from steadygaze.explain.learned.kept import Kept, digest
from steadygaze.explain.learned.learned import Answered, Teaching, measured
from steadygaze.explain.learned.order import Method, name_of, ordered_for_images
from steadygaze.explain.learned.order import ordered as ordered
from steadygaze.image_explainer import ImageExplainer, are_images, image_box
from steadygaze.images.box import ImageBox
from steadygaze.images.cxplain import WorthFit
from steadygaze.images.learned import ImageFit, parted
from steadygaze.images.pixels import Images, read_images
from steadygaze.infer import BATCH
from steadygaze.inputs import HELD_OUT, read_texts
from steadygaze.order import seed_of
from steadygaze.record import Row
from steadygaze.report.warned import ONE_LABEL
from steadygaze.subject import Subject, as_subject
from steadygaze.subject.subject import Tokens
from steadygaze.text_explainer import TextExplainer, check_removal
from steadygaze.tokens.synonyms import lexicon
from steadygaze.train.device import DEVICES, best
from steadygaze.train.progress import Silent, Watcher
from steadygaze.types import Label

Read = TypeVar("Read")
Texts = tuple[list[str], list[str] | None]
"""Texts, and the question about each, or None."""
FEWEST = 20
"""Inputs that an explainer needs: with fewer there is nothing to learn from and nothing to measure it on."""
FEW_WORDS = "{few:,} of {all:,} texts have no more than k = {k} words: of those everything is selected"


@checked(
    classes=optional(several),
    device=choice(*DEVICES),
    keep=optional(path),
    watcher=optional(instance(Watcher, "a Watcher")),
    watch=function,
)
def explain_fit(
    black_box: Any,
    inputs: Any,
    explainer: str = "l2x",
    *,
    k: int | None = None,
    technique: str | None = None,
    query: bool | None = None,
    validation: Any = None,
    classes: Sequence[Label] | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    device: str = "auto",
    keep: str | Path | None = None,
    watcher: Watcher | None = None,
    watch: Watch = silent,
) -> TextExplainer | ImageExplainer:
    """Fit an explainer to a black box: anything with `predict_proba`, a model, a folder, or a function.

    >>> import steadygaze as sg
    >>> def cheerful(texts): return [[0.1, 0.9] if "good" in text else [0.8, 0.2] for text in texts]
    >>> texts = [f"a {kind} film about {whom}" for kind in ("good", "dull") for whom in "abcdefghijklmnop"]
    >>> fitted = sg.explain_fit(cheerful, texts, "l2x", k=2, classes=["no", "yes"])
    >>> fitted.explain("a good film").label
    'yes'
    >>> [row.measure for row in fitted.rows if "/" not in row.measure]  # on texts it was not fitted to
    ['post-hoc-accuracy', 'fidelity', 'mask-loss', 'independent-reader-accuracy', 'leakage-gap']

    `inputs`: texts, pairs (text, question), or images: an array of (N,H,W) or (N,H,W,C), or a list of arrays.
    `k`: how many words or patches are selected; None: 10 words, 25 patches.  `query`: whether the selector is told
    what the black box says; `technique`: how the label is then kept from travelling in the mask.  `settings`: any other
    of the method's, and of images `patch` (a patch's side in pixels) and `fill` (zero, mean or grey).
    A tenth of the inputs is set aside to choose the epoch and to measure on, unless `validation` has others.  What the
    black box says is kept in the folder `keep` as it comes, so that a run that fails half-way is not lost.
    With `query` the technique is random-pretraining unless one is named.  An explainer whose selections leak the label
    is warned of, here, where it is loaded, and in its `warnings`: what it selects is not a reason.
    """
    order = explainer, k, technique, query, settings
    run = Run(seed_of(seed), best(device), None if keep is None else Path(keep), watcher or Silent(), watch)
    fitted: TextExplainer | ImageExplainer
    if are_images(inputs):
        how, canvas = ordered_for_images(*order)
        fitted = run.images(image_box(black_box, classes, device), how, canvas, image_splits(inputs, validation))
    else:
        method, parts = ordered(*order), splits(inputs, validation)
        fitted = run.texts(as_subject(black_box, classes=classes, device=device), method, parts)
    _warn(fitted)
    return fitted


@checked(path=path, classes=optional(several), device=choice(*DEVICES))
def load_explainer(
    path: str | Path, black_box: Any, *, classes: Sequence[Label] | None = None, device: str = "auto"
) -> TextExplainer | ImageExplainer:
    """A fitted explainer from its folder, with the black box it was fitted to."""
    sort = text_explainer if folder.load(Path(path)).sort == "texts" else image_explainer
    found: TextExplainer | ImageExplainer = sort.load_explainer(path, black_box, classes=classes, device=device)
    _warn(found)
    return found


@dataclass(frozen=True)
class Run:
    """Everything about a fit that is neither the black box nor the method."""

    seed: int
    device: torch.device
    keep: Path | None
    watcher: Watcher
    watch: Watch

    def texts(self, subject: Subject, how: Method, parts: tuple[Texts, Texts]) -> TextExplainer:
        subject = subject.reading(parts[0][1] is not None)
        check_removal(subject, how.removal if isinstance(how, CXPlain) else "delete")
        tokens = subject.tokens
        data = [subject.data(tokens.place(texts), questions) for texts, questions in parts]
        _warn_short(words_of(data[0], tokens), how.k)
        names = zip(("train", "held-out"), parts, data, strict=True)
        train, held_out = (self._answered(subject, *one) for one in names)
        teaching = Teaching(tokens.vocabulary, tokens.kind, self.watcher, self.device, self.seed, self.watch)
        learned = teaching.learn(how, subject.model, train, held_out)
        fitted = TextExplainer(name_of(how), subject, learned, facts=self._facts(*parts[0]))
        found = measured(subject.model, fitted.explainer, held_out.data)
        rows = fitted.to_rows(found, "delete", digest(*parts[1]))
        return replace(fitted, rows=_noted(rows, held_out.probs))

    def images(self, box: ImageBox, how: Method, canvas: Canvas, parts: tuple[Images, Images]) -> ImageExplainer:
        ways = self.seed, self.device, self.watcher, self.watch
        fit = WorthFit(how, canvas, *ways) if isinstance(how, CXPlain) else ImageFit(how, canvas, *ways)
        facts = self._facts(parts[0].as_given())
        fitted = ImageExplainer(name_of(how), box, fit.fit(box, *parts, self.keep), facts=facts)
        rows = fitted.to_rows(fitted.learned.measured(box, parts[1]), digest(parts[1].as_given()))
        return replace(fitted, rows=_noted(rows, box.said(parts[1])))

    def _facts(self, *inputs: object) -> dict[str, Any]:
        return {"seed": self.seed, "fitted-to": digest(*inputs)[:12]}

    def _answered(self, subject: Subject, name: str, part: Texts, data: Data) -> Answered:
        """Texts, as they are and as the black box reads them, and what it says of them."""
        identity = {"texts": digest(*part), "model": subject.fingerprint or subject.name}
        kept = Kept() if self.keep is None else Kept(self.keep / name, identity)
        return Answered(data, ask(subject.model, data, kept, self.watch, BATCH), kept)


def splits(inputs: Any, validation: Any) -> tuple[Texts, Texts]:
    """(texts, questions) to learn from, and to measure on."""
    texts, questions = read_texts(inputs)
    _enough(len(texts), "texts")
    if validation is not None:
        held_out = _held_out(read_texts, validation, "texts, or pairs (text, question)")
        if (held_out[1] is None) != (questions is None):
            raise UserError("texts and validation texts must both be single texts, or both pairs")
        return (texts, questions), held_out
    order = np.random.default_rng(0).permutation(len(texts)).tolist()
    few = max(1, round(len(texts) * HELD_OUT))

    def some(rows: list[int]) -> Texts:
        return [texts[i] for i in rows], None if questions is None else [questions[i] for i in rows]

    return some(sorted(order[few:])), some(sorted(order[:few]))


def image_splits(inputs: Any, validation: Any) -> tuple[Images, Images]:
    """Images to learn from, and to measure on."""
    images = read_images(inputs)
    _enough(len(images), "images")
    return parted(images) if validation is None else (images, _held_out(read_images, validation, "images"))


def _held_out(read: Callable[[Any], Read], validation: Any, what: str) -> Read:
    try:
        return read(validation)
    except UserError as error:
        raise UserError(f"validation must be {what}, as the inputs are, and without labels: {error}") from None


def _enough(found: int, what: str) -> None:
    if found < FEWEST:
        raise UserError(f"found {found} {what}; an explainer needs at least {FEWEST} to learn from")


def _warn(fitted: TextExplainer | ImageExplainer) -> None:
    for sentence in fitted.warnings:
        warnings.warn(sentence, stacklevel=4)


def _noted(rows: list[Row], probs: Tensor) -> tuple[Row, ...]:
    """Rows of inputs that all get the same label say so.  (N,C)"""
    one = len(set(probs.argmax(-1).tolist())) == 1
    return tuple([replace(row, note=ONE_LABEL) for row in rows] if one else rows)


def words_of(data: Data, tokens: Tokens) -> NDArray[np.int64]:
    """How many words each text has, however many pieces those are.  (N,)"""
    begins = data.text.words & ~lexicon(tokens.vocabulary, tokens.kind).continues[data.text.ids]
    return np.diff(np.concatenate([[0], begins.cumsum()])[data.text.starts])


def _warn_short(words: NDArray[np.int64], k: int) -> None:
    few = int((words <= k).sum())
    if few == len(words):
        raise UserError(f"no text has more than k = {k} words: everything would be selected; a smaller k is needed")
    if few > len(words) // 10:
        warnings.warn(FEW_WORDS.format(few=few, all=len(words), k=k), stacklevel=5)
