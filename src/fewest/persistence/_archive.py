"""Zip files that cannot be trusted: the directory is checked before anything is unpacked, and that into memory only."""

from __future__ import annotations

import io
import re
import stat
import zipfile
from collections.abc import Mapping

from fewest.persistence._limits import MEMBERS, RATIO, RATIO_FREE_BYTES, UNPACKED_BYTES, refused, refusing

# Flat names: nothing in a model file needs a folder, and no name can then lead out of one.
NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,199}")
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED = 0x1
ENTRY = b"PK\x01\x02"
EPOCH = (1980, 1, 1, 0, 0, 0)


def unpack(data: bytes, name: str) -> dict[str, bytes]:
    """Members of a zip file, after its directory was found to be harmless.

    Examples
    --------
    >>> unpack(pack({"a.txt": b"hello"}), "x.zip")
    {'a.txt': b'hello'}
    >>> unpack(b"PK nothing", "x.zip")
    Traceback (most recent call last):
    fewest.errors.ModelError: x.zip is refused: it is no whole zip file (BadZipFile: File is not a zip file)
      Try: ...
    """
    # Counted in the raw bytes: making the reader's own list of ten million entries would be the attack itself.
    if data.count(ENTRY) > MEMBERS:
        raise refused(name, f"it has more than {MEMBERS:,} members")
    with refusing(name, "it is no whole zip file"), zipfile.ZipFile(io.BytesIO(data)) as archive:
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
        raise refused(name, f'its member "{member.filename}" is no plain file')
    if member.flag_bits & ENCRYPTED:
        raise refused(name, f'its member "{member.filename}" is encrypted')
    if member.compress_type not in METHODS:
        raise refused(name, f'its member "{member.filename}" is packed in an unusual way')


def pack(members: Mapping[str, bytes]) -> bytes:
    """A zip file that depends on nothing but its members: neither on the time nor on the machine.

    Examples
    --------
    >>> pack({"a.txt": b"hello"}) == pack({"a.txt": b"hello"})
    True
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (stat.S_IFREG | 0o644) << 16
            archive.writestr(entry, content)
    return buffer.getvalue()
