"""Convert any supported model to a ModelAdapter."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import nn

from steadygaze.adapters.hosted.server import is_hosted
from steadygaze.adapters.label_votes import LabelVotes, QueryOptions
from steadygaze.adapters.load_options import AS_STORED, DEFAULT_ATTENTION, LoadOptions
from steadygaze.adapters.model_adapter import STEADYGAZE_MODEL, TRIAL, ModelAdapter, with_class_names
from steadygaze.adapters.output_labels import binary_labels, numbers
from steadygaze.adapters.prompt import Prompt, parse_examples, parse_label_words, read_prompt
from steadygaze.core import arguments
from steadygaze.core.arguments import number, optional, validated
from steadygaze.core.atomic_files import recover_folder
from steadygaze.core.errors import UserError
from steadygaze.core.types import Label, Task
from steadygaze.core.untrusted_files import digest_json, read_json, resolve
from steadygaze.estimator.inputs import list_labels
from steadygaze.estimator.model_config import settings_of_model
from steadygaze.estimator.model_folder import MODEL_KINDS, SavedModel, fingerprint, load
from steadygaze.models.encoders.weight_options import WeightOptions
from steadygaze.models.inference import best_device, check_device
from steadygaze.results.model_options import ModelOptions

if TYPE_CHECKING:
    from steadygaze.estimator.text_classifier import TextClassifier

__all__ = ["ModelAdapter", "as_adapter"]

ADAPTER = "adapter_config.json"
"""The configuration of a LoRA adapter, see `lora_folder`."""


def from_classifier(clf: "TextClassifier", name: str = "model") -> ModelAdapter:
    if not hasattr(clf, "stored_"):
        raise UserError("this TextClassifier has not been trained yet: call fit first")
    return replace(from_saved(clf.stored_, name), fitted=clf)


def from_saved(saved: SavedModel, name: str) -> ModelAdapter:
    config = saved.description
    settings = settings_of_model(
        config.architecture, config.training, config.text, config.technique, config.technique_settings
    )
    facts = {
        "encoder": config.encoder,
        "technique": config.technique,
        "settings": ", ".join(f"{name} {value}" for name, value in sorted(settings.items())) or "as they come",
        "vectors": config.vectors or "none",
        "class weight": str(config.class_weight or "none"),
        "trained on": config.corpus[:12],
        "seed": str(config.seed),
    }
    if config.synonym_groups is not None:
        facts["synonym groups"] = config.synonym_groups
    return ModelAdapter(
        name=name,
        kind=STEADYGAZE_MODEL,
        model=saved.model,
        tokens=saved.tokenizer,
        classes=config.classes,
        pair=config.pair,
        fingerprint=digest_json([[fingerprint(saved.model), saved.tokenizer.to_json(), list(config.classes)]]),
        facts=facts,
        saved=saved,
        health=saved.health,
    )


ACCEPTED = (
    "a TextClassifier, a folder or hub id, a (model, tokenizer) or a text-classification pipeline of transformers, "
    "anything with predict_proba, a scikit-learn regressor, a function texts -> probabilities, labels or numbers, or "
    "openai:MODEL@URL"
)


DEFAULT_QUERIES = QueryOptions()


def as_adapter(
    model: Any,
    *,
    classes: Sequence[Label] | None = None,
    device: str = "auto",
    attention: str = DEFAULT_ATTENTION,
    import_objects: bool = False,
    prompt: Prompt | None = None,
    queries: QueryOptions = DEFAULT_QUERIES,
    weights: WeightOptions = AS_STORED,
    base_model: str | Path | None = None,
) -> ModelAdapter:
    """Convert one of the inputs that ACCEPTED lists.

    `classes`: names of the classes in the order of the probabilities.  `device`: for models that are loaded here;
    models in memory are not moved.  `attention`: how the heads and layers of a Hugging Face model are aggregated, last
    or rollout.  `import_objects`: import "MODULE:NAME", which runs code; only for a name that the user has typed.
    `prompt`: for a causal language model, or a hosted one.  `queries`: how a function or a hosted model is queried.
    `weights`, `base_model`: for Hugging Face models that are loaded here.
    """
    check_device(device)
    options = LoadOptions(device, attention, prompt, weights, base_model, None if prompt is None else queries.votes)
    if is_hosted(model):
        options.refuse_weights(model)
        from steadygaze.adapters.hosted.hosted_model import hosted_adapter

        adapter = hosted_adapter(model, prompt, queries)
        _check_attention(adapter, attention)
        return with_class_names(adapter, classes)
    if import_objects and arguments.names_object(model):
        model = _imported(model)
    adapter = _unnamed(model, classes, options, queries.votes)
    queries.refuse_unused(adapter.name, is_function=hasattr(getattr(adapter.model, "predict", None), "votes"))
    return with_class_names(adapter, classes)


def _unnamed(model: Any, classes: Sequence[Label] | None, options: LoadOptions, votes: int | None) -> ModelAdapter:
    """The adapter before its classes get other names; `classes`: for a model without names."""
    attention, prompt = options.attention, options.prompt
    if isinstance(model, str | Path):
        return _by_name(model, options)
    options.refuse_weights(_display_name(model))
    if isinstance(model, tuple) and len(model) == 2 and hasattr(model[0], "config"):
        from steadygaze.adapters.huggingface import from_live

        return from_live(*model, attention, prompt, options.votes)
    if all(hasattr(model, part) for part in ("task", "model", "tokenizer")) and not isinstance(model, ModelAdapter):
        from steadygaze.adapters.huggingface import from_pipeline

        return from_pipeline(model, attention, prompt, options.votes)
    _refuse_prompt(prompt)
    classifiers = sys.modules.get("steadygaze.estimator.text_classifier")  # slow to import
    if classifiers is not None and isinstance(model, classifiers.TextClassifier):
        model = from_classifier(model)
    adapter = model if isinstance(model, ModelAdapter) else _from_outside(model, classes, votes)
    _check_attention(adapter, attention)
    return adapter


def load_named(name: str, options: ModelOptions, device: str, *, import_objects: bool) -> ModelAdapter:
    """The model of a command or of a bundle, with the options that were given for it."""
    prompt = read_prompt(
        options.prompt,
        parse_label_words(options.label_words),
        instruction=options.instruction,
        examples=parse_examples(options.examples),
        chat=options.chat,
        calibrate=options.calibrate,
    )
    device_map, quantization = (
        None if value == "none" else value for value in (options.device_map, options.quantization_config)
    )
    return as_adapter(
        name,
        classes=options.classes or None,
        device=device,
        attention=options.attention,
        import_objects=import_objects,
        prompt=prompt,
        queries=QueryOptions(votes=options.votes, max_requests=options.max_requests, concurrency=options.concurrency),
        weights=WeightOptions(options.dtype, device_map, quantization),
        base_model=options.base_model,
    )


def _refuse_prompt(prompt: Prompt | None) -> None:
    if prompt is not None:
        raise UserError("a prompt is for a causal language model of transformers: leave out prompt= and label_words=")


def _check_attention(adapter: ModelAdapter, attention: str) -> None:
    """Refuse an aggregation of attention that the model does not have."""
    own = adapter.facts.get("attention")
    if attention in (DEFAULT_ATTENTION, own):
        return
    if own is not None:
        raise UserError(
            f"{adapter.name} is already loaded with attention={own!r}: pass attention={attention!r} to sg.load"
        )
    raise UserError(
        f"attention={attention!r} aggregates the heads and layers of a Hugging Face model, and {adapter.name} is not "
        "one: leave out attention= (--attention)"
    )


def _by_name(name: str | Path, options: LoadOptions) -> ModelAdapter:
    """A steadygaze folder, a Hugging Face folder, or a hub id."""
    arguments.path("model", name)
    if best_device(options.device).type == "mps":
        options = replace(options, device="cpu")  # mps has no double precision
    folder = Path(os.path.expanduser(name))  # Path.expanduser raises an error for an unknown user
    recover_folder(folder)
    if folder.exists() and _is_ours(folder):
        _refuse_prompt(options.prompt)
        options.refuse_weights(resolve(folder).name)
        saved = load(folder)
        saved.model.to(best_device(options.device))
        adapter = from_saved(saved, resolve(folder).name)
        _check_attention(adapter, options.attention)
        return adapter
    from steadygaze.adapters.huggingface_folder import from_folder
    from steadygaze.models.encoders.transformer import from_hub

    own_name = resolve(folder).name
    if not folder.exists():
        own_name = str(name)
        folder = from_hub(own_name, own_name, cached_only="/" not in own_name)  # a missing folder: no wait for the hub
    return from_folder(folder, own_name, options)


def _is_ours(folder: Path) -> bool:
    file = folder / "config.json"
    if folder.is_file():
        raise UserError(
            f"{folder} is a file, and files are not read as models: a pickle or joblib file runs code.  "
            "Load it in a module of your own, and pass MODULE:NAME (in Python, pass the object)"
        )
    if not file.is_file() and (folder / ADAPTER).is_file():
        return False
    if not file.is_file():
        raise UserError(
            f"{folder} is not a steadygaze model or a Hugging Face classifier: it has no config.json; "
            "pass the folder that `steadygaze train --out` or save_pretrained wrote"
        )
    config = read_json(file)
    if not isinstance(config, dict) or "model_type" not in config:
        return True  # model_folder.load says what is damaged
    return "steadygaze" in config or str(config.get("kind")) in MODEL_KINDS


def _imported(reference: str) -> Any:
    """The object MODULE:NAME; modules of the current folder are found, as with `python -m`."""
    if "" not in sys.path and os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return resolve_name(reference)
    except (ImportError, AttributeError) as error:
        raise UserError(
            f"{reference} could not be imported as MODULE:NAME: {error}; run the command in the folder of the module, "
            "and check both names"
        ) from None


def _from_outside(model: Any, classes: Sequence[Label] | None, votes: int | None) -> ModelAdapter:
    """A function, or an object with predict_proba."""
    from steadygaze.adapters.black_box import black_box

    if isinstance(model, nn.Module):
        raise UserError(
            f"a {type(model).__name__} alone cannot read texts: pass it with its tokenizer, (model, tokenizer).  "
            "A network of images is for sg.explain_images(network, images, classes=...) or sg.fit_explainer"
        )
    regresses = False
    if hasattr(model, "predict") and not hasattr(model, "predict_proba"):
        from sklearn.base import BaseEstimator, is_regressor

        regresses = isinstance(model, BaseEstimator) and bool(is_regressor(model))
    predict = model.predict if regresses else getattr(model, "predict_proba", model)
    if not isinstance(model, type) and not callable(predict) and hasattr(model, "predict"):
        raise UserError(
            f"{_display_name(model)} has no predict_proba: in scikit-learn, fit the classifier inside "
            "CalibratedClassifierCV; otherwise pass a function texts -> probabilities"
        )
    if isinstance(model, type) or not callable(predict):
        raise UserError(f"{model!r:.80} is not a model; pass {ACCEPTED}")
    name = _display_name(model)
    names = getattr(model, "classes_", classes)
    if regresses or (names is None and _returns_numbers(predict)):
        return black_box(predict, ["value"], name, "regression")
    if names is None and _is_unfitted(model):
        raise UserError(f"{name} has not been fitted: call fit first")
    if names is None:
        raise UserError(
            f"{name} has no classes_: pass their names as classes= (--classes A,B), in the order of the probabilities"
        )
    task: Task = "multi-label" if getattr(_last_step(model), "multilabel_", False) else "classification"
    if any(np.ndim(values) for values in names):  # scikit-learn: the classes of each output
        kinds = [np.asarray(values).tolist() for values in names]
        different = next((values for values in kinds if values != [0, 1]), None)
        if different is not None:
            raise UserError(
                f"{name} has {len(names)} outputs, and one has the classes {different!r:.80}: only 0 and 1 are read.  "
                "Pass a function texts -> probabilities of one output, with classes="
            )
        predict, names, task = partial(_of_second_class, predict), range(len(names)), "multi-label"
    if task == "classification":
        predict = LabelVotes(predict, tuple(names), votes or 1)
    return black_box(predict, list(names), name, task)


def _last_step(model: Any) -> Any:
    """The estimator at the end of pipelines and searches of scikit-learn."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            model = model.steps[-1][-1]
        else:
            return model


