"""What consumers put into the metadata and assignments of the classic protocol, which the coordinator only passes on.

    subscription   version, topics, user data, what it has, generation, rack     as far as the topics
    assignment     version, partitions by topic, user data                       as far as the partitions

Later versions only add fields at the end.
"""

from __future__ import annotations

from struct import Struct, error

_SHORT, _INT = Struct(">h"), Struct(">i")


def subscribed(metadata: bytes) -> frozenset[str]:
    """The topics of a subscription; none for what is not one."""
    reader = _Reader(metadata, _SHORT.size)
    try:
        return frozenset(reader.text() for _ in range(reader.count()))
    except (error, ValueError):
        return frozenset()


def assigned(assignment: bytes) -> dict[str, tuple[int, ...]]:
    """The partitions of an assignment by topic; none for what is not one."""
    reader = _Reader(assignment, _SHORT.size)
    try:
        return {reader.text(): reader.numbers() for _ in range(reader.count())}
    except (error, ValueError):
        return {}


class _Reader:
    def __init__(self, data: bytes, at: int) -> None:
        self._data, self._at = data, at

    def count(self) -> int:
        (number,) = _INT.unpack_from(self._data, self._at)
        self._at += _INT.size
        if not 0 <= number <= len(self._data):
            raise ValueError(number)
        return int(number)

    def text(self) -> str:
        (size,) = _SHORT.unpack_from(self._data, self._at)
        start = self._at + _SHORT.size
        if not 0 <= size <= len(self._data) - start:
            raise ValueError(size)
        self._at = start + size
        return self._data[start : self._at].decode()

    def numbers(self) -> tuple[int, ...]:
        return tuple(self._number() for _ in range(self.count()))

    def _number(self) -> int:
        (number,) = _INT.unpack_from(self._data, self._at)
        self._at += _INT.size
        return int(number)
