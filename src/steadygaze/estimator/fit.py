"""Train a model on labeled texts; train the independent reader of a rationalizer and warn of label leakage."""

import copy
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator

from steadygaze.core.errors import CoverageWarning, LeakageWarning, UserError
from steadygaze.core.random_key import derive_seed, forked_generators
from steadygaze.core.rounding import percent
from steadygaze.core.settings import difference
from steadygaze.core.types import Label
from steadygaze.data.batches import Data
from steadygaze.data.synonym_formats import table_files
from steadygaze.data.text_tokenizer import TextTokenizer
from steadygaze.data.token_alignment import coverage
from steadygaze.data.word_vectors import LOW_COVERAGE
from steadygaze.estimator import class_balance, small_data
from steadygaze.estimator.fit_plan import FitPlan, check_reference, make_plan, named_references, stage_identity
from steadygaze.estimator.inputs import Split, hold_out_validation, join_questions
from steadygaze.estimator.model_config import stored_reader
from steadygaze.estimator.model_folder import SavedModel, fingerprint, hash_texts
from steadygaze.estimator.model_health import loss_stalled, reference_problems
from steadygaze.estimator.train_config import TrainConfig
from steadygaze.explainers.explainer import PREDICTED, class_balanced
from steadygaze.explainers.learned.independent_reader import STREAM
from steadygaze.explainers.rationale import fit_reader, rationale_readings
from steadygaze.models import inference
from steadygaze.models.inference import Model, selects
from steadygaze.models.rationalizer import Rationalizer
from steadygaze.perturbations.word_substitution import Synonyms
from steadygaze.results.health import Health
from steadygaze.results.leakage_warnings import MIN_TEXTS, selection_rows, selection_warnings
from steadygaze.results.row import Row
from steadygaze.techniques import own_source
from steadygaze.techniques.technique import Technique
from steadygaze.techniques.vanilla import Vanilla
from steadygaze.training.checkpoint import Checkpoint
from steadygaze.training.device import accelerator, check_lstm
from steadygaze.training.optimizers import Training
from steadygaze.training.progress import (
    NamedWatcher,
    ObservedWatcher,
    OnEpoch,
    QuietWatcher,
    SilentWatcher,
    TrainingDiverged,
    Watcher,
)
from steadygaze.training.teacher_cache import TeacherCache
from steadygaze.training.technique_loop import TrainingJob
from steadygaze.training.training_run import TrainingRun, execute_together, freeze

FEW_VECTORS = (
    "only {} of the tokens in the training texts have a vector in {}: the others start from random vectors.  "
    "Check that the file has the texts' language and is in lower case, or use a larger one"
)
UNPLANNED: dict[str, Any] = {
    "history": [],
    "best_epoch": {},
    "token_coverage": None,
    "validation_texts": None,
    "health": [],
    "independent_reader": {},
    "test_scores": {},
}
"""Fields of a description that are known only after training, with their values before."""


def add_reader(
    model: Rationalizer, job: TrainingJob, epochs: int, seed: int, classes: Sequence[Label]
) -> tuple[Row, ...]:
    """Train the reader and add it to the model; return its scores on the validation texts.

    The state of torch's generator and the weights of the rationalizer do not change.
    """
    model.to(job.accelerator.device)
    with forked_generators():
        torch.manual_seed(derive_seed(seed, STREAM))  # for the reader's dropout
        reader = fit_reader(model, job.train, job.validation, epochs * len(job.train), seed)
    if reader is None:
        model.cpu()
        return ()
    model.reader = reader
    rows = reader_rows(model, job.validation, classes)
    for warning in selection_warnings(rows) if len(job.validation) >= MIN_TEXTS else []:
        job.watcher.warn(LeakageWarning(warning.sentence))
    model.cpu()
    return rows


