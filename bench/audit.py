"""What comprehensiveness and sufficiency cost: beside erasing one text at a time, beside the bare forward passes.

One interleaved run on the same model and the same SST-2 texts, five sizes each way, medians over the rounds:

    one at a time   for each text and size: erase, then a forward pass of that text alone
    ours            audit.probe.erase over batches of 256 texts, as the audit does it, and the measures
    bare            the very forward passes that ours needs, their batches ready-made, and nothing else
    ferret          ferret-xai's two AOPC measures on the same Hugging Face folder, one text of ten, from the same
                    strings and scores; its sizes round down, so that it reads fewer texts than ours.  No bar.

What a model has learned does not change what it costs: weights are random, MiniLM's but for its head are pre-trained.

    python bench/audit.py [--texts 500] [--rounds 3] [--threads 1] [--device cpu] [--ferret PYTHON]

PYTHON is the interpreter of an environment of its own, made by: pip install torch ferret-xai==0.4.2 'pyarrow<22'.
Exits with 1 where one at a time is less than 2.5 times ours (10 times on a GPU), ours more than 1.5 times the bare
passes, or where the two ways of erasing say different things.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from data_folder import has_corpus
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.audit.measures.faithfulness_measures import comprehensiveness, sufficiency
from steadygaze.audit.probes.erasure import SHARES, erase_words
from steadygaze.audit.probes.text_perturbations import observe
from steadygaze.core.types import Batch
from steadygaze.data.batches import Data, by_length, collate
from steadygaze.data.corpora import load_corpus
from steadygaze.data.subword_tokenizer import load_subword_tokenizer
from steadygaze.data.text_tokenizer import Tokens
from steadygaze.data.word_tokenizer import build_word_tokenizer
from steadygaze.models.classifier import Architecture, Classifier, word_encoder
from steadygaze.models.encoders.transformer import from_folder, locate
from steadygaze.models.inference import Model, inference

T = TypeVar("T")
FEWEST = {"cpu": 2.5, "cuda": 10.0}
MOST = 1.5
SAME = 1e-5
EACH = 10  # ferret is asked about one text of so many
ROWS = 256
SHAPE = Architecture(hidden=128)


@dataclass(frozen=True)
class Case:
    batch: Batch
    clean: Tensor  # (B,C)
    weights: Tensor  # (B,T)


def texts(count: int) -> list[str]:
    """Validation and test sentences of SST-2 if $STEADYGAZE_DATA has it; else sentences of planted reviews."""
    if has_corpus("sst2"):
        splits = load_corpus("sst2").splits
        return [e.text for name in ("validation", "test") for e in splits[name]][:count]
    print("$STEADYGAZE_DATA has no SST-2: sentences of planted reviews instead")
    examples = load_corpus("planted-reviews").splits["train"]
    return [e.text[start:end] for e in examples for start, end in e.sentences or ()][:count]


def bilstm(read: list[str]) -> tuple[Model, Data]:
    tokens = build_word_tokenizer(read, min_df=1, max_length=512)
    encoder = word_encoder("bilstm", SHAPE, tokens.size, pair=False)
    return Classifier(encoder, SHAPE, classes=2, pair=False), Data(tokens.encode(read))


def minilm(read: list[str]) -> tuple[Model, Data]:
    folder = locate("minilm")
    tokens = load_subword_tokenizer(folder, max_length=512)
    return Classifier(from_folder(folder), SHAPE, classes=2, pair=False), Data(tokens.encode(read))


MODELS = {"bilstm": bilstm, "minilm": minilm}


def cases(model: Model, data: Data) -> list[Case]:
    """What an audit has at hand when it comes to erasing: batches, clean predictions and saliencies."""
    batches = [collate(data, rows).to(model.device) for rows in by_length(data, ROWS)]
    return [Case(batch, seen.probs, seen.weights) for batch in batches for seen in [observe(model, batch)]]


def at_once(model: Model, cases: list[Case]) -> Tensor:
    """(2,N): comprehensiveness and sufficiency."""
    erasures = [(case.clean, *erase_words(model, case.batch, case.clean, case.weights)) for case in cases]
    return torch.cat([torch.stack([comprehensiveness(c, w), sufficiency(c, a)]) for c, w, a in erasures], 1)


def one_at_a_time(model: Model, cases: list[Case]) -> Tensor:
    """(2,N): the same, as anyone would write it."""
    measures = []
    for case in cases:
        for row in range(len(case.batch)):
            without, alone = (torch.stack(probs) for probs in zip(*_sizes(model, case, row), strict=True))
            clean = case.clean[row : row + 1]
            measures.append(torch.stack([comprehensiveness(clean, without[None]), sufficiency(clean, alone[None])]))
    return torch.cat(measures, 1)


def _sizes(model: Model, case: Case, row: int) -> list[tuple[Tensor, Tensor]]:
    places = case.batch.mask[row].nonzero().flatten()
    order = places[case.weights[row, places].argsort(descending=True, stable=True)]
    many = [math.ceil(share * len(order) - 1e-9) for share in SHARES]
    return [(_look(model, case.batch, row, order[:k]), _look(model, case.batch, row, order[k:])) for k in many]


def _look(model: Model, batch: Batch, row: int, gone: Tensor) -> Tensor:
    there = batch.present[row : row + 1].clone()
    there[0, gone] = False
    left = there[0] if there.any() else torch.arange(there.shape[1], device=there.device) < 1  # nothing: padding
    ids, words = batch.ids[row : row + 1, left], batch.mask[row : row + 1, left]
    there = there[:, left]
    return observe(model, Batch(ids, there, words & there, batch.index[row : row + 1])).probs[0]


def needed(model: Model, cases: list[Case]) -> list[Batch]:
    """The forward passes of ours."""
    seen: list[Batch] = []
    handle = model.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    at_once(model, cases)
    handle.remove()
    return seen


def bare(model: Model, passes: list[Batch]) -> None:
    with inference(model):
        for batch in passes:
            model(batch)


def timed(work: Callable[[], T], device: str) -> tuple[float, T]:
    """Seconds, and what came of it."""
    start = time.perf_counter()
    result = work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start, result


def compare(name: str, model: Model, data: Data, chosen: argparse.Namespace) -> bool:
    """Whether all bars are met."""
    audit_cases = cases(model.to(chosen.device), data)
    passes = needed(model, audit_cases)
    rows, real, padded = (sum(column) for column in zip(*map(_size, passes), strict=True))
    print(f"{name}: {10 * len(data)} erasures, {rows} differ: {real} tokens in {len(passes)} passes, {padded} padded")
    faster, dearer, apart = [], [], []
    for _ in range(chosen.rounds):
        alone, slow = timed(lambda: one_at_a_time(model, audit_cases), chosen.device)
        ours, fast = timed(lambda: at_once(model, audit_cases), chosen.device)
        floor, _ = timed(lambda: bare(model, passes), chosen.device)
        print(f"{name}: one at a time {alone:.2f} s   ours {ours:.2f} s   bare {floor:.2f} s")
        faster.append(alone / ours)
        dearer.append(ours / floor)
        apart.append(float((slow - fast).abs().max()))
    print(f"{name}: one at a time / ours = {median(faster):.2f}  (at least {FEWEST[chosen.device]})")
    print(f"{name}: ours / bare forward passes = {median(dearer):.2f}  (at most {MOST})")
    print(f"{name}: the two ways differ by {max(apart):.0e}  (at most {SAME:.0e})")
    return median(faster) >= FEWEST[chosen.device] and median(dearer) <= MOST and max(apart) <= SAME


def _size(batch: Batch) -> tuple[int, int, int]:
    return len(batch), int(batch.present.sum()), batch.ids.numel()


def beside_ferret(read: list[str], chosen: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        save(Path(scratch))
        subject = as_adapter(scratch, classes=["negative", "positive"], device=chosen.device)

        def ours() -> Tensor:
            return at_once(subject.model, cases(subject.model, Data(subject.tokens.encode(read))))

        run = [chosen.ferret, Path(__file__).with_name("audit_ferret.py"), scratch, str(chosen.threads), chosen.device]
        ratios = []
        with subprocess.Popen(run, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdin
            assert child.stdout
            child.stdin.write(json.dumps(explained(subject.model, subject.tokens, read[::EACH])) + "\n")
            for _ in range(chosen.rounds):
                child.stdin.write("go\n")
                child.stdin.flush()
                theirs = float(child.stdout.readline()) / len(read[::EACH])
                mine = timed(ours, chosen.device)[0] / len(read)
                print(f"ferret {1000 * theirs:.1f} ms a text   ours {1000 * mine:.1f} ms a text")
                ratios.append(theirs / mine)
            child.stdin.close()
    print(f"ferret / ours, from strings, a text = {median(ratios):.2f}  (no bar)")


def save(folder: Path) -> None:
    """MiniLM as a Hugging Face sequence classifier."""
    from transformers import AutoModelForSequenceClassification, AutoTokenizer, logging

    logging.set_verbosity_error()  # that the head is new
    logging.disable_progress_bar()
    source = locate("minilm")
    AutoModelForSequenceClassification.from_pretrained(source, num_labels=2).save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)


def explained(model: Model, tokens: Tokens, read: list[str]) -> list[dict[str, object]]:
    """Texts with their tokens, scores and classes, as ferret wants them."""
    explanations = []
    for text in read:
        batch = collate(Data(tokens.encode([text])), np.arange(1)).to(model.device)
        seen = observe(model, batch)
        names = [tokens.vocabulary[i] for i in batch.ids[0].tolist()]
        scores = [*map(float, seen.weights[0])]
        explanations.append({"text": text, "tokens": names, "scores": scores, "target": int(seen.probs.argmax())})
    return explanations


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", choices=FEWEST, default="cpu")
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--ferret", metavar="PYTHON")
    chosen = parser.parse_args()
    torch.set_num_threads(chosen.threads)
    torch.manual_seed(0)
    read = texts(chosen.texts)
    met = [compare(name, *MODELS[name](read), chosen) for name in chosen.models]
    if chosen.ferret:
        beside_ferret(read, chosen)
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
