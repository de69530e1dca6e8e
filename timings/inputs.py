"""Texts, models and training loops that several timings share."""

from collections.abc import Iterator
from functools import partial
from itertools import count, islice
from pathlib import Path

import numpy as np
import torch

from steadygaze.data.batches import Data
from steadygaze.data.corpora import load_corpus
from steadygaze.data.word_tokenizer import build_word_tokenizer
from steadygaze.estimator.text_classifier import TextClassifier
from steadygaze.models.classifier import Architecture, Classifier, word_encoder
from steadygaze.perturbations.word_substitution import Synonyms
from steadygaze.techniques import TECHNIQUES
from steadygaze.techniques.technique import Technique
from steadygaze.training.stacked_loop import StackedLoop
from steadygaze.training.technique_loop import TechniqueLoop, TrainingJob
from steadygaze.training.training_run import RESULT, TrainingRun, freeze
from studies.data_folder import has_corpus

SHAPE = Architecture(hidden=128, dimension=100)
TECHNIQUE_SETTINGS: dict[str, Technique] = {
    "vanilla": TECHNIQUES["vanilla"](),
    **{name: TECHNIQUES[name]() for name in ("attention-rp", "attention-at", "attention-iat")},
    **{name: TECHNIQUES[name]() for name in ("word-at", "word-iat", "anchored")},
    **{f"seat {variant}": TECHNIQUES["seat"](variant=variant) for variant in ("joint", "paper", "released")},
    "consensus": TECHNIQUES["consensus"](),
}


def sentences(*splits: str) -> tuple[list[str], list[str]]:
    """Sentences and labels: SST-2 if $STEADYGAZE_DATA has it, else sentences of planted reviews."""
    if has_corpus("sst2"):
        examples = [e for split in splits for e in load_corpus("sst2").splits[split]]
        return [e.text for e in examples], [str(e.label) for e in examples]
    examples = list(load_corpus("planted-reviews").splits["train"])
    texts = [e.text[start:end] for e in examples for start, end in e.sentences or ()]
    return texts, [str(e.label) for e in examples for _ in e.sentences or ()]


def training_data(texts: int | None = None) -> tuple[Data, int]:
    """Training sentences as ids, and the size of the vocabulary; `texts`: only the first."""
    read, labels = sentences("train")
    tokenizer = build_word_tokenizer(read, min_df=1, max_length=512)
    known = {label: i for i, label in enumerate(sorted(set(labels)))}
    data = Data(tokenizer.encode(read), None, np.array([known[label] for label in labels]))
    return (data if texts is None else first(data, texts)), tokenizer.size


def first(data: Data, count: int) -> Data:
    assert data.label is not None
    return Data(data.text.select(range(min(count, len(data)))), None, data.label[:count])


def word_model(size: int, encoder: str = "bilstm", shape: Architecture = SHAPE) -> Classifier:
    return Classifier(word_encoder(encoder, shape, size, pair=False), shape, classes=2, pair=False)


def synonyms(size: int) -> Synonyms:
    """A table in which two of three words have eight synonyms.  Time does not depend on the words."""
    ids = torch.arange(size)
    return Synonyms((ids.unsqueeze(-1) + torch.arange(1, 9)) % size, (ids % 3 > 0) * 8, torch.zeros(size).bool())


def training_loop(
    technique: Technique, job: TrainingJob, size: int, seed: int = 0, encoder: str = "bilstm"
) -> TechniqueLoop:
    """A technique in its last stage, ready to train; references, teachers and cached targets exist."""
    make = partial(word_model, size, encoder)
    torch.manual_seed(seed)
    run = TrainingRun(technique, make, job, seed)
    stage = technique.stages(seed)[-1]
    names = {stage.model for stage in technique.stages(seed)} - {RESULT}
    run.models = {name: freeze(make().to(job.accelerator.device)) for name in sorted(names)}
    return run._loop(0, stage, run._begin(stage, (seed, 0)))


def ordinary_steps(loop: TechniqueLoop) -> Iterator[None]:
    """One step of the ordinary loop at a time."""
    for _ in count():
        loop.start_epoch()
        for rows in loop.batches():
            loop.train_batch(rows)
            yield
        loop.state.epoch += 1


def stacked_steps(stack: StackedLoop) -> Iterator[None]:
    """One step of the stack at a time."""
    for _ in count():
        for widths in stack._start_epoch():
            stack.run_step(widths)
            yield
        for loop in stack.loops:
            loop.state.step += len(stack.rows)


def take(steps: Iterator[None], number: int) -> None:
    for _ in islice(steps, number):
        pass


def saved_model(folder: Path, read: list[str], encoder: str = "bilstm") -> None:
    """Train and save a model of the default size.  Time does not depend on its weights."""
    labels = [i % 2 for i in range(len(read))]
    clf = TextClassifier(encoder, epochs=1, settings={"hidden": 128}, verbose=False, device="cpu")
    clf.fit(read[:512], labels[:512], validation=(read[:64], labels[:64]))
    clf.save(folder)