def _of_second_class(predict: Any, texts: list[Any]) -> Any:
    """The probability of the class 1 of each output.  K arrays (N,2) -> (N,K)"""
    answer = predict(texts)
    return answer if isinstance(answer, np.ndarray) else np.stack([values[:, 1] for values in answer], 1)


def _is_unfitted(model: Any) -> bool:
    from sklearn.base import BaseEstimator
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    if not isinstance(model, BaseEstimator):
        return False
    try:
        check_is_fitted(model)
    except NotFittedError:
        return True
    return False


def _returns_numbers(predict: Any) -> bool:
    """True if a function without class names returns one number per text, in a trial."""
    try:
        answer = np.asarray(predict([TRIAL]))
    except Exception:  # foreign code, called without class names
        return False
    return bool(answer.shape == (1,) and answer.dtype.kind not in "OSU")


def _display_name(model: Any) -> str:
    name = getattr(model, "__name__", type(model).__name__)
    return "a function" if name in ("<lambda>", "function") else str(name)


@validated(threshold=optional(number()))
def two_class_models(
    adapters: Sequence[ModelAdapter], texts: Any, target: Label | None, threshold: float | None
) -> tuple[list[ModelAdapter], Callable[[Any], Any]]:
    """The models of an audit as models of two classes, and the function that converts their labels.

    The first model determines the threshold, the median of its predictions, and the scale, their standard deviation.
    """
    first = adapters[0]
    if first.task == "classification":
        if target is not None or threshold is not None:
            raise UserError(
                f"target= and threshold= are for multi-label and regression models; {first.name} has classes"
            )
        return list(adapters), list_labels
    if threshold is not None and first.task != "regression":
        raise UserError(f"threshold= is for regression models; {first.name} predicts several labels")
    name, index = first.output_position(target)
    if first.task == "multi-label":
        return [adapter.for_output(name) for adapter in adapters], lambda labels: binary_labels(
            list_labels(labels, first.outputs), first.outputs, index
        )
    values = first.predict_covered(texts, batch_size=64)[0][:, index]
    limit = float(np.median(values)) if threshold is None else threshold
    scale = float(values.std()) or 1.0
    return [adapter.for_output(name, limit, scale) for adapter in adapters], lambda labels: [
        int(value > limit) for value in numbers(list_labels(labels))
    ]
