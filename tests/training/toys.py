"""A toy corpus, a toy model and toy techniques that use all that a technique can need from the loop."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
import torch
from accelerate import Accelerator
from torch import Tensor, nn

from steadygaze.core.ragged import TokenArray
from steadygaze.core.settings import settings
from steadygaze.core.types import Batch, Terms
from steadygaze.data.batches import Data
from steadygaze.models.classifier import Architecture, Classifier, word_encoder
from steadygaze.models.inference import Model
from steadygaze.techniques.technique import LossContext, Player, Stage, Technique, task_loss
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training import technique_loop
from steadygaze.training.checkpoint import Checkpoint
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import SilentWatcher
from steadygaze.training.teacher_cache import TeacherCache
from steadygaze.training.technique_loop import TrainingJob
from steadygaze.training.training_run import TrainingRun

WORDS = 20
TEXTS = 44
TRAINED_TEXTS = 20  # an epoch of a run: two batches of 8, and one of 4
ENDS = torch.arange(WORDS) % 7 == 6
"""Words that end a sentence."""


def corpus(count: int = TEXTS, seed: int = 0, weight: Any = None) -> Data:
    """Texts of 1 to 9 words; the label is whether word 1 is among them."""
    random = np.random.default_rng(seed)
    lengths = random.integers(1, 10, count)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    ids = random.integers(1, WORDS, starts[-1]).astype(np.int32)
    label = np.arange(count) % 2
    for row in range(count):
        text = ids[starts[row] : starts[row + 1]]
        text[text == 1] = 2
        text[random.integers(len(text))] = 1 if label[row] else 3
    ragged = TokenArray(ids, np.ones(len(ids), dtype=bool), starts, np.zeros(count, dtype=bool))
    return Data(ragged, None, label.astype(np.int64), weight)


def make_model(encoder: str = "average", dtype: torch.dtype = torch.float32, **architecture: Any) -> Classifier:
    made = model_for(Vanilla(), encoder, dtype, **architecture)
    assert isinstance(made, Classifier)
    return made


def model_for(
    technique: Technique, encoder: str = "average", dtype: torch.dtype = torch.float32, **architecture: Any
) -> Model:
    """What the technique builds."""
    shape = Architecture(**{"hidden": 4, "dimension": 5, "dropout": 0.1, **architecture})
    words = partial(word_encoder, encoder, shape, WORDS, pair=False)
    return technique.build(words, shape, 2, False, lambda: ENDS).to(dtype)


def make_run(
    technique: Technique,
    make: Callable[[], Model] = make_model,
    *,
    folder: Path | None = None,
    resume: bool = False,
    seed: int = 0,
    watcher: SilentWatcher | None = None,
    data: Data | None = None,
    validation: Data | None = None,
    accelerate: Accelerator | None = None,
    teacher_cache: Path | None = None,
    models: dict[str, Classifier] | None = None,
    stacks: bool | None = None,
    **training: Any,
) -> TrainingRun:
    how = Training(**{"epochs": 2, "batch_size": 8, "learning_rate": 0.01, **training})
    accelerate = accelerate or Accelerator(cpu=True)
    train, held_out = data or corpus(TRAINED_TEXTS), validation or corpus(8, seed=1)
    job = TrainingJob(train, held_out, how, accelerate, watcher or SilentWatcher(), stacks=stacks)
    run = TrainingRun(technique, make, job, seed, models=models or {})
    if teacher_cache is not None:
        run.teacher_cache = TeacherCache(teacher_cache, {"data": "toy", "training": dataclasses.asdict(how)})
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        identity = {"seed": seed, "technique": dataclasses.asdict(technique), "training": dataclasses.asdict(how)}
        run.checkpoint = Checkpoint(folder, identity, resume)
    return run


def weights(model: nn.Module) -> dict[str, bytes]:
    """Bit for bit."""
    return {name: value.detach().numpy().tobytes() for name, value in model.state_dict().items()}


def interrupt(watcher: "Recorder", technique: Technique, *arguments: Any, **options: Any) -> None:
    """Start a run that the recorder interrupts."""
    with pytest.raises(KeyboardInterrupt):
        make_run(technique, *arguments, watcher=watcher, **options).execute()


def watched(kind: type[Technique], look: Callable[..., object]) -> Technique:
    """A technique whose loss first calls look(technique, model, batch, context)."""

    @settings
    class Watched(kind):
        def loss(self, model: Any, batch: Batch, context: LossContext) -> Terms:
            look(self, model, batch, context)
            return super().loss(model, batch, context)

    return Watched()


SOUND = {"collapsed": False, "reason": "", "unit": "token"}
"""Attention of an epoch that is not degenerate."""


def script(patch: pytest.MonkeyPatch, *epochs: Mapping[str, Any]) -> list[dict[str, bytes]]:
    """Validation with these scores in turn, and usual ones beside them; the weights of each epoch, as they come."""
    seen: list[dict[str, bytes]] = []
    usual = {"macro-f1": 0.5, "loss": 1.0, "accuracy": 0.5, "constant_label": None, "attention": SOUND}

    def validate(job: TrainingJob, model: Model, reference: Tensor | None) -> dict[str, Any]:
        seen.append(weights(model))
        return {**usual, **epochs[len(seen) - 1]}

    patch.setattr(technique_loop, "validation_scores", validate)
    return seen


def outcome(run: TrainingRun) -> tuple[dict[str, bytes], str]:
    """All that a run produces: the weights, and the history with what was kept."""
    model = run.execute()
    return weights(model), json.dumps([*run.history, run.best_epoch])


@settings
class Last(Vanilla):
    """Vanilla whose last epoch is selected, as of most students."""

    def stages(self, seed: int) -> tuple[Stage, ...]:
        return (Stage("train", select="last"),)


@settings
class Distil(Technique):
    """Two stages, two models: a teacher is trained as usual; then attention alone is drawn toward the teacher's."""

    strength: float = 1.0

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        out = model(batch)
        with torch.no_grad():
            aim = context.models["teacher"](batch).weights
        distance = (out.weights - aim).square().sum(-1)
        return {"task": task_loss(out.logits, batch), "apart": self.strength * distance}

    def stages(self, seed: int) -> tuple[Stage, ...]:
        teach = Stage("teach", technique=Vanilla(), model="teacher", seed=seed + 3)
        return teach, Stage("learn", start="teacher", trains=("model.scorer",))


