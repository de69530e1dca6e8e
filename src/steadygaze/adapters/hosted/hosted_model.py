"""HostedModel: the texts of a black box -> probabilities, from the answers of a server.

Draw d of a model with k votes has the samples d·k … d·k + k − 1 of each text: another draw asks again, and every sample
is stored.  Requests run in threads, as many at a time as `concurrency` allows.  After an error or Ctrl-C, requests that
have been sent are waited for and stored, and no other is sent.

A chat model gets the instruction as the message of the system, each example as a message and its answer, and the text
in the last message.
"""

import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Event, Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from steadygaze.adapters.black_box import black_box
from steadygaze.adapters.hosted.answer_file import AnswerFile, answer_path
from steadygaze.adapters.hosted.budget import Budget
from steadygaze.adapters.hosted.client import Client, FormRefused
from steadygaze.adapters.hosted.label_reading import LabelWords, mean_of_readings
from steadygaze.adapters.hosted.request_form import Answer, RequestForm, request_forms
from steadygaze.adapters.hosted.server import Server, read_server
from steadygaze.adapters.label_votes import QueryOptions
from steadygaze.adapters.model_adapter import TRIAL, ModelAdapter
from steadygaze.adapters.prompt import FIELD, Messages, Prompt
from steadygaze.core.errors import UserError
from steadygaze.results.intervals import wilson_interval

VOTES = 10
"""Votes per text of a server without log-probabilities."""
NEEDS_PROMPT = (
    "a hosted model needs a prompt and label words: --prompt 'Is this review positive or negative?  {text}' "
    "--label-word positive=positive --label-word negative=negative (in Python prompt= and label_words=)"
)


