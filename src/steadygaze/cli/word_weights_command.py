"""The command `word-weights`."""

from pathlib import Path
from typing import Annotated

from steadygaze.cli import app
from steadygaze.cli.application import (
    AnyModel,
    Common,
    CorpusOptions,
    ExplainerImports,
    Replace,
    Split,
    command_help,
    common_options,
    corpus_options,
    load_adapter,
    model_option,
    model_options,
    output_file,
    output_option,
    print_result,
    stderr_console,
)
from steadygaze.cli.output_streams import print_json, print_line, progress_bar
from steadygaze.results.model_options import ModelOptions

Explainers = Annotated[
    list[str] | None,
    model_option(
        "--explainer",
        help="Explainer (see: list explainers) or folder of fit-explainer; repeatable.",
        show_default="the model's",
    ),
]
Target = Annotated[
    str | None,
    model_option(
        "--target", metavar="NAME", help="Class, or output of a multi-label model.", show_default="predicted class"
    ),
]
Limit = Annotated[int, output_option("--words", min=1, metavar="N", help="Words per class and explainer.")]
Fewest = Annotated[int, output_option("--min-texts", min=1, metavar="N", help="Fewest texts that contain a word.")]
FunctionWords = Annotated[bool, output_option("--function-words", help="List function words and punctuation, too.")]
Html = Annotated[Path | None, output_option("--html", metavar="PATH", parser=output_file, help="HTML page with bars.")]


@app.command(
    "word-weights",
    **command_help(
        "word-weights model/ --data reviews.csv",
        "word-weights model/ --data sst2 --explainer attention --explainer integrated-gradients --html words.html",
        "word-weights model/ --data reviews.csv --words 50 --json",
    ),
)
@common_options("verbose")
@corpus_options
@model_options("attention")
def word_weights(
    model: AnyModel,
    corpus: CorpusOptions,
    split: Split = None,
    target: Target = None,
    explainers: Explainers = None,
    imports: ExplainerImports = None,
    words: Limit = 20,
    min_texts: Fewest = 3,
    function_words: FunctionWords = False,
    html: Html = None,
    replace: Replace = False,
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
