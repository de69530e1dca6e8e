"""Known-bad states: every output of an affected model says so once and first, and no output of a healthy model does.

The outputs are those of the registered commands; a command without an entry here fails.
"""

import json
import shutil
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pyarrow import parquet

import steadygaze as sg
from commands import Ended, run
from serve.serving import live_server
from steadygaze.adapters.as_adapter import as_adapter
from steadygaze.cli import COMMANDS
from steadygaze.core.errors import HealthWarning, UserError
from steadygaze.results.comparison import Comparison, TechniqueResult
from steadygaze.results.explanation import Explanations
from steadygaze.results.health import Health, HealthProblem, ProblemKind
from steadygaze.results.leakage_warnings import FIDELITY, RANDOM_WORDS, READER
from steadygaze.results.report import Report
from steadygaze.results.row import Row
from steadygaze.results.tuning import Tuning
from steadygaze.serve.served_models import ServedModel

Edit = Callable[[dict[str, Any]], Any]
Outputs = Iterator[tuple[str, str]]
"""Name and text of each stream or file."""
TEXTS = [f"a {word} film about the {noun}" for noun in ["sea", "sun", "moon", "hill"] for word in ("good", "dull") * 10]
LABELS = ["yes" if "good" in text else "no" for text in TEXTS]
TEACHER = HealthProblem(ProblemKind.UNLEARNED_TEACHER, detail="reference 1")
QUICK = ("--set", "epochs=1", "--set", "hidden=4", "--set", "dimension=4", "--k", 2, "--device", "cpu")


def best(**values: Any) -> Edit:
    """Edit the selected epoch, also in the history."""

    def edit(config: dict[str, Any]) -> None:
        epoch = config["best_epoch"]
        records = [record for record in config["history"] if record["epoch"] == epoch["epoch"]]
        for record in (epoch, *records):
            attention = values.get("attention", {})
            record |= {**values, "attention": {**record["attention"], **attention}}

    return edit


