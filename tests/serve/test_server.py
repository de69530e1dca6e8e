"""The server: answers of the API, refusals, batches, and what a browser may do with its pages."""

import asyncio
import gc
import json
import math
import threading
import time
from dataclasses import replace
from itertools import pairwise

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

from serve.serving import HOST, cheerful, request, run, served
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.cli import serve_command
from steadygaze.cli.command_options import Common
from steadygaze.cli.serve_command import check_exposure
from steadygaze.core.errors import UserError
from steadygaze.estimator.explain_request import ExplainRequest
from steadygaze.results.health import Health, HealthProblem, ProblemKind
from steadygaze.results.model_options import ModelOptions
from steadygaze.serve.api import Models
from steadygaze.serve.batching import LARGEST_BATCH, Batcher, Busy
from steadygaze.serve.security import MOST_BYTES, Access
from steadygaze.serve.served_models import shift

TOKEN = "0123456789abcdef0123"


def call(method: str, path: str, **options):
    """One request to a fresh server of two models."""
    return request(method, path, served(), served("other"), **options)


def post(path: str, body: object, **options):
    return call("POST", f"/v1/{path}", json=body, **options)


def test_predictions_and_explanations_are_those_of_the_model():
    answer = post("predict", {"texts": ["a good film", "a dull film"]})
    assert answer.status_code == 200
    assert answer.json()["predictions"][0] == pytest.approx({"no": 0.1, "yes": 0.9}, abs=1e-6)
    answer = post("explain", {"texts": ["a good film"], "explainer": "leave-one-out", "model": "other"}).json()
    expected = served().adapter.explain("a good film", "leave-one-out")
    assert answer["model"] == "other"
    assert answer["explanations"] == [json.loads(json.dumps(expected.to_dict()))]


def test_a_request_explains_with_its_seed_and_its_output():
    options = {"explainer": "kernel-shap", "seed": 3, "output": "logit", "target": "yes"}
    text = "a good film with eleven other words of which none is equal"
    answer = post("explain", {"texts": [text], **options}).json()
    expected = [served().adapter.explain(text, **{**options, "seed": seed}).to_dict() for seed in (3, 4)]
    assert answer["explanations"] == [json.loads(json.dumps(expected[0]))]
    assert expected[0] != expected[1]
    assert post("explain", {"texts": [text], "settings": {"samples": 10**9}}).status_code == 400


def test_an_empty_text_has_a_null_result_and_a_warning_names_it():
    texts = ["a good film", "", None, ["a good film", " "], " \n"]
    for path, key in (("predict", "predictions"), ("explain", "explanations")):
        answer = post(path, {"texts": texts})
        assert answer.status_code == 200, answer.text
        assert answer.json()["warnings"] == ["no prediction for 4 empty texts: texts[1]; texts[2]; texts[3]; texts[4]"]
        alone = post(path, {"texts": texts[:1]}).json()
        assert alone["warnings"] == []
        assert answer.json()[key] == [*alone[key], None, None, None, None]
    assert post("explain", {"texts": [""], "explainer": "unknown"}).status_code == 422


def test_a_rewrite_is_compared_with_its_text():
    answer = post("shift", {"before": "a good film", "after": "a dull film", "explainer": "leave-one-out"}).json()
    assert answer["shift"]["label_flip"]
    assert answer["shift"]["prediction_change"] == pytest.approx(0.7, abs=1e-6)
    assert answer["after"]["label"] == "no"


def test_a_shift_of_equal_texts_is_zero_and_of_disjoint_weights_ln_2():
    good = served().adapter.explain("a good film", "leave-one-out")
    same = shift(good, good)
    assert (same["jensen_shannon"], same["top_k_overlap"], same["label_flip"]) == (0.0, 1.0, False)
    moved = shift(good, served().adapter.explain("good a film", "leave-one-out"))
    assert moved["jensen_shannon"] == pytest.approx(math.log(2))  # a moved word has no counterpart


