"""The REST API: its requests, its answers and its errors."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any, cast

import orjson
from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from steadygaze.core.errors import UserError
from steadygaze.core.types import Example
from steadygaze.data.text_checks import EmptyTexts, check_texts, is_empty
from steadygaze.estimator.explain_request import ExplainRequest, Granularity
from steadygaze.explainers.class_probability import Output
from steadygaze.models.inference import selects
from steadygaze.results.explanation import Explanation
from steadygaze.results.health import HealthProblem
from steadygaze.serve.audit_job import guard
from steadygaze.serve.batching import LARGEST_BATCH, Batcher
from steadygaze.serve.json_bodies import MOST_AUDITED_VALUES, MOST_VALUES, read_json
from steadygaze.serve.security import AUDITS, EARLIER, GONE, current_scope
from steadygaze.serve.served_models import ServedData, ServedModel, shift

MOST_CHARACTERS = 20_000
"""Of one text."""
MOST_TEXTS = 256
"""Of one request."""
LONG_TEXT = 2_000
"""Characters of a text whose explanation takes as long to convert as other requests take in all."""
SECONDS = 60.0
"""After which a request is given up."""

Text = Annotated[str, Field(min_length=1, max_length=MOST_CHARACTERS)]
Pair = Annotated[list[Text], Field(min_length=2, max_length=2)]
OptionalText = Annotated[str, Field(max_length=MOST_CHARACTERS)]
OptionalPair = Annotated[list[OptionalText | None], Field(min_length=2, max_length=2)]
Name = Annotated[str, Field(max_length=200)]


def _whole(value: Any) -> Any:
    """JSON has one kind of number: 7.0 is the integer 7."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_whole)


Seed = Annotated[int, Field(ge=0, le=(1 << 31) - 1), WHOLE]
OPTIONS = {item.name for item in fields(ExplainRequest)} - {"texts"}


