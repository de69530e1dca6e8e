"""The command `word-weights`."""

from pathlib import Path
from typing import Annotated

from steadygaze.cli import app
from steadygaze.cli import shared_options as shared
from steadygaze.cli.command_options import (
    Common,
    command_help,
    common_options,
    file_option,
    model_option,
    model_options,
    options_of,
    output_option,
)
from steadygaze.cli.load_models import load_adapter
from steadygaze.cli.printing import print_json, print_line, print_result, stderr_console
from steadygaze.cli.progress_bars import progress_bar
from steadygaze.results.model_options import ModelOptions


@app.command(
    "word-weights",
    **command_help(
        "word-weights model/ --data reviews.csv",
        "word-weights model/ --data sst2 --explainer attention --explainer integrated-gradients --html words.html",
        "word-weights model/ --data reviews.csv --words 50 --json",
    ),
)
@common_options("verbose")
@options_of("corpus", shared.CorpusOptions)
@model_options("attention")
def word_weights(
    model: shared.AnyModel,
    corpus: shared.CorpusOptions,
    split: shared.Split = None,
    target: Annotated[
        str | None,
        model_option(
            "--target", metavar="NAME", help="Class, or output of a multi-label model.", show_default="predicted class"
        ),
    ] = None,
    explainers: Annotated[
        list[str] | None,
        model_option(
            "--explainer",
            help="Explainer (see: list explainers) or folder of fit-explainer; repeatable.",
            show_default="the model's",
        ),
    ] = None,
    imports: shared.ExplainerImports = None,
    words: Annotated[int, output_option("--words", min=1, metavar="N", help="Words per class and explainer.")] = 20,
    min_texts: Annotated[
        int, output_option("--min-texts", min=1, metavar="N", help="Fewest texts that contain a word.")
    ] = 3,
    function_words: Annotated[
        bool, output_option("--function-words", help="List function words and punctuation, too.")
    ] = False,
    html: Annotated[Path | None, file_option("--html", help="HTML page with bars.")] = None,
    replace: shared.Replace = False,
    *,
    options: ModelOptions,
    common: Common,
) -> None:
    """Show which words carry the weight of the explanations of a corpus, per class."""
    corpus.check()
    from steadygaze.adapters.load_and_explain import weigh_words
    from steadygaze.adapters.text_explainer import explainer_of
    from steadygaze.core.types import inputs_of

    adapter = load_adapter(model, options, common)
    loaded = corpus.load(common, task=adapter.task)
    inputs = inputs_of(loaded.splits[loaded.choose(split)])
    with progress_bar(stderr_console(common)) as on_progress:
        weights = weigh_words(
            adapter,
            inputs,
            [explainer_of(name, adapter, target) for name in explainers or ()] or [None],
            words,
            min_texts,
            common.seed,
            target,
            common.batch,
            on_progress,
            function_words,
        )
    if html is not None:
        weights.to_html(html, replace=replace)
        print_line(stderr_console(common), f"written: {html}")
    if common.json:
        print_json(weights.to_dict())
    else:
        print_result(weights, adapter.health)
