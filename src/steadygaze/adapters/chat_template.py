"""The chat template of a tokenizer, in memory or in a folder: messages -> prompt.

It is a Jinja template, and runs in the sandbox of transformers, without access to Python.  It runs only if the user
asks for it.  Reasoning is off where a template has a switch for it (enable_thinking): the answer begins at once.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from steadygaze.adapters.prompt import ChatTemplate, Messages
from steadygaze.core.untrusted_files import foreign_error, read_object_or_empty, read_text

FILE = "chat_template.jinja"
LARGEST = 1 << 20
"""Bytes of a template."""
SWITCHES = {"enable_thinking": False}
TOKENS = ("bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token")
FAILED = "the tokenizer's chat template cannot write these messages"


def of_folder(folder: Path) -> ChatTemplate | None:
    """None: the folder has no template."""
    values = read_object_or_empty(folder / "tokenizer_config.json")
    template = values.get("chat_template")
    if (folder / FILE).is_file():
        template = read_text(folder / FILE, LARGEST)
    if isinstance(template, list):  # several, by name
        named = {entry.get("name"): entry.get("template") for entry in template if isinstance(entry, dict)}
        template = named.get("default")
    if not isinstance(template, str) or len(template) > LARGEST:
        return None
    return partial(_render, template, {name: _content(values[name]) for name in TOKENS if values.get(name) is not None})


def of_tokenizer(tokenizer: Any) -> ChatTemplate | None:
    """None: the tokenizer has no template."""
    if not getattr(tokenizer, "chat_template", None):
        return None

    def write(messages: Messages) -> str:
        apply: Callable[..., Any] = tokenizer.apply_chat_template
        with foreign_error(FAILED):
            return str(apply(messages, tokenize=False, add_generation_prompt=True, **SWITCHES))

    return write


def _render(template: str, tokens: dict[str, str], messages: Messages) -> str:
    from transformers.utils.chat_template_utils import render_jinja_template

    with foreign_error(FAILED):
        rendered, _ = render_jinja_template(
            [messages], chat_template=template, add_generation_prompt=True, **tokens, **SWITCHES
        )
        return str(rendered[0])


def _content(token: Any) -> str:
    """The characters of a special token, which a file can describe as an object."""
    return str(token.get("content", "")) if isinstance(token, dict) else str(token)