class StrictModel(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class PredictRequest(StrictModel):
    """Texts, or pairs of text and question.  An empty text has the result null, and `warnings` names it."""

    model: Name | None = Field(None, description="Name of the model; the first one if left out.")
    texts: Annotated[list[OptionalText | OptionalPair | None], Field(min_length=1, max_length=MOST_TEXTS)]


class ExplainBody(PredictRequest):
    """The options of `sg.explain`, except those that determine the cost."""

    explainer: Name | None = Field(None, description="Name of an explainer of the model; its default if left out.")
    target: Name | None = Field(None, description="Class to explain; the predicted one if left out.")
    granularity: Granularity = "word"
    output: Output | None = Field(None, description="Explain the probability or the logit of the class.")
    seed: Seed = 0


class ShiftRequest(StrictModel):
    """A text and its rewrite."""

    model: Name | None = None
    before: Text | Pair
    after: Text | Pair
    explainer: Name | None = None
    target: Name | None = None


class SynonymsRequest(StrictModel):
    """A word; with its text, only synonyms that the certificate of the text covers."""

    model: Name | None = None
    word: Annotated[str, Field(min_length=1, max_length=100)]
    text: Text | None = None
    start: Annotated[int, Field(ge=0, le=MOST_CHARACTERS), WHOLE] = Field(0, description="First character of the word.")


class Choice(StrictModel):
    model: Name
    explainer: Name | None = None
    target: Name | None = None


class CompareRequest(StrictModel):
    """One text for several models and explainers."""

    text: Text | Pair
    choices: Annotated[list[Choice], Field(min_length=1, max_length=20)]


class CertifyRequest(StrictModel):
    model: Name | None = None
    text: Text | Pair


class Models:
    """The models of the server, called by one thread, and the data that it offers."""

    def __init__(self, models: Sequence[ServedModel], data: ServedData | None = None, seconds: float = SECONDS) -> None:
        self.by_name = {model.name: model for model in models}
        for model in models:
            guard(model.adapter)
            model.facts  # noqa: B018  reads the whole synonym table, before there are requests
        self.data = data
        examples = () if data is None else data.examples
        self.sentences = {e.text: e.sentences for e in examples if e.sentences is not None and e.question is None}
        self.batcher = Batcher(self._work, size=self.batch_size)
        self.seconds = seconds

    def find(self, name: str | None) -> ServedModel:
        if name is None:
            return next(iter(self.by_name.values()))
        if name not in self.by_name:
            raise UserError(f"there is no model {name!r:.80}; models: {', '.join(self.by_name)}")
        return self.by_name[name]

    def batch_size(self, kind: tuple[Any, ...], item: Any) -> float:
        """As how many items a text counts in a batch: a long text with an expensive explanation is alone."""
        method, name, *arguments = kind
        if method == "predict" or (method == "explain" and not self.by_name[name].is_expensive(arguments[0].explainer)):
            return 1.0
        characters = len(item) if isinstance(item, str) else sum(map(len, item))
        return 1.0 + LARGEST_BATCH * characters / MOST_CHARACTERS

    def _work(self, kind: tuple[Any, ...], items: Sequence[Any]) -> Sequence[Any]:
        method, name, *arguments = kind
        model = self.by_name[name]
        model.bound_vocabulary()
        if method == "certify":
            return model.certify(items)
        if selects(model.adapter.model) and not self.sentences.keys().isdisjoint(items):  # texts of the data
            items = [Example(text, sentences=self.sentences.get(text)) for text in items]
        return model.predict(items) if method == "predict" else model.explain(items, *arguments)

    async def call(self, kind: Hashable, inputs: Sequence[Any], seconds: float | None = SECONDS) -> list[Any]:
        """One result for each text; texts of several requests are processed together."""
        futures: list[asyncio.Future[Any]] = []

        def end(error: Exception) -> None:
            for future in futures:
                if not future.done():  # the first one is awaited
                    future.set_exception(error)
                    return

        timer = None
        try:
            for item in inputs:
                futures.append(self.batcher.submit(kind, item))
            if seconds is not None:  # cheaper than asyncio.timeout
                timer = asyncio.get_running_loop().call_later(self.seconds, end, TimeoutError())
            if (scope := current_scope.get()) is not None:
                scope.setdefault(GONE, []).append(end)
            return [await future for future in futures]
        finally:
            if timer is not None:
                timer.cancel()
            for future in futures:  # if one fails, the others are not computed
                if not future.cancel() and not future.cancelled():
                    future.exception()  # asyncio prints errors that no caller has read

    async def explain(self, body: ExplainBody | ShiftRequest | Choice, inputs: Sequence[Any]) -> list[Explanation]:
        model = self.find(body.model)
        model.check_explainer(body.explainer)
        request = ExplainRequest(**body.model_dump(include=OPTIONS))
        return await self.call(("explain", model.name, request), checked_inputs(model, inputs))


async def results_of_nonempty(
    texts: Sequence[Any], call: Callable[[list[Any]], Awaitable[list[Any]]]
) -> tuple[list[Any], list[str]]:
    """The result of each text, None for an empty one, and the warning that names these."""
    empty, rows = EmptyTexts(), []
    for row, text in enumerate(texts):
        if any(map(is_empty, text if isinstance(text, list) else [text])):
            empty.add(f"texts[{row}]")
        else:
            rows.append(row)
    results = dict(zip(rows, await call([texts[row] for row in rows]), strict=True))
    return [results.get(row) for row in range(len(texts))], [empty.sentence] * bool(empty.count)


def checked_inputs(model: ServedModel, texts: Sequence[str | list[str]]) -> list[Any]:
    """Texts or pairs, as the model reads them."""
    return [_input(model, text) for text in texts]


def _input(model: ServedModel, text: str | list[str]) -> str | tuple[str, str]:
    """A text, or a pair of text and question; an empty one is refused."""
    check_texts([text] if isinstance(text, str) else text, location=("the text", "the question").__getitem__)
    if isinstance(text, str):
        if model.adapter.pair:
            raise UserError(f"{model.name} reads pairs: send [text, question]")
        return text
    if model.adapter.pair is False:
        raise UserError(f"{model.name} reads single texts: send strings, not pairs")
    return text[0], text[1]


def models_of(request: Request) -> Models:
    if (error := request.scope.get(EARLIER)) is not None:
        raise error
    models: Models = request.app.state.models
    return models


class Problem(BaseModel):
    code: str
    message: str = Field(description="The problem, and how to fix it.")


class ProblemAnswer(BaseModel):
    error: Problem


PROBLEM_ANSWERS: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemAnswer, "description": description}
    for status, description in {
        400: "The request does not have this form",
        401: "The token is missing or wrong",
        403: "The request comes from a page of another server",
        404: "There is no such address or job",
        408: "The request arrives too slowly",
        409: "No further job is accepted",
        413: "The request is too large",
        415: "The content type is not accepted",
        422: "The model or the data do not allow the request",
        429: "Too many requests",
        500: "The model or the server failed",
        503: "The server is busy",
        504: "The model needs too long",
    }.items()
}


class JsonRequest(Request):
    """A request whose errors of JSON are sentences, and whose objects have few keys."""

    async def json(self) -> Any:
        if not hasattr(self, "_json"):
            most_values = MOST_AUDITED_VALUES if self.scope["path"] == AUDITS else MOST_VALUES
            try:
                self._json = await read_json(await self.body(), most_values)
            except UserError as error:
                raise HTTPException(400, str(error)) from None
        return self._json


class JsonRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_json(request: Request) -> Response:
            return await handle(JsonRequest(request.scope, request.receive))

        return handle_json


router = APIRouter(prefix="/v1", responses=PROBLEM_ANSWERS, route_class=JsonRoute)
Answer = Mapping[str, Any]