@dataclass
class HostedModel:
    server: Server
    prompt: Prompt
    options: QueryOptions = field(default_factory=QueryOptions)
    budget: Budget = field(default_factory=Budget)
    unanswered: float = 0.0
    """Share of the answers that named no label, or their mean probability."""
    _read: int = 0
    _lock: Lock = field(default_factory=Lock, repr=False)

    def __post_init__(self) -> None:
        self.labels = LabelWords.of(self.prompt.label_words)
        self.budget.limit = self.options.max_requests
        self.client = Client(self.server, self.budget, self.options.concurrency)

    @cached_property
    def answers(self) -> AnswerFile:
        return AnswerFile(answer_path())

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float64]:
        return self.draw(texts, 0)

    def draw(self, texts: Sequence[str], number: int) -> NDArray[np.float64]:
        """The probabilities of a draw.  (N,C)"""
        first = number * self.votes
        samples = [(text, sample) for text in texts for sample in range(first, first + self.votes)]
        answers = iter(self._answers(samples))
        readings = [[self.labels.read(next(answers)) for _ in range(self.votes)] for _ in texts]
        with self._lock:
            total = self.unanswered * self._read + sum(item.unanswered for row in readings for item in row)
            self._read += len(samples)
            self.unanswered = total / max(self._read, 1)
        return np.array([mean_of_readings(row, len(self.labels.words)) for row in readings])

    @property
    def votes(self) -> int:
        """Answers per text."""
        return (self.options.votes or VOTES) if self.form.is_vote else 1

    def plan(self, passes: float, texts: int, characters: float) -> None:
        """Announce the requests of a run, and refuse a run over the budget.  `characters`: of a text, on average."""
        self.budget.plan(passes * self.votes, texts, self._template_length + characters)

    @property
    def _template_length(self) -> int:
        return len(self.prompt.before) + len(self.prompt.after)

    @property
    def facts(self) -> dict[str, str]:
        """Facts for reports."""
        kind = "log-probabilities of the label words"
        if self.form.is_vote:
            low, high = wilson_interval(self.votes / 2, self.votes)
            kind = f"{self.votes} votes: a share of 50 % has the 95 % interval {low:.2f} to {high:.2f}"
        return {"server": self.server.host, "answers": kind, **self.prompt.facts}

    @cached_property
    def form(self) -> RequestForm:
        """The first form of a request that the server accepts; stored, so that no other form is tried again."""
        forms = request_forms(self.server.chat, votes=self.options.votes is not None)
        key = _digest("form", self.server.address, self.server.model, [item.fields for item in forms])
        if (stored := self.answers.get([key]).get(key)) is not None and stored.isdecimal() and int(stored) < len(forms):
            return forms[int(stored)]
        errors: list[FormRefused] = []
        has_scores = True
        for number, form in enumerate(forms):
            if not (has_scores or form.is_vote):
                continue
            try:
                answer = self._ask(form, self._prompt_of(TRIAL), 0)
            except FormRefused as error:
                errors.append(error)
                continue
            if form.is_vote or answer.top:
                self.answers.put(key, str(number))
                return form
            has_scores = False
        raise errors[0]

    def _prompt_of(self, text: str) -> str | Messages:
        if not self.server.chat:
            return f"{self.prompt.before}{text}{self.prompt.after}"
        *others, last = self.prompt.messages
        return [*others, {**last, "content": last["content"].replace(FIELD, text)}]

    def _key(self, form: RequestForm, prompt: str | Messages, sample: int) -> bytes:
        return _digest(self.server.address, form.body(self.server, prompt), sample)

    def _ask(self, form: RequestForm, prompt: str | Messages, sample: int, stop: Event | None = None) -> Answer:
        """Ask the server, and store the answer before it is used."""
        answer = self.client.ask(form, prompt, stop)
        self.answers.put(self._key(form, prompt, sample), answer.to_json())
        return answer

    def _answers(self, samples: Sequence[tuple[str, int]]) -> list[Answer]:
        """The answers of (text, sample), stored ones first."""
        form = self.form
        keys = [self._key(form, self._prompt_of(text), sample) for text, sample in samples]
        answers = {key: self._stored(value) for key, value in self.answers.get(keys).items()}
        missing = {key: item for key, item in zip(keys, samples, strict=True) if key not in answers}
        if missing:
            characters = sum(len(text) for text, _ in missing.values()) / len(missing)
            self.budget.check(len(missing), self._template_length + characters)
            answers |= self._ask_all(form, missing)
        return [answers[key] for key in keys]

    def _ask_all(self, form: RequestForm, missing: dict[bytes, tuple[str, int]]) -> dict[bytes, Answer]:
        stop = Event()
        pool = ThreadPoolExecutor(self.options.concurrency, thread_name_prefix="request")
        try:
            futures = {
                pool.submit(self._ask, form, self._prompt_of(text), sample, stop): key
                for key, (text, sample) in missing.items()
            }
            return {futures[future]: future.result() for future in as_completed(futures)}
        finally:  # of an error: requests that were sent are stored, the others are not sent
            stop.set()
            pool.shutdown(wait=True, cancel_futures=True)

    def _stored(self, value: str) -> Answer:
        try:
            return Answer.from_json(value)
        except (ValueError, KeyError, TypeError, RecursionError):
            raise UserError(f"{self.answers.path} is damaged: delete it, or name another file") from None


def _digest(*values: Any) -> bytes:
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).digest()


def hosted_adapter(name: str, prompt: Prompt | None, options: QueryOptions) -> ModelAdapter:
    """A hosted model, by its name."""
    server = read_server(name)
    if prompt is None:
        raise UserError(NEEDS_PROMPT)
    if prompt.chat or prompt.calibrate:
        option = "chat= (--chat)" if prompt.chat else "calibrate= (--calibrate)"
        raise UserError(
            f"{option} is for language models that are loaded here, and {name} is behind a server: leave it out"
        )
    model = HostedModel(server, prompt, options)
    adapter = black_box(model, list(prompt.label_words), server.model)
    return replace(adapter, kind="a hosted model", pair=False, facts=model.facts)
