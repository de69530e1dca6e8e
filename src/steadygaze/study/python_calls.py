"""sg.compare and sg.tune: the commands, with texts and settings from Python."""

import json
import tempfile
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from steadygaze.core.arguments import integer, optional, path, sequence_of, validated
from steadygaze.core.atomic_files import write_text
from steadygaze.core.errors import LabelWarning, UserError
from steadygaze.core.search_space import SearchChoice, SearchRange, SearchSpace
from steadygaze.core.settings import build
from steadygaze.core.untrusted_files import read_text
from steadygaze.estimator.inputs import label_remarks, read_split
from steadygaze.results.comparison import Comparison
from steadygaze.results.tuning import Tuning
from steadygaze.study import compare as comparison
from steadygaze.study import tune as tuning
from steadygaze.study.compare import StudyRuntime
from steadygaze.study.compare_config import CompareConfig
from steadygaze.study.study_folder import DATA_FILE, StudyFolder
from steadygaze.study.tune_config import TuneConfig


@validated(techniques=sequence_of, seeds=integer(1), out=optional(path), workers=optional(integer(1)))
def compare(
    texts: Any,
    labels: Any,
    *,
    techniques: Sequence[str],
    seeds: int = 3,
    out: str | Path | None = None,
    engine: str = "local",
    workers: int | None = None,
    track: str | None = None,
    device: str = "auto",
    **options: Any,
) -> Comparison:
    """Train techniques with several seeds, audit every model and test the differences.

    A fifth of the texts is held out for the audits.

    Parameters
    ----------
    texts : sequence of str or of pairs
        Texts, or pairs (text, question).
    labels : sequence
        One label for each text.
    techniques : sequence of str
        Names of techniques; the first is the baseline.
    seeds : int, default=3
        Models per technique.
    out : str or Path, default=None
        Folder of the comparison; the same call resumes it.  None: a temporary folder, deleted at the end.
    engine : str, default="local"
        "local", "ray" (starts a cluster on this machine), "ray://auto" or "ray://HOST:PORT".
    workers : int, default=None
        Models at a time; None: as many as cores and memory allow, on a GPU one.
    track : str, default=None
        Log every model to "tensorboard[:DIR]", "mlflow[:URI]" or "wandb[:PROJECT]" at the end.
    device : str, default="auto"
        auto, cpu, cuda or mps.
    options : dict
        Other fields of CompareConfig: encoder, vectors, epochs, batch_size, settings, settings_for, synonyms, ...

    Returns
    -------
    Comparison
        `standings` has the scores of each technique, `to_html(path)` writes the page.

    Examples
    --------
    >>> import steadygaze as sg
    >>> result = sg.compare(texts, labels, techniques=["vanilla", "word-at"], seeds=5, out="runs/c")  # doctest: +SKIP
    """
    with _stored(texts, labels, out, "comparison") as (folder, data):
        config = build(CompareConfig, {**data, "techniques": tuple(techniques), "seeds": seeds, **options})
        return comparison.compare(
            config, StudyRuntime(folder, device=device, engine=engine, workers=workers, track=track)
        )


