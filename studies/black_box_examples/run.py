"""Selections of explainers of one black box, as in Tables 4 and 5 and Figures 3 and 4 of Bai et al. 2021.

--out is the folder of the study black_boxes, whose black box is explained.  Selected words are printed.  For images,
OUT/<corpus>.png is written, with a column for each image and a row for each explainer.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch

from steadygaze.data.batches import collate
from steadygaze.explainers.learned import METHODS
from steadygaze.explainers.learned.fitted_explainer import FitContext, QueriedTexts
from steadygaze.explainers.learned.removal_effects import predict_selected
from steadygaze.images.fitted_images import ImageFit, hold_out_images
from steadygaze.images.image_explanation import overlay, png, side_by_side_images
from steadygaze.images.image_inputs import read_images
from steadygaze.images.patch_networks import PatchConfig, image_settings
from steadygaze.training.progress import SilentWatcher
from studies.black_boxes.plan import IMAGES, ROWS, Job, K
from studies.black_boxes.run import epoch_settings, prepare
from studies.black_boxes.texts import Texts, probabilities, select_rows

TEXT_EXAMPLES = (
    "l2x",
    "l2x-y-plain-cnn",
    "l2x-y-random-pretraining-cnn",
    "l2x-y-random-query-simple",
    "l2x-y-mask-neutral-simple",
)
IMAGE_EXAMPLES = ("l2x-cnn", "l2x-y-plain-cnn", "l2x-y-random-pretraining-cnn", "l2x-y-mask-neutral-cnn")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Explainers are fitted to the first inputs."""

    out: Path
    data: Path = field(metadata={"help": "folder of the corpora"})
    corpus: str = "imdb"
    inputs: int = 6000
    examples: int = 4
    device: str = "cpu"


def print_texts(texts: Texts, model: Any, corpus: str, options: Options) -> None:
    device = torch.device(options.device)
    train = select_rows(texts.train, np.arange(min(options.inputs, len(texts.train))))
    splits = [QueriedTexts(part, probabilities(model, part)) for part in (train, texts.validation)]
    rows = np.random.default_rng(1).permutation(len(texts.test))[: options.examples]
    batch = collate(texts.test, rows).to(device)
    probs = predict_selected(model, batch, batch.mask).softmax(-1)
    for position, row in enumerate(rows):
        print(f"\ntext {row}: the black box predicts {probs[position].argmax()} ({probs[position].max():.0%})")
    for name in TEXT_EXAMPLES:
        kind, settings = ROWS[name]
        method: Any = METHODS[kind]
        config = method(k=K[corpus], **settings, **epoch_settings(Job(corpus, name, 0)))
        learned = FitContext(texts.vocabulary, "words", SilentWatcher(), device, 0).learn(config, model, *splits)
        selected = learned.explainer(texts, device).explain(model, batch).weights > 0
        selected_probs = predict_selected(model, batch, selected, "pad").softmax(-1)
        print(f"\n{name}")
        for position, row in enumerate(rows):
            words = [texts.vocabulary[i] for i in batch.ids[position][selected[position]].tolist()]
            prediction = selected_probs[position]
            answer = "the same" if prediction.argmax() == probs[position].argmax() else "THE OTHER"
            print(
                f"  text {row}: {' · '.join(words)}   from these alone: {answer} ({prediction.max():.0%})", flush=True
            )


def draw_images(sets: Any, box: Any, corpus: str, options: Options) -> None:
    train, held_out = hold_out_images(read_images(sets.train[: options.inputs]))
    rows = np.random.default_rng(1).permutation(len(sets.test))[: options.examples]
    sample, canvas = read_images(sets.test[rows]), PatchConfig(fill="mean", reader=True)
    lines: list[Any] = []
    for name in IMAGE_EXAMPLES:
        kind, settings = ROWS[name]
        job = Job(corpus, name, 0, "mean")
        method: Any = METHODS[kind]
        config = image_settings(method, {"k": K[corpus], **settings, **epoch_settings(job)})
        learned = ImageFit(config, canvas, 0, torch.device(options.device)).fit(box, train, held_out)
        explanations = learned.explain(box, sample)
        units = [
            explanation.image.astype(np.float64) / (255 if explanation.image.dtype == np.uint8 else 1)
            for explanation in explanations
        ]
        masks = [explanation.mask for explanation in explanations]
        if not lines:
            width = overlay(units[0], masks[0]).shape[1]
            lines.append(np.hstack([side_by_side_images(u, m)[:, :width] for u, m in zip(units, masks, strict=True)]))
        lines.append(np.hstack([overlay(u, m) for u, m in zip(units, masks, strict=True)]))
        accuracy = learned.measured(box, read_images(sets.test))["post-hoc-accuracy"].mean()
        print(f"{name}: post-hoc accuracy {accuracy:.3f}", flush=True)
    (options.out / f"{corpus}.png").write_bytes(png(np.vstack(lines)))


def run(options: Options) -> None:
    inputs, box = prepare(options.corpus, options.out, options.data, options.device)
    (draw_images if options.corpus in IMAGES else print_texts)(inputs, box, options.corpus, options)
