"""Post-hoc accuracy and label leakage of explainers of black boxes: Table 3 of Bai et al. 2021 (arXiv:2006.05656).

One job fits one explainer with one seed to one black box, and measures its selection on the test split.
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch

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
from studies import jobs
from studies.black_boxes.plan import IMAGES, PRETRAINED, PRETRAINING_EPOCHS, ROWS, Job, K, needs, plan
from studies.black_boxes.texts import TextCNN, Texts, load_black_box, probabilities, read_texts

Fill = Literal["zero", "mean", "gray"]
LIME_INPUTS = 1000
"""Test inputs that LIME explains, with 1,000 samples each."""


def prepare(corpus: str, out: Path, data: Path, device: str) -> tuple[Any, Any]:
    """The inputs, and one black box for all seeds."""
    return _load_images(corpus, out, data, device) if corpus in IMAGES else _load_texts(corpus, out, data, device)


@lru_cache(maxsize=1)
def _load_texts(corpus: str, out: Path, data: Path, device: str) -> tuple[Texts, TextCNN]:
    name = "planted-code" if corpus == "planted" else corpus
    texts = read_texts(name, data, out / f"{corpus}.npz")
    return texts, load_black_box(corpus, texts, out, torch.device(device))


@lru_cache(maxsize=1)
def _load_images(corpus: str, out: Path, data: Path, device: str) -> tuple[ImageSets, ImageBlackBox]:
    sets, folder = load_images(data / corpus), out / corpus
    if not folder.exists():
        classifier = ImageClassifier(seed=0, device=device).fit(sets.train, sets.train_labels)
        print(corpus, "black box: test", classifier.score(sets.test, sets.test_labels), flush=True)
        classifier.save(folder)
    return sets, as_image_black_box(ImageClassifier.load(folder, device=device))


def run_job(job: Job, out: Path, data: Path, device: str) -> dict[str, Any]:
    inputs, box = prepare(job.corpus, out, data, device)
    if job.corpus in IMAGES:
        return _explain_images(job, inputs, box, torch.device(device), effects_folder(out, job))
    return _explain_texts(job, inputs, box, torch.device(device), effects_folder(out, job))


def effects_folder(out: Path, job: Job) -> Path:
    """The folder of the effects of removal that CXPlain learns from: the same for all seeds."""
    return out / "effects" / job.corpus / job.fill


def _explain_texts(job: Job, texts: Texts, model: TextCNN, device: torch.device, effects: Path) -> dict[str, Any]:
    name, settings = ROWS[job.row]
    if name in EXPLAINERS:
        return _measure_untrained(name, model, texts.test, K[job.corpus])
    more = {"removal": "pad"} if name == "cxplain" else epoch_settings(job)
    config: Any = METHODS[name](k=K[job.corpus], **settings, **more)
    splits = [
        QueriedTexts(part, probabilities(model, part), AnswerCache(effects / split, {"corpus": job.corpus}))
        for split, part in (("train", texts.train), ("validation", texts.validation))
    ]
    learned = FitContext(texts.vocabulary, "words", SilentWatcher(), device, job.seed).learn(config, model, *splits)
    measures = measure_selection(model, learned.explainer(texts, device), texts.test, "pad")
    return _means(measures, learned.history)


def epoch_settings(job: Job) -> dict[str, int]:
    """Epochs of L2X, the same number in one stage or in two; the defaults of other explainers."""
    name, settings = ROWS[job.row]
    if name != "l2x":
        return {}
    pretraining, epochs = PRETRAINING_EPOCHS[job.corpus], 12 if job.corpus in IMAGES else 5
    if settings.get("mitigation") in PRETRAINED:
        return {"pretraining_epochs": pretraining, "epochs": epochs}
    return {"epochs": pretraining + epochs}


def _measure_untrained(name: str, model: TextCNN, data: Data, k: int) -> dict[str, Any]:
    """Measures of an explainer without training."""
    if name == "lime":
        rows = np.sort(np.random.default_rng(0).permutation(len(data))[:LIME_INPUTS])
        data = Data(data.text.select(rows))
    explainer = EXPLAINERS[name]()
    agreement, remainder = [], []
    for rows in by_length(data, 128):
        batch = collate(data, rows).to(model.device)
        saliency = explainer.explain(model, batch)
        weights = saliency.weights.abs() if "gradient" in name else saliency.weights
        selected, predicted = top_k(weights, batch.mask, k), saliency.logits.argmax(-1)
        agreement.append((predict_selected(model, batch, selected, "pad").argmax(-1) == predicted).double().cpu())
        remainder.append(remainder_agreement(model, batch, batch.mask & ~selected, predicted, "pad").cpu())
    measures = {"post-hoc-accuracy": torch.cat(agreement), "post-hoc-accuracy/unselected": torch.cat(remainder)}
    return _means(measures, [])


def _explain_images(
    job: Job, sets: ImageSets, box: ImageBlackBox, device: torch.device, effects: Path
) -> dict[str, Any]:
    train, held_out = hold_out_images(read_images(sets.train))
    test, canvas, k = read_images(sets.test), PatchConfig(fill=cast(Fill, job.fill), reader=True), K[job.corpus]
    if job.row in IMAGE_EXPLAINERS:
        count = LIME_INPUTS if job.row == "lime" else len(test)
        sample = test.of(test.pixels[np.sort(np.random.default_rng(0).permutation(len(test))[:count])])
        fill = canvas.blank(train.pixels, train.whole)
        probs = box.predict_proba(sample)
        request = PatchRequest(box, sample, probs, fill, canvas.patch, canvas.units(sample.shape))
        weights = IMAGE_EXPLAINERS[job.row]().weigh(request)
        selected = top_k(weights, torch.ones_like(weights, dtype=torch.bool), k).float()
        return _means(post_hoc(box, sample, probs, selected, fill, canvas.patch), [])
    name, settings = ROWS[job.row]
    if name == "cxplain":
        cxplain = ImageFit(CXPlain(k=k, **settings), canvas, job.seed, device).fit(box, train, held_out, effects)
        return _means(cxplain.measured(box, test), cxplain.history)
    kind: Any = METHODS[name]
    config = image_settings(kind, {"k": k, **settings, **epoch_settings(job)})
    learned = ImageFit(config, canvas, job.seed, device).fit(box, train, held_out)
    return _means(learned.measured(box, test), learned.history)


def _means(measures: dict[str, torch.Tensor], history: list[dict[str, Any]]) -> dict[str, Any]:
    n = len(next(iter(measures.values())))
    means = {measure: float(values.double().nanmean()) for measure, values in measures.items()}
    return {**means, "n": n, "history": history}


@dataclass(frozen=True, kw_only=True)
class Options(jobs.JobOptions):
    """Explainers without training have one seed."""

    data: Path = field(metadata={"help": "folder of the corpora"})
    seeds: int = 5


def run(options: Options) -> None:
    planned = [job for job in plan(options.seeds) if re.search(options.only, job.id)]
    options.out.mkdir(parents=True, exist_ok=True)
    if options.workers > 1:  # one black box for all workers
        for corpus in sorted({job.corpus for job in planned}):
            prepare(corpus, options.out, options.data, options.device)
    do = partial(run_job, out=options.out, data=options.data, device=options.device)
    jobs.run(options, lambda: planned, do, needs=partial(needs, jobs=planned))
