"""From a frame to its answer: who may ask, which handler answers, and what happens if it fails.

    frame of more than 16 KiB     read on a thread, and its handler's work is done on one of those few
    answer of more than 500 rows  written on a thread

So the event loop of all connections does not wait for a request of a mebibyte, or for ten thousand topics. Those who
ask for less do not wait for a thread behind them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from lithify.errors.defects import as_lithify_error
from lithify.kafka_protocol.codec import (
    API_VERSIONS,
    RequestHeader,
    UnknownVersionError,
    decode_request,
    encode_response,
)
from lithify.kafka_protocol.reading import MalformedError
from lithify.kafka_protocol.table import apis
from lithify.kafka_server.connections.answering import Address, Answer, ClosingError
from lithify.kafka_server.requests.api_versions import answered, other_version
from lithify.kafka_server.requests.context import ClientSession, Context, LastAnswerError, Served
from lithify.kafka_server.requests.login import check_again
from lithify.kafka_server.requests.table import BEFORE_LOGIN, HANDLERS, told_versions, versions

T = TypeVar("T")

LARGE_BYTES: Final = 2**14
LARGE_ROWS: Final = 500
_KEY_BYTES: Final = 2


@dataclass(frozen=True, slots=True)
class Dispatch:
    """Answers the frames of all connections."""

    served: Served
    _versions: dict[int, tuple[int, int]] = field(default_factory=versions)

    def begin(self, client: Address, local: Address) -> ClientSession:
        return ClientSession(client, local, self.served.logins.without_token())

    async def answer(self, session: ClientSession, frame: bytes) -> Answer | None:
        """The answer to a frame. Raises `ClosingError`."""
        if not session.is_known and int.from_bytes(frame[:_KEY_BYTES], "big") not in BEFORE_LOGIN:
            self.served.logins.failed(session.client[0])
            raise ClosingError("it did not log in: clients need SASL, with a token as the password")
        is_large = len(frame) > LARGE_BYTES
        try:
            header, request = await self._run(lambda: decode_request(frame), apart=is_large)
            self._check_version(header)
        except MalformedError as error:
            raise ClosingError(f"it sent what is not a request: {error}") from None
        except UnknownVersionError as error:
            return self._other_version(error)
        if header.api_key == API_VERSIONS:
            return _frame(header, answered(told_versions()))
        executor = self.served.large if is_large else self.served.executor
        looks = self.served.topics.begun
        context = Context(self.served, session, header.version, header.client_id, executor, looks)
        body = await self._handled(context, header, request)
        if body is None:
            return None
        apart, held = is_large or has_many_rows(body), [request, body]
        del request, body  # hundreds of thousands of values, which take long to free: that is done on the thread too
        return await self._run(lambda: _written(header, held), apart=apart)

    async def _run(self, function: Callable[[], T], *, apart: bool) -> T:
        """Runs it here, or on a thread."""
        if not apart:
            return function()
        return await asyncio.get_running_loop().run_in_executor(self.served.large, function)

    def _check_version(self, header: RequestHeader) -> None:
        """The table may have more than is answered."""
        first, last = self._versions.get(header.api_key, (0, -1))
        if not first <= header.version <= last:
            raise UnknownVersionError(header)

    def _other_version(self, error: UnknownVersionError) -> Answer:
        header = error.header
        if header.api_key != API_VERSIONS:
            raise ClosingError(f"it asked what is not answered here: {error}")
        return encode_response(API_VERSIONS, 0, header.correlation_id, other_version(self._versions))

    async def _handled(self, context: Context, header: RequestHeader, request: dict[str, Any]) -> dict[str, Any] | None:
        try:
            await check_again(context)
            body = await HANDLERS[header.api_key](context, request)
            await check_again(context)  # it may have waited for a minute
            return body
        except ClosingError:
            raise
        except LastAnswerError as error:
            raise ClosingError(str(error), _frame(header, error.answer)) from None
        except Exception as error:
            raise ClosingError(as_lithify_error(error, f"the answer to {apis()[header.api_key].name}")) from error


def has_many_rows(body: dict[str, Any]) -> bool:
    """Whether it takes long to write an answer. That is known before all of it is counted."""
    rows, left = 0, [body]
    while left:
        lists = [value for value in left.pop().values() if isinstance(value, list)]
        rows += sum(map(len, lists))
        if rows > LARGE_ROWS:
            return True
        left += [row for one in lists for row in one if isinstance(row, dict)]
    return False


def _written(header: RequestHeader, held: list[dict[str, Any]]) -> Answer:
    """The frame of an answer, which comes last and is not held any more."""
    answer = _frame(header, held[-1])
    held.clear()
    return answer


def _frame(header: RequestHeader, body: dict[str, Any]) -> Answer:
    return encode_response(header.api_key, header.version, header.correlation_id, body)
