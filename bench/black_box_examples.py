"""Examples to look at, as in Tables 4 and 5 and Figures 3 and 4 of Bai et al. 2021: what explainers of one black box
select.

    python bench/black_box_examples.py --out DIR --data DIR --corpus imdb [--inputs 6000] [--examples 4] [--device cpu]

DIR is that of bench/black_boxes.py, whose black box is explained.  Of texts the words are printed; of images a picture
is written to DIR/<corpus>.png: a column for each image, under it what each explainer selects.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch

from black_box_jobs import epochs, prepared
from black_box_texts import Texts, probabilities, select
from black_boxes import IMAGES, ROWS, Job, K
from steadygaze.data.batches import collate
from steadygaze.explainers.learned import METHODS
from steadygaze.explainers.learned.fitted_explainer import FitContext, QueriedTexts
from steadygaze.explainers.learned.removal_effects import predict_selected
from steadygaze.images.fitted_images import ImageFit, hold_out_images
from steadygaze.images.image_explanation import overlay, png, side_by_side_images
from steadygaze.images.image_inputs import read_images
from steadygaze.images.patch_networks import PatchConfig, image_settings
from steadygaze.training.progress import SilentWatcher

SHOWN = (
    "l2x",
    "l2x-y-plain-cnn",
    "l2x-y-random-pretraining-cnn",
    "l2x-y-random-query-simple",
    "l2x-y-mask-neutral-simple",
)
SHOWN_OF_IMAGES = ("l2x-cnn", "l2x-y-plain-cnn", "l2x-y-random-pretraining-cnn", "l2x-y-mask-neutral-cnn")


def of_texts(texts: Texts, model: Any, corpus: str, options: argparse.Namespace) -> None:
    device = torch.device(options.device)
    train = select(texts.train, np.arange(min(options.inputs, len(texts.train))))
    splits = [QueriedTexts(part, probabilities(model, part)) for part in (train, texts.validation)]
    rows = np.random.default_rng(1).permutation(len(texts.test))[: options.examples]
    batch = collate(texts.test, rows).to(device)
    probs = predict_selected(model, batch, batch.mask).softmax(-1)
    for place, row in enumerate(rows):
        print(f"\ntext {row}: the black box says {probs[place].argmax()} ({probs[place].max():.0%})")
    for name in SHOWN:
        kind, settings = ROWS[name]
        how: Any = METHODS[kind](k=K[corpus], **settings, **epochs(Job(corpus, name, 0)))
        learned = FitContext(texts.vocabulary, "words", SilentWatcher(), device, 0).learn(how, model, *splits)
        kept = learned.explainer(texts, device).explain(model, batch).weights > 0
        alone = predict_selected(model, batch, kept, "pad").softmax(-1)
        print(f"\n{name}")
        for place, row in enumerate(rows):
            words = [texts.vocabulary[i] for i in batch.ids[place][kept[place]].tolist()]
            same = "the same" if alone[place].argmax() == probs[place].argmax() else "THE OTHER"
            print(f"  text {row}: {' · '.join(words)}   of these alone: {same} ({alone[place].max():.0%})", flush=True)


def of_images(sets: Any, box: Any, corpus: str, options: argparse.Namespace) -> None:
    train, held_out = hold_out_images(read_images(sets.train[: options.inputs]))
    rows = np.random.default_rng(1).permutation(len(sets.test))[: options.examples]
    some, canvas, lines = read_images(sets.test[rows]), PatchConfig(fill="mean"), []
    for name in SHOWN_OF_IMAGES:
        kind, settings = ROWS[name]
        job = Job(corpus, name, 0, "mean")
        how = image_settings(METHODS[kind], {"k": K[corpus], **settings, **epochs(job)})
        learned = ImageFit(how, canvas, 0, torch.device(options.device)).fit(box, train, held_out)
        explanations = learned.explain(box, some)
        units = [
            explanation.image.astype(np.float64) / (255 if explanation.image.dtype == np.uint8 else 1)
            for explanation in explanations
        ]
        masks = [explanation.mask for explanation in explanations]
        if not lines:
            width = overlay(units[0], masks[0]).shape[1]
            lines.append(np.hstack([side_by_side_images(u, m)[:, :width] for u, m in zip(units, masks, strict=True)]))
        lines.append(np.hstack([overlay(u, m) for u, m in zip(units, masks, strict=True)]))
        right = learned.measured(box, read_images(sets.test))["post-hoc-accuracy"].mean()
        print(f"{name}: post-hoc accuracy {right:.3f}", flush=True)
    (options.out / f"{corpus}.png").write_bytes(png(np.vstack(lines)))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--corpus", choices=K, default="imdb")
    parser.add_argument("--inputs", type=int, default=6000, help="learned from")
    parser.add_argument("--examples", type=int, default=4)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    inputs, box = prepared(options.corpus, options.out, options.data, options.device)
    (of_images if options.corpus in IMAGES else of_texts)(inputs, box, options.corpus, options)


if __name__ == "__main__":
    main()
