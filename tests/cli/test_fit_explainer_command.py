"""steadygaze fit-explainer and what explain makes of it: what is printed where, what is kept, what is refused."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import commands
from adapters import folders
from commands import Ended
from estimator.tiny import LABELS, TEXTS, fitted, fitted_pair, tiny
from images.toys import planted
from steadygaze.images.image_classifier import ImageClassifier
from steadygaze.models.classifier import Classifier

pytestmark = pytest.mark.usefixtures("short_probe_in_module", "short_reader_in_module")
QUICK = ["--set", "epochs=2", "--set", "hidden=8", "--set", "dimension=6", "--device", "cpu"]
TEXT = "the camera was good and fine"
Run = Callable[..., Ended]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return partial(commands.run, capsys)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, the texts it knows in files, and an explainer of three words."""
    folder = tmp_path_factory.mktemp("fit")
    fitted().save(folder / "model")
    rows = [f'"{text}",{label}\n' for text, label in zip(TEXTS, LABELS, strict=True)] * 12
    (folder / "films.csv").write_text("".join(["text,label\n", *rows]))
    (folder / "bare.csv").write_text("".join(["text\n", *(f'"{text}"\n' for text in TEXTS * 12)]))
    with pytest.raises(SystemExit) as ended:
        commands.cli.main(["fit-explainer", *fit_arguments(folder, folder / "ex"), "--quiet"])
    assert not ended.value.code
    return folder


def fit_arguments(made: Path, out: Path, k: int = 3, data: str = "films.csv") -> list[str]:
    return [str(made / "model"), "--data", str(made / data), "--k", str(k), "--out", str(out), *QUICK]


def selected(ended: Ended) -> list[set[str]]:
    """The words that have a weight, of each text."""
    results = [json.loads(line) for line in ended.out.splitlines()]
    return [{t for t, w in zip(result["tokens"], result["weights"], strict=True) if w} for result in results]


@pytest.mark.slow
def test_a_fitted_explainer_is_a_folder_and_its_scores_are_printed_in_words(
    made: Path, run: Run, tmp_path: Path
) -> None:
    ended = run("fit-explainer", *fit_arguments(made, tmp_path / "ex"))
    assert ended.code == 0, ended.err
    assert sorted(path.name for path in (tmp_path / "ex").iterdir()) == [
        "config.json",
        "model.safetensors",
        "vocabulary.json",
    ]
    assert [path.name for path in tmp_path.iterdir()] == ["ex"], "nothing else is left behind"
    assert "On 29 texts held out from fitting:" in ended.out
    assert "how often the black box predicts the same" in " ".join(ended.out.split())
    assert f"saved in {tmp_path / 'ex'}" in ended.out
    assert "288 train" in ended.err
    assert [line[:9] for line in ended.err.splitlines() if line.startswith("epoch")] == ["epoch  1 ", "epoch  2 "]


def test_exactly_k_words_are_shown(made: Path, run: Run) -> None:
    ended = run("explain", made / "model", "--explainer", made / "ex", TEXT)
    assert ended.code == 0, ended.err
    line = next(line for line in ended.out.splitlines() if line.startswith("selected by l2x: "))
    assert len(line.split(" · ")) == 3
    arguments = ("explain", made / "model", "--explainer", made / "ex", TEXT, "a bad , dull light i thought", "--json")
    assert list(map(len, selected(run(*arguments)))) == [3, 3]


def test_json_is_all_there_is_on_standard_output(made: Path, run: Run, tmp_path: Path) -> None:
    result = json.loads(run("fit-explainer", *fit_arguments(made, tmp_path / "ex"), "--json").out)
    assert result["explainer"] == str(tmp_path / "ex")
    rows = {row["measure"]: row for row in result["rows"]}
    assert {"post-hoc-accuracy", "fidelity", "independent-reader-accuracy", "leakage-gap"} <= set(rows)
    assert rows["independent-reader-accuracy/by-class"]["settings"]["class"] in ("neg", "pos")
    assert (rows["fidelity"]["settings"]["k"], rows["fidelity"]["n"]) == (3, 29)
    assert isinstance(result["warnings"], list)


