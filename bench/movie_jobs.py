"""One job of bench/movies.py: reviews from a cut file, a row trained on them, and how much of what it selects people
marked."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from movie_windows import Windows
from movies import LONG, MINILM, ROWS, RUN, SHARE, SPANS, WHERE, Job
from rationale_jobs import Kept, Warnless
from steadygaze import infer
from steadygaze.audit.measure.plausibility import token_f1, token_precision, token_recall
from steadygaze.batch import Data, by_length, collate, shuffled
from steadygaze.encode.encoder import Encoder
from steadygaze.encode.transformer import from_folder
from steadygaze.maths.windows import best
from steadygaze.model import Architecture, word_encoder
from steadygaze.objective import TECHNIQUES
from steadygaze.reader import Reader
from steadygaze.tokens.ragged import Ragged
from steadygaze.train.device import accelerator
from steadygaze.train.loop import Job as Work
from steadygaze.train.settings import Training
from steadygaze.types import Batch

SPLITS = ("train", "validation", "test")
HIDDEN = 50
"""Of each direction, as in the paper."""
AGAINST = {"p": token_precision, "r": token_recall, "f1": token_f1}


@dataclass(frozen=True)
class Reviews:
    data: dict[str, Data]
    evidence: dict[str, NDArray[np.bool_]]
    """By split, of all tokens end to end."""
    ends: Tensor
    encoder: Callable[[], Encoder]
    shape: Architecture

    def marked(self, split: str, rows: NDArray[np.int64], width: int) -> Tensor:
        """(B,T) bool"""
        text = self.data[split].text
        places = text.starts[rows][:, None] + np.arange(width)
        inside = np.arange(width) < text.lengths[rows][:, None]
        return torch.from_numpy(self.evidence[split][np.where(inside, places, 0)] & inside)


Selecting = Callable[[Batch], tuple[Tensor, Tensor | None]]
"""What is selected (B,T), and the logits where there are any."""


@lru_cache(maxsize=1)
def read(folder: Path, minilm: bool, most: int | None) -> Reviews:
    with np.load(folder / ("pieces.npz" if minilm else "words.npz"), allow_pickle=False) as file:
        kept = {name: file[name] for name in file.files}
    data, evidence = {}, {}
    for split in SPLITS:
        ids, words, starts = (kept[f"{split}/{name}"] for name in ("ids", "words", "starts"))
        many = min(most or len(starts), len(starts) - 1)
        end = starts[many]
        text = Ragged(ids[:end].astype(np.int32), words[:end], starts[: many + 1], np.zeros(many, np.bool_))
        data[split] = Data(text, None, kept[f"{split}/label"][:many].astype(np.int64))
        evidence[split] = kept[f"{split}/evidence"][:end]
    ends = torch.from_numpy(kept["ends"])
    if minilm:
        return Reviews(data, evidence, ends, lambda: Windows(from_folder(folder / "minilm")), Architecture())
    vectors = torch.from_numpy(kept["vectors"].astype(np.float32))
    shape = Architecture(hidden=HIDDEN, dimension=vectors.shape[1], train_vectors=False)
    encoder = partial(word_encoder, "bigru", shape, len(vectors), False, vectors)
    return Reviews(data, evidence, ends, encoder, shape)


def one(job: Job, folder: Path, most: int | None, epochs: int | None, device: str) -> dict[str, Any]:
    long = job.row in MINILM
    reviews = read(folder, long, most)
    run = (LONG if long else RUN) | ({} if epochs is None else {"epochs": epochs})
    if job.row in FIXED:
        return {"chosen": scored(FIXED[job.row], reviews, device)}
    if job.row == "supervised":
        return supervised(reviews, run, job.seed, device)
    return taught(reviews, MINILM.get(job.row, job.row), run, job.seed, device)


def taught(reviews: Reviews, row: str, run: dict[str, Any], seed: int, device: str) -> dict[str, Any]:
    """A record: at the chosen epoch and at the last."""
    name, settings = ROWS[row]
    technique: Any = TECHNIQUES[name](**settings)
    how = Training(epochs=run["epochs"], batch_size=run["batch_size"], weight_decay=0.0, patience=run["epochs"])

    def make() -> Reader:
        return technique.build(reviews.encoder, reviews.shape, 2, False, reviews.ends)

    with accelerator(device, run["precision"]) as accelerate:
        work = Work(reviews.data["train"], reviews.data["validation"], how, accelerate, Warnless())
        ran = Kept(technique, make, work, seed)
        model = ran.execute().to(accelerate.device)
    record: dict[str, Any] = {"kept": ran.kept["epoch"], "history": [epoch["accuracy"] for epoch in ran.history]}
    record["chosen"] = scored(partial(by_model, model), reviews, device)
    model.load_state_dict(ran.last)
    return record | {"last": scored(partial(by_model, model), reviews, device)}


def by_model(model: Reader, batch: Batch) -> tuple[Tensor, Tensor | None]:
    """A rationaliser selects; of attention, the heaviest windows are taken."""
    with infer.inference(model):
        said = model(batch)
    selected = getattr(said, "selected", None)
    return best(said.weights, batch.mask, SHARE, SPANS) if selected is None else selected, said.logits


def scored(select: Selecting, reviews: Reviews, device: str) -> dict[str, dict[str, float]]:
    """Means over validation and over test texts, and the largest share and number of pieces of any text."""
    return {split: _scored(select, reviews, split, torch.device(device)) for split in SPLITS[1:]}


def _scored(select: Selecting, reviews: Reviews, split: str, device: torch.device) -> dict[str, float]:
    found: list[dict[str, Tensor]] = []
    for rows in by_length(reviews.data[split], 32):
        batch = collate(reviews.data[split], rows).to(device)
        selected, logits = select(batch)
        marked = reviews.marked(split, rows, batch.ids.shape[1]).to(device)
        scores = {name: score(selected, marked, batch.mask).double() for name, score in AGAINST.items()}
        right = {} if logits is None else {"accuracy": logits.argmax(-1) == batch.gold}
        share = (selected & batch.mask).sum(-1).double() / batch.mask.sum(-1)
        found.append(scores | right | {"share": share, "spans": _spans(selected)})
    each = {name: torch.cat([part[name].double() for part in found]) for name in found[0]}
    most = {f"most {name}": float(each[name].max()) for name in ("share", "spans")}
    return {name: float(values.nanmean()) for name, values in each.items()} | most


def _spans(selected: Tensor) -> Tensor:
    """Runs of selected tokens.  (B,T) -> (B,)"""
    return (selected.long().diff(dim=-1, prepend=selected.new_zeros(len(selected), 1).long()) > 0).sum(-1)


def by_chance(spans: int | None, batch: Batch) -> tuple[Tensor, None]:
    """Windows anywhere, or tokens; each text's its own."""
    draws = [np.random.default_rng(int(row)).random(batch.ids.shape[1]) for row in batch.index]
    return best(torch.from_numpy(np.stack(draws)).to(batch.ids.device), batch.mask, SHARE, spans), None


