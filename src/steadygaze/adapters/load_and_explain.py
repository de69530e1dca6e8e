"""sg.load, sg.explain and sg.word_weights: any model of texts."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.adapters.hosted.server import is_hosted
from steadygaze.adapters.label_votes import CONCURRENCY, QueryOptions
from steadygaze.adapters.model_adapter import STEADYGAZE_MODEL, ModelAdapter
from steadygaze.adapters.prompt import read_prompt
from steadygaze.core.arguments import choice, flag, integer, optional, sequence_of, validated
from steadygaze.core.atomic_files import recover_folder
from steadygaze.core.errors import UserError
from steadygaze.core.types import Label, OnProgress, no_progress
from steadygaze.core.untrusted_files import read_object_or_empty
from steadygaze.estimator.explain_request import ExplainRequest, Granularity, documented
from steadygaze.estimator.explain_texts import explain_inputs
from steadygaze.estimator.explainer_folder import is_fitted
from steadygaze.estimator.inputs import join_questions, read_inputs
from steadygaze.explainers.class_probability import Output
from steadygaze.explainers.explainer import check_distinct
from steadygaze.explainers.resolve_explainer import default_explainer, resolve_explainer
from steadygaze.models import inference
from steadygaze.models.encoders.weight_options import DTYPES, WeightOptions
from steadygaze.results.explanation import Explanation
from steadygaze.results.word_weights import WordWeights, word_weights_of

CHUNK = 256
"""Texts that are explained between two reports of progress."""


@validated(
    classes=optional(sequence_of),
    attention=choice("last", "rollout"),
    votes=optional(integer(1)),
    max_requests=optional(integer(0)),
    concurrency=integer(1),
    dtype=choice(*DTYPES),
    examples=sequence_of,
    chat=flag,
    calibrate=flag,
)
def load(
    model: Any,
    *,
    classes: Sequence[Label] | None = None,
    device: str = "auto",
    attention: str = "last",
    dtype: str = "auto",
    device_map: Any = None,
    quantization_config: Any = None,
    base_model: str | Path | None = None,
    prompt: str | None = None,
    label_words: Mapping[Label, str] | None = None,
    votes: int | None = None,
    max_requests: int | None = None,
    concurrency: int = CONCURRENCY,
    instruction: str | None = None,
    examples: Sequence[tuple[str, Label]] = (),
    chat: bool = False,
    calibrate: bool = False,
) -> Any:
    """Load a model that can predict and explain.

    Parameters
    ----------
    model : str, Path, tuple, pipeline, object or function
        A folder of `save` gives a TextClassifier or an ImageClassifier.  All other models give a ModelAdapter: a folder
        or hub id of a Hugging Face classifier or of a LoRA adapter, a text-classification pipeline, or a tuple (model,
        tokenizer).  So do a fitted scikit-learn pipeline, another object with `predict_proba`, a function texts ->
        probabilities or labels, and openai:MODEL@URL, a model behind an OpenAI-compatible server.
        Regression: a Hugging Face model with one output, a scikit-learn regressor, or a function texts -> numbers.
    classes : list of str or int, default=None
        Names of the classes in the order of the probabilities; required for a function that returns these.  A folder of
        `save` has its own.
    device : str, default="auto"
        auto, cpu, cuda or mps, for models that are loaded here.
    attention : str, default="last"
        last or rollout: how the heads and layers of a Hugging Face model are aggregated.
    dtype : str, default="auto"
        Precision of a Hugging Face model that is loaded here: auto (as stored), bf16, fp16 or fp32.
    device_map : str or dict, default=None
        Layers on several GPUs, as in the accelerate library: auto, or device by layer.
    quantization_config : str or object, default=None
        4bit or 8bit, with bitsandbytes, or a BitsAndBytesConfig or TorchAoConfig of transformers.  Needs a GPU.
    base_model : str or Path, default=None
        Folder or hub id of the base model of a LoRA adapter, if the adapter names a path.
    prompt : str, default=None
        Classify with a causal language model, here or behind a server: a prompt that contains {text}.
    label_words : dict of label to str, default=None
        With `prompt`: the word that stands for each label.  The score of a class is the log-probability of its word.
    votes : int, default=None
        Answers per text of a function or a hosted model: shares of labels, or mean probabilities.  None: one; ten of a
        server without log-probabilities.
    max_requests : int, default=None
        Most requests to the server of a hosted model, retries included.  A run whose estimate is larger is refused.
    concurrency : int, default=8
        Requests at a time.
    instruction : str, default=None
        With `prompt`: what precedes it once; the system message of a chat.
    examples : list of (text, label), default=()
        With `prompt`: solved examples between instruction and text.
    chat : bool, default=False
        With `prompt`: write the prompt with the tokenizer's chat template, as the last message of the user.
    calibrate : bool, default=False
        With `prompt`: subtract the scores of an empty text.

    Returns
    -------
    TextClassifier, ImageClassifier or ModelAdapter
        All have `predict`, `predict_proba` and `explain`.

    Examples
    --------
    >>> import steadygaze as sg
    >>> def cheerful(texts): return [[0.1, 0.9] if "good" in text else [0.8, 0.2] for text in texts]
    >>> model = sg.load(cheerful, classes=["no", "yes"])
    >>> model.predict(["a good film", "a dull one"]).tolist()
    ['yes', 'no']
    """
    if isinstance(model, str | Path) and not is_hosted(model):
        folder = Path(os.path.expanduser(model))  # Path.expanduser raises an error for an unknown user
        recover_folder(folder)
        if is_fitted(folder):
            raise UserError(f"{folder} is a fitted explainer; load it with load_explainer(folder, black_box)")
        if read_object_or_empty(folder / "config.json").get("kind") == "image-classifier":
            if any(value is not None for value in (classes, prompt, label_words)) or attention != "last":
                raise UserError(
                    f"{folder} is an image classifier: leave out classes=, attention=, prompt= and label_words="
                )
            return resolve_name("steadygaze.images.image_classifier:ImageClassifier").load(folder, device)
    adapter = as_adapter(
        model,
        classes=classes,
        device=device,
        attention=attention,
        prompt=read_prompt(
            prompt, label_words, instruction=instruction, examples=examples, chat=chat, calibrate=calibrate
        ),
        queries=QueryOptions(votes=votes, max_requests=max_requests, concurrency=concurrency),
        weights=WeightOptions(dtype, device_map, quantization_config),
        base_model=base_model,
    )
    adapter.health.warn(stacklevel=3)
    if adapter.saved is None:
        return adapter
    if list(adapter.classes) != list(adapter.saved.description.classes):
        raise UserError(
            f"load does not rename the classes of {STEADYGAZE_MODEL}: leave out classes=, or pass classes= to explain, "
            "evaluate or audit"
        )
    return adapter.fitted or resolve_name("steadygaze.estimator.text_classifier:from_saved")(adapter.saved, device)


@documented
@validated(classes=optional(sequence_of))
def explain(
    model: Any,
    texts: Any,
    explainer: Any = None,
    target: Label | None = None,
    granularity: Granularity = "word",
    *,
    output: Output | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int = 0,
    batch_size: int = inference.BATCH,
    classes: Sequence[Label] | None = None,
    device: str = "auto",
) -> Any:
    """Explain predictions of any model: an Explanation for one text, a list for a list.

    Parameters
    ----------
    model : any model that `sg.load` takes, or the result of `sg.load`
        The model.
    classes : list of str or int, default=None
        Class names, in the order of the probabilities.
    device : str, default="auto"
        Device of a model that this call loads.

    Examples
    --------
    >>> import steadygaze as sg
    >>> def cheerful(texts): return [[0.1, 0.9] if "good" in text else [0.8, 0.2] for text in texts]
    >>> explanation = sg.explain(cheerful, "a good film", explainer="leave-one-out", classes=["no", "yes"])
    >>> explanation.label, [(word, round(weight, 2)) for word, weight in explanation.top(1)]
    ('yes', [('good', 0.7)])
    """
    _refuse_images(texts)
    request = ExplainRequest(
        texts, explainer, target, granularity, output=output, settings=settings, seed=seed, batch_size=batch_size
    )
    adapter = as_adapter(model, classes=classes, device=device)
    return explain_inputs(texts, adapter.tokens, adapter.explain_function(request))


def _refuse_images(inputs: Any) -> None:
    from steadygaze.adapters.fit_explainer import are_images  # imports the learned explainers

    if are_images(inputs) and getattr(inputs, "ndim", 3) > 2:
        raise UserError(
            "these inputs are arrays of numbers, such as images, and this call explains texts.  Use "
            "sg.explain_images(model, images, classes=...) for gradient, leave-one-out or lime, or sg.fit_explainer"
        )


@validated(
    classes=optional(sequence_of),
    explainers=sequence_of,
    words=integer(1),
    min_texts=integer(1),
    batch_size=integer(1),
    seed=integer(0),
    function_words=flag,
)
def word_weights(
    model: Any,
    texts: Any,
    explainers: Sequence[Any] = (None,),
    *,
    words: int = 20,
    min_texts: int = 3,
    target: Label | None = None,
    classes: Sequence[Label] | None = None,
    device: str = "auto",
    batch_size: int = inference.BATCH,
    seed: int = 0,
    function_words: bool = False,
) -> WordWeights:
    """Find the words that carry the weight of the explanations of many texts, per class, with intervals.

    Parameters
    ----------
    model : any model that `sg.load` takes, or the result of `sg.load`
        The model.
    texts : list of str, or list of (text, question)
        The texts.
    explainers : list, default=(None,)
        Explainers to show side by side, as for `sg.explain`; None is the default of the model.
    words : int, default=20
        Words for each class and explainer.
    min_texts : int, default=3
        Fewest texts that contain a word.  Intervals of words in fewer than 20 texts are too narrow, and marked.
    target : str or int, default=None
        The explained class of every text; None: the predicted one.  The output of a multi-label model.
    classes : list of str or int, default=None
        Class names, in the order of the probabilities.
    device : str, default="auto"
        Device of a model that this call loads.
    batch_size : int, default=128
        Texts per batch.
    seed : int, default=0
        Random seed of explainers and intervals.
    function_words : bool, default=False
        List function words and punctuation, too.  Negations and words of degree are always listed.  The function words
        are English; in other languages only punctuation is left out.

    Returns
    -------
    WordWeights
        `top(label)` lists words, `to_pandas()` returns a table, `to_html(path)` writes a page.

    Examples
    --------
    >>> import steadygaze as sg
    >>> def cheerful(texts): return [[0.1, 0.9] if "good" in text else [0.8, 0.2] for text in texts]
    >>> texts = ["a good film", "a good book", "a good day", "a dull film"]
    >>> weights = sg.word_weights(sg.load(cheerful, classes=["no", "yes"]), texts, ["leave-one-out"])
    >>> weights.top("yes")[0].word
    'good'
    """
    adapter = as_adapter(model, classes=classes, device=device)
    return weigh_words(
        adapter, texts, explainers, words, min_texts, seed, target, batch_size, function_words=function_words
    )


def weigh_words(
    adapter: ModelAdapter,
    texts: Any,
    explainers: Sequence[Any],
    words: int,
    min_texts: int,
    seed: int,
    target: Label | None = None,
    batch_size: int = inference.BATCH,
    on_progress: OnProgress = no_progress,
    function_words: bool = False,
) -> WordWeights:
    """`on_progress`: progress callback with the task, the number of explained texts and the total."""
    if not len(explainers):
        raise UserError("explainers is empty: name an explainer, or leave explainers out for the default of the model")
    items = join_questions(*read_inputs(texts))
    default = default_explainer(adapter.model, bool(adapter.pair))
    names = [resolve_explainer(default if explainer is None else explainer)[0] for explainer in explainers]
    check_distinct(names)
    explanations: dict[str, list[Explanation]] = {}
    for name, explainer in zip(names, explainers, strict=True):
        explained: list[Explanation] = []
        for start in range(0, len(items), CHUNK):
            chunk = items[start : start + CHUNK]
            explained += adapter.explain(chunk, explainer, target, seed=seed, batch_size=batch_size)
            on_progress(f"explaining: {name}", len(explained), len(items))
        explanations[name] = explained
    return word_weights_of(explanations, adapter.name, words, min_texts, seed, function_words)
