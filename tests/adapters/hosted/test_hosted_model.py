"""A hosted model as a model of sg.load: predictions, stored answers, faults, kills and budgets."""

import os
import random
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep

import numpy as np
import pytest

import steadygaze as sg
from adapters.hosted.completion_server import (
    LABEL_WORDS,
    PROMPT,
    CompletionServer,
    Fault,
    bag_of_words,
    serving,
    text_of,
)
from steadygaze.adapters.hosted import client as client_module
from steadygaze.adapters.hosted.budget import BudgetUsedUp
from steadygaze.core.errors import HealthWarning

WORDS = [
    "the",
    "a",
    "film",
    "story",
    "plot",
    "actor",
    "scene",
    "music",
    "was",
    "is",
    "very",
    "quite",
    "really",
    "long",
    "short",
    "old",
    "new",
]
ROOT = Path(__file__).parents[3]


def reviews(count: int, seed: int = 0) -> tuple[list[str], list[str]]:
    draw = random.Random(seed)
    texts = [" ".join([*draw.choices(WORDS, k=4), draw.choice(["good", "fine", "bad", "dull"])]) for _ in range(count)]
    return texts, ["pos" if {"good", "fine"} & set(text.split()) else "neg" for text in texts]


def load(served: CompletionServer, kind: str = "openai", **options):
    return sg.load(f"{kind}:tiny@{served.url}", prompt=PROMPT, label_words=LABEL_WORDS, **options)


@pytest.mark.parametrize("kind", ["openai", "vllm", "completions"])
def test_the_probabilities_are_those_of_the_model_behind_the_server(kind):
    texts = ["a good film", "a bad film", "", "fine , fine"]
    with serving() as served, pytest.warns(UserWarning, match="no prediction for 1 empty text"):
        probabilities = load(served, kind).predict_proba(texts)
    expected = [np.nan if not text else bag_of_words(text) for text in texts]
    np.testing.assert_allclose(probabilities[:, 1], expected, atol=1e-8)
    assert len(served.bodies) == 4  # the form of the request, and three texts


def test_an_answer_is_asked_for_once_by_all_processes(answers):
    texts, _ = reviews(30)
    with serving() as served:
        first = load(served).predict_proba(texts)
        asked = served.total
        again = load(served, max_requests=0).predict_proba(texts)  # a new model, and no request left
        assert served.total == asked == len(set(texts)) + 1
    np.testing.assert_array_equal(first, again)
    with sqlite3.connect(answers) as file:
        stored = " ".join(str(row) for row in file.execute("SELECT * FROM answers"))
    assert "story" not in stored  # no texts
    assert answers.stat().st_mode & 0o077 == 0


def test_other_prompts_and_samples_are_asked_for_and_other_label_words_are_not():
    with serving() as served:
        load(served).predict(["good"])
        asked = served.total
        flipped = {"neg": "positive", "pos": "negative"}
        model = sg.load(f"openai:tiny@{served.url}", prompt=PROMPT, label_words=flipped)
        assert model.predict(["good"]).tolist() == ["neg"]
        assert served.total == asked
        sg.load(f"openai:tiny@{served.url}", prompt=f"!{PROMPT}", label_words=LABEL_WORDS).predict(["good"])
        assert served.total == asked + 1
        load(served).hosted.draw(["good"], 1)
        assert served.total == asked + 2


@pytest.mark.parametrize(
    ("options", "form"),
    [
        ({}, {"max_tokens": 1, "logprobs": True, "top_logprobs": 20}),
        ({"refused": ["max_tokens"]}, {"max_completion_tokens": 1, "logprobs": True, "top_logprobs": 20}),
        ({"refused": ["logprobs"]}, {"max_tokens": 16, "temperature": 1}),
        ({"refused": ["logprobs", "max_tokens"]}, {"max_completion_tokens": 16, "temperature": 1}),
        ({"logprobs": False}, {"max_tokens": 16, "temperature": 1}),
    ],
    ids=str,
)
def test_the_first_form_that_a_server_accepts_is_used(options, form):
    with serving(**options) as served:
        model = load(served)
        asked = served.total
        model.predict(["good"])
        assert form.items() <= served.bodies[-1].items()
        assert served.total == asked + (10 if "temperature" in form else 1)
        assert ("10 votes" in model.facts["answers"]) == ("temperature" in form)
        known = served.total
        load(served).predict(["good"])  # the form is stored, too
        assert served.total == known


