"""Words that explainers of one black box select, as in Tables 4 and 5 of Bai et al. 2021.

--out is the folder of the study black_boxes, whose black box is explained.
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
from steadygaze.training.progress import SilentWatcher
from studies.black_boxes.plan import ROWS, Job, K
from studies.black_boxes.run import epoch_settings, prepare
from studies.black_boxes.texts import Texts, probabilities, select_rows

TEXT_EXAMPLES = (
    "l2x",
    "l2x-y-plain-cnn",
    "l2x-y-random-pretraining-cnn",
    "l2x-y-random-query-simple",
    "l2x-y-mask-neutral-simple",
)


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


def run(options: Options) -> None:
    texts, box = prepare(options.corpus, options.out, options.data, options.device)
    print_texts(texts, box, options.corpus, options)
