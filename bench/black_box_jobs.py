"""One job of bench/black_boxes.py: a black box, an explainer fitted to it, and how well it does."""

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from black_box_texts import Table6, Texts, accuracy, probabilities, read, trained
from black_boxes import FIRST, IMAGES, ROWS, STAGED, Job, K
from steadygaze.core.maths.distributions import top_k
from steadygaze.data.batches import Data, by_length, collate
from steadygaze.explainers import EXPLAINERS
from steadygaze.explainers.learned import METHODS
from steadygaze.explainers.learned.answer_cache import AnswerCache
from steadygaze.explainers.learned.cxplain import CXPlain
from steadygaze.explainers.learned.fitted_explainer import FitContext, QueriedTexts, measure_selection
from steadygaze.explainers.learned.removal_effects import predict_selected, remainder_agreement
from steadygaze.images.fitted_images import ImageFit, hold_out_images, post_hoc
from steadygaze.images.image_black_box import ImageBlackBox, as_image_black_box
from steadygaze.images.image_classifier import ImageClassifier
from steadygaze.images.image_inputs import ImageSets, load_images, read_images
from steadygaze.images.patch_explainers import IMAGE_EXPLAINERS, PatchRequest
from steadygaze.images.patch_networks import PatchConfig, image_settings
from steadygaze.training.progress import SilentWatcher

MOST_LIME = 1000
"""Test inputs that LIME is asked about, with as many samples."""


def prepared(corpus: str, out: Path, data: Path, device: str) -> tuple[Any, Any]:
    """The inputs, and one black box for all seeds."""
    return _pictures(corpus, out, data, device) if corpus in IMAGES else _texts(corpus, out, data, device)


@lru_cache(maxsize=1)
def _texts(corpus: str, out: Path, data: Path, device: str) -> tuple[Texts, Table6]:
    name = "planted-code" if corpus == "planted" else corpus
    texts = read(name, data, out / f"{corpus}.npz")
    file, where = out / f"{corpus}.safetensors", torch.device(device)
    if not file.exists():
        model = trained(texts, where, epochs=5 if corpus == "imdb" else 15)
        print(corpus, "black box: train", accuracy(model, texts.train), "test", accuracy(model, texts.test), flush=True)
        save_file({name: value.cpu() for name, value in model.state_dict().items()}, file)
    model = Table6(len(texts.vocabulary), texts.length)
    model.load_state_dict(load_file(file))
    return texts, model.to(where).eval().requires_grad_(False)


@lru_cache(maxsize=1)
def _pictures(corpus: str, out: Path, data: Path, device: str) -> tuple[ImageSets, ImageBlackBox]:
    sets, folder = load_images(data / corpus), out / corpus
    if not folder.exists():
        made = ImageClassifier(seed=0, device=device).fit(sets.train, sets.train_labels)
        print(corpus, "black box: test", made.score(sets.test, sets.test_labels), flush=True)
        made.save(folder)
    return sets, as_image_black_box(ImageClassifier.load(folder, device=device))


def done(job: Job, out: Path, data: Path, device: str) -> dict[str, Any]:
    inputs, box = prepared(job.corpus, out, data, device)
    if job.corpus in IMAGES:
        return _of_images(job, inputs, box, torch.device(device), effects(out, job))
    return _of_texts(job, inputs, box, torch.device(device), effects(out, job))


def effects(out: Path, job: Job) -> Path:
    """Where CXPlain caches what removing each unit does to the prediction: the same for all seeds."""
    return out / "effects" / job.corpus / job.fill


def _of_texts(job: Job, texts: Texts, model: Table6, device: torch.device, keep: Path) -> dict[str, Any]:
    name, settings = ROWS[job.row]
    if name in EXPLAINERS:
        return _asked(name, model, texts.test, K[job.corpus])
    more = {"removal": "pad"} if name == "cxplain" else epochs(job)
    how: Any = METHODS[name](k=K[job.corpus], **settings, **more)
    splits = [
        QueriedTexts(part, probabilities(model, part), AnswerCache(keep / split, {"corpus": job.corpus}))
        for split, part in (("train", texts.train), ("validation", texts.validation))
    ]
    learned = FitContext(texts.vocabulary, "words", SilentWatcher(), device, job.seed).learn(how, model, *splits)
    measures = measure_selection(model, learned.explainer(texts, device), texts.test, "pad")
    return _means(measures, learned.history)


def epochs(job: Job) -> dict[str, int]:
    """Of L2X as many in all, in one stage or in two; others have their own."""
    name, settings = ROWS[job.row]
    if name != "l2x":
        return {}
    first, own = FIRST[job.corpus], 12 if job.corpus in IMAGES else 5
    staged = settings.get("mitigation") in STAGED
    return {"pretraining_epochs": first, "epochs": own} if staged else {"epochs": first + own}


def _asked(name: str, model: Table6, data: Data, k: int) -> dict[str, Any]:
    """An explainer that learns nothing."""
    if name == "lime":
        rows = np.sort(np.random.default_rng(0).permutation(len(data))[:MOST_LIME])
        data = Data(data.text.select(rows))
    explainer = EXPLAINERS[name]()
    same, other = [], []
    for rows in by_length(data, 128):
        batch = collate(data, rows).to(model.device)
        saliency = explainer.explain(model, batch)
        weights = saliency.weights.abs() if "gradient" in name else saliency.weights
        kept, predicted = top_k(weights, batch.mask, k), saliency.logits.argmax(-1)
        same.append((predict_selected(model, batch, kept, "pad").argmax(-1) == predicted).double().cpu())
        other.append(remainder_agreement(model, batch, batch.mask & ~kept, predicted, "pad").cpu())
    return _means({"post-hoc-accuracy": torch.cat(same), "post-hoc-accuracy/unselected": torch.cat(other)}, [])


def _of_images(job: Job, sets: ImageSets, box: ImageBlackBox, device: torch.device, keep: Path) -> dict[str, Any]:
    train, held_out = hold_out_images(read_images(sets.train))
    test, canvas, k = read_images(sets.test), PatchConfig(fill=job.fill), K[job.corpus]
    if job.row in IMAGE_EXPLAINERS:
        many = MOST_LIME if job.row == "lime" else len(test)
        some = test.of(test.pixels[np.sort(np.random.default_rng(0).permutation(len(test))[:many])])
        fill = canvas.blank(train.pixels, train.whole)
        probs = box.predict_proba(some)
        request = PatchRequest(box, some, probs, fill, canvas.patch, canvas.units(some.shape))
        weights = IMAGE_EXPLAINERS[job.row]().weigh(request)
        kept = top_k(weights, torch.ones_like(weights, dtype=torch.bool), k).float()
        return _means(post_hoc(box, some, probs, kept, fill, canvas.patch), [])
    name, settings = ROWS[job.row]
    if name == "cxplain":
        worth = ImageFit(CXPlain(k=k, **settings), canvas, job.seed, device).fit(box, train, held_out, keep)
        return _means(worth.measured(box, test), worth.history)
    how = image_settings(METHODS[name], {"k": k, **settings, **epochs(job)})
    learned = ImageFit(how, canvas, job.seed, device).fit(box, train, held_out)
    return _means(learned.measured(box, test), learned.history)


def _means(measures: dict[str, torch.Tensor], history: list[dict[str, Any]]) -> dict[str, Any]:
    n = len(next(iter(measures.values())))
    means = {measure: float(values.double().nanmean()) for measure, values in measures.items()}
    return {**means, "n": n, "history": history}
