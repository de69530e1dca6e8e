"""Requests over real HTTP: faults that pass, faults that do not, and what they cost."""

import json
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import httpx
import pytest

from adapters.hosted.completion_server import LABEL_WORDS, PROMPT, Fault, bag_of_words, serving
from steadygaze.adapters.hosted import client as client_module
from steadygaze.adapters.hosted.budget import Budget, BudgetUsedUp
from steadygaze.adapters.hosted.client import ATTEMPTS, Client
from steadygaze.adapters.hosted.request_form import request_forms
from steadygaze.adapters.hosted.server import Server, read_server
from steadygaze.core.errors import UserError

FORM = request_forms(chat=True, votes=False)[0]


def user(content):
    return [{"role": "user", "content": content}]


USER = user("Review: good\nSentiment:")


def ask(served, prompt=USER, budget=None, form=FORM):
    with client(served, budget) as asking:
        return asking.ask(form, prompt)


class client(Client):
    """A client that a `with` block closes."""

    def __init__(self, served, budget=None):
        super().__init__(read_server(f"openai:m@{served.url}"), budget or Budget(), 4)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@pytest.mark.parametrize(
    "fault",
    [
        Fault(429, {"Retry-After": "0"}),
        Fault(429, {"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}),
        Fault(500),
        Fault(503),
        Fault(408),
        Fault(cut=True),
        Fault(delay=0.6),
    ],
    ids=str,
)
def test_a_fault_that_passes_costs_one_request_and_no_answer(fault, monkeypatch):
    monkeypatch.setattr(client_module, "TIMEOUT", 0.3)
    budget = Budget()
    with serving(faults=lambda number: fault if number == 0 else None) as served:
        assert ask(served, budget=budget).top[0][0] == " Pos"
        assert served.total == budget.sent == 2


def test_retry_after_is_waited_for(monkeypatch):
    waits = []
    monkeypatch.setattr(client_module, "FIRST_DELAY", 0.001)
    with serving(faults=lambda number: (Fault(429, {"Retry-After": "0.07"}), Fault(500), None)[number]) as served:
        asking = client(served)
        asking.ask(FORM, USER, SimpleNamespace(wait=waits.append))
        asking.close()
    assert waits[0] == 0.07
    assert 0.001 <= waits[1] <= 0.003  # 2 · FIRST_DELAY · u


def test_delays_double_up_to_a_limit(monkeypatch):
    waits = []
    monkeypatch.setattr(client_module, "FIRST_DELAY", 1.0)
    monkeypatch.setattr(client_module.random, "uniform", lambda low, high: 1.0)
    with serving(faults=lambda number: Fault(500)) as served:
        asking = client(served)
        with pytest.raises(UserError, match=r"did not answer after 8 attempts: 127.* answers 500 \(try again\)"):
            asking.ask(FORM, USER, SimpleNamespace(wait=waits.append))
        asking.close()
        assert served.total == ATTEMPTS
    assert waits == [1, 2, 4, 8, 16, 30, 30]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Fault(401), "put a key that may use m into STEADYGAZE_API_KEY"),
        (Fault(404), "check the model 'm' and the URL http://127"),
        (Fault(302, {"Location": "http://elsewhere"}), "answers 302"),
        (Fault(400, message="context length exceeded"), r"400 \(context length exceeded\)"),
        (Fault(429, message="insufficient_quota"), "no credit"),
        (Fault(429, {"Retry-After": "86400"}), "asks to wait 86,400 seconds"),
    ],
)
def test_a_fault_that_does_not_pass_names_the_fix_after_one_request(fault, message):
    with serving(faults=lambda number: fault) as served:
        with pytest.raises(UserError, match=message):
            ask(served)
        assert served.total == 1


def test_the_key_is_sent_and_never_printed(monkeypatch):
    monkeypatch.setenv("STEADYGAZE_API_KEY", "sk-secret")
    with serving(key="sk-secret") as served:
        assert ask(served).top
    with serving(key="another") as served, pytest.raises(UserError) as error:
        ask(served)
    assert "wrong key Bearer …" in str(error.value)
    assert "sk-secret" not in str(error.value)
    for key in ("sk-sécret", "sk-a\nsk-secret", "sk-secret key", "sk-secret\x07"):
        monkeypatch.setenv("STEADYGAZE_API_KEY", key)
        with serving() as served, pytest.raises(UserError, match="in STEADYGAZE_API_KEY cannot be sent") as error:
            ask(served)
        assert "cret" not in str(error.value)
        assert served.total == 0


def test_a_server_that_is_not_there_is_named(monkeypatch):
    with serving() as served:
        pass
    with pytest.raises(UserError, match=r"127\.0\.0\.1:\d+ did not answer after 8 attempts"):
        ask(served)


def test_a_reply_without_an_end_is_cut_off(monkeypatch):
    monkeypatch.setattr(client_module, "LARGEST", 100)
    with serving() as served, pytest.raises(UserError, match="sends more than 100 bytes"):
        ask(served)


@pytest.mark.parametrize("limit", [0, 1, 37])
def test_a_budget_is_never_exceeded_by_threads_and_retries(limit):
    """Every third request fails, and sixteen threads ask at the same time."""
    budget = Budget(limit)
    with serving(faults=lambda number: Fault(500) if number % 3 == 0 else None) as served:
        with client(served, budget) as asking, ThreadPoolExecutor(16) as pool:
            futures = [pool.submit(asking.ask, FORM, user(f"Review: {i}\nSentiment:")) for i in range(60)]
            errors = [future.exception() for future in futures]
        assert served.total == budget.sent == limit
    assert any(isinstance(error, BudgetUsedUp) for error in errors)
    assert all(error is None or isinstance(error, BudgetUsedUp) for error in errors)
    assert sum(error is None for error in errors) < limit or not limit


def test_the_estimate_is_announced_once_and_refused_over_the_budget():
    lines = []
    budget = Budget(100, announce=lines.append)
    budget.plan(80.2, 4, 400)
    budget.plan(10, 4, 400)
    assert lines == [
        "about 81 requests for 4 texts, 8,100 tokens; stored answers are not asked again; at most 100 (--max-requests)"
    ]
    budget.spend()
    with pytest.raises(BudgetUsedUp, match=r"needs about 100 requests for 4 texts, 10,000 tokens.*99 are left"):
        budget.plan(100, 4, 400)
    with pytest.raises(BudgetUsedUp, match="next 100 requests would exceed --max-requests 100, of which 99 are left"):
        budget.check(100, 400)
    budget.check(99, 400)
    assert lines[1:] == ["99 requests, about 9,900 tokens; at most 100 (--max-requests)"]


def test_a_body_has_the_prompt_and_the_model():
    assert FORM.body(Server("m", "http://h/v1"), user("why?")) == {
        "model": "m",
        "messages": [{"role": "user", "content": "why?"}],
        "max_tokens": 1,
        "logprobs": True,
        "top_logprobs": 20,
    }
    plain = request_forms(chat=False, votes=True)[0].body(Server("m", "http://h/v1", chat=False), "why?")
    assert plain == {"model": "m", "prompt": "why?", "max_tokens": 16, "temperature": 1}


def test_the_server_of_these_tests_speaks_http():
    """The faults above come over a socket."""
    with serving() as served:
        body = {"model": "m", "messages": [{"content": PROMPT.format(text="good")}], "logprobs": True}
        reply = httpx.post(f"{served.url}/chat/completions", json=body)
        top = json.loads(reply.content)["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
    assert LABEL_WORDS["neg"] == top[0]["token"]
    assert bag_of_words("good") > 0.5
