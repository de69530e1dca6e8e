"""The command `train`."""

import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from steadygaze.cli import app
from steadygaze.cli import shared_options as shared
from steadygaze.cli.command_options import (
    Common,
    command_help,
    common_options,
    data_option,
    file_option,
    model_option,
    options_of,
    output_option,
    training_option,
)
from steadygaze.cli.printing import print_health, print_json, print_line, show, show_labels, stderr_console
from steadygaze.cli.progress_bars import interruptible
from steadygaze.core.rounding import percent

if TYPE_CHECKING:
    from steadygaze.data.corpus import Corpus
    from steadygaze.estimator.held_out_test import TestPartFile
    from steadygaze.estimator.model_config import ModelConfig

RESUME = "{} keeps the finished epochs: add --resume to continue"
DEGENERATE = "collapsed attention or a constant label"
TRAINING_TEXTS = "that audit reads training texts, so its scores are optimistic: "


@dataclass(frozen=True)
class TrainOptions:
    """The data, the model, its training and the outputs."""

    data: shared.Data
    out: shared.Out
    text: shared.TextColumn = None
    label: shared.LabelColumn = "label"
    rationales: Annotated[
        str | None,
        data_option(
            "--rationales",
            metavar="COL",
            help="Column of human rationales: checked for the audit, not used in training.",
        ),
    ] = None
    sentences: shared.SentencesColumn = None
    drop_empty: shared.DropEmpty = False
    keep_labels: shared.KeepLabels = False
    test_share: Annotated[
        float | None,
        data_option(
            "--test-share",
            min=0.01,
            max=0.5,
            metavar="SHARE",
            help="Share of test texts to hold out.",
            show_default="none",
        ),
    ] = None
    encoder: shared.Encoder = "bilstm"
    vectors: shared.Vectors = None
    max_length: Annotated[
        int | None,
        model_option(
            "--max-length",
            min=1,
            help="Tokens per text; the rest is truncated.",
            show_default="512, or the limit of a transformer; whole texts with --set window=256",
        ),
    ] = None
    synonym_groups: shared.SynonymGroupsFile = None
    technique: shared.Technique = "vanilla"
    imports: shared.Imports = None
    settings: Annotated[
        list[str] | None, training_option("--set", metavar="KEY=VALUE", help="Other setting; repeatable.")
    ] = None
    epochs: shared.Epochs = None
    balanced: Annotated[bool, training_option("--balanced", help="Weight all classes equally.")] = False
    start: Annotated[
        list[Path] | None, training_option("--from", metavar="MODEL", help="Trained reference or teacher; repeatable.")
    ] = None
    teacher_cache: Annotated[
        Path | None,
        training_option(
            "--teacher-cache", metavar="DIR", help="Teacher cache.", show_default=".teacher-cache, beside --out"
        ),
    ] = None
    resume: Annotated[bool, output_option("--resume", help="Continue an interrupted run.")] = False
    replace: Annotated[bool, output_option("--replace", help="Replace the model in --out, and --test-out.")] = False
    test_out: Annotated[
        Path | None,
        file_option(
            "--test-out",
            help="With --test-share: file of the test texts, with all columns (.csv, .tsv, .jsonl, .parquet).",
        ),
    ] = None
    spreadsheet_safe: shared.SpreadsheetSafe = False
    track: shared.Track = None

    @property
    def columns(self) -> dict[str, Any]:
        """Arguments of `load_corpus` that name columns."""
        names = {"label": self.label, "rationales": self.rationales, "sentences": self.sentences}
        return {"text": self.text or ["text"], **names}

    @property
    def audit_words(self) -> list[str]:
        """The options of an audit that reads the same data, or the test part, which has no empty rows."""
        words = ["--data", self.data if self.test_out is None else str(self.test_out)]
        words += [word for name in self.text or () if self.text != ["text"] for word in ("--text", name)]
        words += ["--label", self.label] if self.label != "label" else []
        for name, column in (("--rationales", self.rationales), ("--sentences", self.sentences)):
            words += [] if column is None else [name, column]
        words += ["--drop-empty"] if self.drop_empty and self.test_out is None else []
        return words + [word for name in self.imports or () for word in ("--import", name)]

    @property
    def test_advice(self) -> str:
        """How to audit other texts than those of the training."""
        if not Path(self.data).is_file():  # --test-out copies rows of one file
            return "name other texts with --data"
        return f"add {'' if self.test_share else '--test-share 0.2 '}--test-out held-out.csv to train"


