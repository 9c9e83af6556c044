"""Records through a gateway: whole lines as they come, up to the end or the error that has ended them.

    streamed   GET records ─► lines ─► the end
                                   ─► {"error": ...}   the error, as a reader raises it
                                   ─► a broken connection: told, with the place to go on from
    followed   GET records?max=…&cursor=… ─► pages of each log in turn; again when there is a newer version

No more than a piece of the records is in memory at any time.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from typing import Any, TypeVar

from lithify.errors import BusyError, GatewayError, LithifyError
from lithify.gateway.client.answers import ToldError, error_of, json_of, told_as
from lithify.gateway.client.calls import Gateway, path_of, query
from lithify.gateway.client.connection import ANSWER_S, MOST_BYTES, Answer, Request, answer_of, reason_of
from lithify.gateway.operations.operation import Operation, Target
from lithify.gateway.operations.records import LINES, READ
from lithify.gateway.operations.table import BY_CALL
from lithify.model.cursor import offsets_text

T = TypeVar("T")

READ_BYTES = 2**20
PAGE_RECORDS = 10_000
POLL_S = 0.5
"""Between two looks for a newer version of a topic that is followed."""
PAUSES_S = (0.1, 0.5, 1.0, 2.0, 3.0, 4.0)
"""Before another attempt, if a gateway does not answer any more."""
_ERROR = b'{"error":'
_ACCEPT = {"Accept": LINES}
_ENDS = {"content-length", "transfer-encoding"}
"""The headers that tell a whole body from one that was cut."""


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of one topic; `given` is the query."""

    gateway: Gateway
    place: Mapping[str, str]
    given: Mapping[str, Any]

    def streamed(self, operation: Operation) -> Iterator[bytes]:
        """What one request returns, some whole lines at a time. Raises what a reader raises, and `GatewayError`."""
        request = Request("GET", path_of(operation, self.place) + query(self.given), headers=_ACCEPT)
        reached, rest = _Reached(), b""
        with self.gateway.connection.stream(request, within_s=ANSWER_S) as response:
            try:
                self._check(response)
                while part := response.read1(READ_BYTES):
                    whole, rest = _divided(rest + part)
                    whole, error = _without_error(whole)
                    reached.note(whole)
                    if whole:
                        yield whole
                    if error:
                        raise error_of(told_as(ToldError, json.loads(error)["error"], self._url))
            except (OSError, HTTPException) as error:
                raise self._broken(reason_of(error), operation, reached) from None
            if response.length or rest:
                raise self._broken("the connection was closed", operation, reached)

    def followed(self, partition: int | None) -> Iterator[bytes]:
        """All logs or one, with what comes to be in them. Raises what a reader raises, and `GatewayError`."""
        cursors: dict[int, str] = {}
        reached, seen = _Reached(), None
        while True:
            info = self._patient(lambda: self.gateway.call(BY_CALL[Target.TOPIC, "info"], self.place), reached)
            if info.version == seen:
                time.sleep(POLL_S)
                continue
            for number in range(info.partitions) if partition is None else [partition]:
                start = self.given if seen is None else {**self.given, "from": "earliest"}
                yield from self._pages(number, start, cursors, reached)
            seen = info.version

    def _pages(
        self, partition: int, start: Mapping[str, Any], cursors: dict[int, str], reached: _Reached
    ) -> Iterator[bytes]:
        """The rest of a log, from its cursor on, or from a start if it has none."""
        has_more = True
        while has_more:
            here = {**start, "partition": partition, **({"cursor": cursors[partition]} if partition in cursors else {})}
            try:
                page = self._patient(lambda here=here: self._page(here), reached)  # type: ignore[misc]
            except (GatewayError, BusyError):
                raise
            except LithifyError:
                yield from Lines(self.gateway, self.place, here).streamed(READ)  # tells it after the records before it
                raise
            cursors[partition], has_more = page.headers["lithify-cursor"], "link" in page.headers
            reached.note(page.body)
            if page.body:
                yield page.body

    def _page(self, given: Mapping[str, Any]) -> Answer:
        path = path_of(READ, self.place) + query({**given, "max": PAGE_RECORDS})
        page = self.gateway.connection.ask(Request("GET", path, headers=_ACCEPT))
        if page.kind != LINES or "lithify-cursor" not in page.headers:
            json_of(page, self._url)
            raise self._other()
        if _ENDS.isdisjoint(page.headers):
            raise self._endless()
        return page

    def _patient(self, ask: Callable[[], T], reached: _Reached) -> T:
        """What `ask` returns, once it does; waits for a gateway that has answered before."""
        pauses = iter(PAUSES_S if reached.begun else ())
        while True:
            try:
                answer = ask()
            except (GatewayError, BusyError) as error:
                if (pause := next(pauses, None)) is None:
                    if reached.next_offsets:
                        error.hint = f"go on with --partition and --from: {offsets_text(reached.next_offsets)}"
                    raise
            else:
                reached.begun = True
                return answer
            time.sleep(pause)

    def _check(self, response: HTTPResponse) -> None:
        """Raises the error that the gateway tells of, or `GatewayError` for what is not lines up to a known end."""
        if response.status != 200 or response.headers.get_content_type() != LINES:
            json_of(answer_of(response, response.read(MOST_BYTES)), self._url)
            raise self._other()
        if not response.chunked and response.length is None:
            raise self._endless()

    def _broken(self, why: str, operation: Operation, reached: _Reached) -> GatewayError:
        hint = "repeat it"
        if reached.next_offsets and operation is READ:
            *_, (partition, offset) = reached.next_offsets.items()
            more = "" if "partition" in self.given else ", then with the partitions above it"
            hint = f"go on with --partition {partition} --from {offset}{more}"
        return GatewayError(f"the gateway at {self._url} did not send all records: {why}", hint=hint)

    def _endless(self) -> GatewayError:
        return GatewayError(
            f"a proxy before the gateway at {self._url} removes the sign of where records end",
            hint="have it speak HTTP/1.1 to clients",
        )

    def _other(self) -> GatewayError:
        return GatewayError(f"the gateway at {self._url} answered with other than records", hint="correct the URL")

    @property
    def _url(self) -> str:
        return self.gateway.connection.address.url


class _Reached:
    """How far a read is: by partition, the offset after the last record that came whole."""

    def __init__(self) -> None:
        self.begun = False
        """Whether the gateway has answered."""
        self.next_offsets: dict[int, int] = {}

    def note(self, lines: bytes) -> None:
        if lines:
            record = json.loads(_last(lines))
            self.next_offsets[record["partition"]] = record["offset"] + 1


def _divided(data: bytes) -> tuple[bytes, bytes]:
    """The whole lines, and the beginning of the next."""
    end = data.rfind(b"\n") + 1
    return data[:end], data[end:]


def _without_error(lines: bytes) -> tuple[bytes, bytes]:
    """Records, and the line of an error if it is the last one."""
    last = _last(lines)
    return (lines.removesuffix(last), last) if last.startswith(_ERROR) else (lines, b"")


def _last(lines: bytes) -> bytes:
    return lines[lines.rfind(b"\n", 0, -1) + 1 :]
