"""What comes in from forms: small, urlencoded, counted while it is read."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request

from fewest.errors import DataError

LARGEST = 64_000
MOST_FIELDS = 4_000


class NotThereError(DataError):
    """What an address names does not exist; the page says so with 404."""


async def read_body(request: Request) -> dict[str, str]:
    """The fields of a form that was sent; a name that comes twice counts once."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415, "Only plain forms are taken.")
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > LARGEST:
            raise HTTPException(413, "This form is too large.")
    try:
        return dict(parse_qsl(data.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS))
    except ValueError as error:
        raise HTTPException(400, "This form cannot be read.") from error


def is_row(text: str) -> bool:
    """Whether a text can be the number of a case.

    Examples
    --------
    >>> is_row("95"), is_row("-1"), is_row("age"), is_row("9" * 20)
    (True, False, False, False)
    """
    return text.isdecimal() and text.isascii() and len(text) <= 12
