# SPDX-License-Identifier: BSD-3-Clause
"""What a rank and the store of rank 0 say to each other: frames over TCP.

A frame: 4 bytes, big endian, with the length of all that follows; its kind, 1 byte; its fields, each 4 bytes of length and the bytes.
The rank speaks first, with HELLO, and then asks one request at a time: only CANCEL may follow before the answer has come. To a request
that waits for keys the answer comes when they are there. Numbers are decimal text. There is no pickle."""

from __future__ import annotations

import struct
from collections.abc import Sequence

MAGIC = b"banyan store 1"
MAX_FRAME = 16 << 20     # bytes, in both directions
MAX_HELLO = 4096         # bytes of the first frame of a connection, and of its answer
MAX_VALUE = 8 << 20      # bytes
MAX_FIELDS = 1 << 16

# Requests, and their fields. HELLO: MAGIC, run, rank, member, space.
HELLO, SET, GET, WAIT, CHECK, ADD, COMPARE_SET, APPEND, DELETE, COUNT, CANCEL = range(11)
# Answers. DONE: what was asked for; REFUSED, LATER: why; CANCELLED: the keys that were missing; TOO_LONG: nothing, ask for fewer keys.
DONE, REFUSED, LATER, CANCELLED, TOO_LONG = range(32, 37)

_LENGTH = struct.Struct(">I")
_HEAD = struct.Struct(">IB")


class Malformed(Exception):
    """What came is none of these frames."""


class TooLong(Exception):
    """A frame beyond the limits; the text says which."""


def encode(kind: int, fields: Sequence[bytes] = ()) -> list[bytes]:
    """A frame in pieces; the fields are not copied. Raises TooLong."""
    pieces = [b""]
    for field in fields:
        pieces += (_LENGTH.pack(len(field)), field)
    length = 1 + sum(map(len, pieces))
    if length > MAX_FRAME or len(fields) > MAX_FIELDS:
        raise TooLong(f"{len(fields)} keys and values of {length} bytes; a request may have {MAX_FIELDS} of them and {MAX_FRAME} bytes")
    pieces[0] = _HEAD.pack(length, kind)
    return pieces


def take(received: bytearray, limit: int = MAX_FRAME) -> tuple[int, list[bytes]] | None:
    """Kind and fields of the frame with which `received` begins, and takes it out; None while it is not whole. Raises Malformed."""
    if len(received) < _LENGTH.size:
        return None
    length = _LENGTH.unpack_from(received)[0]
    if not 1 <= length <= limit:
        raise Malformed(f"a frame of {length} bytes")
    if len(received) < _LENGTH.size + length:
        return None
    body = bytes(received[_LENGTH.size:_LENGTH.size + length])
    del received[:_LENGTH.size + length]
    return body[0], _fields(body)


def _fields(body: bytes) -> list[bytes]:
    fields: list[bytes] = []
    at = 1
    while at < len(body):
        begin = at + _LENGTH.size
        if begin > len(body) or len(fields) == MAX_FIELDS:
            raise Malformed("too many fields, or a part of one")
        at = begin + _LENGTH.unpack_from(body, at)[0]
        if at > len(body):
            raise Malformed("a field that is longer than its frame")
        fields.append(body[begin:at])
    return fields
