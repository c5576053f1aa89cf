"""The JSON documents of the API, for its OpenAPI description."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


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

    prediction: str = Field(description="Name of the outcome.")
    positive: bool = Field(description="Whether it is the outcome that is explained (the refusal).")
    score: float | None


class ChangeBody(Document):
    """A feature that is changed."""

    feature: str
    before: Any = Field(alias="from")
    after: Any = Field(alias="to")


class ProofBody(Document):
    """What is known of an answer, and how."""

    minimal: bool = Field(description="Whether nothing smaller is proved to turn the decision.")
    verified: bool = Field(description="Whether the model, called on the values shown, was seen to turn.")
    strategy: str
    nodes: int


class ExplanationDocument(Document):
    """The fewest features that turn the decision on a case."""

    status: str = Field(
        json_schema_extra={"enum": ["EXPLAINED", "ALREADY_NEGATIVE", "UNREACHABLE", "NOT_CREDIBLE", "BUDGET"]}
    )
    sev: int | None = Field(description="Number of features changed; null unless EXPLAINED.")
    sentence: str
    changes: list[ChangeBody]
    score: float | None
    score_after: float | None
    lower_bound: float | None = Field(
        description="Nothing with fewer features (or of less cost) turns the decision; null where nothing at all does."
    )
    proof: ProofBody
    reference: str | None
    alternatives: list[list[ChangeBody]]
    all_listed: bool


class Predictions(Document):
    """Answer of :predict."""

    predictions: list[Prediction]


class ExplanationsDocument(Document):
    """Answer of :explain."""

    predictions: list[Prediction]
    explanations: list[ExplanationDocument]


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
    """Whether the service is up."""

    status: str
    models: dict[str, WorkerState]
