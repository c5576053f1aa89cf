"""The JSON documents of the API, for its OpenAPI description."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, create_model

from fewest.results.record import STATUS_NAMES, fields_in

CALLED = "What the request calls the case; absent where it does not say."


class Document(BaseModel):
    """A JSON object with these members and no others."""

    model_config = ConfigDict(extra="forbid")


class ErrorParts(Document):
    """What is wrong, where, why, and what to do."""

    what: str
    where: str
    why: str
    do: str
    request_id: str


class Error(Document):
    """The body of every response that is not 200."""

    error: ErrorParts


class Prediction(Document):
    """What the model decides of a case."""

    id: str | None = Field(None, description=CALLED)
    prediction: str = Field(description="Name of the outcome.")
    positive: bool = Field(description="Whether it is the outcome that is explained (the refusal).")
    score: float | None


class ChangeBody(Document):
    """A feature that is changed."""

    feature: str
    before: Any = Field(alias="from")
    after: Any = Field(alias="to")


TYPES: dict[str, Any] = {
    "whole": int, "number": float | None, "truth": bool, "word": str, "text": str, "changes": list[ChangeBody],
    "sets": list[list[ChangeBody]],
}  # fmt: skip


def _explanation_document() -> type[Document]:
    """The document of one explanation, from the record: a dot in the name of a field leads into an object."""
    inner: dict[str, dict[str, Any]] = {}
    outer: dict[str, Any] = {"id": (str | None, Field(None, description=CALLED))}
    for field in fields_in("http"):
        inside, _, name = (field.http or field.name).rpartition(".")
        kind = TYPES[field.kind] | None if field.optional else TYPES[field.kind]
        extra: Any = {"enum": list(STATUS_NAMES)} if name == "status" else None
        described = (kind, Field(description=field.meaning, json_schema_extra=extra))
        if inside:
            outer.setdefault(inside, None)  # keeps the order of the record
            inner.setdefault(inside, {})[name] = described
        else:
            outer[name] = described
    for inside, members in inner.items():
        outer[inside] = (create_model(f"{inside.title()}Body", __base__=Document, **members), ...)
    doc = "The fewest features that change the outcome of a case."
    return create_model("ExplanationDocument", __base__=Document, __doc__=doc, **outer)


ExplanationDocument = _explanation_document()


class Predictions(Document):
    """Answer of :predict."""

    predictions: list[Prediction]


ExplanationsDocument = create_model(
    "ExplanationsDocument",
    __base__=Document,
    __doc__="Answer of :explain.",
    predictions=(list[Prediction], ...),
    explanations=(list[ExplanationDocument], ...),  # type: ignore[valid-type]
)


class FeatureDocument(Document):
    """A feature of a model."""

    name: str
    title: str
    kind: str
    columns: list[str]
    levels: list[Any]
    unit: str | None


class ModelDocument(Document):
    """A model: whether it is ready, and what it takes."""

    name: str
    ready: bool
    positive: str
    outcome: str
    threshold: float
    direction: str
    references: list[str]
    features: list[FeatureDocument]
    limits: dict[str, float]
    notes: list[str]
    instance: dict[str, Any] = Field(description="JSON Schema of an instance.")


class Models(Document):
    """Names of the models."""

    models: list[str]


class WorkerState(Document):
    """Where the workers of a model stand."""

    ready: bool
    workers: int
    busy: int
    requests: int


class Health(Document):
    """Whether the service is up; its models, for whoever has a key."""

    status: str
    models: dict[str, WorkerState] = {}
