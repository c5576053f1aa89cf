"""Universal Binary JSON as XGBoost writes it: values of a bounded depth, and no array longer than its bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from fewest.persistence._limits import JSON_DEPTH, refused, refusing

# Marker -> numpy's name of the number. All are big-endian.
NUMBERS = {"i": ">i1", "U": ">u1", "I": ">i2", "l": ">i4", "L": ">i8", "d": ">f4", "D": ">f8"}
CONSTANTS = {"Z": None, "T": True, "F": False}


def parse_ubjson(data: bytes, name: str) -> Any:
    """Plain values of a UBJSON text; arrays of one type come as numpy arrays.

    Examples
    --------
    >>> parse_ubjson(b"{i\\x01aSi\\x02hi}", "m.ubj")
    {'a': 'hi'}
    >>> parse_ubjson(b"[$l#L\\x00\\x00\\x00\\xff\\x00\\x00\\x00\\x00", "m.ubj")
    Traceback (most recent call last):
    fewest.errors.ModelError: m.ubj is refused: it is cut off
      Try: ...
    """
    reader = _Reader(data, name)
    with refusing(name, "it is no UBJSON"):
        content = reader.value(reader.marker(), 0)
    if reader.at != len(data):
        raise refused(name, "something follows its end")
    return content


class _Reader:
    """A place in the bytes, and what can be read from there."""

    def __init__(self, data: bytes, name: str) -> None:
        self.data, self.name, self.at = data, name, 0

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self.data) - self.at:
            raise refused(self.name, "it is cut off")
        self.at += count
        return self.data[self.at - count : self.at]

    def marker(self) -> str:
        return self.take(1).decode("latin-1")

    def number(self, marker: str) -> Any:
        kind = np.dtype(NUMBERS[marker])
        return np.frombuffer(self.take(kind.itemsize), kind)[0].item()

    def length(self) -> int:
        marker = self.marker()
        if marker not in "iUIlL":
            raise refused(self.name, "a length in it is no whole number")
        return int(self.number(marker))

    def text(self) -> str:
        return self.take(self.length()).decode("utf-8")

    def value(self, marker: str, depth: int) -> Any:
        if depth > JSON_DEPTH:
            raise refused(self.name, f"it is nested more than {JSON_DEPTH} deep")
        if marker in CONSTANTS:
            return CONSTANTS[marker]
        if marker in NUMBERS:
            return self.number(marker)
        if marker == "S":
            return self.text()
        if marker == "C":
            return self.marker()
        if marker == "[":
            return self.array(depth)
        if marker == "{":
            return self.mapping(depth)
        raise refused(self.name, f"it has an unknown mark {marker!r}")

    def array(self, depth: int) -> Any:
        marker = self.marker()
        if marker == "$":
            kind = NUMBERS[self.marker()]
            if self.marker() != "#":
                raise refused(self.name, "an array in it has a type and no length")
            size = np.dtype(kind).itemsize
            return np.frombuffer(self.take(self.length() * size), kind)
        if marker == "#":
            # Each value has a byte at least, so a length that is a lie ends in "cut off" before it costs anything.
            return [self.value(self.marker(), depth + 1) for _ in range(self.length())]
        out = []
        while marker != "]":
            out.append(self.value(marker, depth + 1))
            marker = self.marker()
        return out

    def mapping(self, depth: int) -> dict[str, Any]:
        out: dict[str, Any] = {}
        while self.data[self.at : self.at + 1] != b"}":
            key = self.text()
            if key in out:
                raise refused(self.name, f'the key "{key}" comes twice in it')
            out[key] = self.value(self.marker(), depth + 1)
        self.take(1)
        return out


def is_ubjson(data: bytes) -> bool:
    """Whether bytes begin as XGBoost's binary models do: a brace, then a length and not a quote.

    Examples
    --------
    >>> is_ubjson(b"{L\\x00\\x00"), is_ubjson(b'{"learner"')
    (True, False)
    """
    return data[:1] == b"{" and data[1:2] in (b"i", b"U", b"I", b"l", b"L")