def one_piece(end: bool, batch: Batch) -> tuple[Tensor, None]:
    """The first or the last tokens."""
    places = batch.mask.cumsum(-1) * (1 if end else -1)
    return best(places.double(), batch.mask, SHARE, None), None


FIXED: dict[str, Selecting] = {
    "random": partial(by_chance, SPANS),
    "random-tokens": partial(by_chance, None),
    "first": partial(one_piece, False),
    "last": partial(one_piece, True),
    "all": lambda batch: (batch.mask, None),
}


def supervised(reviews: Reviews, run: dict[str, Any], seed: int, device: str) -> dict[str, Any]:
    """The generator alone, taught which tokens people marked: the ceiling of this network and these windows."""
    torch.manual_seed(seed)
    technique: Any = TECHNIQUES["rnp"](**WHERE)
    model = technique.build(reviews.encoder, reviews.shape, 2, False, reviews.ends).to(device)
    adam = torch.optim.Adam([one for one in model.generator.parameters() if one.requires_grad], lr=1e-3)
    kept: dict[str, Any] = {}
    for epoch in range(run["epochs"]):
        model.train()
        for rows in shuffled(reviews.data["train"], run["batch_size"], (seed, epoch)):
            batch = collate(reviews.data["train"], rows).to(device)
            marked = reviews.marked("train", rows, batch.ids.shape[1]).to(device)
            scores = model.look(batch).scores
            loss = binary_cross_entropy_with_logits(scores[batch.mask], marked[batch.mask].to(scores.dtype))
            adam.zero_grad()
            loss.backward()
            adam.step()
        now = scored(partial(by_scores, model), reviews, device)
        if not kept or now["validation"]["f1"] > kept["chosen"]["validation"]["f1"]:
            kept = {"chosen": now, "kept": epoch + 1}
    return kept | {"last": now}


def by_scores(model: Any, batch: Batch) -> tuple[Tensor, None]:
    with infer.inference(model):
        return model.select(batch, model.look(batch)), None
