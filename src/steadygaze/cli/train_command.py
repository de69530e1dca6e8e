"""The command `train`."""

import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from steadygaze.cli import app
from steadygaze.cli.application import (
    Common,
    Data,
    DropEmpty,
    Encoder,
    Epochs,
    Imports,
    KeepLabels,
    LabelColumn,
    Out,
    SentencesColumn,
    SpreadsheetSafe,
    SynonymGroupsFile,
    TextColumn,
    Track,
    Vectors,
    command_help,
    common_options,
    data_option,
    model_option,
    output_file,
    output_option,
    print_health,
    stderr_console,
    training_option,
)
from steadygaze.cli.output_streams import interruptible, print_json, print_line, show, show_labels
from steadygaze.core.rounding import percent

if TYPE_CHECKING:
    from steadygaze.data.corpus import Corpus
    from steadygaze.estimator.held_out_test import TestPartFile
    from steadygaze.estimator.model_config import ModelConfig

Columns = dict[str, Any]
"""Arguments of `load_corpus` that name columns."""
Rationales = Annotated[
    str | None,
    data_option(
        "--rationales", metavar="COL", help="Column of human rationales: checked for the audit, not used in training."
    ),
]
TestShare = Annotated[
    float | None,
    data_option(
        "--test-share", min=0.01, max=0.5, metavar="SHARE", help="Share of test texts to hold out.", show_default="none"
    ),
]
TestOut = Annotated[
    Path | None,
    output_option(
        "--test-out",
        metavar="PATH",
        parser=output_file,
        help="With --test-share: file of the test texts, with all columns (.csv, .tsv, .jsonl, .parquet).",
    ),
]
Technique = Annotated[str, training_option("--technique", help="Technique; see: list techniques.")]
Settings = Annotated[list[str] | None, training_option("--set", metavar="KEY=VALUE", help="Other setting; repeatable.")]
MaxLength = Annotated[
    int | None,
    model_option(
        "--max-length",
        min=1,
        help="Tokens per text; the rest is truncated.",
        show_default="512, or the limit of a transformer; whole texts with --set window=256",
    ),
]
Balanced = Annotated[bool, training_option("--balanced", help="Weight all classes equally.")]
References = Annotated[
    list[Path] | None,
    training_option("--from", metavar="MODEL", help="Trained reference or teacher; repeatable."),
]
TeacherCacheFolder = Annotated[
    Path | None,
    training_option(
        "--teacher-cache", metavar="DIR", help="Teacher cache.", show_default=".teacher-cache, beside --out"
    ),
]
Resume = Annotated[bool, output_option("--resume", help="Continue an interrupted run.")]
ReplaceModel = Annotated[bool, output_option("--replace", help="Replace the model in --out, and --test-out.")]
RESUME = "{} keeps the finished epochs: add --resume to continue"
DEGENERATE = "collapsed attention or a constant label"
TRAINING_TEXTS = "that audit reads training texts, so its scores are optimistic: "


@app.command(
    **command_help(
        "train reviews.csv --text review --label stars --test-share 0.2 --test-out held-out.csv --out model/",
        "train sst2 --encoder bilstm --vectors glove-50d --epochs 10 --out model/",
        "train reviews.csv --technique word-at --synonym-groups table.jsonl --out model/",
    )
)
@common_options()
def train(
    data: Data,
    out: Out,
    text: TextColumn = None,
    label: LabelColumn = "label",
    rationales: Rationales = None,
    sentences: SentencesColumn = None,
    drop_empty: DropEmpty = False,
    keep_labels: KeepLabels = False,
    test_share: TestShare = None,
    encoder: Encoder = "bilstm",
    vectors: Vectors = None,
    max_length: MaxLength = None,
    synonym_groups: SynonymGroupsFile = None,
    technique: Technique = "vanilla",
    imports: Imports = None,
    settings: Settings = None,
    epochs: Epochs = None,
    balanced: Balanced = False,
    start: References = None,
    teacher_cache: TeacherCacheFolder = None,
    resume: Resume = False,
    replace: ReplaceModel = False,
    test_out: TestOut = None,
    spreadsheet_safe: SpreadsheetSafe = False,
    track: Track = None,
    *,
    common: Common,
) -> None:
    """Train a classifier and save it as a folder."""
    from steadygaze.core.settings import parse
    from steadygaze.estimator import resumable_training
    from steadygaze.estimator.text_classifier import TextClassifier, load_classifier

    clf = TextClassifier(
        encoder,
        technique,
        seed=common.seed,
        epochs=epochs,
        vectors=vectors,
        settings=parse(settings or []),
        batch_size=common.batch_size,
        max_length=max_length,
        class_weight="balanced" if balanced else None,
        synonym_groups=synonym_groups,
        device=common.device,
        verbose=0 if common.quiet else 1 + common.verbose,
        track=track,
    )
    resumable_training.check_train(clf, out, resume, teacher_cache, replace)
    test_file = _test_file(test_out, data, test_share, (text or ["text"], label, drop_empty, spreadsheet_safe))
    teachers = [load_classifier(folder, common.device) for folder in start or []]
    columns: Columns = {"text": text or ["text"], "label": label, "rationales": rationales, "sentences": sentences}
    whole_corpus, corpus = _load(data, columns, drop_empty, keep_labels, test_share, common)
    with interruptible(stderr_console(common), lambda: RESUME.format(resumable_training.unfinished_folder(out))):
        clf = resumable_training.train(clf, corpus, out, resume, teachers, teacher_cache, replace, bool(test_share))
    if test_file is not None:
        test_file.write(whole_corpus)
    _show(resumable_training.summary(clf, corpus, out), clf.stored_.description, out, common)
    _print_commands(out, NextAudit(data, columns, drop_empty, imports, test_share, test_out), whole_corpus, common)
    print_health(clf.health)  # the last line says that a model in a known-bad state was saved