def reader_rows(model: Rationalizer, data: Data, classes: Sequence[Label]) -> tuple[Row, ...]:
    """The measures of the independent reader on some texts."""
    parts = []
    for _, batch, output in inference.forwards(model, data):
        readings = rationale_readings(model, batch, output.selected, output.logits)
        assert readings is not None
        parts.append({**readings.measures(output.logits), PREDICTED: output.logits.argmax(-1)})
    measures = class_balanced({name: torch.cat([part[name] for part in parts]).cpu() for name in parts[0]})
    values = {name: numbers.tolist() for name, numbers in measures.items()}
    return tuple(selection_rows(values, values.pop(PREDICTED), classes, {}))


@dataclass(frozen=True)
class CheckpointConfig:
    """Folders of checkpoints and of the teacher cache."""

    checkpoint: Path | None = None
    resume: bool = False
    teacher_cache: Path | None = None
    """Folder of references and teachers, for later runs."""

    def of_seed(self, seed: int) -> "CheckpointConfig":
        """Return the same with a folder of checkpoints for one of several seeds."""
        return dataclasses.replace(self, checkpoint=self.checkpoint and self.checkpoint / f"seed-{seed}")


NO_FILES = CheckpointConfig()


@dataclass(frozen=True)
class FitRequest:
    """A model to train; `references` are trained references or teachers."""

    config: TrainConfig
    files: CheckpointConfig = NO_FILES
    references: Sequence[SavedModel] = ()
    on_epoch: OnEpoch | None = None


def fit(
    config: TrainConfig,
    train: Split,
    validation: Split | None,
    watcher: Watcher,
    files: CheckpointConfig = NO_FILES,
    references: Sequence[SavedModel] = (),
) -> SavedModel:
    """Train a model; `references` are trained references or teachers."""
    (model,) = fit_models([FitRequest(config, files, references)], train, validation, watcher)
    assert model is not None  # one model that diverges is an error
    return model


def fit_models(
    requests: Sequence[FitRequest], train: Split, validation: Split | None, watcher: Watcher
) -> list[SavedModel | None]:
    """Train several models, at the same time where possible.

    None: the model diverged, but another did not; or its `on_epoch` stopped it.  Raise if all diverged.

    Models with the same texts, vocabulary and architecture share the encoded texts, so that they can be stacked.
    """
    requests = [dataclasses.replace(r, config=small_data.resolve(r.config, train)) for r in requests]
    names = _names([request.config for request in requests])
    groups: list[list[int]] = []
    for number, request in enumerate(requests):
        alike = (g for g in groups if _share_texts(requests[g[0]].config, request.config, train))
        if (group := next(alike, None)) is None:
            groups.append([number])
        else:
            group.append(number)
    models: dict[int, SavedModel | None] = {}
    failures: list[TrainingDiverged] = []
    for group in groups:
        named = {names[number]: requests[number] for number in group}
        try:
            models |= zip(group, _fit_group(named, train, validation, watcher), strict=True)
        except TrainingDiverged as error:
            models |= dict.fromkeys(group)
            failures.append(error.with_traceback(None))
            if len(failures) < len(groups):
                watcher.warn(f"{', '.join(named)}: {error}  The other models are not affected.")
    if len(failures) == len(groups):
        raise failures[0]
    return [models[number] for number in range(len(requests))]


def _names(configs: Sequence[TrainConfig]) -> list[str]:
    """Name each of several models by what distinguishes it: its seed, or technique, seed and number."""
    if len(configs) == 1:
        return [""]
    if len({config.seed for config in configs}) == len(configs) and len({c.technique_name for c in configs}) == 1:
        return [f"seed {config.seed}" for config in configs]
    return [f"model {i}, {config.technique_name}, seed {config.seed}" for i, config in enumerate(configs, 1)]


def _share_texts(first: TrainConfig, second: TrainConfig, train: Split) -> bool:
    """Return whether two models can share the encoded texts, with given sentences or without."""
    same_sentences = train.sentences is None or first.technique.reads_sentences == second.technique.reads_sentences
    return same_sentences and _shared_config(first) == _shared_config(second)