class Json(Response):
    """JSON, without the conversion that FastAPI makes of other values."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        try:
            return orjson.dumps(content, option=orjson.OPT_NON_STR_KEYS)
        except TypeError:  # a text with half of a surrogate pair
            return json.dumps(content).encode()


def answer(**values: Any) -> Answer:
    """The body as a response; to FastAPI's document it is the mapping."""
    response: Any = Json(values)
    return cast(Answer, response)


@dataclass(frozen=True, kw_only=True)
class ProblemOfModel(HealthProblem):
    """A known-bad state of a model, such as collapsed attention."""

    message: str
    """The state in words."""


class ModelAnswer(BaseModel):
    """The answer of a model; `health` is empty unless the model is in a known-bad state."""

    model_config = ConfigDict(extra="allow")

    model: str
    health: list[ProblemOfModel]


MODEL_ANSWER: dict[int | str, dict[str, Any]] = {200: {"model": ModelAnswer, "description": "The result of the model"}}


@router.get("/models", summary="The models and what they support")
async def list_models(request: Request) -> Answer:
    models = models_of(request)
    data = None if models.data is None else {"name": models.data.name, "texts": len(models.data.examples)}
    return answer(models=[model.facts for model in models.by_name.values()], data=data)


@router.post("/predict", summary="Predict the classes of texts", responses=MODEL_ANSWER)
async def predict(body: PredictRequest, request: Request) -> Answer:
    return await predicted(models_of(request), body)


async def predicted(models: Models, body: PredictRequest) -> Answer:
    model = models.find(body.model)
    rows, warnings = await results_of_nonempty(
        body.texts, lambda texts: models.call(("predict", model.name), checked_inputs(model, texts))
    )
    return answer(model=model.name, health=model.health, warnings=warnings, predictions=rows)


@router.post("/explain", summary="Explain the predictions of texts", responses=MODEL_ANSWER)
async def explain(body: ExplainBody, request: Request) -> Answer:
    return await explained(models_of(request), body)


async def explained(models: Models, body: ExplainBody) -> Answer:
    explanations, warnings = await results_of_nonempty(body.texts, lambda texts: models.explain(body, texts))
    model, rows = models.find(body.model), []
    for explanation in explanations:
        rows.append(None if explanation is None else explanation.to_dict())
        if explanation is not None and len(explanation.text) > LONG_TEXT:
            await asyncio.sleep(0)  # other requests are answered between long texts
    return answer(model=model.name, health=model.health, warnings=warnings, explanations=rows)


def shown(explanation: Explanation) -> dict[str, Any]:
    """The explanation with the strength of each word's color: pages draw what all other outputs draw."""
    return {**explanation.to_dict(), "shading": explanation.shading()}


@router.post("/shift", summary="Compare a text and its rewrite", responses=MODEL_ANSWER)
async def compare_texts(body: ShiftRequest, request: Request) -> Answer:
    models = models_of(request)
    if isinstance(body.before, str) != isinstance(body.after, str):
        raise UserError("before and after must be two texts or two pairs")
    before, after = await models.explain(body, [body.before, body.after])
    model, sides = models.find(body.model), {"before": shown(before), "after": shown(after)}
    return answer(model=model.name, health=model.health, **sides, shift=shift(before, after))


@router.post("/synonyms", summary="Synonyms of a word in the table of the server")
async def synonyms(body: SynonymsRequest, request: Request) -> Answer:
    model = models_of(request).find(body.model)
    return answer(word=body.word, synonyms=model.alternatives(body.word, body.text, body.start))


@router.post("/compare", summary="Compare models and explainers on one text")
async def compare_models(body: CompareRequest, request: Request) -> Answer:
    models = models_of(request)
    parts = await asyncio.gather(*(models.explain(choice, [body.text]) for choice in body.choices))
    explanations = [part[0] for part in parts]
    results = [
        {"model": choice.model, "explanation": shown(explanation), "difference": shift(explanations[0], explanation)}
        for choice, explanation in zip(body.choices, explanations, strict=True)
    ]
    return answer(results=results)


@router.post(
    "/certify",
    summary="Certify a prediction against changes of attention weights and words",
    responses=MODEL_ANSWER,
)
async def certify(body: CertifyRequest, request: Request) -> Answer:
    models = models_of(request)
    model = models.find(body.model)
    (certificate,) = await models.call(("certify", model.name), checked_inputs(model, [body.text]))
    return answer(model=model.name, health=model.health, **certificate)


@router.get("/data", summary="Texts of the data of the server")
async def data_texts(
    request: Request,
    offset: Annotated[int, Query(ge=0, le=1 << 31)] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 20,
) -> Answer:
    data = models_of(request).data
    if data is None:
        raise UserError("the server was started without data")
    rows = [
        {"text": e.text, "question": e.question, "label": None if e.label is None else str(e.label)}
        for e in data.examples[offset : offset + limit]
    ]
    return answer(name=data.name, total=len(data.examples), texts=rows)