def _load(
    data: str, columns: Columns, drop_empty: bool, keep_labels: bool, test_share: float | None, common: Common
) -> "tuple[Corpus, Corpus]":
    """The whole corpus, and the part to train on; describe both."""
    from steadygaze.data.corpora import load_corpus
    from steadygaze.estimator import resumable_training
    from steadygaze.estimator.held_out_test import hold_out_test

    whole_corpus = load_corpus(data, **columns, data_dir=common.data_dir, drop_empty=drop_empty)
    show_labels(whole_corpus, keep_labels, stderr_console(common))
    corpus = whole_corpus if test_share is None else hold_out_test(whole_corpus, test_share)
    print_line(stderr_console(common), resumable_training.describe(corpus, training=True))
    return whole_corpus, corpus


def _test_file(
    out: Path | None, data: str, share: float | None, rows: tuple[list[str], str, bool, bool]
) -> "TestPartFile | None":
    """`rows`: the columns of text and label, --drop-empty and --spreadsheet-safe."""
    from steadygaze.core.errors import UserError
    from steadygaze.data.table_writers import check_spreadsheet
    from steadygaze.estimator.held_out_test import TestPartFile

    check_spreadsheet(out, rows[-1], "--test-out")
    if out is None:
        return None
    if share is None:
        raise UserError("--test-out writes the texts that --test-share holds out: add --test-share 0.2")
    return TestPartFile(out, Path(data), share, *rows)


@dataclass(frozen=True)
class NextAudit:
    """What the command of the next audit depends on."""

    data: str
    columns: Columns
    drop_empty: bool
    imports: list[str] | None
    test_share: float | None
    test_out: Path | None

    @property
    def words(self) -> list[str]:
        """The options that read the same data, or the test part, which has no empty rows."""
        words = ["--data", self.data if self.test_out is None else str(self.test_out)]
        texts = self.columns["text"]
        words += [word for name in texts if texts != ["text"] for word in ("--text", name)]
        words += ["--label", self.columns["label"]] if self.columns["label"] != "label" else []
        for name in ("rationales", "sentences"):
            words += [f"--{name}", self.columns[name]] if self.columns[name] is not None else []
        words += ["--drop-empty"] if self.drop_empty and self.test_out is None else []
        return words + [word for name in self.imports or () for word in ("--import", name)]

    @property
    def advice(self) -> str:
        """How to audit other texts than those of the training."""
        if not Path(self.data).is_file():  # --test-out copies rows of one file
            return "name other texts with --data"
        return f"add {'' if self.test_share else '--test-share 0.2 '}--test-out held-out.csv to train"


def _print_commands(out: Path, next_audit: NextAudit, corpus: "Corpus", common: Common) -> None:
    """Print the commands to try next."""
    if common.json:
        return
    console = stderr_console(common)
    is_pair = len(next_audit.columns["text"]) == 2
    inputs = '--pair "a text of your own" "a question"' if is_pair else '"a text of your own"'
    print_line(console, f"next:  steadygaze explain {shlex.quote(str(out))} {inputs}")
    words = ["audit", str(out), *next_audit.words]
    words += ["--data-dir", str(common.data_dir)] if common.data_dir is not None else []
    print_line(console, f"next:  steadygaze {shlex.join([*words, '--html', 'audit.html'])}")
    if next_audit.test_out is None and "test" not in corpus.splits:
        print_line(console, f"{TRAINING_TEXTS}{next_audit.advice}")


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