def _shared_config(config: TrainConfig) -> TrainConfig:
    """Return the configuration without technique, seed and training."""
    training = Training(precision=config.training.precision)
    return dataclasses.replace(
        config, technique_name="", technique=Vanilla(), seed=0, training=training, chosen=frozenset()
    )


def _fit_group(
    requests: Mapping[str, FitRequest], train: Split, validation: Split | None, watcher: Watcher
) -> list[SavedModel | None]:
    """Train models that share their encoded texts; `requests`: by the name in messages, empty for one model."""
    config = next(iter(requests.values())).config
    small_data.announce(config, train, watcher)
    if "lstm" in config.encoder:
        check_lstm(config.device, config.training.precision)
    with accelerator(config.device, config.training.precision) as accelerate:
        fits: list[_Fit] = []
        for name, request in requests.items():
            tokenizer = fits[0].plan.tokenizer if fits else None
            quiet = QuietWatcher() if fits else watcher
            plan = prepare(request.config, train, validation, quiet, request.references, tokenizer)
            item = _start(request, *plan, watcher, accelerate, fits)
            own: Watcher = NamedWatcher(watcher, name, quiet=bool(fits)) if name else watcher
            own = own if request.on_epoch is None else ObservedWatcher(own, request.on_epoch)
            item.run.job = dataclasses.replace(item.run.job, watcher=own)
            fits.append(item)
        models = execute_together([item.run for item in fits])
        return [None if model is None else _finish(item, model) for item, model in zip(fits, models, strict=True)]


@dataclass(frozen=True)
class _Fit:
    """A fit before its first step."""

    config: TrainConfig
    plan: FitPlan
    train: Split
    validation: Split
    run: TrainingRun
    covered: float | None
    """Share of the tokens with a pre-trained vector."""
    references: tuple[Health, ...]
    """Health of the references that were passed."""


def _start(
    request: FitRequest,
    plan: FitPlan,
    train: Split,
    validation: Split,
    watcher: Watcher,
    accelerate: Accelerator,
    earlier: Sequence[_Fit],
) -> _Fit:
    """Encode the texts and prepare the run; `earlier`: fits with the same texts."""
    config, files = request.config, request.files
    if earlier:
        shared = earlier[0].run.job
        data, held_out = shared.train, shared.validation
    else:
        data, held_out = plan.encode(train, train.weighted(config.class_weight)), plan.encode(validation)
        for warning in coverage(plan.tokenizer, data.text).warnings():
            watcher.warn(warning)
    synonyms = _device_synonyms(config.technique, plan, watcher, accelerate, earlier)
    job = TrainingJob(data, held_out, config.training, accelerate, watcher, synonyms)
    covered = plan.token_coverage(job.train)
    if not earlier and covered is not None and covered < LOW_COVERAGE:
        watcher.warn(CoverageWarning(FEW_VECTORS.format(percent(covered), plan.description.vectors)))
    run = TrainingRun(config.technique, plan.make_model, job, config.seed)
    for name, saved in named_references(config, request.references).items():
        own = copy.deepcopy(saved.model)  # the user's models do not change
        with forked_generators():
            torch.manual_seed(derive_seed(config.seed, 0))
            model = config.technique.adapt_reference(own, plan.make_model)
        run.models[name] = freeze(model.to(accelerate.device))
    if files.checkpoint is not None:
        table = () if plan.table is None else table_files(Path(plan.table))
        identity = plan.identity(accelerate.device, table) | own_source(type(config.technique))
        run.checkpoint = Checkpoint(files.checkpoint, identity, files.resume)
    if files.teacher_cache is not None:
        run.teacher_cache = TeacherCache(files.teacher_cache, stage_identity(plan.identity(accelerate.device)))
    health = tuple(saved.health for saved in request.references)
    return _Fit(config, plan, train, validation, run, covered, health)


