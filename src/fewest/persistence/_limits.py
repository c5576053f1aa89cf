"""How large and how deep a file may be, and the one way of refusing it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fewest.errors import FewestError, ModelError, UsageError

FILE_BYTES = 1 << 30
JSON_BYTES = 1 << 28
JSON_DEPTH = 200
MEMBERS = 100_000
UNPACKED_BYTES = 1 << 31
# Arrays of a model shrink by a factor of ten at most; a bomb by a thousand. Small files may do as they like.
RATIO = 100
RATIO_FREE_BYTES = 1 << 24

SAVE_AGAIN = "save the model again, from where it was trained; do not use this file"


def refused(name: str, why: str, do: str = SAVE_AGAIN) -> ModelError:
    """The error for a file that is not loaded.

    Examples
    --------
    >>> print(refused("m.skops", "it is cut off").message)
    m.skops is refused: it is cut off
    """
    return ModelError(f"{name} is refused: {why}", do=do)


@contextmanager
def refusing(name: str, what: str) -> Iterator[None]:
    """Turn whatever goes wrong while a file is taken apart into a refusal that names the file.

    Examples
    --------
    >>> with refusing("m.json", "it is no model"):
    ...     {}["learner"]
    Traceback (most recent call last):
    fewest.errors.ModelError: m.json is refused: it is no model (KeyError: 'learner')
      Try: ...
    """
    try:
        yield
    except FewestError:
        raise
    # A hostile file may ask for more memory or depth than there is; that is the file's fault, not ours.
    except (Exception, MemoryError, RecursionError) as error:
        raise refused(name, f"{what} ({first_line(error)})") from error


def needs_a_yes(what: str, instead: str) -> UsageError:
    """The error for training rows that would be in a file nobody allowed them in.

    Examples
    --------
    >>> print(needs_a_yes("this is a person", "use a mean").message)
    this is a person, and would be in the file for everybody who has it
    """
    return UsageError(
        f"{what}, and would be in the file for everybody who has it",
        do=f"{instead}, or pass training_rows=True if these people's data may be in the file",
    )


def first_line(error: BaseException) -> str:
    """An error's class and the first line of what it says."""
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


def read_bytes(path: Path) -> bytes:
    """All bytes of a file that is not too large; what is checked is then what is loaded, whatever becomes of the file.

    Examples
    --------
    >>> read_bytes(Path("no-such-file.skops"))
    Traceback (most recent call last):
    fewest.errors.ModelError: there is no model file no-such-file.skops
      Try: check the path
    """
    if not path.is_file():
        raise ModelError(f"there is no model file {path}", do="check the path")
    with refusing(path.name, "it cannot be read"), path.open("rb") as file:
        data = file.read(FILE_BYTES + 1)
    if len(data) > FILE_BYTES:
        raise refused(path.name, f"it has more than {FILE_BYTES >> 20:,} MiB")
    return data