@pytest.mark.slow
def test_who_wants_quiet_gets_the_result_alone(made: Path, run: Run, tmp_path: Path) -> None:
    ended = run("fit-explainer", *fit_arguments(made, tmp_path / "ex"), "--quiet")
    assert ended.err == ""
    assert "post-hoc-accuracy" in ended.out


@pytest.mark.slow
def test_no_label_column_is_needed(made: Path, run: Run, tmp_path: Path) -> None:
    ended = run("fit-explainer", *fit_arguments(made, tmp_path / "ex", data="bare.csv"))
    assert ended.code == 0, ended.err
    weights = [(folder / "model.safetensors").read_bytes() for folder in (tmp_path / "ex", made / "ex")]
    assert weights[0] == weights[1], "labels are nothing to it"


def test_a_file_is_explained_in_order_and_on_a_page(made: Path, run: Run, tmp_path: Path) -> None:
    arguments = ("explain", made / "model", "--explainer", made / "ex", "--file", made / "bare.csv")
    results = [json.loads(line) for line in run(*arguments, "--json").out.splitlines()]
    assert [result["text"] for result in results] == TEXTS * 12
    rows = {row["measure"]: row for row in json.loads((made / "ex" / "config.json").read_text())["rows"]}
    assert {result["reader_accuracy"] for result in results} == {rows["independent-reader-accuracy"]["value"]}
    assert run(*arguments, "--html", tmp_path / "why.html").code == 0
    assert "the l2x score of each word" in (tmp_path / "why.html").read_text()


def test_label_leakage_is_reported_whenever_the_explainer_is_used(made: Path, run: Run, tmp_path: Path) -> None:
    shutil.copytree(made / "ex", tmp_path / "ex")
    config = json.loads((tmp_path / "ex" / "config.json").read_text())
    for row in config["rows"]:
        row |= {"value": 0.5 if "gap" in row["measure"] else row["value"], "interval": None}
    (tmp_path / "ex" / "config.json").write_text(json.dumps(config))
    arguments = ("explain", made / "model", "--explainer", tmp_path / "ex", TEXT)
    for more in ([], ["--json"], ["--html", tmp_path / "why.html"]):
        ended = run(*arguments, *more)
        assert ended.err.startswith("! Label leakage: "), ended.err
        assert "Label leakage" not in ended.out
    assert "Label leakage: " in (tmp_path / "why.html").read_text()
    known = run("explain", made / "model", "--explainer", made / "ex", TEXT).err
    assert "Label leakage" not in known
    assert "An independent reader recovers the predicted class from the selected words in " in known


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--k", "50"], "no text has more than k = 50 words"),
        (["--explainer", "l3x"], "did you mean 'l2x'"),
        (["--explainer", "ail", "--mitigation", "mask-neutral"], "ail does not support mitigation 'mask-neutral'"),
        (["--explainer", "cxplain", "--mitigation", "none"], "cxplain does not select units in training"),
        (["--mitigation", "random-query"], "--conditioned"),
        (["--mitigation", "randm"], "'mitigation'"),
        (["--set", "hiden=3"], "did you mean 'hidden'"),
        (["--set", "k=3"], "set twice"),
        (["--data", "nowhere.csv"], "nowhere.csv"),
        (["--text", "txt"], "'text'"),
        (["--label", "lable"], "'label'"),
    ],
)
def test_bad_input_gets_a_sentence(made: Path, run: Run, tmp_path: Path, more: list[str], message: str) -> None:
    ended = run("fit-explainer", *fit_arguments(made, tmp_path / "ex"), *more)
    assert ended.code == 2, ended.err
    assert message in ended.err
    assert "Traceback" not in ended.err
    assert ended.out == ""
    assert list(tmp_path.iterdir()) == [], "nothing was written"


