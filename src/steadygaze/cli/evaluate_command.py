"""The command `evaluate`."""

import shlex
from pathlib import Path
from typing import Annotated

from steadygaze.cli import app
from steadygaze.cli import shared_options as shared
from steadygaze.cli.command_options import (
    Common,
    command_help,
    common_options,
    file_option,
    model_options,
    option_words,
    options_of,
)
from steadygaze.cli.load_models import check_label_values, load_adapter
from steadygaze.cli.printing import (
    print_json,
    print_line,
    print_omissions,
    print_result,
    stderr_console,
    stdout_console,
)
from steadygaze.core.errors import one_line
from steadygaze.core.rounding import percent
from steadygaze.results.model_options import ModelOptions

WORSE_THAN_CONSTANT = (
    "the accuracy is below the share of the most frequent label: the class names may be in the wrong order; "
    "with --classes {:.200} it would be {:.3f}"
)
SHOWN = 5
"""Wrong predictions in the terminal."""


@app.command(
    **command_help(
        "evaluate model/ --data reviews.csv",
        "evaluate model/ --data sst2 --split test --json",
        "evaluate my_code:predict --classes negative,positive --data reviews.csv --out evaluation.json",
    )
)
@common_options()
@options_of("corpus", shared.CorpusOptions)
@model_options("target")
def evaluate(
    model: shared.AnyModel,
    corpus: shared.CorpusOptions,
    split: shared.Split = None,
    sentences: shared.SentencesColumn = None,
    out_file: Annotated[Path | None, file_option("--out", "-o", help="JSON file of the evaluation.")] = None,
    replace: shared.Replace = False,
    *,
    options: ModelOptions,
    common: Common,
) -> None:
    """Measure accuracy, macro-F1, calibration and the scores of each class."""
    corpus.check(labeled=True, sentences=sentences)
    check_label_values(model, options, corpus.data, corpus.text or ("text",), corpus.label, corpus.drop_empty)
    from steadygaze.auditing.evaluate import evaluate_adapter
    from steadygaze.core.errors import UserError
    from steadygaze.core.types import inputs_of
    from steadygaze.results.evaluation import exchanged_classes, written_labels

    adapter = load_adapter(model, options, common)
    loaded = corpus.load(common, task=adapter.task, sentences=sentences)
    print_omissions(loaded.name, loaded.dropped, common)
    examples = loaded.splits[loaded.choose(split)]
    labels = [example.label for example in examples if example.label is not None]
    if len(labels) < len(examples):
        raise UserError("evaluate needs labels: name their column with --label")
    evaluation = evaluate_adapter(adapter, inputs_of(examples), labels, common.batch, common.seed, options.target)
    if out_file is not None:
        evaluation.to_json(out_file, replace=replace)
        print_line(stderr_console(common), f"written: {out_file}")
    if common.json:
        print_json(evaluation.to_dict())
        return
    print_result(evaluation, adapter.health)
    if common.verbose and evaluation.reliability:
        stdout_console().print("\nReliability of the confidence\n", evaluation.reliability_table)
    console = stderr_console(common)
    if adapter.task == "classification" and adapter.classifier is None:
        written = written_labels(labels, adapter.label_codes(labels), adapter.classes)
        if (exchanged := exchanged_classes(evaluation.confusion, written)) is not None:
            order = tuple(map(str, exchanged[0]))
            words = ["evaluate", model, *corpus.words, *(["--split", split] if split else [])]
            words += option_words(ModelOptions, {**options.changed, "classes": order})
            print_line(console, f"! {WORSE_THAN_CONSTANT.format(','.join(order), exchanged[1])}")
            print_line(console, f"try:  steadygaze {shlex.join(words)}")
    for error in evaluation.errors[:SHOWN]:
        prediction = (
            f"{one_line(error.predicted, 24)} {percent(error.probability, 1)}, label {one_line(error.label, 24)}"
        )
        print_line(console, f"wrong: {prediction}: {one_line(error.text, 80)}")
    if (wrong := evaluation.wrong) > SHOWN:
        listed = "all" if wrong == len(evaluation.errors) else f"the {len(evaluation.errors)} most confident"
        print_line(console, f"{wrong:,} wrong predictions; --out PATH and --json list {listed}")
