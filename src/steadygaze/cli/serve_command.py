"""The command `serve`: the web workbench and its REST API."""

import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from steadygaze.cli import app
from steadygaze.cli import shared_options as shared
from steadygaze.cli.command_options import (
    Common,
    command_help,
    common_options,
    data_option,
    model_options,
    runtime_option,
)
from steadygaze.cli.load_models import load_adapter
from steadygaze.cli.printing import print_line, stderr_console
from steadygaze.core.errors import UserError
from steadygaze.results.model_options import ModelOptions

if TYPE_CHECKING:
    import socket

    from steadygaze.serve.served_models import ServedData, ServedModel

INSTALL = "the workbench needs FastAPI and uvicorn: pip install 'steadygaze[serve]'"
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


@app.command(
    **command_help(
        "serve model/ other-model/ --synonyms synonyms.jsonl",
        "serve hub-model/ --classes negative,positive --data reviews.csv --label rating",
        "serve model/ --host 0.0.0.0 --token $TOKEN --name audit.example.org:8000",
    )
)
@common_options("seed", "json", "verbose")
@model_options()
def serve(
    models: Annotated[list[str], typer.Argument(metavar="MODEL...", help=shared.CLASSIFIER)],
    options: ModelOptions,
    synonyms: shared.Synonyms = None,
    data: Annotated[
        str | None, data_option("--data", metavar="DATA", help=f"Texts to audit and to pick from. {shared.DATA}")
    ] = None,
    split: shared.Split = None,
    text: shared.TextColumn = None,
    label: shared.LabelIfAny = None,
    rationales: shared.RationalesColumn = None,
    sentences: shared.SentencesColumn = None,
    drop_empty: shared.DropEmpty = False,
    host: Annotated[
        str, runtime_option("--host", help="Address to listen on; others than this machine need --token.")
    ] = "127.0.0.1",
    port: Annotated[int, runtime_option("--port", min=0, max=65535, help="Port; 0: any free one.")] = 8000,
    token: Annotated[
        str | None,
        runtime_option(
            "--token", envvar="STEADYGAZE_TOKEN", help="Token that every request needs, at least 16 characters."
        ),
    ] = None,
    names: Annotated[
        list[str] | None, runtime_option("--name", metavar="HOST:PORT", help="Further name of this server; repeatable.")
    ] = None,
    rate: Annotated[
        float,
        runtime_option("--rate", min=1, metavar="N", help="Requests per second of one client; bursts: twice as many."),
    ] = 200,
    *,
    common: Common,
) -> None:
    """Start the web workbench: change words of a text and compare predictions and explanations."""
    check_exposure(host, token)
    try:
        from steadygaze.serve.application import application
        from steadygaze.serve.security import Access
    except ImportError:
        raise UserError(INSTALL) from None
    if data is None and sentences is not None:
        raise UserError("--sentences names a column of the data: give --data DATA")
    columns = {"text": tuple(text or ("text",)), "label": label, "rationales": rationales, "sentences": sentences}
    if data is not None:
        check_data(data, columns)
    served = load_models(models, synonyms, options, common)
    texts = None if data is None else load_data(data, {**columns, "drop_empty": drop_empty}, split, served, common)
    with free_socket(host, port) as listener:
        port = listener.getsockname()[1]
        name = "localhost" if host in ("0.0.0.0", "::") else _in_address(host)
        print_line(stderr_console(common), f"http://{name}:{port}  (Ctrl-C ends it)")
        uvicorn_server(
            application(served, Access(host_names(host, port, names or ()), token, rate, 2 * rate), texts)
        ).run(sockets=[listener])


def _in_address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def host_names(host: str, port: int, names: Sequence[str]) -> frozenset[str]:
    """The values of Host that the server answers; browsers leave out port 80."""
    own = [*LOOPBACK_NAMES, _in_address(host)]
    return frozenset([*(f"{name}:{port}" for name in own), *(own if port == 80 else ()), *names])


def uvicorn_server(app: Any) -> Any:
    """A server with limits of time, size and connections."""
    import uvicorn

    from steadygaze.serve.connections import BoundedProtocol
    from steadygaze.serve.server_log import LOGGING

    config = uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        proxy_headers=False,  # X-Forwarded-For would choose the client whose rate is limited
        log_level="warning",
        access_log=False,
        log_config=LOGGING,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=10,
        server_header=False,
    )
    return uvicorn.Server(config)


def check_exposure(host: str, token: str | None) -> None:
    """Refuse to listen beyond this machine without a token."""
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        raise UserError("--token has characters that a header cannot have: use letters and digits")
    if token is not None and len(token) < 16:
        raise UserError("--token is too short: use at least 16 random characters, as of: openssl rand -hex 16")
    try:
        loopback = ipaddress.ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if not loopback and token is None:
        raise UserError(f"--host {host} is reachable from other machines: add --token TOKEN")


def free_socket(host: str, port: int) -> "socket.socket":
    """A listening socket: clients can connect to its address before the server has started."""
    import socket

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.socket(family)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        raise UserError(f"cannot listen on {host}:{port}: {os.strerror(error.errno or 0)}; choose --port 0") from None
    return listener


def check_data(data: str, columns: dict[str, Any]) -> None:
    """Refuse a missing file or column before a model is loaded."""
    from steadygaze.data.corpora import check_columns

    check_columns(data, **columns)


def load_data(
    data: str, columns: dict[str, Any], split: str | None, served: "list[ServedModel]", common: Common
) -> "ServedData":
    """The texts of a split; labels as the first model reads them."""
    from steadygaze.data.corpora import load_corpus
    from steadygaze.serve.served_models import ServedData

    corpus = load_corpus(data, **columns, data_dir=common.data_dir, task=served[0].adapter.task)
    return ServedData(corpus.name, corpus.splits[corpus.choose(split)])


def load_models(models: list[str], synonyms: Path | None, options: ModelOptions, common: Common) -> "list[ServedModel]":
    """The models under different names; the options are those of every model."""
    from steadygaze.data.synonym_tables import as_table
    from steadygaze.serve.served_models import ServedModel

    table = {} if synonyms is None else as_table(synonyms, folded=True)
    served: dict[str, ServedModel] = {}
    for path in models:
        adapter = load_adapter(path, options, common, is_one_of_several=len(set(models)) > 1)
        name, number = adapter.name, 2
        while name in served:
            name, number = f"{adapter.name} ({number})", number + 1
        served[name] = ServedModel(name, adapter, table, common.batch_size)
    return list(served.values())