def test_a_folder_with_other_files_is_not_overwritten(made: Path, run: Run, tmp_path: Path) -> None:
    thesis = tmp_path / "thesis"
    thesis.mkdir()
    (thesis / "chapter1.txt").write_text("precious")
    ended = run("fit-explainer", *fit_arguments(made, thesis))
    assert ended.code == 2
    assert "choose another folder" in " ".join(ended.err.split())
    assert [path.read_text() for path in thesis.iterdir()] == ["precious"]


@pytest.mark.slow
def test_an_explainer_is_replaced_only_with_replace(made: Path, run: Run, tmp_path: Path) -> None:
    assert run("fit-explainer", *fit_arguments(made, tmp_path / "ex")).code == 0
    before = (tmp_path / "ex" / "config.json").read_bytes()
    ended = run("fit-explainer", *fit_arguments(made, tmp_path / "ex", k=2))
    assert (ended.code, "--replace" in ended.err) == (2, True)
    assert (tmp_path / "ex" / "config.json").read_bytes() == before
    assert run("fit-explainer", *fit_arguments(made, tmp_path / "ex", k=2), "--replace").code == 0
    assert (tmp_path / "ex" / "config.json").read_bytes() != before


@pytest.mark.slow
def test_an_explainer_that_is_finished_is_done(made: Path, run: Run, tmp_path: Path) -> None:
    """Also where a kill during the deletion of the answers left some of them."""
    first = run("fit-explainer", *fit_arguments(made, tmp_path / "ex"), "--json")
    before = {path.name: path.read_bytes() for path in (tmp_path / "ex").iterdir()}
    (tmp_path / "ex.unfinished" / "train").mkdir(parents=True)
    (tmp_path / "ex.unfinished" / "train" / "000000.npy").write_bytes(b"half deleted")
    again = run("fit-explainer", *fit_arguments(made, tmp_path / "ex"), "--json")
    assert (again.code, json.loads(again.out)) == (0, json.loads(first.out))
    assert {path.name: path.read_bytes() for path in (tmp_path / "ex").iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["ex"]
    for more, message in ((["--seed", "7"], "other seed"), (["--drop-empty", "--set", "epochs=1"], "other settings")):
        ended = run("fit-explainer", *fit_arguments(made, tmp_path / "ex"), *more)
        assert (ended.code, message in ended.err) == (2, True), ended.err


@pytest.mark.slow
def test_answers_of_another_fit_do_not_block_replace(made: Path, run: Run, tmp_path: Path) -> None:
    assert run("fit-explainer", *fit_arguments(made, tmp_path / "ex")).code == 0
    kept = tmp_path / "ex.unfinished" / "train"
    kept.mkdir(parents=True)
    (kept / "identity.json").write_text('{"texts": "others", "model": "another"}')
    assert run("fit-explainer", *fit_arguments(made, tmp_path / "ex"), "--replace").code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["ex"]


def test_an_interrupted_training_of_that_name_is_not_thrown_away(made: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "ex.unfinished").mkdir()
    (tmp_path / "ex.unfinished" / "checkpoint.safetensors").write_bytes(b"an epoch")
    ended = run("fit-explainer", *fit_arguments(made, tmp_path / "ex"))
    assert ended.code == 2
    assert "contains other files" in ended.err
    assert (tmp_path / "ex.unfinished" / "checkpoint.safetensors").read_bytes() == b"an epoch"


def test_an_explainer_of_another_model_is_refused(made: Path, run: Run, tmp_path: Path) -> None:
    tiny(seed=5).fit(TEXTS, LABELS).save(tmp_path / "other")
    ended = run("explain", tmp_path / "other", "--explainer", made / "ex", TEXT)
    assert ended.code == 2
    assert "was fitted to another model" in ended.err
    fitted_pair().save(tmp_path / "pairs")
    assert run("explain", tmp_path / "pairs", "--explainer", made / "ex", TEXT, "was it good ?").code == 2


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--explainer", "l2x"], "l2x must be fitted to the model first"),
        (["--explainer", "."], "is not a fitted explainer"),
        (["--explainer", "nowhere"], "unknown explainer 'nowhere'"),
        (["--explainer", "EX", "--target", "pos"], "remove the target"),
    ],
)
def test_bad_requests_get_a_sentence(
    made: Path, run: Run, more: list[str], message: str, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    ended = run("explain", made / "model", TEXT, *[str(made / "ex") if option == "EX" else option for option in more])
    assert ended.code == 2
    assert message in ended.err


def test_a_folder_of_an_image_explainer_is_an_error_that_names_the_right_function(
    made: Path, run: Run, tmp_path: Path
) -> None:
    ImageClassifier(epochs=1, batch_size=16).fit(*planted(30)).save(tmp_path / "pictures")
    data = made / "films.csv"
    for folder, says in (
        (
            tmp_path / "pictures",
            "pictures classifies images, and a text classifier is needed here. In Python load it with",
        ),
        (made / "ex", "ex is a fitted explainer, not a model: pass it to steadygaze explain MODEL --explainer"),
    ):
        fit = ("fit-explainer", folder, "--data", data, "--k", 3, "--out", tmp_path / "out", *QUICK)
        for arguments in (("explain", folder, TEXT), fit, ("audit", folder, "--data", data), ("predict", folder, TEXT)):
            ended = run(*arguments)
            assert (ended.code, says in " ".join(ended.err.split())) == (2, True), ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["pictures"]


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, error: type[BaseException], after: int) -> Iterator[list[int]]:
    """A model that answers so many questions; how many texts each was about."""
    calls: list[int] = []
    forward = Classifier.forward

    def answer(self: Classifier, batch: Any, *more: Any) -> Any:
        if len(calls) == after:
            raise error("the machine went away")
        calls.append(len(batch))
        return forward(self, batch, *more)

    with monkeypatch.context() as patch:
        patch.setattr(Classifier, "forward", answer)
        yield calls


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize(
    ("error", "code", "message"),
    [(ConnectionError, 2, "the machine went away"), (KeyboardInterrupt, 130, "run the same command again")],
)
def test_a_run_that_ends_half_way_goes_on(
    made: Path, run: Run, tmp_path: Path, monkeypatch: Any, error: type[BaseException], code: int, message: str
) -> None:
    with failing(monkeypatch, error, after=2) as first:
        ended = run("fit-explainer", *fit_arguments(made, tmp_path / "ex"))
    assert ended.code == code
    assert message in ended.err
    assert str(tmp_path / "ex.unfinished") in ended.err
    assert [path.name for path in tmp_path.iterdir()] == ["ex.unfinished"]
    with failing(monkeypatch, error, after=1000) as second:
        assert run("fit-explainer", *fit_arguments(made, tmp_path / "ex")).code == 0
    assert first[0] + first[1] + second[0] == 259, "no query is repeated"
    assert [path.name for path in tmp_path.iterdir()] == ["ex"]
    assert (tmp_path / "ex" / "model.safetensors").read_bytes() == (made / "ex" / "model.safetensors").read_bytes()


