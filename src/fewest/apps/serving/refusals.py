"""What a client is told when there is no answer: one shape for every error."""

from __future__ import annotations

from typing import Any

from fewest.errors import FewestError

PARTS = ("what", "where", "why", "do")


class RefusedError(FewestError):
    """A request that gets no answer, and what its client is told.

    Parameters
    ----------
    status : int
        HTTP status.
    what, where, why, do : str
        What is wrong, in which part of the request, for what reason, and what helps.
    retry_after : float, optional
        Seconds after which asking again makes sense.
    headers : dict, optional
        Further headers.

    Examples
    --------
    >>> refusal = RefusedError(404, "there is no model x", "path", "the models are a, b", "use one of these names")
    >>> refusal.content()["what"]
    'there is no model x'
    """

    def __init__(
        self, status: int, what: str, where: str, why: str, do: str, *,
        retry_after: float | None = None, headers: dict[str, str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(f"{where}: {what} ({why})", do)
        self.status = status
        self.parts = dict(zip(PARTS, (what, where, why, do), strict=True))
        self.retry_after = retry_after
        self.headers = headers or {}

    def content(self) -> dict[str, Any]:
        """The parts, as the error's JSON holds them."""
        return dict(self.parts)

    @classmethod
    def from_content(cls, status: int, content: dict[str, Any], retry_after: float | None = None) -> RefusedError:
        """A refusal that came from a worker as JSON."""
        return cls(status, *(str(content.get(part, "")) for part in PARTS), retry_after=retry_after)


def body_refusal(what: str, where: str, why: str, do: str) -> RefusedError:
    """The body is not what the API takes: 400."""
    return RefusedError(400, what, where, why, do)


def instance_refusal(what: str, where: str, why: str, do: str) -> RefusedError:
    """An instance does not fit the model: 422."""
    return RefusedError(422, what, where, why, do)
