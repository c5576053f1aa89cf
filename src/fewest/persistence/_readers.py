"""What every file passes that cannot be trusted: limits of size and depth, one way of refusing; zip, arrays, JSON."""

from __future__ import annotations

import io
import json
import math
import re
import stat
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from fewest.errors import FewestError, MissingExtraError, ModelError, UsageError

FILE_BYTES = 1 << 30
JSON_BYTES = 1 << 28
JSON_DEPTH = 200
# Every value after the first follows a comma, every list and mapping opens with a bracket; both cost a hundred bytes.
JSON_VALUES = 1 << 24
JSON_BRACKETS = 1 << 21
MEMBERS = 100_000
UNPACKED_BYTES = 1 << 31
# Arrays of a model shrink by a factor of ten at most; a bomb by a thousand. Small files may do as they like.
RATIO = 100
RATIO_FREE_BYTES = 1 << 24

SAVE_AGAIN = "save the model again, from where it was trained; do not use this file"
# Flat names: nothing in a model file needs a folder, and no name can then lead out of one.
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}")
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED = 0x1
ENTRY = b"PK\x01\x02"
EPOCH = (1980, 1, 1, 0, 0, 0)
DIMENSIONS = 8


def refused(name: str, why: str, do: str = SAVE_AGAIN) -> ModelError:
    """The error for a file that is not loaded."""
    return ModelError(f"{name} is refused: {why}", do=do)


@contextmanager
def refusing(name: str, what: str) -> Iterator[None]:
    """Turn whatever goes wrong while a file is taken apart into a refusal that names the file."""
    try:
        yield
    except FewestError:
        raise
    # A hostile file may ask for more memory or depth than there is; that is the file's fault, not ours.
    except (Exception, MemoryError, RecursionError) as error:
        raise refused(name, f"{what} ({first_line(error)})") from error


def library(module: str, what: str, do: str) -> Any:
    """A library that is not always installed, or an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(f"{what} needs {module.partition('.')[0]}", do=do) from error


def needs_a_yes(what: str, instead: str) -> UsageError:
    """The error for training rows that would be in a file nobody allowed them in."""
    return UsageError(
        f"{what}, and would be in the file for everybody who has it",
        do=f"{instead}, or pass training_rows=True if these people's data may be in the file",
    )


def first_line(error: BaseException) -> str:
    """An error's class and the first line of what it says."""
    lines = str(error).splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__


def read_bytes(path: Path) -> bytes:
    """All bytes of a file that is not too large; read once, so that what is checked is what is loaded."""
    if not path.is_file():
        raise ModelError(f"there is no model file {path}", do="check the path")
    with refusing(path.name, "it cannot be read"), path.open("rb") as file:
        data = file.read(FILE_BYTES + 1)
    if len(data) > FILE_BYTES:
        raise refused(path.name, f"it has more than {FILE_BYTES >> 20:,} MiB")
    return data


def unpack(data: bytes, name: str) -> dict[str, bytes]:
    """Members of a zip file, after its directory was found to be harmless."""
    # Counted in the raw bytes: making the reader's own list of ten million entries would be the attack itself.
    if data.count(ENTRY) > MEMBERS:
        raise refused(name, f"it has more than {MEMBERS:,} members")
    with refusing(name, "it is not a whole zip file"), zipfile.ZipFile(io.BytesIO(data)) as archive:
        check_directory(archive.infolist(), len(data), name)
        return {member.filename: archive.read(member) for member in archive.infolist()}


def check_directory(members: list[zipfile.ZipInfo], packed: int, name: str) -> None:
    """Refuse a directory that unpacks to too much, or has names and members that no honest writer makes."""
    seen: set[str] = set()
    for member in members:
        _check_member(member, name)
        if member.filename in seen:
            raise refused(name, f'it has two members "{member.filename}"')
        seen.add(member.filename)
    # The reader never gives more than a member's declared size, so these sums are what unpacking costs.
    unpacked = sum(member.file_size for member in members)
    if unpacked > UNPACKED_BYTES:
        raise refused(name, f"it would unpack to {unpacked >> 20:,} MiB")
    if unpacked > RATIO_FREE_BYTES and unpacked > RATIO * packed:
        raise refused(name, f"it would unpack to {unpacked // max(1, packed):,} times its size, as a zip bomb does")


def _check_member(member: zipfile.ZipInfo, name: str) -> None:
    # zipfile cuts a name at a NUL byte; the name as it stands in the file is what is judged.
    if member.orig_filename != member.filename or not NAME.fullmatch(member.filename) or ".." in member.filename:
        raise refused(name, f"the name of its member {member.orig_filename!r} is not a plain file name")
    kind = stat.S_IFMT(member.external_attr >> 16)
    if kind not in (0, stat.S_IFREG):
        raise refused(name, f'its member "{member.filename}" is not a plain file')
    if member.flag_bits & ENCRYPTED:
        raise refused(name, f'its member "{member.filename}" is encrypted')
    if member.compress_type not in METHODS:
        raise refused(name, f'its member "{member.filename}" is packed in an unusual way')


def pack(members: Mapping[str, bytes]) -> bytes:
    """A zip file that depends on nothing but its members: neither on the time nor on the machine."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, content)
    return buffer.getvalue()


def read_array(data: bytes, name: str) -> npt.NDArray[Any]:
    """The array of a .npy member; none of objects, and none that claims more than its bytes."""
    file = io.BytesIO(data)
    with refusing(name, "an array in it cannot be read"):
        version = np.lib.format.read_magic(file)
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in read_header:
            raise refused(name, f"an array in it is of version {version}")
        shape, column_major, dtype = read_header[version](file)
    if dtype.hasobject:
        raise refused(name, "an array in it holds objects, which are pickles")
    if len(shape) > DIMENSIONS or math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise refused(name, "an array's header does not fit its bytes")
    with refusing(name, "an array in it cannot be read"):
        values = np.frombuffer(data, dtype, offset=file.tell()) if math.prod(shape) else np.empty(0, dtype)
        return values.reshape(shape, order="F" if column_major else "C").copy(order="K")


def array_bytes(array: npt.NDArray[Any]) -> bytes:
    """An array as the bytes of a .npy file."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()


def parse(data: bytes, name: str) -> Any:
    """Plain values of a JSON text; a key that comes twice is refused, for readers differ in which one they take."""
    if len(data) > JSON_BYTES:
        raise refused(name, f"its JSON has more than {JSON_BYTES >> 20:,} MiB")
    if data.count(b",") > JSON_VALUES or data.count(b"{") + data.count(b"[") > JSON_BRACKETS:
        raise refused(name, "its JSON has more values than any model")

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        out = dict(found)
        if len(out) < len(found):
            keys = [key for key, _ in found]
            raise refused(name, f'the key "{next(key for key in keys if keys.count(key) > 1)}" comes twice in its JSON')
        return out

    with refusing(name, "it is not JSON"):
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
    """Plain values as JSON in bytes, numbers to the last bit; what is not finite is refused."""
    return json.dumps(content, allow_nan=False).encode("utf-8")