@app.command(
    **command_help(
        "train reviews.csv --text review --label stars --test-share 0.2 --test-out held-out.csv --out model/",
        "train sst2 --encoder bilstm --vectors glove-50d --epochs 10 --out model/",
        "train reviews.csv --technique word-at --synonym-groups table.jsonl --out model/",
    )
)
@common_options()
@options_of("options", TrainOptions)
def train(options: TrainOptions, *, common: Common) -> None:
    """Train a classifier and save it as a folder."""
    from steadygaze.core.settings import parse
    from steadygaze.estimator import resumable_training
    from steadygaze.estimator.text_classifier import TextClassifier, load_classifier

    clf = TextClassifier(
        options.encoder,
        options.technique,
        seed=common.seed,
        epochs=options.epochs,
        vectors=options.vectors,
        settings=parse(options.settings or []),
        batch_size=common.batch_size,
        max_length=options.max_length,
        class_weight="balanced" if options.balanced else None,
        synonym_groups=options.synonym_groups,
        device=common.device,
        verbose=0 if common.quiet else 1 + common.verbose,
        track=options.track,
    )
    out, resume, cache, replace = options.out, options.resume, options.teacher_cache, options.replace
    resumable_training.check_train(clf, out, resume, cache, replace)
    test_file = _test_file(options)
    teachers = [load_classifier(folder, common.device) for folder in options.start or []]
    whole_corpus, corpus = _load(options, common)
    with interruptible(stderr_console(common), lambda: RESUME.format(resumable_training.unfinished_folder(out))):
        has_test = bool(options.test_share)
        clf = resumable_training.train(clf, corpus, out, resume, teachers, cache, replace, has_test)
    if test_file is not None:
        test_file.write(whole_corpus)
    _show(resumable_training.summary(clf, corpus, out), clf.stored_.description, out, common)
    _print_commands(options, whole_corpus, common)
    print_health(clf.health)  # the last line says that a model in a known-bad state was saved


def _load(options: TrainOptions, common: Common) -> "tuple[Corpus, Corpus]":
    """The whole corpus, and the part to train on; describe both."""
    from steadygaze.data.corpora import load_corpus
    from steadygaze.estimator import resumable_training
    from steadygaze.estimator.held_out_test import hold_out_test

    columns = {**options.columns, "drop_empty": options.drop_empty}
    whole_corpus = load_corpus(options.data, **columns, data_dir=common.data_dir)
    show_labels(whole_corpus, options.keep_labels, stderr_console(common))
    corpus = whole_corpus if options.test_share is None else hold_out_test(whole_corpus, options.test_share)
    print_line(stderr_console(common), resumable_training.describe(corpus, training=True))
    return whole_corpus, corpus


def _test_file(options: TrainOptions) -> "TestPartFile | None":
    from steadygaze.core.errors import UserError
    from steadygaze.data.table_writers import check_spreadsheet
    from steadygaze.estimator.held_out_test import TestPartFile

    out, share, is_safe = options.test_out, options.test_share, options.spreadsheet_safe
    check_spreadsheet(out, is_safe, "--test-out")
    if out is None:
        return None
    if share is None:
        raise UserError("--test-out writes the texts that --test-share holds out: add --test-share 0.2")
    columns = options.columns["text"], options.label
    return TestPartFile(out, Path(options.data), share, *columns, options.drop_empty, is_safe)


def _print_commands(options: TrainOptions, corpus: "Corpus", common: Common) -> None:
    """Print the commands to try next."""
    if common.json:
        return
    console = stderr_console(common)
    inputs = '--pair "a text of your own" "a question"' if len(options.columns["text"]) == 2 else '"a text of your own"'
    print_line(console, f"next:  steadygaze explain {shlex.quote(str(options.out))} {inputs}")
    words = ["audit", str(options.out), *options.audit_words]
    words += ["--data-dir", str(common.data_dir)] if common.data_dir is not None else []
    print_line(console, f"next:  steadygaze {shlex.join([*words, '--html', 'audit.html'])}")
    if options.test_out is None and "test" not in corpus.splits:
        print_line(console, f"{TRAINING_TEXTS}{options.test_advice}")


def _saved_epoch(description: "ModelConfig") -> str:
    """Which epoch was saved, and why."""
    from steadygaze.estimator.small_data import TOO_FEW_TO_SELECT
    from steadygaze.results.formatting import number
    from steadygaze.training.technique_loop import is_degenerate

    saved, score = description.best_epoch, "macro-f1"
    records = [record for record in description.history if record["stage"] == saved["stage"]]
    usable = [record for record in records if not is_degenerate(record)]
    asked_for_last = description.training.get("select") == "last"
    last = asked_for_last or any(record[score] > saved[score] for record in usable)  # some techniques select the last
    skipped = saved["epoch"] < len(records) if last else any(record[score] > saved[score] for record in records)
    parts = [
        f"epoch {saved['epoch']} of {len(records)}",
        ", the last one" if last else ", the one with the highest validation macro-F1",
        f" without {DEGENERATE}" if usable and skipped else "",
        "" if last else f", {number(saved[score])}",
    ]
    if asked_for_last and not skipped:
        parts.append(f": {TOO_FEW_TO_SELECT if description.text.get('small_data') else 'because select=last'}")
    return "".join([*parts, "" if usable else f"; every epoch has {DEGENERATE}"])


def _show(result: dict[str, Any], description: "ModelConfig", out: Path, common: Common) -> None:
    from steadygaze.data.word_vectors import LOW_COVERAGE
    from steadygaze.results.model_card import SELECTION_SCORE, training_scores

    if common.json:
        print_json(result)
        return
    scores = training_scores(asdict(description))
    show(f"saved in {out}: {_saved_epoch(description)}")
    for name, value in scores.items():
        show(f"{name}: {value}")
    if SELECTION_SCORE in scores:
        advice = "a selection score is optimistic: add --test-share 0.2, or run steadygaze evaluate on other texts"
        print_line(stderr_console(common), advice)
    if (covered := result["token_coverage"]) is not None:
        few = ": low; the other tokens start from random vectors" if covered < LOW_COVERAGE else ""
        show(f"{percent(covered, 1)} of the tokens in the training texts have a vector{few}")
