"""Learned: a method, what it learnt, and the words it knows.  Fitting it to a model's answers, and how well it does."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from steadygaze.batch import Data, by_length, collate
from steadygaze.explain.explainer import Saliency
from steadygaze.explain.learned.asking import Watch, silent
from steadygaze.explain.learned.cxplain import CXPlain, Weighing, members, text_effects, text_member
from steadygaze.explain.learned.ensemble import Ensemble, Weighed
from steadygaze.explain.learned.fitted import Fitted
from steadygaze.explain.learned.kept import Kept
from steadygaze.explain.learned.loop import Fit
from steadygaze.explain.learned.order import name_of
from steadygaze.explain.learned.posthoc import Removal, of_the_rest, said_of
from steadygaze.explain.learned.selecting import Selecting
from steadygaze.explain.learned.texts import Following, Known, TextInputs, Vocabulary, text_nets, vocabulary
from steadygaze.explain.readings import PREDICTED, evened
from steadygaze.reader import Reader
from steadygaze.tokens.tokenizer import Kind
from steadygaze.train.progress import Watcher
from steadygaze.types import Batch


@dataclass(frozen=True)
class Answered:
    """Texts, and what the black box says of them."""

    data: Data
    probs: Tensor  # (N,C)
    kept: Kept = field(default_factory=Kept)
    """Where more answers are kept as they come."""

    def effects(self, how: CXPlain) -> Kept:
        """Where those to texts that lack a word are."""
        return self.kept.part("effects", removal=how.removal, most_units=how.most_units)


@dataclass(frozen=True)
class Learned:
    how: Selecting | CXPlain
    vocabulary: Vocabulary
    nets: nn.ModuleDict
    history: list[dict[str, Any]] = field(default_factory=list)

    def explainer(self, tokens: Known, device: torch.device, accuracy: float | None = None) -> Fitted | Weighing:
        """For a black box that reads these tokens; `accuracy`: of the independent reader, where it is known."""
        nets = self.nets.to(device)
        if isinstance(self.how, CXPlain):
            return Weighing(self.how, nets, Following(self.vocabulary, tokens))
        return Fitted(name_of(self.how), self.how, nets, Following(self.vocabulary, tokens, self.how), accuracy)


@dataclass(frozen=True)
class Teaching:
    """How an explainer is fitted, whichever it is."""

    tokens: Sequence[str]
    """The token of each of the black box's ids."""
    kind: Kind
    watcher: Watcher
    device: torch.device
    seed: int = 0
    watch: Watch = silent

    def learn(self, how: Selecting | CXPlain, model: Reader, train: Answered, validation: Answered) -> Learned:
        """From what the black box says of texts."""
        known = vocabulary(train.data, self.tokens, self.kind)
        table = known.table(self.tokens, None if isinstance(how, CXPlain) else how).to(self.device)
        here, there = (TextInputs(part.data, part.probs, table, self.device) for part in (train, validation))
        run = self.watcher, self.device, self.seed
        fit: Ensemble | Fit
        if isinstance(how, CXPlain):
            worth = text_effects(how, model, here, train.effects(how), self.watch)
            other = text_effects(how, model, there, validation.effects(how), self.watch)
            make = partial(text_member, how, len(known.words))
            fit = Ensemble(how, make, Weighed(here, worth), Weighed(there, other), *run)
        else:
            fit = Fit(how, partial(text_nets, how, len(known.words), train.probs.shape[1]), here, there, *run)
        return Learned(how, known, fit.execute(), fit.history)


def fresh(how: Selecting | CXPlain, words: int, classes: int) -> nn.ModuleDict:
    """Networks that nothing has been taught."""
    if isinstance(how, CXPlain):
        return members(how, partial(text_member, how, words))
    return text_nets(how, words, classes)


def measured(
    model: Reader, fitted: Fitted | Weighing, data: Data, removal: Removal = "delete", batch_size: int = 256
) -> dict[str, Tensor]:
    """Of each text, whether the black box says the same of what is selected, and of the rest, if there is any (else
    nan); whether the approximator guesses it; what the judge loses, in nats; whether the independent reader gives the
    predicted class; and that class.  (N,) each
    """
    if isinstance(fitted, Weighing):  # selected are the k heaviest, whatever is shown
        fitted = Weighing(replace(fitted.how, shown="heaviest"), fitted.nets, fitted.table)
    places, parts = [], []
    for rows in by_length(data, batch_size):
        batch = collate(data, rows).to(model.device)
        saliency = fitted.explain(model, batch)
        said, kept = saliency.logits.argmax(-1), saliency.weights > 0
        alone = said_of(model, batch, kept, removal)
        found = {
            "post-hoc-accuracy": alone.argmax(-1) == said,
            "post-hoc-accuracy/unselected": of_the_rest(model, batch, batch.mask & ~kept, said, removal),
            **(_guessed(fitted, model, batch, saliency, alone) if isinstance(fitted, Fitted) else {}),
            PREDICTED: said,
        }
        places.append(rows)
        parts.append({name: values.double().cpu() for name, values in found.items()})
    order = torch.from_numpy(np.argsort(np.concatenate(places), kind="stable"))
    return evened({name: torch.cat([part[name] for part in parts])[order] for name in parts[0]})


def _guessed(fitted: Fitted, model: Reader, batch: Batch, saliency: Saliency, alone: Tensor) -> dict[str, Tensor]:
    """What only a selector has: an approximator, a classifier of masks, and an independent reader.  (B,) each

    `alone`: what the black box predicts from the selected words.  (B,C)
    """
    said, readings = saliency.logits.argmax(-1), fitted.readings(model, batch, saliency)
    told = fitted.told(batch, saliency).gather(-1, said.unsqueeze(-1)).squeeze(-1)
    found = {"fidelity": fitted.own(batch, saliency).argmax(-1) == said, "mask-loss": -told}
    return found if readings is None else {**found, **readings.measures(saliency.logits, alone)}
