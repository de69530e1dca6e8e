"""The model card: README.md of a saved model, in the format of model hubs."""

from collections.abc import Mapping
from typing import Any

from steadygaze.results.formatting import code

SHOWS = {
    "attention": "The highlighted words have the largest attention weights.",
    "rationale": "The highlighted words are the selected rationale, the only input of its predictor.  The choice of "
    "words can still leak the label: an audit tests for that.",
}
BEGIN, END = "<!-- audit: the next one replaces this part -->", "<!-- end of the audit -->"
PAGE = """---
library_name: steadygaze
pipeline_tag: text-classification
tags: [steadygaze, explainability, {shows}]
---
# A {classes}-way text classifier with {shows}

Trained with steadygaze {steadygaze}: encoder {encoder}, technique {technique}, seed {seed}.

| | |
|---|---|
| labels | {labels} |
| reads | {reads}, at most {max_length} tokens |
| validation macro-F1 | {score} |
| epoch kept | {epoch} |
| training data (SHA-256) | `{corpus}` |{vectors}

```python
import steadygaze as sg
clf = sg.load("this folder")
clf.explain({example})
```

{words}

{begin}
Faithfulness has not been audited yet.
{end}
"""


def card(config: Mapping[str, Any]) -> str:
    """Markdown, from the values of config.json."""
    best = config.get("best_epoch") or {}
    shows = "rationale" if "granularity" in config.get("technique_settings", {}) else "attention"  # it selects units
    return PAGE.format(
        **{name: config[name] for name in ("steadygaze", "seed", "max_length", "corpus")},
        **{name: code(config[name]) for name in ("encoder", "technique")},
        classes=len(config["classes"]),
        labels=", ".join(map(code, config["classes"])),
        reads="a text and a question about it" if config["pair"] else "one text",
        score=f"{best['macro-f1']:.3f}" if best else "not measured",
        epoch=best.get("epoch", "unknown"),
        example='("A text.", "A question?")' if config["pair"] else '"A text."',
        vectors=_vectors(config),
        shows=shows,
        words=SHOWS[shows],
        begin=BEGIN,
        end=END,
    )


def _vectors(config: Mapping[str, Any]) -> str:
    """A row of the table, if the share is known."""
    if (share := config.get("token_coverage")) is None:
        return ""
    return f"\n| training tokens with a vector in {code(config['vectors'])} | {share:.1%} |"
