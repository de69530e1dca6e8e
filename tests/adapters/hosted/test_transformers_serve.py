"""Against servers of real language models, tiny and made from a config.

`transformers serve` ignores `logprobs`, so that it is asked for votes; log-probabilities of the same network come from
the small server of these tests.
"""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

import httpx
import numpy as np
import pytest
import torch

import steadygaze as sg
from adapters import folders
from adapters.hosted.completion_server import serving
from steadygaze.results.intervals import wilson_interval

TEMPLATE = "Review: {text} It was"
WORDS = {"pos": "good", "neg": "bad"}
TEXTS = ["a good film", "a bad film", "the cast was good"]
CHAT = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def token(word: str) -> int:
    (number,) = folders.tokenizer("llama")(word, add_special_tokens=False)["input_ids"]
    return number


def local_probabilities(before: list[int]) -> np.ndarray:
    """The probabilities of the two label words after the prompt, by the library alone; `before`: a start token."""
    network, pieces = folders.language_model("llama"), folders.tokenizer("llama")
    rows = []
    for text in TEXTS:
        ids = [*before, *pieces(TEMPLATE.format(text=text), add_special_tokens=False)["input_ids"]]
        with torch.no_grad():
            logits = network(torch.tensor([ids])).logits[0, -1].double()
        rows.append(logits[[token(word) for word in WORDS.values()]].softmax(-1).tolist())
    return np.array(rows)


def test_log_probabilities_give_the_numbers_of_a_local_prompted_model():
    network, pieces = folders.language_model("llama"), folders.tokenizer("llama")

    def top(prompt: str) -> dict[str, float]:
        ids = [2, *pieces(prompt, add_special_tokens=False)["input_ids"]]  # [CLS] first, as the local model
        with torch.no_grad():
            logs = network(torch.tensor([ids])).logits[0, -1].double().log_softmax(-1)
        return {pieces.decode([number]): value for number, value in enumerate(logs.tolist())}

    local = sg.load((network, pieces), prompt=TEMPLATE, label_words={"pos": " good", "neg": " bad"})
    with serving(top=top) as served:
        model = sg.load(f"completions:tiny@{served.url}", prompt=TEMPLATE, label_words=WORDS)
        np.testing.assert_allclose(model.predict_proba(TEXTS), local.predict_proba(TEXTS), rtol=0, atol=1e-5)
        weights = model.explain(TEXTS[0], explainer="leave-one-out", target="pos").weights
    expected = local.explain(TEXTS[0], explainer="leave-one-out", target="pos").weights
    np.testing.assert_allclose(weights, expected, rtol=0, atol=1e-5)
    assert max(map(abs, weights)) > 1e-3


@contextmanager
def transformers_serve(folder: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = [
        "serve",
        str(folder),
        "--port",
        str(port),
        "--host",
        "127.0.0.1",
        "--device",
        "cpu",
        "--log-level",
        "error",
    ]
    code = "from transformers.cli.transformers import main; main()"
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with subprocess.Popen([sys.executable, "-c", code, *words], env=environment, stderr=subprocess.PIPE) as server:
        try:
            end = monotonic() + 300
            while monotonic() < end:
                assert server.poll() is None, server.stderr.read().decode()
                try:
                    if httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200:
                        break
                except httpx.TransportError:
                    sleep(0.2)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            server.kill()


@pytest.mark.slow
def test_votes_of_transformers_serve_have_the_shares_of_its_model(tmp_path):
    pytest.importorskip("openai", reason="transformers serve needs it")
    network, pieces = folders.language_model("llama"), folders.tokenizer("llama")
    pieces.chat_template = CHAT
    others = sorted({*range(len(pieces))} - {token(word) for word in WORDS.values()})
    network.generation_config.update(do_sample=True, suppress_tokens=others, pad_token_id=0)
    network.save_pretrained(tmp_path / "llama")
    pieces.save_pretrained(tmp_path / "llama")
    votes = 60
    with transformers_serve(tmp_path / "llama") as url:
        model = sg.load(f"openai:{tmp_path / 'llama'}@{url}", prompt=TEMPLATE, label_words=WORDS, votes=None)
        assert model.facts["answers"].startswith("10 votes")  # it has no log-probabilities
        model = sg.load(f"openai:{tmp_path / 'llama'}@{url}", prompt=TEMPLATE, label_words=WORDS, votes=votes)
        shares = model.predict_proba(TEXTS)
    for expected, share in zip(local_probabilities([])[:, 0], shares[:, 0], strict=True):
        low, high = wilson_interval(share * votes, votes, 0.9999)
        assert low <= expected <= high
    assert len({*shares[:, 0].tolist()}) > 1
