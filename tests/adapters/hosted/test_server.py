"""The names of hosted models: what they mean, and what is refused."""

import pytest

from steadygaze.adapters.hosted.server import OPENAI, Server, is_hosted, read_server
from steadygaze.core.errors import UserError


@pytest.mark.parametrize(
    ("name", "server"),
    [
        ("openai:gpt-x", Server("gpt-x", OPENAI)),
        ("vllm:org/m", Server("org/m", "http://localhost:8000/v1")),
        ("openai:m@http://[::1]:80/v1/", Server("m", "http://[::1]:80/v1")),
        ("openai:@cf/meta/m@https://h/v1", Server("@cf/meta/m", "https://h/v1")),
        ("completions:m:2@https://h/v1", Server("m:2", "https://h/v1", chat=False)),
    ],
)
def test_a_name_has_a_model_and_a_url(name, server):
    assert is_hosted(name)
    assert read_server(name) == server


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("openai:", "has no model"),
        ("completions:base", "has no URL"),
        ("openai:m@localhost:8000/v1", "begins with http:// or https://"),
        ("openai:m@http://", "is not a URL|has no URL"),
        ("openai:m@http://h:99999999/v1", "is not a URL"),
        ("openai:m@https://user:secret@h/v1", "no password"),
        ("openai:m@https://h/v1?key=secret", "no password"),
    ],
)
def test_a_wrong_name_is_refused_without_its_secrets(name, problem):
    with pytest.raises(UserError, match=problem) as error:
        read_server(name)
    assert problem != "no password" or "secret" not in str(error.value)


def test_the_key_of_openai_goes_to_openai_alone(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "first")
    assert read_server("openai:m").key == "first"
    assert read_server("openai:m@https://elsewhere/v1").key == ""
    monkeypatch.setenv("STEADYGAZE_API_KEY", "second")
    assert read_server("openai:m@https://elsewhere/v1").key == read_server("openai:m").key == "second"
