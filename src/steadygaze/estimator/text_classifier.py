"""TextClassifier: a scikit-learn estimator with `explain`."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from steadygaze.core.arguments import flag, integer, optional, path, validated
from steadygaze.core.errors import LabelWarning, SeedWarning, SynonymWarning, UserError, unknown
from steadygaze.core.types import Label, Sentences
from steadygaze.data.synonym_groups import SynonymGroups
from steadygaze.data.token_alignment import Coverage, coverage
from steadygaze.estimator import fit, model_folder, small_data
from steadygaze.estimator.explain_request import ExplainRequest, Granularity, documented
from steadygaze.estimator.explain_texts import explain_inputs, explain_texts, resolve_request
from steadygaze.estimator.inputs import (
    Split,
    known_label,
    label_remarks,
    labels_or_none,
    predict_nonempty,
    read_inputs,
    read_labels,
    read_split,
    read_validation,
    read_weights,
    warn_of_empty,
)
from steadygaze.estimator.model_config import settings_of_model
from steadygaze.estimator.train_config import consecutive_seeds, setting_defaults, train_config
from steadygaze.explainers.class_probability import Output
from steadygaze.models import inference
from steadygaze.models.inference import best_device, check_device
from steadygaze.results.explanation import Explanations
from steadygaze.results.health import HEALTHY, Health
from steadygaze.techniques.technique import Technique
from steadygaze.training.progress import ProgressBar, SilentWatcher, Watcher, is_interactive


@dataclass(eq=False, repr=False)
class TextClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A text classifier with explanations.

    Parameters
    ----------
    encoder : str, default="bilstm"
        rnn, gru, bigru, lstm, bilstm, cnn, average, or `transformer:NAME`; NAME is a hub id, a folder or minilm.
    technique : str or Technique, default="vanilla"
        Training technique; `steadygaze list techniques` lists them all.  A `Technique` of your own works too.
    seed : int, default=0
        Random seed.
    epochs : int, default=None
        Most epochs; None: 8, and for small datasets as many as give 300 steps.
    vectors : str or Path, default=None
        A file of word vectors in GloVe's format (.txt, .gz), or "glove-50d"; None: trained from scratch.  With 100
        to 1,999 texts, None: "glove-50d" if it is installed and has their words.
    settings : dict, default=None
        Other settings, by name: {"hidden": 64, "attention": "sparsemax", "learning_rate": 1e-4}.
        `set_params(hidden=64)` and the grid of a search take the same names.  With 100 to 1,999 texts the defaults
        differ; {"small_data": False} keeps those of large datasets.
    batch_size : int, default=None
        Texts per step; None: 32, or 8 with 100 to 599 texts.
    max_length : int, default=None
        Most tokens per text; None: 512, or the limit of a transformer, or whole texts with the setting `window`.
    class_weight : "balanced" or dict of label to weight, default=None
        Weight of each class in training.
    synonym_groups : str, Path, SynonymGroups or dict, default=None
        Groups of synonyms that the model reads as one word: a file of groups (.json), or a synonym table or a mapping
        of words to synonyms, from which groups are built.  Substitutions inside a group change neither the
        prediction nor the explanation.
    device : str, default="auto"
        auto, cpu, cuda or mps.
    random_state : int or RandomState, default=None
        Alias of seed; overrides it.
    verbose : bool or 2, default=None
        Whether to show a progress bar; None: in a terminal and in a notebook.  2: also all loss terms of each epoch.
    n_seeds : int, default=1
        Number of models to fit, with consecutive seeds; on a GPU they are trained at the same time.  The first is this
        classifier.  `sg.audit` then reports the agreement between seeds.
    track : str, default=None
        Service that receives the losses and scores of each epoch: "tensorboard", "mlflow" or "wandb"; also
        "tensorboard:FOLDER", "mlflow:URI" and "wandb:PROJECT".

    Attributes
    ----------
    classes_ : array of shape (C,)
        The labels, sorted.
    history_ : list of dict
        One record per epoch: its loss terms, validation macro-F1 and accuracy.
    health : Health
        Known-bad states; `fit` and `sg.load` warn of them.
    stored_ : SavedModel
        Network, vocabulary and description, as written by `save`.
    seed_ : int
        The seed of this model.  With `n_seeds`, it is the first seed whose training did not diverge.
    other_seeds_ : list of TextClassifier
        The models of the other seeds; empty unless `n_seeds` is above 1.

    Examples
    --------
    >>> from steadygaze import TextClassifier
    >>> texts, labels = ["a good film", "a dull film"] * 10, ["yes", "no"] * 10
    >>> clf = TextClassifier(settings={"hidden": 8}, epochs=20, verbose=False).fit(texts, labels)
    >>> clf.predict(["a good film"]).tolist()
    ['yes']
    >>> clf.explain("a good film").tokens
    ('a', 'good', 'film')
    """

    encoder: str = "bilstm"
    technique: str | Technique = "vanilla"
    _: KW_ONLY
    seed: int = 0
    epochs: int | None = None
    vectors: str | Path | None = None
    settings: dict[str, Any] | None = None
    batch_size: int | None = None
    max_length: int | None = None
    class_weight: str | dict[Label, float] | None = None
    synonym_groups: str | Path | SynonymGroups | Mapping[str, Sequence[str]] | None = None
    device: str = "auto"
    random_state: int | None = None
    verbose: bool | int | None = None
    n_seeds: int = 1
    track: str | None = None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters.

        Parameters
        ----------
        deep : bool, default=True
            Also the settings of architecture, training and technique, by their names.

        Returns
        -------
        dict
            Name -> value.
        """
        parameters: dict[str, Any] = super().get_params(deep=False)
        if not deep:
            return parameters
        values = {**setting_defaults(self.technique), **(self.settings or {})}
        return {**values, **parameters}

    def set_params(self, **params: Any) -> Self:
        """Set parameters and settings by name.

        Parameters
        ----------
        **params
            Names and values.

        Returns
        -------
        TextClassifier
            This classifier.

        Examples
        --------
        >>> from steadygaze import TextClassifier
        >>> TextClassifier().set_params(technique="word-at", epsilon=0.5).settings
        {'epsilon': 0.5}
        """
        names = self._get_param_names()
        for name in names & params.keys():  # the technique first: it determines the names of the settings
            setattr(self, name, params.pop(name))
        known = self.get_params()
        for name in params:
            if name not in known:
                raise unknown("parameter", name, known)
        if params:
            self.settings = {**(self.settings or {}), **params}  # a new dict: clones share the old one
        return self

    @validated(checkpoint=optional(path), resume=flag, teacher_cache=optional(path))
    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        validation: tuple[Any, Any] | None = None,
        checkpoint: str | Path | None = None,
        resume: bool = False,
        reference: "TextClassifier | Sequence[TextClassifier] | None" = None,
        teacher_cache: str | Path | None = None,
    ) -> Self:
        """Train.

        Parameters
        ----------
        X : list of str, array or column
            Texts: a list, NumPy array, pandas or polars Series, column `text` of a Hugging Face dataset.
            Pairs: a list of (text, question), or an array or DataFrame of two columns.
            Examples of a corpus: a model that selects sentences then reads their `sentences`.
        y : list of str or int
            One label for each text, all strings or all whole numbers.
        sample_weight : array, default=None
            Weight of each text, at least 0; texts of weight 0 are removed.
        validation : (texts, labels), default=None
            Texts that choose the epoch; None: a tenth of the texts is held out.
        checkpoint : str or Path, default=None
            Folder of an interruptible run.
        resume : bool, default=False
            Resume the interrupted run of `checkpoint`.
        reference : TextClassifier or list of TextClassifier, default=None
            A fitted reference, or one for each teacher, instead of training them first.
        teacher_cache : str or Path, default=None
            Folder of references and teachers, which later fits reuse.

        Returns
        -------
        TextClassifier
            This classifier, fitted.
        """
        config = train_config(self.get_params(deep=False))
        train = read_split(X, y, sample_weight)
        held_out = None if validation is None else read_validation(validation)
        if remarks := label_remarks(y, train, *([] if held_out is None else [held_out])):
            warnings.warn(remarks, LabelWarning, stacklevel=3)
        if resume and checkpoint is None:
            raise UserError("resume=True resumes an interrupted run: pass its folder as checkpoint=")
        folders = [None if folder is None else Path(folder) for folder in (checkpoint, teacher_cache)]
        checkpoints = fit.CheckpointConfig(folders[0], resume, folders[1])
        seeds = consecutive_seeds(config.seed, self.n_seeds)
        requests = [
            fit.FitRequest(
                replace(config, seed=seed),
                checkpoints if len(seeds) == 1 else checkpoints.of_seed(seed),
                references(reference),
            )
            for seed in seeds
        ]
        models = fit.fit_models(requests, train, held_out, self._watcher())
        first, *others = [model for model in models if model is not None]  # without models that diverged
        self._take(first)
        if models[0] is None:
            warnings.warn(
                f"training with seed {seeds[0]} diverged: this classifier has the model of seed {self.seed_}",
                SeedWarning,
                stacklevel=3,
            )
        self.other_seeds_.extend(from_saved(model, self.device) for model in others)
        classifiers: list[TextClassifier] = [self, *self.other_seeds_]
        several = (clf.health.of(f"The model of seed {clf.seed_}") for clf in classifiers)
        (sum(several, HEALTHY) if others else self.health).warn(stacklevel=3)
        return self

    @property
    def health(self) -> Health:
        """Known-bad states of this model, such as collapsed attention or a constant label."""
        check_is_fitted(self, "stored_")
        return self.stored_.health

    @validated(batch_size=integer(1))
    def predict_proba(self, X: Any, *, batch_size: int = inference.BATCH) -> NDArray[np.float64]:
        """Predict probabilities.

        Parameters
        ----------
        X : list of str, array or column
            Texts or pairs, as for `fit`.
        batch_size : int, default=128
            Texts per batch.

        Returns
        -------
        array of shape (N,C)
            Columns in the order of `classes_`.  The row of an empty text is NaN, and a warning names it.
        """
        check_is_fitted(self, "stored_")
        covered = Coverage()

        def predict(inputs: list[Any]) -> NDArray[np.float64]:
            nonlocal covered
            data = self.stored_.data(*self._read(inputs))
            covered = coverage(self.stored_.tokenizer, data.text)
            return inference.logits(self.stored_.model, data, batch_size).double().softmax(-1).numpy()

        values = predict_nonempty(X, len(self.classes_), predict)
        warn_of_empty(np.isnan(values[:, 0]), stacklevel=3)
        for warning in covered.warnings():
            warnings.warn(warning, stacklevel=3)
        return values

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict labels.

        Parameters
        ----------
        X : list of str, array or column
            Texts or pairs, as for `fit`.

        Returns
        -------
        array of shape (N,)
            Labels.  If a text is empty, an array of objects with None for it, and a warning names it.
        """
        values = self.predict_proba(X)
        return labels_or_none(self.classes_[values.argmax(-1)], np.isnan(values[:, 0]))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy.

        Parameters
        ----------
        X : list of str, array or column
            Texts or pairs, as for `fit`.
        y : list of str or int
            Labels; a label that is unknown from training is an error.
        sample_weight : array, default=None
            Weight of each text.

        Returns
        -------
        float
            Share of correct predictions.
        """
        check_is_fitted(self, "stored_")
        classes = self.stored_.description.classes
        labels = [known_label(label, classes) for label in read_labels(y, minimum_classes=1)]
        split = Split(*self._read(X)[:2], labels, read_weights(sample_weight))
        return float(super().score(X, np.asarray(labels), split.weights))

    @documented
    @validated()
    def explain(
        self,
        X: Any,
        explainer: Any = None,
        target: Label | None = None,
        granularity: Granularity = "word",
        *,
        output: Output | None = None,
        settings: Mapping[str, Any] | None = None,
        seed: int = 0,
        batch_size: int = inference.BATCH,
    ) -> Any:
        """Explain predictions: an Explanation for one text, a list of them for a list."""
        check_is_fitted(self, "stored_")
        request = ExplainRequest(
            X, explainer, target, granularity, output=output, settings=settings, seed=seed, batch_size=batch_size
        )
        model, tokenizer, description = self.stored_.model, self.stored_.tokenizer, self.stored_.description
        resolved = resolve_request(request, model, description.classes, pair=description.pair)
        health = getattr(explainer, "health", self.health)

        def explain(inputs: list[Any]) -> Explanations:
            texts, questions, sentences = self._read(inputs)
            return explain_texts(model, tokenizer, description.classes, texts, questions, resolved, sentences, health)

        return explain_inputs(X, tokenizer, explain)

    @validated(folder=path)
    def save(self, folder: str | Path) -> None:
        """Write a folder for `steadygaze.load`: JSON and safetensors, no pickle; written atomically.

        Parameters
        ----------
        folder : str or Path
            The folder.  An existing model in it is replaced.  It has this model, without `other_seeds_`.
        """
        check_is_fitted(self, "stored_")
        if self.other_seeds_:
            lost = (
                f"the folder has no models of other seeds, and this model has {len(self.other_seeds_)}: save each of "
                "other_seeds_ separately and pass them as other_seeds= to audit"
            )
            warnings.warn(SeedWarning(lost), stacklevel=3)
        model_folder.save(Path(folder), self.stored_)

    @validated(folder=path)
    def export_transformers(self, folder: str | Path) -> None:
        """Write the transformer encoder and its tokenizer for AutoModel and AutoTokenizer of `transformers`.

        The encoder of a rationalizer is that of its predictor.  Attention and decoder are only in the folder of `save`.
        The exported tokenizer does not replace words by the representatives of synonym groups.

        Parameters
        ----------
        folder : str or Path
            The folder.
        """
        check_is_fitted(self, "stored_")
        if self.stored_.tokenizer.synonym_groups is not None:
            lost = "the exported tokenizer does not apply the synonym groups of this model: save() keeps them"
            warnings.warn(SynonymWarning(lost), stacklevel=3)
        model_folder.export_encoder(Path(folder), self.stored_)

    def _read(self, X: Any) -> tuple[list[str], list[str] | None, Sentences | None]:
        """Texts of the kind this model was trained on, and their given sentences."""
        check_is_fitted(self, "stored_")
        texts, questions, sentences = read_inputs(X)
        if self.stored_.description.pair != (questions is not None):
            kinds = ("single texts", "pairs (text, question)")
            input_kind, trained_kind = kinds[questions is not None], kinds[self.stored_.description.pair]
            raise UserError(f"this model was trained on {trained_kind}, found {input_kind}")
        return texts, questions, sentences

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.one_d_array = tags.input_tags.string = True
        tags.input_tags.two_d_array = False  # a pair is two columns of text, never a matrix of numbers
        return tags

    def _watcher(self) -> Watcher:
        show_progress = is_interactive() if self.verbose is None else self.verbose
        watcher = ProgressBar(details=self.verbose == 2) if show_progress else SilentWatcher()
        if self.track is None:
            return watcher
        from steadygaze.training.tracking import TrackingWatcher, run_name

        config = self.get_params(deep=False)
        return TrackingWatcher(watcher, self.track, run_name(str(self.technique), self.seed), config)

    def _take(self, saved: model_folder.SavedModel) -> Self:
        self.stored_, self.seed_ = saved, saved.description.seed
        self.classes_ = np.asarray(saved.description.classes)
        self.history_ = saved.description.history
        self.other_seeds_: list[TextClassifier] = []
        saved.model.to(best_device(self.device))
        return self


def references(reference: "TextClassifier | Sequence[TextClassifier] | None") -> list[model_folder.SavedModel]:
    """The trained models of these classifiers."""
    classifiers: list[Any] = (
        list(reference) if isinstance(reference, list | tuple) else [] if reference is None else [reference]
    )
    for classifier in classifiers:
        if not isinstance(classifier, TextClassifier) or not hasattr(classifier, "stored_"):
            raise UserError(f"reference must be a fitted TextClassifier, or a list of them, found {classifier!r:.80}")
    return [classifier.stored_ for classifier in classifiers]


def load_classifier(folder: str | Path, device: str = "auto") -> TextClassifier:
    """A saved model, ready to predict and explain.

    Its parameters are those of its training, so that `clone(load(folder)).fit(texts, labels)` repeats it.  Word
    vectors, synonyms and a transformer's folder have a name only: a model folder contains no local paths.
    """
    check_device(device)
    return from_saved(model_folder.load(Path(folder)), device)


def from_saved(saved: model_folder.SavedModel, device: str) -> TextClassifier:
    """The classifier of a saved model."""
    config = saved.description
    values = settings_of_model(
        config.architecture,
        config.training,
        config.text,
        config.technique,
        config.technique_settings,
        small_data.NAMES if config.text.get("small_data") else (),  # the user may have changed some of them
    )
    loaded = TextClassifier(
        config.encoder,
        config.technique,
        seed=config.seed,
        epochs=values.pop("epochs", None),
        vectors=config.vectors,
        batch_size=values.pop("batch_size", None),
        settings=values or None,
        max_length=config.max_length,
        class_weight=config.class_weight if isinstance(config.class_weight, str | None) else dict(config.class_weight),
        synonym_groups=saved.tokenizer.synonym_groups,
        device=device,
    )
    return loaded._take(saved)
