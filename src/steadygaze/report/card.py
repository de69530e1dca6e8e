"""The model card: README.md of a saved model, in the form that model hubs read."""

from collections.abc import Mapping
from typing import Any

PAGE = """---
library_name: steadygaze
pipeline_tag: text-classification
tags: [steadygaze, explainability, attention]
---
# A {classes}-way text classifier that shows its reasons

Trained with steadygaze {steadygaze}: encoder `{encoder}`, technique `{technique}`, seed {seed}.

| | |
|---|---|
| labels | {labels} |
| reads | {reads}, at most {max_length} tokens |
| validation macro-F1 | {score} |
| epochs | {epochs}, the best kept |
| training data (SHA-256) | `{corpus}` |

```python
import steadygaze as sg
clf = sg.load("this folder")
clf.explain({example})
```

The highlighted words are attention weights: what the decoder was given of each word.  Whether they may be read as
reasons has not been audited yet.
"""


def card(config: Mapping[str, Any]) -> str:
    """Markdown, from the values of config.json."""
    history = config["history"]
    labels = ", ".join(f"`{label}`" for label in config["classes"]).replace("|", "\\|").replace("\n", " ")
    return PAGE.format(
        **{name: config[name] for name in ("steadygaze", "encoder", "technique", "seed", "max_length", "corpus")},
        classes=len(config["classes"]),
        labels=labels,
        reads="a text and a question about it" if config["pair"] else "one text",
        score=f"{max(record['macro-f1'] for record in history):.3f}" if history else "not measured",
        epochs=len(history),
        example='("A text.", "A question?")' if config["pair"] else '"A text."',
    )