def test_answers_to_other_texts_are_not_taken_for_these(made: Path, run: Run, tmp_path: Path, monkeypatch: Any) -> None:
    with failing(monkeypatch, KeyboardInterrupt, after=2):
        run("fit-explainer", *fit_arguments(made, tmp_path / "ex"))
    (tmp_path / "other.csv").write_text("text\n" + "another text of many words\n" * 30)
    ended = run("fit-explainer", *fit_arguments(made, tmp_path / "ex", k=2), "--data", tmp_path / "other.csv")
    assert ended.code == 2
    assert "has answers to other texts" in ended.err


@pytest.fixture(scope="module")
def somebody(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A classifier of the transformers library."""
    return folders.save("bert", tmp_path_factory.mktemp("somebody") / "bert")


@pytest.mark.slow
def test_a_hugging_face_folder_is_a_black_box(run: Run, somebody: Path, tmp_path: Path) -> None:
    words = ["good", "film", "bad", "cast", "unbelievable", "was", "not"]
    rows = [" ".join(words[(i * j + i) % 7] for j in range(2, 8)) for i in range(40)]
    (tmp_path / "films.csv").write_text("\n".join(["text", *rows]) + "\n")
    arguments = (
        "fit-explainer",
        somebody,
        "--data",
        tmp_path / "films.csv",
        "--k",
        2,
        "--out",
        tmp_path / "ex",
        *QUICK,
    )
    assert (ended := run(*arguments)).code == 0, ended.err
    result = run("explain", somebody, "--explainer", tmp_path / "ex", "A good, unbelievable film!", "--json")
    assert [len(words) for words in selected(result)] == [2]


@pytest.mark.sweep(keep=1)
@pytest.mark.parametrize("explainer", ["attention", "gradient", "leave-one-out"])
def test_anybodys_model_is_explained(run: Run, somebody: Path, explainer: str) -> None:
    ended = run("explain", somebody, *folders.TEXTS[:2], "--explainer", explainer, "--json")
    assert ended.code == 0, ended.err
    first, second = map(json.loads, ended.out.splitlines())
    assert first["tokens"] == ["A", "good", ",", "unbelievable", "film", "!"]
    assert (first["explainer"], second["tokens"]) == (explainer, ["bad"])
    assert set(first["probabilities"]) == set(folders.LABELS)


@pytest.mark.slow
def test_an_explanation_of_another_class_is_available_from_every_explainer(run: Run, somebody: Path) -> None:
    arguments = ("explain", somebody, "a good film", "--explainer", "gradient", "--target")
    assert json.loads(run(*arguments, "neutral", "--json").out)["target"] == "neutral"
    assert "did you mean 'neutral'" in run(*arguments, "netral").err


def test_a_model_without_attention_refuses_the_explainer_attention_and_no_other(
    run: Run, somebody: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr("steadygaze.adapters.transformer_checks._attentive", lambda *_: False)
    assert "integrated-gradients: " in run("explain", somebody, "a good film").out
    ended = run("explain", somebody, "a good film", "--explainer", "attention")
    assert ended.code == 2
    assert "attention cannot explain bert: the model has no attention weights" in ended.err


@pytest.mark.slow
def test_an_output_of_a_multi_label_model_is_explained(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "two_labels.py").write_text(
        "class Model:\n"
        "    classes_, multilabel_ = ['bad', 'rude'], True\n"
        "    def predict_proba(self, texts):\n"
        "        return [[0.9 if name in text.split() else 0.1 for name in self.classes_] for text in texts]\n"
        "model = Model()\n"
    )
    texts = [f"a {a} film with {b} people {i}" for i in range(12) for a in ("good", "bad") for b in ("rude", "kind")]
    (tmp_path / "texts.csv").write_text("text,rude\n" + "".join(f"{t},{int('rude' in t)}\n" for t in texts))
    words = ("two_labels:model", "--data", "texts.csv", "--label", "rude", "--k", 2, "--out", "l2x", *QUICK)
    assert "choose one with target='bad' (--target bad)" in run("fit-explainer", *words).err
    ended = run("fit-explainer", *words, "--target", "rude")
    assert ended.code == 0, ended.err
    command = "steadygaze explain two_labels:model --target rude --explainer l2x"
    assert f'next:  {command} "a text of your own"' in ended.err
    ended = run(*command.split()[1:], "a bad film with rude people", "--json")
    assert json.loads(ended.out)["label"] == "rude", ended.err


def test_target_is_refused_for_a_model_of_classes(made: Path, run: Run, tmp_path: Path) -> None:
    ended = run("fit-explainer", *fit_arguments(made, tmp_path / "ex"), "--target", "good")
    assert (ended.code, "--target names an output of a multi-label model" in ended.err) == (2, True)
