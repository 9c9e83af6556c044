"""Lines of `key TAB value`, and lines that are values of one key.

A value that is the text of `--null-marker` deletes its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from lithify.columnar.text.encodings import Encodings, to_bytes
from lithify.columnar.text.lines import LineError

if TYPE_CHECKING:
    import pyarrow as pa

Pairs = tuple[list[bytes], list[bytes | None]]
"""Keys and values."""
_NO_TAB = "it has no tab between key and value; to delete a key, write --null-marker's text as its value"


def parse_tsv(lines: Sequence[bytes], encodings: Encodings, null_marker: bytes | None = None) -> pa.Table:
    """Lines of `key TAB value` as a table; a value that is `null_marker` deletes its key. Raises `LineError`."""
    return _table(tsv_pairs(lines, encodings, null_marker))


def tsv_pairs(lines: Sequence[bytes], encodings: Encodings, null_marker: bytes | None = None) -> Pairs:
    """Their keys and values. Raises `LineError`."""
    keys: list[bytes] = []
    values: list[bytes | None] = []
    for index, line in enumerate(lines):
        key, tab, value = line.partition(b"\t")
        if not tab:
            raise LineError(index, _NO_TAB)
        try:
            keys.append(to_bytes(key, encodings.key))
            values.append(None if value == null_marker else to_bytes(value, encodings.value))
        except ValueError as error:
            raise LineError(index, str(error)) from None
    return keys, values


def parse_values(
    lines: Sequence[bytes], encodings: Encodings, key: bytes, null_marker: bytes | None = None
) -> pa.Table:
    """Lines that are values of one key; one that is `null_marker` deletes the key. Raises `LineError`."""
    return _table(value_pairs(lines, encodings, key, null_marker))


def value_pairs(lines: Sequence[bytes], encodings: Encodings, key: bytes, null_marker: bytes | None = None) -> Pairs:
    """Their keys and values. Raises `LineError`."""
    values: list[bytes | None] = []
    for index, line in enumerate(lines):
        try:
            values.append(None if line == null_marker else to_bytes(line, encodings.value))
        except ValueError as error:
            raise LineError(index, str(error)) from None
    return [key] * len(lines), values


def _table(pairs: Pairs) -> pa.Table:
    import pyarrow as pa

    keys, values = pairs
    return pa.table({"key": pa.array(keys, pa.binary()), "value": pa.array(values, pa.binary())})