@pytest.mark.parametrize("kind", ["openai", "completions"])
def test_examples_are_turns_of_a_chat_and_lines_of_a_completion(kind):
    """A text that contains the field of the template stays as it is."""
    prompt = {"instruction": "Rate it.", "examples": [("so fine", "pos")]}
    with serving() as served:
        load(served, kind, **prompt).predict(["fine {text}"])
        body = served.bodies[-1]
    if kind == "openai":
        assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "user"]
        contents = [message["content"] for message in body["messages"]]
        assert contents[0] == "Rate it."
        assert contents[2:] == ["positive", "Review: fine {text}\nSentiment:"]
    else:
        assert body["prompt"].startswith("Rate it.\n\n")
        assert body["prompt"].endswith("positive\n\nReview: fine {text}\nSentiment:")


@pytest.mark.parametrize("option", [{"dtype": "fp32"}, {"attention": "rollout"}, {"chat": True}, {"calibrate": True}])
def test_options_of_models_that_are_loaded_here_are_refused(option):
    with serving() as served, pytest.raises(sg.UserError, match=r"leave (it|them) out|leave out attention="):
        load(served, **option)


def test_votes_are_the_shares_of_drawn_labels():
    """The server draws evenly: of 40 votes at a probability p, within one of 40 p."""
    with serving() as served:
        model = load(served, votes=40)
        probabilities = model.predict_proba(["a good film", "a bad film"])
        assert served.total == 81
    assert probabilities[:, 1] * 40 == pytest.approx(np.round(probabilities[:, 1] * 40))
    expected = [bag_of_words("a good film"), bag_of_words("a bad film")]
    np.testing.assert_allclose(probabilities[:, 1], expected, atol=1.5 / 40)
    assert model.facts["answers"].startswith("40 votes: a share of 50 % has the 95 % interval 0.35 to 0.65")


def test_answers_without_a_label_are_a_known_bad_state():
    """The label words are not those of the server."""
    words = {"neg": "no", "pos": "yes"}
    with serving() as served:
        model = sg.load(f"openai:tiny@{served.url}", prompt=PROMPT, label_words=words)
        with pytest.warns(HealthWarning, match="names no label in 100.0 % of its answers: change the prompt"):
            explanation = model.explain("a good film")
    assert [problem.kind for problem in explanation.health] == ["unanswered"]


@pytest.mark.parametrize(
    "options", [{}, {"prompt": PROMPT}, {"prompt": PROMPT, "label_words": LABEL_WORDS, "votes": 0}]
)
def test_a_missing_prompt_or_a_wrong_number_is_refused_before_any_request(options):
    with serving() as served, pytest.raises(sg.UserError, match=r"prompt|label words|votes"):
        sg.load(f"openai:tiny@{served.url}", **options)
    assert served.total == 0


def test_pairs_and_options_without_effect_are_refused():
    with serving() as served, pytest.raises(sg.UserError, match="reads single texts"):
        load(served).predict([("a text", "a question")])
    for option in ({"max_requests": 3}, {"concurrency": 2}):
        with pytest.raises(sg.UserError, match="hosted models"):
            sg.load(lambda texts: [[0.5, 0.5]] * len(texts), classes=["a", "b"], **option)


@pytest.mark.parametrize("damage", ["text", "other"])
def test_a_file_that_is_not_of_answers_is_refused_and_left_as_it_is(answers, damage):
    if damage == "text":
        answers.write_text("a story " * 1000)
    else:
        with sqlite3.connect(answers) as file:
            file.execute("CREATE TABLE mine (x)")
    before = answers.read_bytes()
    with serving() as served, pytest.raises(sg.UserError, match="STEADYGAZE_ANSWERS"):
        load(served)
    assert answers.read_bytes() == before


def test_a_changed_answer_in_the_file_is_refused(answers):
    with serving() as served:
        load(served).predict(["good"])
        with sqlite3.connect(answers) as file:
            file.execute("UPDATE answers SET value = '[3]' WHERE LENGTH(value) > 2")
        with pytest.raises(sg.UserError, match="is damaged"):
            load(served).predict(["good"])


def failing(share: float) -> Callable[[int], Fault | None]:
    """Faults of all kinds for a share of the requests, by their number."""
    kinds = [Fault(429, {"Retry-After": "0"}), Fault(500), Fault(cut=True), Fault(delay=1.0), Fault(502)]
    draw = random.Random(7)
    faults = [draw.choice(kinds) if draw.random() < share else None for _ in range(20_000)]
    return lambda number: faults[number] if number < 300 or not (faults[number] and faults[number].delay) else None


def audit(served: CompletionServer, count: int = 16, **options):
    texts, labels = reviews(count)
    table = {"film": ["movie"], "story": ["tale"], "old": ["aged"], "good": ["fine"], "music": ["sound"]}
    model = load(served, **options)
    return sg.audit(model, texts, labels, explainers=["leave-one-out"], synonyms=table)