def test_synonyms_have_the_capitals_of_the_word():
    assert post("synonyms", {"word": "Good"}).json() == {"word": "Good", "synonyms": ["Fine", "Great"]}
    assert post("synonyms", {"word": "zebra"}).json()["synonyms"] == []


def test_the_list_of_models_names_what_they_support():
    models = call("GET", "/v1/models").json()["models"]
    assert [model["name"] for model in models] == ["cheerful", "other"]
    assert models[0]["explainers"][0] == "leave-one-out"
    assert "attention" not in models[0]["explainers"]


WRONG = [
    ({}, "texts: Field required"),
    ({"texts": []}, "texts"),
    ({"texts": "a text"}, "texts"),
    ({"texts": [1]}, "texts"),
    ({"texts": [["one"]]}, "texts"),
    ({"texts": ["a"] * 257}, "texts"),
    ({"texts": ["a" * 20_001]}, "texts"),
    ({"texts": ["a"], "model": "x"}, "there is no model 'x'; models: cheerful, other"),
    ({"texts": ["a"], "unknown": 1}, "unknown"),
    ([], "body"),
]


@pytest.mark.parametrize(("body", "message"), WRONG)
def test_wrong_input_is_answered_with_a_sentence(body, message):
    answer = post("predict", body)
    assert (answer.status_code, answer.json()["error"]["code"]) in ((400, "wrong-input"), (422, "not-possible"))
    assert message in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    "body",
    [
        {"texts": ["a"], "explainer": "attention"},
        {"texts": ["a"], "explainer": "../etc"},
        {"texts": ["a"], "target": "maybe"},
        {"texts": ["a"], "granularity": "letter"},
    ],
)
def test_what_a_model_does_not_support_is_refused(body):
    assert post("explain", body).status_code in (400, 422)


def test_broken_bodies_are_wrong_input():
    headers = {"content-type": "application/json"}
    for content in (b"", b"{", b"\xff\xfe", b"[" * 2000, b'{"texts": ["\\ud800"]}'):
        answer = call("POST", "/v1/predict", content=content, headers=headers)
        assert answer.status_code in (200, 400, 422), content
        assert answer.status_code == 200 or answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"host": "evil.example:8000"}, 421, "unknown-host"),
        ({"origin": "http://evil.example"}, 403, "foreign-origin"),
        ({"origin": "null"}, 403, "foreign-origin"),
        ({"sec-fetch-site": "cross-site"}, 403, "foreign-origin"),
        ({"content-type": "text/plain"}, 415, "content-type"),
        ({"content-type": "application/x-www-form-urlencoded"}, 415, "content-type"),
        ({"content-length": str(MOST_BYTES + 1)}, 413, "too-large"),
    ],
)
def test_requests_of_other_pages_are_refused(headers, status, code):
    headers = {"content-type": "application/json", **headers}
    answer = call("POST", "/v1/predict", content=b'{"texts": ["a"]}', headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)


