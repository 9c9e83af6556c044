"""How bytes are written as text, the same in and out.

key hex, value base64      {"key":"00ff","value":"AP8=",...}
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from lithify.errors import InvalidInputError

Encoding = Literal["utf-8", "base64", "hex"]
ENCODINGS: tuple[Encoding, ...] = ("utf-8", "base64", "hex")
NOT_UTF8 = "it is not UTF-8 text; --encoding base64 accepts any bytes"


@dataclass(frozen=True, slots=True)
class Encodings:
    """The encodings of keys, of values and of the values of headers."""

    key: Encoding
    value: Encoding
    headers: Encoding

    @classmethod
    def of(cls, everything: Encoding, key: Encoding | None = None, value: Encoding | None = None) -> Encodings:
        """One encoding, and others for keys and values if they are given."""
        return cls(key or everything, value or everything, everything)

    def key_bytes(self, given: str | None) -> bytes | None:
        """The key that `--key` names. Raises `InvalidInputError`."""
        try:
            return None if given is None else to_bytes(given.encode(), self.key)
        except ValueError as error:
            reason = NOT_UTF8 if isinstance(error, UnicodeEncodeError) else str(error)
            raise InvalidInputError(f"--key: {reason}", hint="set its encoding with --key-encoding") from None


def to_bytes(text: str | bytes, encoding: Encoding) -> bytes:
    """The bytes that a text stands for. Raises `ValueError` with the reason."""
    try:
        match encoding:
            case "base64":
                return base64.b64decode(text, validate=True)
            case "hex":
                return binascii.unhexlify(text)
            case "utf-8":
                return text.encode() if isinstance(text, str) else text.decode().encode()
    except UnicodeError:
        raise ValueError(
            NOT_UTF8 if encoding == "utf-8" else f"it is not {encoding}: it has other characters"
        ) from None
    except ValueError as error:
        raise ValueError(f"it is not {encoding}: {error}") from None


def to_text(encoding: Encoding) -> Callable[[bytes], str]:
    """What writes bytes as text; for UTF-8 it raises `UnicodeDecodeError`."""
    match encoding:
        case "base64":
            return lambda data: base64.b64encode(data).decode()
        case "hex":
            return bytes.hex
        case "utf-8":
            return bytes.decode
