"""HostedName: the name of a hosted model, openai:MODEL@URL, and the server that it names.

    openai:MODEL@URL        chat completions of any OpenAI-compatible server; without a URL those of api.openai.com
    vllm:MODEL@URL          the same; without a URL those of http://localhost:8000/v1
    completions:MODEL@URL   the older completions, without a chat template: for models that are not tuned to chat

The key comes from the environment only: STEADYGAZE_API_KEY, or for api.openai.com OPENAI_API_KEY.  It is sent to the
server of the name, and neither stored nor printed.
"""

import os
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from steadygaze.core.errors import UserError

OPENAI = "https://api.openai.com/v1"
DEFAULT_URLS = {"openai": OPENAI, "vllm": "http://localhost:8000/v1", "completions": ""}
KEY, OPENAI_KEY = "STEADYGAZE_API_KEY", "OPENAI_API_KEY"
NAME = re.compile(r"(openai|vllm|completions):(.+?)(?:@(https?://.+))?", re.DOTALL)
USAGE = "openai:MODEL@URL, such as openai:qwen3-8b@http://localhost:8000/v1"


@dataclass(frozen=True)
class Server:
    """The address of a model."""

    model: str
    url: str
    """Without a slash at the end."""
    chat: bool = True
    """False: completions without a chat template."""

    @property
    def address(self) -> str:
        """The address of a request."""
        return f"{self.url}/{'chat/completions' if self.chat else 'completions'}"

    @property
    def host(self) -> str:
        """Host and port, for reports."""
        return urlsplit(self.url).netloc

    @property
    def key_name(self) -> str:
        """The environment variable that has the key."""
        return OPENAI_KEY if self.url == OPENAI and not os.environ.get(KEY) else KEY

    @property
    def key(self) -> str:
        """The key, empty without one."""
        key = os.environ.get(self.key_name, "").strip()
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise UserError(
                f"the key in {self.key_name} cannot be sent: it must be one line of ASCII characters without spaces"
            )
        return key


def is_hosted(model: Any) -> bool:
    """True for the name of a hosted model.

    >>> is_hosted("openai:gpt-x"), is_hosted("vllm:m@http://host/v1"), is_hosted("models/openai"), is_hosted(print)
    (True, True, False, False)
    """
    return isinstance(model, str) and model.partition(":")[0] in DEFAULT_URLS and ":" in model


def read_server(name: str) -> Server:
    """The server of a name; a UserError says what is wrong with it.

    >>> read_server("vllm:org/model@v2@http://10.0.0.7:8000/v1/")
    Server(model='org/model@v2', url='http://10.0.0.7:8000/v1', chat=True)
    >>> read_server("completions:base@https://host/v1").address
    'https://host/v1/completions'
    """
    match = NAME.fullmatch(name)
    if match is None:
        raise UserError(f"{name!r:.80} has no model: write {USAGE}")
    kind, model, url = match[1], match[2], match[3] or DEFAULT_URLS[match[1]]
    if not url or (match[3] is None and re.search(r"@[^/]*[:/]", model)):
        raise UserError(f"{name!r:.80} has no URL that begins with http:// or https://: write {USAGE}")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise UserError(f"{url!r:.80} is not a URL: write {USAGE}") from None
    if not parts.hostname or not url.isprintable() or " " in url:
        raise UserError(f"{url!r:.80} is not a URL: write {USAGE}")
    if parts.username is not None or parts.query or parts.fragment:
        raise UserError(
            f"the URL of {kind}:{model:.40} must have no password and nothing after ? or #: put the key into the "
            f"environment variable {KEY}"
        )
    return Server(model, url.rstrip("/"), chat=kind != "completions")