STATES: dict[str, tuple[Edit, list[str]]] = {
    "healthy": (lambda config: None, []),
    "constant label": (
        best(constant_label=0),
        ["The model predicts the label 'no' for every validation text: its explanations say little."],
    ),
    "not learned": (
        best(**{"macro-f1": 0.4}),
        ["The model has not learned: its validation macro-F1 is 0.400, and guessing reaches 0.500."],
    ),
    "collapsed": (
        best(attention={"uniform": True, "distance_to_uniform": 0.001}),
        [
            "The model has collapsed attention: The weights are nearly the same for every word (0.0010 nats from "
            "uniform). Words that attention highlights are no reasons."
        ],
    ),
    "interlocked": (
        best(attention={"constant": True, "unit": "sentence", "unexplained": 0.01, "uniform": False}),
        [
            "The model has an interlocked selection: The weights follow the position of a sentence, not the text "
            "(position leaves 1.0 % of them unexplained). Its highlighted words are not reasons."
        ],
    ),
    "unlearned teacher": (
        lambda config: config.update(health=[TEACHER.to_dict()]),
        ["The model learned from reference 1, which has not learned the labels."],
    ),
}
WITHOUT_MODEL = {"list", "synonyms", "demo", "reproduce"}
"""Commands that take no model and save none for later use."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("health")
    settings = {"hidden": 8, "learning_rate": 0.05, "small_data": False}
    clf = sg.TextClassifier("average", epochs=20, settings=settings, device="cpu", verbose=False)
    clf.fit(TEXTS, LABELS, validation=(TEXTS[:40], LABELS[:40])).save(folder / "model")
    rows = "".join(f"{text},{label}\n" for text, label in zip(TEXTS[:24], LABELS[:24], strict=True))
    (folder / "data.csv").write_text(f"text,label\n{rows}")
    (folder / "table.jsonl").write_text('{"word": "good", "synonyms": ["fine"]}\n')
    return folder


@pytest.fixture
def folder(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("data.csv", "table.jsonl"):
        shutil.copy(trained / name, tmp_path / name)
    return tmp_path


def in_state(trained: Path, name: str) -> str:
    """The model of a state: a folder whose records were edited."""
    shutil.copytree(trained / "model", "model")
    file = Path("model/config.json")
    config = json.loads(file.read_text())
    STATES[name][0](config)
    if name != "unlearned teacher":
        del config["health"]
    file.write_text(json.dumps(config))
    return "model"


def flat(text: str) -> str:
    return " ".join(text.split())


def ended_well(ended: Ended) -> Ended:
    assert ended.code == 0, ended.err
    return ended


def streams(ended: Ended, json_lines: bool = False) -> Outputs:
    """What a command printed: messages with the sentence, a result without it, unless it is JSON."""
    yield "stderr", ended_well(ended).err
    if json_lines:
        yield "json", ended.out.splitlines()[0]


def of_json(ended: Ended) -> Outputs:
    yield "stderr", ended_well(ended).err
    yield "json", ended.out


def predict_outputs(call: Callable[..., Ended], model: str) -> Outputs:
    yield from streams(call("predict", model, TEXTS[0]))
    yield from streams(call("predict", model, TEXTS[0], "--json"), json_lines=True)
    yield from of_json(call("predict", model, "--file", "data.csv", "--out", "p.parquet", "--json"))
    yield "parquet metadata", health_of_parquet("p.parquet")
    yield from streams(call("predict", model, "--file", "data.csv", "--out", "p.csv", "--quiet"))


def explain_outputs(call: Callable[..., Ended], model: str) -> Outputs:
    yield from streams(call("explain", model, *TEXTS[:2]))
    yield from streams(call("explain", model, TEXTS[0], "--json"), json_lines=True)
    yield from of_json(call("explain", model, *TEXTS[:2], "--html", "e.html", "--json"))
    yield "page", Path("e.html").read_text()
    yield from of_json(call("explain", model, "--file", "data.csv", "--out", "e.parquet", "--json"))
    yield "parquet metadata", health_of_parquet("e.parquet")
    yield from of_json(call("explain", model, "--file", "data.csv", "--eraser", "e.jsonl", "--json"))
    yield from streams(call("explain", model, *TEXTS[:2], "--each-sentence"))
    yield from of_json(call("explain", model, *TEXTS[:2], "--each-sentence", "--json"))


def word_weights_outputs(call: Callable[..., Ended], model: str) -> Outputs:
    yield from streams(call("word-weights", model, "--data", "data.csv", "--html", "w.html"))
    yield "page", Path("w.html").read_text()
    yield from of_json(call("word-weights", model, "--data", "data.csv", "--json"))


def evaluate_outputs(call: Callable[..., Ended], model: str) -> Outputs:
    yield from streams(call("evaluate", model, "--data", "data.csv", "--out", "evaluation.json"))
    yield "json", Path("evaluation.json").read_text()
    yield from of_json(call("evaluate", model, "--data", "data.csv", "--json"))


def certify_outputs(call: Callable[..., Ended], model: str) -> Outputs:
    for options in (("--radius", 0.01), ("--substitutions", "table.jsonl"), ("--soft-stability", "1,1")):
        yield from streams(call("certify", model, "--data", "data.csv", *options))
        yield from of_json(call("certify", model, "--data", "data.csv", *options, "--json"))


def fit_explainer_outputs(call: Callable[..., Ended], model: str) -> Outputs:
    command = ("fit-explainer", model, "--data", "data.csv", *QUICK, "--out")
    yield from streams(call(*command, "l2x"))
    yield "json", Path("l2x/config.json").read_text()
    yield from of_json(call(*command, "again", "--json"))
    yield from streams(call("explain", model, TEXTS[0], "--explainer", "l2x", "--json"), json_lines=True)


def audit_outputs(call: Callable[..., Ended], model: str) -> Outputs:
    command = ("audit", model, "--data", "data.csv", "--sample", 2, "--device", "cpu")
    yield from streams(call(*command, "--html", "a.html", "--bundle", "bundle", "--card"))
    for page in ("a.html", "bundle/report.html", "model/README.md"):
        yield "page", Path(page).read_text()
    yield "json", Path("bundle/report.json").read_text()
    yield "manifest", Path("bundle/manifest.json").read_text()
    yield from of_json(call(*command, "--json"))


def serve_outputs(call: Callable[..., Ended], model: str) -> Outputs:
    """REST answers; the page draws them (tests/serve/test_workbench.py)."""
    served = ServedModel("model", as_adapter(model, device="cpu"), {"good": ["fine"]})
    with live_server(served) as address, httpx.Client(base_url=address, timeout=60) as client:
        yield "json", json.dumps(client.get("/v1/models").json()["models"][0])
        for path, body in (
            ("predict", {"texts": TEXTS[:1]}),
            ("explain", {"texts": TEXTS[:1]}),
            ("shift", {"before": TEXTS[0], "after": TEXTS[1]}),
            ("certify", {"text": TEXTS[0]}),
        ):
            yield "json", client.post(f"/v1/{path}", json=body).text
            schema = client.get("/v1/openapi.json").json()["paths"][f"/v1/{path}"]["post"]["responses"]["200"]
            assert schema["content"]["application/json"]["schema"]["$ref"].endswith("/ModelAnswer")
        compared = client.post("/v1/compare", json={"text": TEXTS[0], "choices": [{"model": "model"}] * 2})
        yield "json", json.dumps(compared.json()["results"][1]["explanation"])


OUTPUTS: dict[str, Callable[[Callable[..., Ended], str], Outputs]] = {
    "predict": predict_outputs,
    "explain": explain_outputs,
    "word-weights": word_weights_outputs,
    "evaluate": evaluate_outputs,
    "certify": certify_outputs,
    "fit-explainer": fit_explainer_outputs,
    "audit": audit_outputs,
    "serve": serve_outputs,
}
TRAINING = {"train", "compare", "tune"}
"""Commands that make their own models, below."""
SLOW = {"audit", "fit-explainer", "serve", "certify"}


def health_of_parquet(path: str) -> str:
    return (parquet.read_schema(path).metadata or {})[b"health"].decode()


def sentences_in(name: str, text: str) -> list[str]:
    """The sentences of an output, in its order; those of JSON under the key `health`."""
    if name in ("json", "models"):
        return [flat(problem["message"]) for problem in json.loads(text)["health"]]
    if name == "parquet metadata":
        return [flat(problem["message"]) for problem in json.loads(text)]
    content = flat(text.replace("&#x27;", "'").replace("\\u0027", "'"))
    every = {sentence for _, sentences in STATES.values() for sentence in sentences}
    return [sentence for sentence in every for _ in range(content.count(sentence))]


def check(name: str, text: str, expected: list[str]) -> None:
    assert sentences_in(name, text) == expected, f"{name}:\n{text[:2000]}"
    if name == "page" and expected:
        first = flat(text).replace("&#x27;", "'").index(expected[0])
        assert "<figure" not in flat(text)[:first]
        assert "<table" not in flat(text)[:first]


@pytest.mark.sweep(keep=3)
@pytest.mark.parametrize(
    ("command", "state"),
    [
        pytest.param(
            name, state, marks=[pytest.mark.slow] if name in SLOW or state not in ("healthy", "collapsed") else []
        )
        for name in COMMANDS
        if name not in WITHOUT_MODEL | TRAINING
        for state in STATES
    ],
)
def test_every_output_of_a_command_says_once_and_first_what_is_wrong_with_the_model(
    command: str, state: str, trained: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command in OUTPUTS, f"{command} takes a model: list its outputs here"
    model, expected = in_state(trained, state), STATES[state][1]
    for name, text in OUTPUTS[command](lambda *words: run(capsys, *words), model):
        with capsys.disabled():
            print(f"\n{command:14} {state:18} {name:16} {' '.join(sentences_in(name, text)) or '-'}", end="")
        check(name, text, expected)


def outputs_of_training(call: Callable[..., Ended]) -> Iterator[tuple[list[str], str, str]]:
    """The models that an output is about, its name and its text, for models that learn nothing."""
    options: tuple[Any, ...] = ("--encoder", "average", "--epochs", 1, "--set", "hidden=4", "--device", "cpu")
    hopeless = ("--set", "learning_rate=1e-7")
    rows = "".join(f"the same text,{label}\n" for label in ["yes", "no"] * 40)
    Path("same.csv").write_text(f"text,label\n{rows}")
    one, two = ["The model"], ["vanilla, in 1 of 1 seed,", "word-at, in 1 of 1 seed,"]
    ended = call("train", "same.csv", *options, *hopeless, "--out", "m")
    yield one, "stderr", ended_well(ended).err
    assert ended.err.splitlines()[-1].startswith("! The model "), "the last line says it"
    yield one, "page", Path("m/README.md").read_text()
    yield one, "json", Path("m/config.json").read_text()
    for name, text in of_json(call("train", "same.csv", *options, *hopeless, "--out", "n", "--json")):
        yield one, name, text
    compare = ("compare", "same.csv", "--techniques", "vanilla,word-at", "--seeds", 1, *options, *hopeless)
    search = ("--set", "learning_rate=1e-8:1e-7:log")
    tune = ("tune", "same.csv", "--technique", "vanilla", "--trials", 1, *options, *search)
    for command, models, page in ((compare, two, "comparison.html"), (tune, one, "tuning.html")):
        out = str(command[0])
        for name, text in streams(call(*command, "--out", out)):
            yield models, name, text
        yield models, "page", Path(out, page).read_text()
        for name, text in of_json(call(*command, "--out", out, "--json")):
            yield models, name, text


@pytest.mark.slow
def test_commands_that_train_say_what_is_wrong_with_their_models(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for models, name, text in outputs_of_training(lambda *words: run(capsys, *words)):
        content = " ".join(problem["message"] for problem in json.loads(text)["health"]) if name == "json" else text
        content = flat(content.replace("&#x27;", "'"))
        with capsys.disabled():
            print(f"\n{name:10} {models[0]:25} {content[max(0, content.find(models[0])) :][:150]}", end="")
        assert [content.count(f"{model} predicts the label") for model in models] == [1] * len(models), content


@pytest.mark.sweep(keep=2)
@pytest.mark.parametrize("state", STATES)
def test_python_objects_carry_the_health_of_their_model(state: str, trained: Path, folder: Path) -> None:
    expected = STATES[state][1]
    model = in_state(trained, state)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf = sg.load(model, device="cpu")
    assert [flat(str(item.message)) for item in caught if item.category is HealthWarning] == expected
    explanations = clf.explain(TEXTS[:2])
    weights = sg.word_weights(clf, TEXTS[:8])
    evaluation = sg.evaluate(clf, TEXTS[:24], LABELS[:24])
    certificates = sg.certify(clf, TEXTS[:4], radius=0.01)
    printed = [explanations, explanations[0], weights, evaluation, certificates]
    printed += [sg.predict_sentences(clf, TEXTS[:4]), sg.certify(clf, TEXTS[:4], substitutions={"good": ["fine"]})]
    printed += [sg.certify(clf, TEXTS[:4], soft_stability=(1, 1))]
    printed += [Report("An audit", (), health=clf.health), Tuning((), (), {}, health=clf.health)]
    printed += [Comparison((), (TechniqueResult("vanilla", {}, (False,), health=clf.health),), (0,))]
    for item in (clf, *printed):
        assert [flat(problem.sentence) for problem in item.health] == expected, item
    for item in printed:
        if not isinstance(item, Explanations):
            check("json", json.dumps(item.to_dict(), default=str), expected)
        check("text", str(item), expected)
        assert not expected or flat(str(item)).startswith(f"! {expected[0][:40]}")
    check("json", explanations[0].to_json().decode(), expected)
    pages = [item._repr_html_() for item in printed if hasattr(item, "_repr_html_")]
    for html in (*pages, explanations[0].to_html(), weights.to_html()):
        check("page", html, expected)


@pytest.mark.slow
def test_every_output_of_a_failed_explainer_says_so_once(
    trained: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = in_state(trained, "healthy")
    ended_well(run(capsys, "fit-explainer", model, "--data", "data.csv", *QUICK, "--out", "l2x"))
    file = Path("l2x/config.json")
    config = json.loads(file.read_text())
    values = {FIDELITY: 0.9, READER: 0.5, RANDOM_WORDS: 0.6}
    rows = (Row.from_dict(row) for row in config["rows"])
    edited = [Row(row.measure, values.get(row.measure, row.value), 50, None, row.settings) for row in rows]
    file.write_text(json.dumps({**config, "rows": [row.to_dict() for row in edited], "health": []}))
    sentence = (
        "The explainer l2x selects words that are no better than random words: a reader recovers the predicted class "
        "in 50.0 % of the held-out texts, and in 60.0 % from random words."
    )
    for name in ("word-weights", "audit"):
        ended = ended_well(run(capsys, name, model, "--data", "data.csv", "--explainer", "l2x"))
        assert flat(ended.err).count(sentence) == 1, name
    ended = run(capsys, "audit", model, "--data", "data.csv", "--explainer", "l2x", "--bundle", "bundle")
    assert ended.code == 2
    assert "--bundle does not hold fitted explainers" in ended.err
    command = ("explain", model, TEXTS[0], "--explainer", "l2x")
    for options, result in (((), None), (("--json",), "stdout"), (("--html", "e.html", "--json"), "e.html")):
        ended = ended_well(run(capsys, *command, *options))
        assert flat(ended.err).count(sentence) == 1
        outputs = {"stdout": ended.out, "e.html": Path("e.html").read_text() if result == "e.html" else ""}
        assert flat(ended.out).count(sentence) == (1 if options else 0)
        assert result is None or flat(outputs[result]).count(sentence) == 1
    with pytest.warns(HealthWarning, match="no better than random words") as caught:
        fitted = sg.load_explainer("l2x", sg.load(model, device="cpu"))
    assert len([item for item in caught if item.category is HealthWarning]) == 1
    assert flat(str(fitted.explain(TEXTS[0]))).count(sentence) == 1
    report = sg.audit(fitted.black_box, TEXTS[:24], explainers=["attention", fitted], sample=2)
    report.to_html("audit.html")
    assert flat(Path("audit.html").read_text()).count(sentence) == 1
    assert sentences_in("json", json.dumps(report.to_dict())) == [sentence]
    fitted.save("again")
    assert sentences_in("json", Path("again/config.json").read_text()) == [sentence]


@pytest.mark.slow
def test_an_audit_names_the_state_of_the_models_of_other_seeds(
    trained: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.move(in_state(trained, "constant label"), "other")
    clf = sg.load("other", device="cpu")
    next(clf.stored_.model.decoder.parameters()).data[0] += 1  # other weights
    clf.save("other")
    model = in_state(trained, "healthy")
    command = ("audit", model, "--data", "data.csv", "--sample", 2, "--device", "cpu", "--other-seed", "other")
    ended = ended_well(run(capsys, *command, "--html", "a.html", "--json"))
    sentence = STATES["constant label"][1][0].replace("The model", "Other seed 1, other,")
    assert [*sentences_in("json", ended.out)] == [sentence]
    assert (
        flat(ended.err).count(sentence) == flat(Path("a.html").read_text().replace("&#x27;", "'")).count(sentence) == 1
    )


def test_every_command_is_listed() -> None:
    assert set(COMMANDS) == OUTPUTS.keys() | TRAINING | WITHOUT_MODEL


def test_a_folder_with_weights_that_are_not_finite_is_refused(trained: Path, folder: Path) -> None:
    clf = sg.load(trained / "model", device="cpu")
    next(clf.stored_.model.parameters()).data[0] = float("nan")
    clf.save("broken")
    health = Health.from_list(json.loads(Path("broken/config.json").read_text())["health"])
    assert [problem.kind for problem in health] == [ProblemKind.NON_FINITE]
    with pytest.raises(UserError, match="NaN or infinity"):
        sg.load("broken")


@pytest.mark.parametrize(
    "health",
    ["no list", [1], [{"kind": "unknown"}], [{"kind": "constant-label", "more": 1}], [{"kind": "not-learned"}]],
)
def test_a_damaged_health_is_refused_with_a_sentence(health: Any, trained: Path, folder: Path) -> None:
    shutil.copytree(trained / "model", "model")
    config = json.loads(Path("model/config.json").read_text())
    Path("model/config.json").write_text(json.dumps({**config, "health": health}))
    with pytest.raises(UserError, match="health"):
        sg.load("model", device="cpu")