def _device_synonyms(
    technique: Technique, plan: FitPlan, watcher: Watcher, accelerate: Accelerator, earlier: Sequence[_Fit]
) -> Synonyms | None:
    """Return the vocabulary data of a technique; the same object for all fits that need the same."""
    for item in earlier:
        other = item.config.technique
        if (technique.substitutes_words, technique.reads_vocabulary) == (
            other.substitutes_words,
            other.reads_vocabulary,
        ):
            return item.run.job.synonyms
    synonyms = plan.vocabulary_for(technique, watcher)
    return None if synonyms is None else synonyms.to(accelerate.device)


def _finish(fit: _Fit, model: Model) -> SavedModel:
    """Describe the trained model; train the independent reader of a rationalizer."""
    config, plan, run, watcher = fit.config, fit.plan, fit.run, fit.run.job.watcher
    classes = plan.description.classes
    reader = add_reader(model, run.job, len(run.history), config.seed, classes) if selects(model) else ()
    description = dataclasses.replace(
        plan.description,
        history=run.history,
        best_epoch=run.best_epoch,
        token_coverage=fit.covered,
        validation_texts=len(fit.validation.texts),
        health=reference_problems(fit.references),
        independent_reader=stored_reader(reader),
    )
    if selects(model) and model.reader is not None:
        description.describe_reader(model.reader)
    stalled, score = loss_stalled(run.best_epoch, run.history), run.best_epoch["macro-f1"]
    if (remark := small_data.advice(config, fit.validation, score, len(description.classes), stalled)) is not None:
        watcher.say(remark)
    if config.class_weight is None:
        names = list(map(str, description.classes))
        if (remark := class_balance.advice(model, fit.train, run.job.validation, names)) is not None:
            watcher.say(remark)
    hashes = None
    if config.text.text_hashes:
        inputs = [item for part in (fit.train, fit.validation) for item in join_questions(part.texts, part.questions)]
        hashes = np.unique(hash_texts(inputs, description.corpus))
    return SavedModel(description, model, plan.tokenizer, hashes)


def prepare(
    config: TrainConfig,
    train: Split,
    validation: Split | None,
    watcher: Watcher,
    references: Sequence[SavedModel] = (),
    tokenizer: TextTokenizer | None = None,
) -> tuple[FitPlan, Split, Split]:
    """The plan of the fit and the splits, before the first step; `tokenizer`: of a plan with the same texts."""
    by_sentences = config.technique.reads_sentences
    corpus = ":".join(split.fingerprint(by_sentences) for split in (train, validation) if split is not None)
    if validation is None:
        train, validation = hold_out_validation(train)
    if (train.questions is None) != (validation.questions is None):
        raise UserError("training and validation texts must both be single texts, or both pairs")
    plan = make_plan(config, train, validation, corpus, watcher, tokenizer)
    for name, saved in named_references(config, references).items():
        check_reference(name, saved, plan.description, plan.tokenizer)
    description = dataclasses.replace(plan.description, references=[fingerprint(saved.model) for saved in references])
    return dataclasses.replace(plan, description=description), train, validation


def check_same_run(
    config: TrainConfig,
    train: Split,
    validation: Split | None,
    saved: SavedModel,
    teachers: Sequence[SavedModel] = (),
) -> None:
    """Raise an error if a finished model differs from the result of this run."""
    planned = prepare(small_data.resolve(config, train), train, validation, SilentWatcher(), teachers)[0].description
    stored_values, planned_values = (
        dataclasses.asdict(dataclasses.replace(description, **UNPLANNED))
        for description in (saved.description, planned)
    )
    if changed := difference(stored_values, planned_values, first="technique"):
        name, values = changed
        raise UserError(
            f"the existing model was trained with another {name.rpartition('.')[2]}: {values}; "
            "pass --replace to replace it"
        )