@pytest.mark.slow
def test_an_audit_through_faults_ends_with_the_same_report(monkeypatch, answers):
    """A fifth of the requests fails: with 429, 500, 502, no reply in time, or half a reply."""
    monkeypatch.setattr(client_module, "TIMEOUT", 0.5)
    with serving() as served:
        expected = audit(served)
        requests = served.total
    answers.unlink()
    with serving(faults=failing(0.2)) as served:
        report = audit(served)
        failed = served.total - sum(served.answered.values())
        assert 0.15 < failed / served.total < 0.25
        assert sum(served.answered.values()) >= requests
    port = {"server": expected.facts["server"]}
    assert {**report.facts, **port} == expected.facts
    assert report.rows == expected.rows
    assert report.verdicts == expected.verdicts


CHILD = """
import sys
from adapters.hosted import test_hosted_model as tests
from adapters.hosted.completion_server import CompletionServer
report = tests.audit(CompletionServer(url=sys.argv[1]), 8)
print([(row.measure, repr(row.value)) for row in report.rows])
"""


def start(served: CompletionServer) -> subprocess.Popen:
    path = os.pathsep.join([str(ROOT / "tests"), str(ROOT / "src")])
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, served.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        cwd=ROOT,
    )


def stored_answers(path: Path) -> int:
    with sqlite3.connect(path) as file:
        return file.execute("SELECT COUNT(*) FROM answers WHERE value LIKE '{%'").fetchone()[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    "stop",
    [
        pytest.param(signal.SIGKILL, id="kill"),
        pytest.param(signal.SIGINT, id="interrupt", marks=pytest.mark.exhaustive),  # processes take seconds to start
    ],
)
def test_an_audit_that_is_stopped_three_times_pays_for_no_answer_twice(stop, answers, tmp_path):
    """The server counts.  A request in flight when the process is killed has no answer; Ctrl-C waits for it."""
    with serving(faults=lambda number: Fault(delay=0.01)) as served:
        expected = [(row.measure, repr(row.value)) for row in audit(served, 8).rows]
        needed = served.total
    answers.unlink()
    lost = 0
    with serving(faults=lambda number: Fault(delay=0.02)) as served:
        for number in range(1, 4):
            child, goal = start(served), number * needed // 4
            end = monotonic() + 100
            while served.total < goal and monotonic() < end:
                sleep(0.005)
            child.send_signal(stop)
            child.communicate()
            assert goal <= served.total < needed
            sleep(0.2)  # replies to the dead process
            lost = served.total - stored_answers(answers)
            assert 0 <= lost <= 8 * number * (stop == signal.SIGKILL)
        child = start(served)
        out, err = child.communicate()
        assert child.returncode == 0, err
        assert served.total == needed + lost
        assert sum(count > 1 for count in served.requests.values()) <= needed - len(served.requests) + lost
    assert out.strip() == str(expected)


@pytest.mark.slow
def test_an_audit_over_the_budget_is_refused_before_the_work_and_continues_with_a_larger_one(capsys):
    with serving() as served:
        with pytest.raises(BudgetUsedUp, match=r"the run needs about [\d,]+ requests for 16 texts, [\d,]+ tokens"):
            audit(served, max_requests=200)
        assert served.total == 1  # the form of the request
        report = audit(served, max_requests=5_000)
        used = served.total
        assert capsys.readouterr().err.count("about") == 1
        assert audit(served, max_requests=5_000).rows == report.rows
        assert served.total == used


def test_a_budget_that_ends_during_a_run_is_not_exceeded_and_nothing_is_lost():
    texts, _ = reviews(40)
    with serving(faults=lambda number: Fault(500) if number % 4 == 1 else None) as served:
        with pytest.raises(BudgetUsedUp, match="budget of 41 requests"):  # enough without the retries
            load(served, max_requests=41).predict(texts)
        assert served.total == 41
        stored = sum(served.answered.values())
        load(served).predict(texts)
        assert sum(served.answered.values()) == len(set(texts)) + 1
    assert stored > 20


def test_no_more_requests_than_the_limit_run_at_a_time():
    running, most = [0], [0]

    def count(text: str) -> float:
        running[0] += 1
        most[0] = max(most[0], running[0])
        sleep(0.01)
        running[0] -= 1
        return 0.5

    with serving(score=count) as served:
        load(served, concurrency=3).predict(reviews(60)[0])
    assert 1 < most[0] <= 3


def test_an_error_of_one_request_stops_the_others_and_keeps_their_answers():
    texts = [f"text {number} ." for number in range(60)]
    with serving(faults=lambda number: Fault(403) if number == 20 else None) as served:
        with pytest.raises(sg.UserError, match="403"):
            load(served, concurrency=4).predict(texts)
        assert served.total <= 30
        load(served).predict(texts)
        assert set(served.answered.values()) == {1}
        assert {text_of(prompt) for prompt in served.answered} > set(texts)
