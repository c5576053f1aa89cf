"""JSON as its standard has it: no NaN, no name twice, no number or nesting beyond what can be held."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

from fewest.apps.serving.refusals import body_refusal


def parse(body: bytes) -> Any:
    """The value of a JSON text in UTF-8, or a `RefusedError`.

    Examples
    --------
    >>> parse(b'{"instances": [{"age": 30}]}')
    {'instances': [{'age': 30}]}
    >>> parse(b'{"age": NaN}')
    Traceback (most recent call last):
    ...
    fewest.apps.serving.refusals.RefusedError: body: the body is not JSON (NaN is no JSON number)
      Try: send one JSON object in UTF-8; a missing value is null
    """
    try:
        value = json.loads(
            body.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite
        )
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # half a surrogate pair is no text
    except RecursionError:
        raise _refuse("it is nested too deeply") from None
    except UnicodeDecodeError:
        raise _refuse("it is not UTF-8") from None
    except UnicodeEncodeError:
        raise _refuse("a text holds half a surrogate pair") from None
    except json.JSONDecodeError as error:
        raise _refuse(f"{error.msg} at line {error.lineno}, column {error.colno}") from None
    except ValueError as error:
        raise _refuse(str(error).split(";")[0]) from None
    return value


def _refuse(why: str) -> Exception:
    return body_refusal("the body is not JSON", "body", why, "send one JSON object in UTF-8; a missing value is null")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the name {twice[:60]!r} stands twice in one object")
    return out


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"the number {text[:30]} is too large")
    return number
