"""The part of the REST API that works in the background: files, audits and their jobs."""

import asyncio
import os
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import FileResponse
from pydantic import Field, StringConstraints

from steadygaze.adapters.bulk import BulkTask, Source
from steadygaze.auditing.audit import examples_of
from steadygaze.core.errors import UserError
from steadygaze.core.settings import build
from steadygaze.core.types import Example, Removal
from steadygaze.estimator.explain_request import ExplainRequest
from steadygaze.results.audit_config import AuditConfig
from steadygaze.serve.api import (
    PROBLEM_ANSWERS,
    WHOLE,
    Answer,
    JsonRoute,
    Models,
    Name,
    Pair,
    Seed,
    StrictModel,
    Text,
    answer,
    checked_inputs,
    models_of,
)
from steadygaze.serve.audit_job import AuditResult, run_audit_job
from steadygaze.serve.batching import Busy
from steadygaze.serve.file_job import check_upload, explain_file, upload_path
from steadygaze.serve.jobs import FINISHED, Job, Jobs, TooManyJobs, UnknownJob
from steadygaze.serve.served_models import ServedModel

MOST_AUDITED = 5000
"""Texts of an audit in one request."""
MOST_ROWS = 200
"""Texts of one answer."""
CHOICES = ("explainers", "limit", "sample", "k", "radius", "removal", "seed", "target", "threshold")
"""Fields of a request that are settings of an audit."""
MEDIA = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "html": "text/html",
    "json": "application/json",
}

Label = Annotated[str, Field(max_length=1000)] | Annotated[int, Field(ge=-(1 << 53), le=1 << 53), WHOLE]
Identifier = Annotated[str, StringConstraints(pattern="^[0-9a-f]{16}$")]
ShortText = Annotated[str, Query(max_length=200)]


class AuditBody(StrictModel):
    """Texts with their labels; without texts, the data of the server."""

    model: Name | None = None
    texts: Annotated[list[Text | Pair], Field(min_length=1, max_length=MOST_AUDITED, fail_fast=True)] | None = None
    labels: Annotated[list[Label], Field(max_length=MOST_AUDITED, fail_fast=True)] | None = None
    explainers: Annotated[list[Name], Field(max_length=10, default_factory=list)]
    limit: Annotated[int, Field(ge=0, le=1 << 31), WHOLE] | None = Field(
        None, description="Texts, drawn at random; 0: all."
    )
    sample: Annotated[int, Field(ge=1, le=1 << 31), WHOLE] | None = Field(
        None, description="Texts for expensive measures."
    )
    k: Annotated[int, Field(ge=1, le=1000), WHOLE] = 7
    radius: Annotated[float, Field(ge=0, le=10)] = 0.1
    removal: Removal = "delete"
    seed: Seed = 0
    target: Name | None = None
    threshold: Annotated[float, Field(allow_inf_nan=False)] | None = None


router = APIRouter(prefix="/v1", responses=PROBLEM_ANSWERS, route_class=JsonRoute)


def jobs_of(request: Request) -> Jobs:
    jobs: Jobs = request.app.state.jobs
    return jobs


@router.post("/audit", status_code=202, summary="Audit a model in the background")
async def audit(body: AuditBody, request: Request) -> Answer:
    models, jobs = models_of(request), jobs_of(request)
    model = models.find(body.model)
    examples, corpus = await asyncio.to_thread(_examples, body, model, models)  # the texts may have 16 MiB
    for name in body.explainers:
        model.check_explainer(name)
    chosen = {name: getattr(body, name) for name in CHOICES}
    config = build(AuditConfig, {"model": model.name, "data": corpus, **chosen})
    job = jobs.create("audit", corpus, model.name)
    jobs.start(job, partial(run_audit_job, model=model, examples=examples, config=config))
    return job.facts


def _examples(body: AuditBody, model: ServedModel, models: Models) -> tuple[list[Example], str]:
    if body.texts is None:
        if models.data is None:
            raise UserError("there are no texts to audit: the server was started without data")
        if body.labels is not None:
            raise UserError("labels belong to texts: send both, or neither")
        return list(models.data.examples), models.data.name
    return examples_of(checked_inputs(model, body.texts), body.labels, None), "texts of a request"


