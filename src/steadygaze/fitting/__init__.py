"""From an order and labelled texts to a trained model: vocabulary, vectors, ids, run."""

import copy
import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from steadygaze.config import difference
from steadygaze.errors import UserError
from steadygaze.fitting.plan import Plan, make_plan
from steadygaze.fitting.rationale_leakage import add_reader
from steadygaze.inputs import Split, set_aside
from steadygaze.lineage import apart, named, refuse_stranger
from steadygaze.order import Order
from steadygaze.rationaliser import Rationaliser
from steadygaze.store import Stored, fingerprint
from steadygaze.tokens.coverage import coverage
from steadygaze.tokens.vectors import FEW
from steadygaze.train.checkpoint import Checkpoint
from steadygaze.train.device import accelerator, check_lstm
from steadygaze.train.loop import Job
from steadygaze.train.progress import Silent, Watcher
from steadygaze.train.run import Run, freeze
from steadygaze.train.shelf import Shelf


@dataclass(frozen=True)
class Keeping:
    """Where a run is kept while it lasts, and what it needs for the next."""

    checkpoint: Path | None = None
    resume: bool = False
    shelf: Path | None = None
    """Where references and teachers are kept for the next run."""


def fit(
    order: Order,
    train: Split,
    validation: Split | None,
    watcher: Watcher,
    keeping: Keeping,
    given: Sequence[Stored] = (),
) -> Stored:
    """Train a model as ordered; `given` are the references or teachers that need not be trained."""
    if "lstm" in order.encoder:
        check_lstm(order.device, order.training.precision)
    plan, train, validation = prepare(order, train, validation, watcher, given)
    data = plan.encode(train, train.weighted(order.class_weight))
    for sentence in coverage(plan.tokenizer, data.text).warnings():
        watcher.warn(sentence)
    covered = plan.token_coverage(data)
    if covered is not None and covered < FEW:
        watcher.warn(_few_vectors(covered, plan.description.vectors))
    held_out = plan.encode(validation)
    with accelerator(order.device, order.training.precision) as accelerate:
        synonyms = plan.vocabulary_for(order.technique, watcher)
        known = None if synonyms is None else synonyms.to(accelerate.device)
        job = Job(data, held_out, order.training, accelerate, watcher, known)
        run = Run(order.technique, plan.make_model, job, order.seed)
        ready = {name: copy.deepcopy(one.model) for name, one in named(order, given).items()}  # the user's stay theirs
        run.models = {name: freeze(model.to(accelerate.device)) for name, model in ready.items()}
        if keeping.checkpoint is not None:
            table = () if plan.table is None else (Path(plan.table),)
            run.checkpoint = Checkpoint(keeping.checkpoint, plan.identity(accelerate.device, table), keeping.resume)
        if keeping.shelf is not None:
            run.shelf = Shelf(keeping.shelf, apart(plan.identity(accelerate.device)))
        model = run.execute()
        reader = {}
        if isinstance(model, Rationaliser):
            reader = add_reader(model, job, len(run.history), order.seed)
    description = dataclasses.replace(
        plan.description, history=run.history, kept=run.kept, token_coverage=covered, independent_reader=reader
    )
    if isinstance(model, Rationaliser) and model.reader is not None:
        model.reader.accuracy = description.reader_accuracy
    if description.always is not None:
        watcher.warn(f"gives every text the same label: {description.always}.  It has learnt nothing")
    return Stored(description, model, plan.tokenizer)


def prepare(
    order: Order, train: Split, validation: Split | None, watcher: Watcher, given: Sequence[Stored] = ()
) -> tuple[Plan, Split, Split]:
    """What is fixed before the first step, and the splits as they will be used."""
    corpus = ":".join(split.fingerprint() for split in (train, validation) if split is not None)
    if validation is None:
        train, validation = set_aside(train)
    if (train.questions is None) != (validation.questions is None):
        raise UserError("training and validation texts must both be single texts, or both pairs")
    plan = make_plan(order, train, corpus, watcher)
    for name, one in named(order, given).items():
        refuse_stranger(name, one, plan.description, plan.tokenizer)
    description = dataclasses.replace(plan.description, given=[fingerprint(one.model) for one in given])
    return dataclasses.replace(plan, description=description), train, validation


def refuse_other(
    order: Order, train: Split, validation: Split | None, stored: Stored, given: Sequence[Stored] = ()
) -> None:
    """A finished model may stand for a run only if that run would have ended in it."""
    wanted = prepare(order, train, validation, Silent(), given)[0].description
    found, now = (
        dataclasses.asdict(dataclasses.replace(one, history=[], kept={}, token_coverage=None, independent_reader={}))
        for one in (stored.description, wanted)
    )
    if differs := difference(found, now, first="technique"):
        name, values = differs
        raise UserError(
            f"the model that stands there was trained with another {name.rpartition('.')[2]}: {values}; "
            "--replace trains this one in its place"
        )


def _few_vectors(share: float, name: str | None) -> str:
    return (
        f"only {share:.0%} of the tokens in the training texts have a vector in {name}: the others start from random "
        "vectors.  Check that the file is of the texts' language and in lower case, or use a larger one"
    )