@settings
class Committee(Distil):
    """Three stages, three models: two teachers; then attention is drawn toward their mean."""

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        out = model(batch)
        with torch.no_grad():
            aim = torch.stack([teacher(batch).weights for teacher in context.models.values()]).mean(0)
        return {"task": task_loss(out.logits, batch), "apart": (out.weights - aim).square().sum(-1)}

    def stages(self, seed: int) -> tuple[Stage, ...]:
        first = Stage("one", technique=Vanilla(), model="one", seed=seed + 1)
        other = Stage("other", technique=Anneal(), model="other", seed=seed + 2)
        return first, other, Stage("agree")


@settings
class Pretrain(Technique):
    """Two stages, one model: everything but attention, then attention alone."""

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        return {"task": task_loss(model(batch).logits, batch)}

    def stages(self, seed: int) -> tuple[Stage, ...]:
        first = Stage("pretrain", trains=("model.encoder", "model.decoder"), epochs=1, select="last")
        return first, Stage("attend", trains=("model.scorer",))


@settings
class Return(Technique):
    """Three stages: the model, a rival that starts from it, and the model again, against the rival."""

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        terms = {"task": task_loss(model(batch).logits, batch)}
        for name, other in context.models.items():
            terms[name] = (model(batch).weights - other(batch).weights).square().sum(-1)
        return terms

    def stages(self, seed: int) -> tuple[Stage, ...]:
        rival = Stage("rival", model="rival", start="model", epochs=1)
        return Stage("first", epochs=1), rival, Stage("again", epochs=1)