@router.post(
    "/explain-file",
    status_code=202,
    summary="Explain every row of a file in the background",
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": "The file: csv, tsv, jsonl, parquet or txt, as the name says.",
            "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
        }
    },
)
async def explain_upload(
    request: Request,
    name: Annotated[str, Query(min_length=1, max_length=255, description="File name; its suffix is the format.")],
    text: Annotated[list[ShortText], Query(max_length=2, description="Text column; two for pairs.")] = ["text"],  # noqa: B006
    model: ShortText | None = None,
    explainer: ShortText | None = None,
    target: ShortText | None = None,
    drop_empty: bool = False,
) -> Answer:
    models, jobs = models_of(request), jobs_of(request)
    served = models.find(model)
    served.check_explainer(explainer)
    options = ExplainRequest(None, explainer, target)
    served.adapter.explain_function(options)
    job = jobs.create("explain", name, served.name)
    try:
        path = upload_path(job.folder, name)
        await _store(request, path)
        source = Source(path, tuple(text), drop_empty)
        await asyncio.to_thread(check_upload, source, served.adapter.pair)
    except BaseException as error:
        is_deleted = job.stop.is_set()
        jobs.remove(job)
        if is_deleted and isinstance(error, OSError | UserError):  # its files are gone
            raise UnknownJob("the job was canceled during the upload") from None
        raise
    loop = asyncio.get_running_loop()
    kind = "explain", served.name, options

    def call(texts: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(_patient_call(models, kind, texts), loop).result()

    jobs.start(job, partial(explain_file, source=source, task=BulkTask(served.adapter, options), call=call))
    return job.facts


async def _store(request: Request, path: Path) -> None:
    try:
        await _write(request, path)
    except OSError as error:
        raise TooManyJobs(f"the server cannot store the file: {os.strerror(error.errno or 0)}; delete a job") from None


async def _write(request: Request, path: Path) -> None:
    with path.open("xb") as file:
        async for chunk in request.stream():
            file.write(chunk)


async def _patient_call(models: Models, kind: Any, texts: Any) -> list[Any]:
    while True:
        try:
            return await models.call(kind, texts, None)
        except Busy:
            await asyncio.sleep(0.2)


@router.get("/jobs", summary="All jobs")
async def list_jobs(request: Request) -> Answer:
    return answer(jobs=[job.facts for job in jobs_of(request).list()])


@router.get("/jobs/{identifier}", summary="State and progress of a job")
async def show_job(identifier: Identifier, request: Request) -> Answer:
    return jobs_of(request).find(identifier).facts


@router.post("/jobs/{identifier}/cancel", summary="Cancel a job")
async def cancel_job(identifier: Identifier, request: Request) -> Answer:
    jobs = jobs_of(request)
    job = jobs.find(identifier)
    jobs.cancel(job)
    return job.facts


@router.delete("/jobs/{identifier}", summary="Cancel a job and delete its files", status_code=204)
async def delete_job(identifier: Identifier, request: Request) -> Response:
    jobs = jobs_of(request)
    await asyncio.to_thread(jobs.remove, jobs.find(identifier))
    return Response(status_code=204)


@router.get("/jobs/{identifier}/result", summary="Download the result of a job", response_class=FileResponse)
async def job_result(
    identifier: Identifier, request: Request, format: Literal["csv", "parquet", "html", "json"]
) -> Response:
    job = _finished(request, identifier)
    path = job.folder / f"result.{format}"
    if not path.is_file():
        raise UserError(f"this job has no result as {format}; formats: {', '.join(job.facts['formats'])}")
    name = f"{'explained' if job.kind == 'explain' else 'audit'}-{job.id}.{format}"
    return FileResponse(path, media_type=MEDIA[format], filename=name)


def _finished(request: Request, identifier: str) -> Job:
    job = jobs_of(request).find(identifier)
    if job.state != "done":
        reason = job.message or ("it is not finished" if job.state not in FINISHED else f"it was {job.state}")
        raise UserError(f"the job has no result: {reason}")
    return job


@router.get("/jobs/{identifier}/report", summary="The numbers and verdicts of an audit")
async def audit_report(identifier: Identifier, request: Request) -> Answer:
    result = _audited(request, identifier)
    report = result.report
    verdicts = [{"title": v.title, "answer": v.answer, "why": v.why, "caveat": v.caveat} for v in report.verdicts]
    labels = sorted({text.label for text in result.texts if text.label is not None})
    return {
        "health": report.health.to_list(),
        "facts": dict(report.facts),
        "notes": [note.to_dict() for note in report.notes],
        "verdicts": verdicts,
        "rows": result.numbers(),
        "texts": len(result.texts),
        "labels": labels,
    }


@router.get("/jobs/{identifier}/texts", summary="The texts behind the numbers of an audit")
async def audit_texts(
    identifier: Identifier,
    request: Request,
    order: Annotated[str, Query(max_length=200, description="A measure, errors, or order; the worst first.")] = "order",
    label: Annotated[str, Query(max_length=1000)] | None = None,
    wrong: bool | None = None,
    word: Annotated[str, Query(max_length=100)] | None = None,
    offset: Annotated[int, Query(ge=0, le=1 << 31)] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_ROWS)] = 20,
) -> Answer:
    matches = _audited(request, identifier).select(order, label, wrong, word)
    rows = [
        {
            "row": position,
            "text": text.text,
            "question": text.question,
            "label": text.label,
            "predicted": text.predicted,
            "probability": text.probability,
            "wrong": text.is_wrong,
            "values": dict(text.values),
        }
        for position, text in matches[offset : offset + limit]
    ]
    return answer(total=len(matches), texts=rows)


def _audited(request: Request, identifier: str) -> AuditResult:
    result = _finished(request, identifier).result
    if not isinstance(result, AuditResult):
        raise UserError("this job is not an audit")
    return result
