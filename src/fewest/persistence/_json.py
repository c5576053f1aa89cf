"""JSON that cannot be trusted: of a bounded size and depth, and with one meaning only."""

from __future__ import annotations

import json
from typing import Any

from fewest.persistence._limits import JSON_BYTES, JSON_DEPTH, refused, refusing


def parse(data: bytes, name: str) -> Any:
    """Plain values of a JSON text; a key that comes twice is refused, for readers differ in which one they take.

    Examples
    --------
    >>> parse(b'{"a": [1, 2]}', "x.json")
    {'a': [1, 2]}
    >>> parse(b'{"a": 1, "a": 2}', "x.json")
    Traceback (most recent call last):
    fewest.errors.ModelError: x.json is refused: the key "a" comes twice in its JSON
      Try: ...
    """
    if len(data) > JSON_BYTES:
        raise refused(name, f"its JSON has more than {JSON_BYTES >> 20:,} MiB")

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(found)
        if len(out) < len(found):
            keys = [key for key, _ in found]
            raise refused(name, f'the key "{next(key for key in keys if keys.count(key) > 1)}" comes twice in its JSON')
        return out

    with refusing(name, "it is no JSON"):
        content = json.loads(data.decode("utf-8"), object_pairs_hook=pairs)
    check_depth(content, name)
    return content


def check_depth(content: Any, name: str) -> None:
    """Refuse values nested deeper than any model is: recursive readers would run out of stack."""
    level, depth = [content], 0
    while level:
        depth += 1
        if depth > JSON_DEPTH:
            raise refused(name, f"its JSON is nested more than {JSON_DEPTH} deep")
        level = [part for value in level for part in _parts(value)]


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [part for part in value.values() if isinstance(part, dict | list)]
    return [part for part in value if isinstance(part, dict | list)] if isinstance(value, list) else []


def as_json(content: Any) -> bytes:
    """Plain values as JSON in bytes, numbers to the last bit; what is not finite is refused.

    Examples
    --------
    >>> as_json({"a": 0.1})
    b'{"a": 0.1}'
    """
    return json.dumps(content, allow_nan=False).encode("utf-8")
