"""What can become of the bytes of a file: one function for each, of its bytes and chance.

flipped, zeroed, cut, emptied, grown, spliced     what disks, wires and people do
nested, numbered, counted                         what makes a careless reader run out of stack, time or memory
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from random import Random

HUGE_BYTES = 4 * 2**30
"""More than any test may have of memory; the file has no blocks on the disk."""

AVRO_MAGIC = b"Obj\x01"


def flipped(content: bytes, chance: Random) -> bytes:
    """A few bits are others."""
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 8))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def zeroed(content: bytes, chance: Random) -> bytes:
    """A block of it was never written."""
    at = chance.randrange(len(content))
    size = min(chance.choice((1, 16, 512, 4096)), len(content) - at)
    return content[:at] + bytes(size) + content[at + size :]


def cut(content: bytes, chance: Random) -> bytes:
    return content[: chance.randrange(len(content))]


def emptied(content: bytes, chance: Random) -> bytes:
    return b""


def grown(content: bytes, chance: Random) -> bytes:
    """There is more behind it: chance, zeros, or itself once more."""
    return content + chance.choice((chance.randbytes(100), bytes(5000), content, b"\n", b"}"))


def spliced(content: bytes, chance: Random) -> bytes:
    """A piece of it stands at another place as well, in the middle of what was there."""
    start = chance.randrange(len(content))
    piece = content[start : start + chance.choice((1, 10, 200))]
    at = chance.randrange(len(content))
    return content[:at] + piece + content[at:]


def nested(content: bytes, chance: Random) -> bytes:
    """JSON deeper than any stack: the whole, or one value of it."""
    deep = chance.choice((b"[", b'{"a":')) * 200_000
    values = [found.start(1) for found in re.finditer(rb'": ?([\d"\[{])', content)]
    return (
        deep if not values or chance.random() < 0.5 else content[: (at := chance.choice(values))] + deep + content[at:]
    )


def numbered(content: bytes, chance: Random) -> bytes:
    """A number, or what looks like one, is larger than any that fits."""
    numbers = [found.span() for found in re.finditer(rb"\d+", content)]
    if not numbers:
        return flipped(content, chance)
    start, end = chance.choice(numbers)
    return content[:start] + chance.choice((b"9" * 25, b"9" * 9000, b"1e999", b"-1", b"NaN")) + content[end:]


def counted(content: bytes, chance: Random) -> bytes:
    """A number as Avro writes it is 2^60, or less than nothing, where another one was."""
    at = (
        chance.randrange(len(AVRO_MAGIC), len(content))
        if content.startswith(AVRO_MAGIC)
        else chance.randrange(len(content))
    )
    return (
        content[:at] + chance.choice((b"\x80" * 8 + b"\x20", b"\xff" * 9 + b"\x01", b"\xff" * 40)) + content[at + 1 :]
    )


Mutation = Callable[[bytes, Random], bytes]

MUTATIONS: tuple[Mutation, ...] = (
    *(flipped,) * 6,
    zeroed,
    cut,
    emptied,
    grown,
    spliced,
    nested,
    numbered,
    counted,
)
"""All of them, as often as they are worth it."""


def huge(path: Path) -> None:
    """The file goes on and on."""
    os.truncate(path, HUGE_BYTES)
