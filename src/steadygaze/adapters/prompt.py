"""Prompts: a text inside a template, one label word per class, and more if wanted.

    instruction                 Is the review positive or negative?
    example, one for each       Review: A fine film.\nSentiment: good
    template                    Review: {text}\nSentiment:

Label words: positive -> " good", negative -> " bad".  Blank lines separate the parts.  For a chat model, the
instruction is the system message, an example is a message of the user and its answer, and the template is the last
message of the user; the tokenizer's chat template writes the roles.

Each part with words is a segment of the prompt: the instruction, each example, the text, and the words of the template
before and after the text.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steadygaze.core.errors import UserError, unknown
from steadygaze.core.types import Label, Span

FIELD = "{text}"
"""The position of the text in a prompt."""
USAGE = 'prompt="Review: {text}\\nSentiment:", label_words={"positive": " good", "negative": " bad"}'
SEPARATOR = "\n\n"
Messages = list[dict[str, str]]
ChatTemplate = Callable[[Messages], str]
"""Messages -> the prompt, up to the first token of the answer."""


@dataclass(frozen=True)
class RenderedPrompt:
    """The characters before and after a text."""

    before: str
    after: str
    segments_before: tuple[Span, ...]
    """Spans in `before`."""
    segments_after: tuple[Span, ...]
    """Spans in `after`."""
    complete: bool = False
    """True if it contains the special tokens, which a chat template writes."""

    def fill(self, text: str) -> str:
        return f"{self.before}{text}{self.after}"

    def unfill(self, prompt: str) -> str:
        """The text of a filled prompt."""
        return prompt[len(self.before) : len(prompt) - len(self.after)]

    def segments(self, text: str) -> list[Span]:
        """The segments of the filled prompt."""
        start, end = len(self.before), len(self.before) + len(text)
        own = [(start + len(text) - len(text.lstrip()), start + len(text.rstrip()))] if text.strip() else []
        return [*self.segments_before, *own, *((first + end, last + end) for first, last in self.segments_after)]


@dataclass(frozen=True)
class Prompt:
    template: str
    """Contains FIELD once."""
    label_words: Mapping[Label, str]
    instruction: str = ""
    examples: tuple[tuple[str, Label], ...] = ()
    """Texts with their labels."""
    chat: bool = False
    """The tokenizer's chat template writes the prompt."""
    calibrate: bool = False
    """Subtract the scores of an empty text, see `prompted_model`."""

    @property
    def before(self) -> str:
        """The characters before the text, without a chat template."""
        return SEPARATOR.join([*filter(None, [self.instruction]), *self._solved, ""]) + self.template.split(FIELD)[0]

    @property
    def after(self) -> str:
        """The characters after the text, without a chat template."""
        return self.template.split(FIELD)[1]

    @property
    def messages(self) -> Messages:
        """The conversation, with FIELD in place of the text."""
        turns = [("system", self.instruction)] if self.instruction else []
        for text, label in self.examples:
            turns += [("user", self.template.replace(FIELD, text)), ("assistant", self.label_words[label].strip())]
        return [{"role": role, "content": content} for role, content in [*turns, ("user", self.template)]]

    @property
    def facts(self) -> dict[str, str]:
        """For the report."""
        words = ", ".join(f"{label}: {word!r}" for label, word in self.label_words.items())
        facts = {"prompt": f"{self.before}{FIELD}{self.after}", "label words": words}
        if self.chat:
            facts["chat template"] = "the tokenizer's"
        if self.calibrate:
            facts["calibration"] = "on an empty text"
        return facts

    def rendered(self, chat_template: ChatTemplate | None) -> RenderedPrompt:
        """The prompt as one string; `chat_template`: that of the tokenizer, None if it has none."""
        if not self.chat:
            return self._placed(self.before, self.after)
        if chat_template is None:
            raise UserError("the tokenizer has no chat template: leave out chat=True (--chat), and write the roles")
        whole = chat_template(self.messages)
        if whole.count(FIELD) != 1:
            raise UserError(f"the chat template writes the text {whole.count(FIELD)} times; it must write it once")
        return self._placed(*whole.split(FIELD), complete=True)

    @property
    def _solved(self) -> list[str]:
        """The examples with their label words."""
        return [self.template.replace(FIELD, text) + self.label_words[label] for text, label in self.examples]

    def _placed(self, before: str, after: str, *, complete: bool = False) -> RenderedPrompt:
        """With the spans of the segments, which follow each other."""
        first, last = self.template.split(FIELD)
        examples = [
            (self.template.replace(FIELD, text).strip(), self.label_words[label].strip())
            for text, label in self.examples
        ]
        parts = [(self.instruction.strip(),), *examples, (first.strip(),)]
        return RenderedPrompt(
            before, after, tuple(_spans(before, parts)), tuple(_spans(after, [(last.strip(),)])), complete
        )