@validated(trials=integer(1), out=optional(path), workers=optional(integer(1)), objectives=sequence_of)
def tune(
    texts: Any,
    labels: Any,
    *,
    technique: str,
    trials: int = 20,
    search: Mapping[str, Any] | Sequence[str] | None = None,
    objectives: Sequence[str] = ("macro-f1",),
    out: str | Path | None = None,
    engine: str = "local",
    workers: int | None = None,
    track: str | None = None,
    device: str = "auto",
    **options: Any,
) -> Tuning:
    """Search the settings of a technique by validation scores (Optuna's TPE with median pruning).

    A tenth of the texts is held out for validation, as `fit` does it.

    Parameters
    ----------
    texts : sequence of str or of pairs
        Texts, or pairs (text, question).
    labels : sequence
        One label for each text.
    technique : str
        Name of the technique.
    trials : int, default=20
        Models to train.
    search : dict or sequence of str, default=None
        Setting -> (low, high), (low, high, "log") or a list of values; or names of settings with a space of their
        own.  None: the settings whose space the technique declares.
    objectives : sequence of str, default=("macro-f1",)
        Measures on the validation texts; several give a Pareto front.
    out : str or Path, default=None
        Folder of the search, with the best model; the same call resumes it.  None: a temporary folder.
    engine : str, default="local"
        "local", "ray" (starts a cluster on this machine), "ray://auto" or "ray://HOST:PORT".
    workers : int, default=None
        Models at a time; None: as many as cores and memory allow, on a GPU one.
    track : str, default=None
        Log every model to "tensorboard[:DIR]", "mlflow[:URI]" or "wandb[:PROJECT]" at the end.
    device : str, default="auto"
        auto, cpu, cuda or mps.
    options : dict
        Other fields of TuneConfig: encoder, vectors, epochs, settings, seed, parallel, prune, synonyms, ...

    Returns
    -------
    Tuning
        `best` is the best trial, `front` the Pareto front, `train_command` trains the best model.

    Examples
    --------
    >>> import steadygaze as sg
    >>> result = sg.tune(texts, labels, technique="word-at", trials=20, out="runs/epsilon")  # doctest: +SKIP
    >>> clf = sg.load("runs/epsilon/model")  # doctest: +SKIP
    """
    names = tuple(search) if search is not None and not isinstance(search, Mapping) else ()
    spaces = {name: _space(name, value) for name, value in search.items()} if isinstance(search, Mapping) else {}
    with _stored(texts, labels, out, "search") as (folder, data):
        settings = {"technique": technique, "trials": trials, "objectives": tuple(objectives)}
        config = build(TuneConfig, {**data, **settings, "search": names, "spaces": spaces, **options})
        return tuning.tune(config, StudyRuntime(folder, device=device, engine=engine, workers=workers, track=track))


def _space(name: str, value: Any) -> SearchSpace:
    match value:
        case SearchRange() | SearchChoice():
            return value
        case (int() | float() as low, int() | float() as high) if isinstance(value, tuple):
            return SearchRange(low, high)
        case (int() | float() as low, int() | float() as high, "log") if isinstance(value, tuple):
            return SearchRange(low, high, log=True)
        case list():
            return SearchChoice(*value)
    raise UserError(f"search: {name} takes (low, high), (low, high, 'log') or a list of values, found {value!r:.80}")


@contextmanager
def _stored(texts: Any, labels: Any, out: str | Path | None, kind: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Write the texts to a file of the study, which workers and later calls read; provide the folder and the data."""
    split = read_split(texts, labels)
    if remarks := label_remarks(labels, split):
        warnings.warn(remarks, LabelWarning, stacklevel=5)
    questions: Sequence[str | None] = split.questions or [None] * len(split.texts)
    rows: list[dict[str, Any]] = [
        {"text": text, "label": label} | ({} if question is None else {"question": question})
        for text, label, question in zip(split.texts, split.labels, questions, strict=True)
    ]
    columns_of_sentences: dict[str, str] = {}
    if split.sentences is not None:
        columns_of_sentences = {"sentences": "sentences"}
        rows = [{**row, "sentences": spans} for row, spans in zip(rows, split.sentences, strict=True)]
    with tempfile.TemporaryDirectory(prefix="steadygaze-") as temporary:
        folder = Path(temporary if out is None else out)
        StudyFolder(folder).refuse_foreign(kind)
        content = "".join(json.dumps(row) + "\n" for row in rows)
        file = folder / DATA_FILE
        if not file.is_file():
            write_text(file, content)
        elif read_text(file) != content:
            raise UserError(f"{folder} contains a {kind} of other texts: name another folder")
        columns = ("text",) if split.questions is None else ("text", "question")
        yield folder, {"data": str(file), "text": columns, **columns_of_sentences}
