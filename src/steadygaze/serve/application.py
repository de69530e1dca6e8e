"""The application: API, page, health and metrics; errors as JSON with a code and a sentence."""

import asyncio
import re
import weakref
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, JSONResponse
from fastapi.staticfiles import StaticFiles
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Route

from steadygaze.core import __version__
from steadygaze.core.errors import UserError
from steadygaze.models.inference import NonFiniteOutput
from steadygaze.serve.api import ExplainBody, Models, PredictRequest, explained, predicted, router
from steadygaze.serve.batching import Busy
from steadygaze.serve.direct_answers import DirectAnswers, Handler
from steadygaze.serve.job_api import router as job_router
from steadygaze.serve.jobs import Jobs, TooManyJobs, UnknownJob, failure
from steadygaze.serve.security import BUSY, REFUSED, TOO_LARGE, TOO_SLOW, Access, Count, Scope, SecurityMiddleware
from steadygaze.serve.served_models import ServedData, ServedModel

STATIC = Path(__file__).parent / "static"
WRONG_INPUT = "wrong-input"
UNION_MEMBER = re.compile(r"(constrained-|list\[)")
"""Names that pydantic gives to the forms of a field with several, as text and pair."""
PROBLEMS = {
    404: ("not-found", "there is no such page"),
    408: TOO_SLOW,
    413: TOO_LARGE,
    503: BUSY,
    405: ("method", "this address does not take this method"),
}


def application(models: Sequence[ServedModel], access: Access, data: ServedData | None = None) -> Any:
    """The ASGI application of these models."""
    served, jobs = Models(models, data), Jobs()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(jobs.close)
        await served.batcher.close()

    app = FastAPI(
        title="steadygaze",
        version=__version__,
        description="Predict, explain and rewrite texts.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
    )
    app.state.models = served
    app.state.jobs = jobs
    weakref.finalize(app, jobs.close)
    app.include_router(router)
    app.include_router(job_router)
    _add_errors(app)
    if access.token is not None:
        _describe_token(app)
    count = _add_metrics(app, served)
    _add_pages(app)
    handlers: dict[str, tuple[type[BaseModel], Handler]] = {
        "/v1/predict": (PredictRequest, partial(predicted, served)),
        "/v1/explain": (ExplainBody, partial(explained, served)),
    }
    return SecurityMiddleware(DirectAnswers(app, handlers), access, count)


def problem(status: int, code: str, sentence: str) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": sentence}}, status)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(UserError)
    @app.exception_handler(NonFiniteOutput)
    async def user_error(request: Request, error: Exception) -> Response:
        return problem(422, "not-possible", str(error))

    @app.exception_handler(UnknownJob)
    async def unknown_job(request: Request, error: UnknownJob) -> Response:
        return problem(404, "unknown-job", str(error))

    @app.exception_handler(TooManyJobs)
    async def too_many_jobs(request: Request, error: TooManyJobs) -> Response:
        return problem(409, "too-many-jobs", str(error))

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part != "body" and not UNION_MEMBER.match(str(part)))
        return problem(400, WRONG_INPUT, f"{place or 'the body'}: {first['msg']}")

    @app.exception_handler(ClientDisconnect)
    async def disconnected(request: Request, error: ClientDisconnect) -> Response:
        """Nobody receives it."""
        return problem(400, WRONG_INPUT, "the client has closed the connection")

    @app.exception_handler(Busy)
    async def busy(request: Request, error: Busy) -> Response:
        return problem(503, *BUSY)

    @app.exception_handler(TimeoutError)
    async def late(request: Request, error: TimeoutError) -> Response:
        return problem(504, "timeout", "the model needed too long: send fewer or shorter texts")

    @app.exception_handler(Exception)
    async def internal(request: Request, error: Exception) -> Response:
        """The server prints the error, too."""
        return problem(500, "internal", failure(error))

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        status = request.scope.get(REFUSED, error.status_code)
        code = WRONG_INPUT if status == 400 else "error"
        answer = problem(status, *PROBLEMS.get(status, (code, str(error.detail))))
        if status == 405:
            answer.headers["Allow"] = ", ".join(_methods(app, request.url.path))
        return answer


def _describe_token(app: FastAPI) -> None:
    """State in the OpenAPI document that every request needs the token."""
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        document = describe()
        document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        document["security"] = [{"token": []}]
        return document

    app.openapi = openapi  # type: ignore[method-assign]


def _methods(app: FastAPI, path: str) -> list[str]:
    """The methods of an address, which may belong to several routes."""
    routes = [route for route in app.routes if isinstance(route, Route) and route.path_regex.match(path)]
    return sorted({method for route in routes for method in route.methods or ()})


def _add_metrics(app: FastAPI, served: Models) -> Count:
    registry = CollectorRegistry()
    requests = Counter("steadygaze_requests", "Requests", ["path", "status"], registry=registry)
    seconds = Histogram("steadygaze_request_seconds", "Seconds of a request", ["path"], registry=registry)
    Gauge("steadygaze_waiting", "Texts that wait", registry=registry).set_function(lambda: served.batcher.waiting)
    Gauge("steadygaze_batches", "Batches so far", registry=registry).set_function(lambda: served.batcher.batches)
    Gauge("steadygaze_texts", "Texts so far", registry=registry).set_function(lambda: served.batcher.items)

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return Response(generate_latest(registry), media_type="text/plain; version=0.0.4")

    number, time = cache(requests.labels), cache(seconds.labels)  # `labels` checks its arguments each time

    def count(scope: Scope, status: int, duration: float) -> None:
        path = getattr(scope.get("route"), "path", "other")
        number(path, status).inc()
        time(path).observe(duration)

    return count


def _add_pages(app: FastAPI) -> None:
    @app.get("/healthz", include_in_schema=False)
    async def health() -> dict[str, str]:
        return {"status": "ok", "version": __version__}

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(STATIC / "workbench.html", media_type="text/html; charset=utf-8")

    app.mount("/static", StaticFiles(directory=STATIC), name="static")