@settings
class Lens(Technique):
    """Three stages, one auxiliary network: trained beside a model; unused; frozen while another is drawn to it."""

    def modules(self, model: Classifier) -> dict[str, nn.Module]:
        return {"lens": nn.Linear(model.encoder.size, 2)}

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        out = model(batch)
        return {
            "task": task_loss(out.logits, batch),
            "seen": task_loss(context.modules["lens"](out.encoded.hidden.mean(1)), batch),
        }

    def stages(self, seed: int) -> tuple[Stage, ...]:
        wait = Stage("wait", technique=Vanilla(), epochs=1)
        return Stage("grind", model="blank"), wait, Stage("look", trains=("model.",))


@settings
class Duel(Technique):
    """Two players: a critic guesses the label from the mean hidden state; the model makes that hard for it."""

    def modules(self, model: Classifier) -> dict[str, nn.Module]:
        return {"critic": nn.Linear(model.encoder.size, 2).to(next(model.parameters()).dtype)}

    def players(self) -> tuple[Player, ...]:
        return (
            Player("model", trains=("model.",), terms=("task", "fool")),
            Player("critic", trains=("modules.critic",), terms=("guess",), every=2, offset=1, learning_rate=0.05),
        )

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        out = model(batch)
        guess = task_loss(
            context.modules["critic"](out.encoded.hidden.mean(1)), batch
        )  # reaches the encoder, not detached
        return {"task": task_loss(out.logits, batch), "fool": -0.5 * guess, "guess": guess}


@settings
class Anneal(Technique):
    """State, random numbers and progress: noise whose size `next` changes."""

    size: float = 1.0

    def loss(self, model: Classifier, batch: Batch, context: LossContext) -> Terms:
        logits = model(batch).logits
        noise = context.key.normal(batch.index, 2)
        return {"task": task_loss(logits + self.size * (1 - context.progress) * noise, batch)}

    def after_step(self, terms: Terms) -> Self:
        return dataclasses.replace(self, size=self.size * (1 - 0.1 * terms["task"].mean().tanh().item()))


TOYS: dict[str, Technique] = {
    "vanilla": Vanilla(),
    "distil": Distil(),
    "committee": Committee(),
    "pretrain": Pretrain(),
    "return": Return(),
    "lens": Lens(),
    "duel": Duel(),
    "anneal": Anneal(),
}


class Recorder(SilentWatcher):
    """Records its calls; raises KeyboardInterrupt after a number of steps or epochs."""

    def __init__(self, steps: int | None = None, epochs: int | None = None) -> None:
        self.most_steps, self.most_epochs = steps, epochs
        self.steps: list[dict[str, Tensor]] = []
        self.epochs: list[Mapping[str, Any]] = []
        self.skipped = 0

    def step(self, stage: str, epoch: int, terms: Mapping[str, Tensor]) -> None:
        self.steps.append({name: value.detach().clone() for name, value in terms.items()})
        if len(self.steps) == self.most_steps:
            raise KeyboardInterrupt

    def epoch(self, record: Mapping[str, Any]) -> None:
        self.epochs.append(record)
        if len(self.epochs) == self.most_epochs:
            raise KeyboardInterrupt

    def skip(self, epochs: int) -> None:
        self.skipped += epochs


class Listener(Recorder):
    """Also records messages, details and warnings."""

    def __init__(self, **most: int) -> None:
        super().__init__(**most)
        self.messages: list[str] = []
        self.details: list[str] = []
        self.warned: list[str] = []

    def say(self, message: str) -> None:
        self.messages.append(str(message))

    def detail(self, message: str) -> None:
        self.details.append(message)

    def warn(self, message: str | Warning) -> None:
        self.warned.append(str(message))
