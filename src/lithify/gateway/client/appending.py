"""Appends through a gateway: a batch whose answer is lost is sent again with its key, so that it is there once (C75).

    POST, Idempotency-Key ─► offsets
                          ─► no answer, 5xx of a proxy, `UnknownOutcome`, `Busy` ─► the same again, so often at most

Without a key, where the gateway has no database for them or the records keep their offsets, a batch without an answer
is not sent again: it may have landed.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from uuid import uuid4

import msgspec

from lithify.errors import (
    BusyError,
    GatewayError,
    InvalidInputError,
    LithifyError,
    RefusedError,
    UnknownOutcomeError,
)
from lithify.gateway.client.answers import PROBLEM, json_of, told_as, unless_done
from lithify.gateway.client.calls import path_of, query
from lithify.gateway.client.connection import Connection, Request
from lithify.gateway.operations.records import APPEND, APPENDED_BYTES
from lithify.model.settings.units import format_bytes

_KEY = "Idempotency-Key"
PAUSES_S = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Before a batch is sent again."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One atomic batch as it is sent. `given` is what the query says of it."""

    body: bytes
    media: str
    given: Mapping[str, str] = field(default_factory=dict)


class ToldRange(msgspec.Struct):
    partition: int
    start_offset: int
    end_offset: int
    records: int


class ToldAppend(msgspec.Struct):
    """The version and the offsets of a batch."""

    version: int
    ranges: list[ToldRange]


class Appender:
    """Appends to one topic, one batch after the other."""

    def __init__(self, connection: Connection, place: Mapping[str, str]) -> None:
        self._connection, self._place = connection, place
        self._takes_keys = True

    def append(self, batch: Sent, *, keep_offsets: bool = False) -> ToldAppend:
        """Returns once the batch has landed.

        Raises what `append` of a topic raises, `GatewayError`, or `UnknownOutcomeError` if it may have landed.
        """
        if len(batch.body) > APPENDED_BYTES:
            raise InvalidInputError(
                f"it has {format_bytes(len(batch.body))}, and a gateway takes {format_bytes(APPENDED_BYTES)} at once",
                hint="append it where the warehouse can be reached, without --gateway",
            )
        if batch.body and self._takes_keys and not keep_offsets:
            try:
                return self._landed(self._request(batch, {}, {_KEY: uuid4().hex}))
            except RefusedError as error:
                if type(error) is not RefusedError:
                    raise
            # Nothing was appended. A gateway without a database for keys refuses them; any other reason is told again.
            told = self._landed(self._request(batch, {}, {}))
            self._takes_keys = False
            return told
        return self._landed(self._request(batch, {"keep_offsets": True} if keep_offsets else {}, {}))

    def _request(self, batch: Sent, more: Mapping[str, bool], headers: Mapping[str, str]) -> Request:
        path = path_of(APPEND, self._place) + query({**batch.given, **more})
        look = f"`lithify status {self._place['topic']}` shows where the logs end"
        return Request("POST", path, batch.body, look, {"Content-Type": batch.media, **headers})

    def _landed(self, request: Request) -> ToldAppend:
        """Sends it until there is an answer that says what was done; without a key as long as nothing was done."""
        pauses, unknown = iter(PAUSES_S), None
        while True:
            try:
                return self._asked(request)
            except LithifyError as error:
                unknown = error if isinstance(error, UnknownOutcomeError) else unknown
                pause = next(pauses, None) if _may_send_again(request, error) else None
                if pause is None:  # what ends it says of this attempt only that it has done nothing
                    raise unknown or error from None
            time.sleep(pause)

    def _asked(self, request: Request) -> ToldAppend:
        answer = self._connection.ask(request)
        url = self._connection.address.url
        if answer.status >= 500 and answer.kind != PROBLEM:
            raise UnknownOutcomeError(
                f"a proxy before the gateway at {url} answered {answer.status}; whether the batch was appended is not "
                "known",
                hint=request.look,
            )
        if answer.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE and answer.kind != PROBLEM:
            raise InvalidInputError(
                f"a proxy before the gateway at {url} takes no body of {format_bytes(len(request.body or b''))}",
                hint=f"have it take bodies of {format_bytes(APPENDED_BYTES)}",
            )
        try:
            return told_as(ToldAppend, json_of(answer, url), url)
        except GatewayError as error:
            raise unless_done(error, request, answer) if request.body else error from None


def _may_send_again(request: Request, error: LithifyError) -> bool:
    match error:
        case UnknownOutcomeError():
            return _KEY in request.headers
        case GatewayError():  # nothing was done; the topic of records was looked at before, so there is a gateway
            return bool(request.body)
        case _:
            return isinstance(error, BusyError)
