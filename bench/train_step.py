"""What a training step costs beside a bare PyTorch loop: the same model, the same batches, the same Adam, in turn.

Ours is the real thing (train.run, with batches cut and padded as it goes, accelerate, terms, watcher).  The bare loop
gets its batches ready-made.  A block of our steps is followed by a block of bare ones on the very same batches; at the
end both models must agree bit for bit.  The ratio is the median over the blocks.

    python bench/train_step.py [--steps 200] [--block 4] [--hidden 128] [--threads 1]

Exits with 1 where the ratio is above 1.10.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from data_folder import has_corpus
from steadygaze.core.random_key import derive_seed
from steadygaze.core.types import Batch
from steadygaze.data.batches import Data, collate, shuffled
from steadygaze.data.corpora import load_corpus
from steadygaze.data.word_tokenizer import build_word_tokenizer
from steadygaze.models.classifier import Architecture, Classifier, word_encoder
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training.device import accelerator
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.technique_loop import TrainingJob
from steadygaze.training.training_run import TrainingRun

MOST = 1.10
SKIP = 2  # blocks in which caches and memory pools fill


def corpus() -> tuple[Data, int]:
    """Training sentences of SST-2 if $STEADYGAZE_DATA has it, else of planted reviews, as ids; vocabulary size."""
    if has_corpus("sst2"):
        examples = load_corpus("sst2").splits["train"]
        texts, labels = [e.text for e in examples], [e.label for e in examples]
    else:
        examples = load_corpus("planted-reviews").splits["train"]
        texts = [e.text[start:end] for e in examples for start, end in e.sentences or ()]
        labels = [e.label for e in examples for _ in e.sentences or ()]
    tokenizer = build_word_tokenizer(texts, min_df=1, max_length=512)
    known = {label: i for i, label in enumerate(sorted(set(labels), key=str))}
    return Data(tokenizer.encode(texts), None, torch.tensor([known[label] for label in labels]).numpy()), tokenizer.size


class Bare:
    """The loop anyone would write."""

    def __init__(self, model: Classifier, training: Training) -> None:
        self.model, self.training = model.train(), training
        plain = [*model.encoder.embedding.parameters(), *model.scorer.parameters()]
        decayed = [*model.encoder.text.parameters(), *model.decoder.parameters()]
        groups = [{"params": plain}, {"params": decayed, "weight_decay": training.weight_decay}]
        self.adam = torch.optim.Adam(groups, lr=training.learning_rate, amsgrad=True, fused=True)

    def steps(self, batches: list[Batch]) -> None:
        for batch in batches:
            loss = cross_entropy(self.model(batch).logits, batch.gold)
            self.adam.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), self.training.clip)
            self.adam.step()


class InTurn(SilentWatcher):
    """After each block of our steps, the same block bare."""

    def __init__(self, bare: Bare, batches: list[Batch], block: int) -> None:
        self.bare, self.batches, self.block = bare, batches, block
        self.done = 0
        self.ours: list[float] = []
        self.theirs: list[float] = []

    def start(self, stages: int, epochs: int, steps: int) -> None:
        self.since = time.perf_counter()

    def step(self, stage: str, epoch: int, terms: Mapping[str, Tensor]) -> None:
        self.done += 1
        if self.done % self.block == 0:
            middle = time.perf_counter()
            self.bare.steps(self.batches[self.done - self.block : self.done])
            self.ours.append(middle - self.since)
            self.since = time.perf_counter()
            self.theirs.append(self.since - middle)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--block", type=int, default=4, help="steps of one kind in a row")
    parser.add_argument("--encoder", default="bilstm")
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)

    data, size = corpus()
    training = Training(epochs=1)
    count = min(len(data), chosen.steps * training.batch_size)
    data = Data(data.text.select(range(count)), None, data.label[:count])
    shape = Architecture(hidden=chosen.hidden)

    def make() -> Classifier:
        return Classifier(word_encoder(chosen.encoder, shape, size, pair=False), shape, classes=2, pair=False)

    torch.manual_seed(derive_seed(0, 0))  # as a run with seed 0 begins
    bare = Bare(make(), training)
    batches = [collate(data, rows) for rows in shuffled(data, training.batch_size, (0, 0, 0))]
    watcher = InTurn(bare, batches, chosen.block)
    few = Data(data.text.select(range(64)), None, data.label[:64])
    with accelerator("cpu", "no") as accelerate:
        model = TrainingRun(Vanilla(), make, TrainingJob(data, few, training, accelerate, watcher)).execute()

    ours, theirs = watcher.ours[SKIP:], watcher.theirs[SKIP:]
    ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    for name, times in (("ours", ours), ("bare", theirs)):
        print(
            f"{name}   {1000 * statistics.median(times) / chosen.block:7.2f} ms a step (median of {len(times)} blocks)"
        )
    print(f"ratio  {ratio:.3f}   (at most {MOST})")
    same = all(torch.equal(a, b) for a, b in zip(model.parameters(), bare.model.parameters(), strict=True))
    print(f"weights after {watcher.done} steps: {'the same, bit for bit' if same else 'DIFFERENT'}")
    return 0 if same and ratio <= MOST else 1


if __name__ == "__main__":
    sys.exit(main())