def test_a_body_without_a_length_is_counted_while_it_arrives():
    async def parts():
        for _ in range(MOST_BYTES // (1 << 20) + 1):
            yield b"x" * (1 << 20)

    answer = call("POST", "/v1/predict", content=parts(), headers={"content-type": "application/json"})
    assert answer.status_code == 413, answer.text


def test_a_token_protects_everything_but_the_page():
    access = Access(frozenset([HOST]), TOKEN)
    assert call("GET", "/v1/models", access=access).status_code == 401
    assert call("GET", "/metrics", access=access).status_code == 401
    assert call("GET", "/v1/openapi.json", access=access).status_code == 401
    for wrong in ("", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer é"):
        headers = {"authorization": wrong.encode()}
        assert call("GET", "/v1/models", access=access, headers=headers).status_code == 401
    headers = {"authorization": f"Bearer {TOKEN}"}
    assert call("GET", "/v1/models", access=access, headers=headers).status_code == 200
    for path in ("/", "/healthz", "/static/workbench.js"):
        assert call("GET", path, access=access).status_code == 200


def test_a_client_that_sends_too_much_waits():
    async def work(client):
        return [(await client.get("/healthz")).status_code for _ in range(5)]

    assert run(work, access=Access(frozenset([HOST]), rate=0.001, burst=3)) == [200, 200, 200, 429, 429]


@pytest.mark.parametrize("path", ["/", "/static/workbench.js", "/v1/models", "/missing"])
def test_every_answer_has_the_headers_of_a_closed_page(path):
    headers = call("GET", path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "path", ["/static/../application.py", "/static/%2e%2e/application.py", "/static//etc/passwd", "/x"]
)
def test_no_other_file_is_readable(path):
    answer = call("GET", path)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not-found"


def test_only_this_machine_is_served_without_a_token():
    for host in ("127.0.0.1", "localhost", "::1"):
        check_exposure(host, None)
    for host in ("0.0.0.0", "192.168.1.2", "example.org", "::"):
        with pytest.raises(UserError, match="add --token"):
            check_exposure(host, None)
        check_exposure(host, TOKEN)
    with pytest.raises(UserError, match="too short"):
        check_exposure("127.0.0.1", "short")


def test_the_options_of_the_models_are_those_of_every_model(monkeypatch):
    calls = []

    def load(path, options, common, *, is_one_of_several):
        assert is_one_of_several
        calls.append((path, options))
        return as_adapter(cheerful, classes=options.classes)

    monkeypatch.setattr(serve_command, "load_adapter", load)
    options = ModelOptions(classes=("bad", "good"), prompt="{text}", label_words=("bad=no",))
    result = serve_command.load_models(["a", "b"], None, options, Common())
    assert [model.name for model in result] == ["cheerful", "cheerful (2)"]
    assert result[1].facts["classes"] == ["bad", "good"]
    assert calls == [(name, options) for name in ("a", "b")]


def test_the_health_of_one_of_several_models_names_the_model(monkeypatch, capsys):
    problem = HealthProblem(ProblemKind.COLLAPSED, detail="Even.")
    collapsed = replace(as_adapter(cheerful, classes=["bad", "good"]), health=Health((problem,)))
    monkeypatch.setattr("steadygaze.adapters.as_adapter.as_adapter", lambda *_, **__: collapsed)
    for paths, subject in ((["one/model", "two/model"], "two/model"), (["one/model"], "The model")):
        serve_command.load_models(paths, None, ModelOptions(), Common())
        assert f"! {subject} has collapsed attention: Even." in capsys.readouterr().err


def test_items_that_wait_are_processed_together_by_kind():
    calls, go = [], threading.Event()

    def work(kind, items):
        go.wait(60)
        calls.append((kind, list(items)))
        return [f"{kind}{item}" for item in items]

    async def run():
        batcher = Batcher(work, largest=3)
        futures = [batcher.submit(kind, i) for i, kind in enumerate("abaaabaa")]
        await asyncio.sleep(0)
        go.set()
        results = await asyncio.gather(*futures)
        await batcher.close()
        return results

    results = asyncio.run(run())
    assert results == [f"{kind}{i}" for i, kind in enumerate("abaaabaa")]
    assert max(len(items) for _, items in calls) == 3
    assert all(a < b for _, items in calls for a, b in pairwise(items))  # in the order of arrival


def test_a_batch_ends_before_items_that_count_as_too_many():
    calls = []

    def work(kind, items):
        calls.append(list(items))
        return items

    async def run():
        batcher = Batcher(work, largest=10, size=lambda kind, item: item)
        await asyncio.gather(*(batcher.submit("x", size) for size in (4, 6, 1, 50, 3, 3)))
        await batcher.close()

    asyncio.run(run())
    assert calls == [[4, 6], [1], [50], [3, 3]]


def test_long_texts_with_many_forward_passes_are_not_in_one_batch():
    """A batch cannot be interrupted: one request must not keep the model for minutes."""
    models = Models([served()])
    long, short = "a " * 10_000, "a good film"
    options = ExplainRequest(), ExplainRequest(None, "lime")
    for kind in (*(("explain", "cheerful", item) for item in options), ("certify", "cheerful")):
        assert models.batch_size(kind, long) > LARGEST_BATCH
        assert models.batch_size(kind, (short, long)) > LARGEST_BATCH
        assert models.batch_size(kind, short) < 1.1
    assert models.batch_size(("predict", "cheerful"), long) == 1


def test_the_next_requests_of_the_same_clients_are_one_batch():
    sizes = []

    def work(kind, items):
        time.sleep(0.05)
        sizes.append(len(items))
        return items

    async def client(batcher, number):
        await batcher.submit("x", number)
        await asyncio.sleep(0.001 * number)  # the answer takes its time
        await batcher.submit("x", number)

    async def run():
        batcher = Batcher(work)
        await asyncio.gather(*(client(batcher, number) for number in range(4)))
        await batcher.submit("x", 5)
        await batcher.close()

    asyncio.run(run())
    assert sizes == [4, 4, 1]


def test_one_wrong_item_does_not_fail_the_others():
    def work(kind, items):
        if "bad" in items:
            raise UserError("bad item")
        return [item.upper() for item in items]

    async def run():
        batcher = Batcher(work)
        return await asyncio.gather(*(batcher.submit("x", i) for i in ("a", "bad", "c")), return_exceptions=True)

    first, second, third = asyncio.run(run())
    assert (first, third) == ("A", "C")
    assert isinstance(second, UserError)


def test_too_many_waiting_items_are_refused():
    async def run():
        go = threading.Event()
        batcher = Batcher(lambda kind, items: [go.wait(60) for _ in items], largest=1, most_waiting=2)
        tasks = [batcher.submit("x", i) for i in range(2)]
        await asyncio.sleep(0.05)  # the first is being processed, one waits
        tasks.append(batcher.submit("x", 2))
        await asyncio.sleep(0)
        with pytest.raises(Busy):
            batcher.submit("x", 3)
        go.set()
        await asyncio.gather(*tasks)

    asyncio.run(run())


def test_a_call_that_takes_too_long_ends_and_its_other_texts_are_not_computed():
    go, computed = threading.Event(), []

    def work(kind, items):
        go.wait(60)
        computed.extend(items)
        return items

    async def run():
        models = Models([served()], seconds=0.05)
        models.batcher = Batcher(work, largest=1)
        with pytest.raises(TimeoutError):
            await models.call("x", ["first", "second"])
        go.set()
        await models.batcher.close()

    asyncio.run(run())
    assert computed == ["first"]


def test_a_call_whose_texts_all_fail_leaves_no_error_that_nobody_has_asked_for():
    problems = []

    def work(kind, items):
        raise UserError("not possible")

    async def run():
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: problems.append(context["message"]))
        models = Models([served()])
        models.batcher = Batcher(work)
        with pytest.raises(UserError):
            await models.call("x", ["first", "second", "third"])
        await models.batcher.close()
        gc.collect()

    asyncio.run(run())
    assert problems == []


def test_a_request_that_is_canceled_by_the_end_of_the_server_has_its_own_answer(monkeypatch):
    monkeypatch.setattr(Batcher, "submit", lambda *_: asyncio.Future())

    async def work(client):
        task = asyncio.create_task(client.post("/v1/predict", json={"texts": ["a"]}))
        await asyncio.sleep(0.05)
        task.cancel()
        return await task

    answer = run(work)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "stopping")


def test_a_busy_model_and_a_late_one_have_their_own_answers(monkeypatch):
    monkeypatch.setattr(Batcher, "submit", lambda *_: (_ for _ in ()).throw(Busy()))
    answer = post("predict", {"texts": ["a"]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "busy")
    monkeypatch.setattr(Batcher, "submit", lambda *_: (_ for _ in ()).throw(TimeoutError()))
    answer = post("explain", {"texts": ["a"]})
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "timeout")


def test_metrics_count_requests():
    async def work(client):
        await client.post("/v1/predict", json={"texts": ["a", "b"]})
        return (await client.get("/metrics")).text

    text = run(work)
    assert 'steadygaze_requests_total{path="/v1/predict",status="200"} 1.0' in text
    assert "steadygaze_texts 2.0" in text