def _spans(text: str, parts: Sequence[tuple[str, ...]]) -> Iterator[Span]:
    """The span of each part that is not empty: from its first string to its last."""
    position = 0
    for strings in parts:
        if not any(strings):
            continue
        starts = []
        for string in strings:
            position = text.find(string, position)
            if position < 0:
                raise UserError(f"the chat template changes {string!r:.80}: remove white space around it")
            starts.append(position)
            position += len(string)
        yield starts[0], position


def read_prompt(
    template: Any,
    label_words: Any,
    *,
    instruction: Any = None,
    examples: Any = (),
    chat: bool = False,
    calibrate: bool = False,
) -> Prompt | None:
    """The prompt of `load`; None without template and words."""
    if template is None and label_words is None:
        if instruction is not None or len(examples) or chat or calibrate:
            raise UserError(f"instruction=, examples=, chat= and calibrate= need prompt= and label_words=: {USAGE}")
        return None
    if template is None or label_words is None:
        raise UserError(f"a prompt needs label words, and label words need a prompt: {USAGE}")
    if not isinstance(template, str) or template.count(FIELD) != 1:
        raise UserError(f"prompt must be a string with {FIELD} once, found {template!r:.80}; example: {USAGE}")
    if not isinstance(label_words, Mapping) or len(label_words) < 2:
        raise UserError(f"label_words must be a dict with one word for each of two or more classes: {USAGE}")
    for label, word in label_words.items():
        if not isinstance(word, str) or not word:
            raise UserError(f"the label word of {label!r:.40} must be a string that is not empty, found {word!r:.40}")
    if instruction is not None and (not isinstance(instruction, str) or FIELD in instruction):
        raise UserError(f"instruction must be a string without {FIELD}, found {instruction!r:.80}")
    solved = tuple(_read_example(example, label_words) for example in examples)
    return Prompt(template, dict(label_words), instruction or "", solved, chat, calibrate)


def _read_example(example: Any, label_words: Mapping[Label, str]) -> tuple[str, Label]:
    if not isinstance(example, Sequence) or len(example) != 2 or not isinstance(example[0], str) or FIELD in example[0]:
        raise UserError(f"an example must be a pair (text, label), found {example!r:.80}")
    names = {str(label): label for label in label_words}
    if str(example[1]) not in names:
        raise unknown("label of an example", example[1], names)
    return example[0], names[str(example[1])]


def parse_label_words(options: Sequence[str]) -> dict[str, str] | None:
    """The label words of the command line.

    >>> parse_label_words(["positive= good", "negative= bad"])
    {'positive': ' good', 'negative': ' bad'}
    """
    return dict(_label_and_value("--label-word", "positive=' good'", option) for option in options) or None


def parse_examples(options: Sequence[str]) -> list[tuple[str, str]]:
    """The examples of the command line.

    >>> parse_examples(["positive=A fine film."])
    [('A fine film.', 'positive')]
    """
    pairs = (_label_and_value("--example", "positive='A fine film.'", option) for option in options)
    return [(text, label) for label, text in pairs]


def _label_and_value(option: str, usage: str, value: str) -> tuple[str, str]:
    if "=" not in value:
        kind = "WORD" if option == "--label-word" else "TEXT"
        raise UserError(f"{option} {value!r:.40} must be LABEL={kind}, as in {option} {usage}")
    label, _, rest = value.partition("=")
    return label, rest
