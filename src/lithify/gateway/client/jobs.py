"""Long work at a gateway: begun, followed event by event until it has ended, resumed where a connection breaks.

    POST ─► its id, then progress, note, ... ─► end, with the report or the error
                              │ breaks
                              ▼
    GET .../events, Last-Event-ID ─► the rest; again, a bounded number of times in a row in which nothing comes

The answer to the POST has the events, so that a balancer may send other requests to other gateways: which do not know
the job. A gateway that has too many readers of events is asked for the state of the job instead.

Ctrl-C cancels the job and waits a little for its end, so that what is said of the data is true:

    cancelled        nothing was committed
    ended meanwhile  with a commit: the interrupt counts after the report; without one: at once
    not known        as if a commit had begun
"""

from __future__ import annotations

import json
import re
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from http.client import HTTPException, HTTPResponse
from threading import Thread
from typing import Any

from lithify.errors import BusyError, GatewayError, LithifyError, UnknownOutcomeError
from lithify.gateway.client.answers import ToldJob, done_of, json_of, told_as
from lithify.gateway.client.connection import MOST_BYTES, Answer, Connection, Request, answer_of
from lithify.gateway.operations.operation import PREFIX
from lithify.ports.engine import COMMIT

EVENTS = "text/event-stream"
RESUME_PAUSES_S = (0.1, 0.5, 1.0, 2.0, 3.0, 4.0)
BEGINS_WITHIN_S, ENDS_WITHIN_S = 3.0, 6.0
"""After Ctrl-C, which ends the program within 10 s."""
LOOK_S, POLL_S = 0.1, 1.0
"""Between two checks of a job that is to end, and of one whose events the gateway does not send."""
_UNKNOWN, _BUSY = 404, 503
_FACTS = {"progress": ("phase", "done", "total"), "note": ("text",), "wait": ("what", "most_ms")}
"""What listeners get of each event."""
_ID = re.compile(r"[\w.-]{1,100}")


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a job; `number` is where to continue."""

    number: int
    name: str
    facts: Mapping[str, Any]


@dataclass(slots=True)
class Job:
    """A job that a request begins. `listeners` get its events, by name: `progress`, `note`, `wait`."""

    connection: Connection
    request: Request
    listeners: Mapping[str, Callable[..., None]]
    commits: bool
    """Whether it tells when it begins to commit."""
    _id: str = ""
    _seen: int = 0
    _lives: bool = True
    """Whether anything has come since the connection broke last."""
    _unknown: bool = False
    """Whether the gateway that was asked last does not know it."""

    def ended(self) -> ToldJob:
        """The job once it has ended, with its report or its error.

        Raises the error that the gateway refuses it with, `GatewayError`, `UnknownOutcomeError`, or after Ctrl-C
        `KeyboardInterrupt`.
        """
        try:
            return self._followed()
        except KeyboardInterrupt:
            return self._stopped()

    def _followed(self) -> ToldJob:
        with ExitStack() as stack:
            response = self._begin(stack)
            ended = None if response is None else self._ended(self._read(response))
        pauses = iter(RESUME_PAUSES_S)
        while ended is None and (ended := self._watched()) is None:
            if self._lives:
                pauses = iter(RESUME_PAUSES_S)
            if (pause := next(pauses, None)) is None:
                raise self._unanswered()
            time.sleep(pause)
        return ended

    def _begin(self, stack: ExitStack) -> HTTPResponse | None:
        """Has the gateway begin it; its events, if it sends them with the answer.

        After Ctrl-C the answer is still waited for, as only the id in it can cancel the job.
        """
        begun: Future[tuple[str, HTTPResponse | None]] = Future()

        def ask() -> None:
            try:
                begun.set_result(self._begun(stack))
            except BaseException as error:
                begun.set_exception(error)

        try:
            Thread(target=ask, daemon=True).start()
            self._id, response = begun.result()
        except KeyboardInterrupt:
            with suppress(TimeoutError, UnknownOutcomeError):
                self._id, _ = begun.result(BEGINS_WITHIN_S)
            raise
        return response

    def _begun(self, stack: ExitStack) -> tuple[str, HTTPResponse | None]:
        """Its id, and its events, which `stack` closes; they may have been refused, and then nothing was begun."""
        response = stack.enter_context(self.connection.stream(replace(self.request, headers={"Accept": EVENTS})))
        if response.headers.get_content_type() == EVENTS:
            return self._checked_id(response.headers.get("Location", "").rpartition("/")[2]), response
        if response.status == _BUSY:
            return self._checked_id(self._job(self.request).job), None
        told = done_of(self.request, answer_of(response, _body(response)), self._url)
        return self._checked_id(told_as(ToldJob, told, self._url).job), None

    def _checked_id(self, begun: str) -> str:
        if not _ID.fullmatch(begun):
            raise GatewayError(f"the gateway at {self._url} began no job", hint=self.request.look)
        return begun

    def _watched(self) -> ToldJob | None:
        """Its end, if it comes before the connection breaks. Raises `UnknownOutcomeError` or `GatewayError`."""
        self._lives = self._unknown = False
        request = Request("GET", f"{self._place}/events", headers={"Accept": EVENTS, "Last-Event-ID": str(self._seen)})
        try:
            with self.connection.stream(request) as response:
                if response.status == _BUSY:
                    return self._polled()
                if response.status == _UNKNOWN:
                    self._unknown = True
                    return None
                if response.status != 200:
                    raise self._untold(answer_of(response, _body(response)))
                end = self._read(response)
        except GatewayError:
            return None
        return self._ended(end)

    def _ended(self, end: Mapping[str, Any] | None) -> ToldJob | None:
        return None if end is None else told_as(ToldJob, end, self._url)

    def _unanswered(self) -> UnknownOutcomeError:
        if self._unknown:
            ended = f"has no job {self._id} any more: it has restarted, which ended the job, or another gateway answers"
            return self._lost(ended)
        return self._lost(f"does not answer any more; if it still runs, job {self._id} goes on")

    def _untold(self, answer: Answer) -> UnknownOutcomeError:
        """Why a gateway that knows the job does not tell of it."""
        why = f"status {answer.status}"
        try:
            json_of(answer, self._url)
        except LithifyError as error:
            why = error.message
        return self._lost(f"tells no more of job {self._id}, which goes on: {why}")

    def _polled(self) -> ToldJob | None:
        """Its end, if it has ended by now. Raises `UnknownOutcomeError` or `GatewayError`."""
        time.sleep(POLL_S)
        answer = self.connection.ask(Request("GET", self._place))
        if answer.status == _UNKNOWN:
            self._unknown = True
            return None
        try:
            job = told_as(ToldJob, json_of(answer, self._url), self._url)
        except BusyError:
            self._lives = True
            return None
        except GatewayError:
            raise
        except LithifyError:
            raise self._untold(answer) from None
        self._lives = True
        if (reached := job.progress) is not None and "progress" in self.listeners:
            self.listeners["progress"](reached.phase, reached.done, reached.total)
        return None if job.ended_ms is None else job

    def _job(self, request: Request, within_s: float | None = None) -> ToldJob:
        told = done_of(request, self.connection.ask(request, within_s=within_s), self._url)
        return told_as(ToldJob, told, self._url)

    def _read(self, response: HTTPResponse) -> Mapping[str, Any] | None:
        """Hands events to the listeners; returns the job at its end, None where the events break off."""
        events = _events(response)
        while True:
            try:
                event = next(events, None)
            except (OSError, HTTPException, ValueError):
                return None
            if event is None:
                return None
            self._lives = True
            if event.name == "end":
                return event.facts
            if event.name:
                self._seen = event.number
                self._tell(event)

    def _tell(self, event: Event) -> None:
        listener, names = self.listeners.get(event.name), _FACTS.get(event.name, ())
        if listener is not None and event.facts.keys() >= set(names):
            listener(*(event.facts[name] for name in names))

    def _stopped(self) -> ToldJob:
        """Cancels the job. Raises `KeyboardInterrupt`, at once or, where a commit has ended meanwhile, later."""
        ended = None
        try:
            ended = self._cancelled()
        except KeyboardInterrupt:
            self._commit_is_possible()
            raise
        if ended is None:
            self._commit_is_possible()
            raise KeyboardInterrupt
        if not (ended.report or {}).get("changed"):
            raise KeyboardInterrupt
        self._commit_is_possible()
        signal.raise_signal(signal.SIGINT)  # the verb takes it after what it says of the commit
        return ended

    def _cancelled(self) -> ToldJob | None:
        """The job as it ended; None if that is not known."""
        if not self._id:
            return None
        deadline_s = time.monotonic() + ENDS_WITHIN_S
        with suppress(LithifyError):
            request = Request("DELETE", self._place)
            while (left_s := deadline_s - time.monotonic()) > 0:
                answer = self.connection.ask(request, within_s=left_s)
                if answer.status == _UNKNOWN:
                    self.connection.close()  # another gateway has answered: the next connection may be to the right one
                else:
                    job = told_as(ToldJob, json_of(answer, self._url), self._url)
                    if job.ended_ms is not None:
                        return job
                    request = Request("GET", self._place)
                time.sleep(LOOK_S)
        return None

    def _commit_is_possible(self) -> None:
        if self.commits and (progress := self.listeners.get("progress")):
            progress(COMMIT, 0, 1)

    def _lost(self, what: str) -> UnknownOutcomeError:
        return UnknownOutcomeError(f"the gateway at {self._url} {what}", hint=self.request.look)

    @property
    def _place(self) -> str:
        return f"{PREFIX}/jobs/{self._id}"

    @property
    def _url(self) -> str:
        return self.connection.address.url


def _body(response: HTTPResponse) -> bytes:
    """As much of an answer as came."""
    with suppress(OSError, HTTPException):
        return response.read(MOST_BYTES)
    return b""


def _events(response: HTTPResponse) -> Iterator[Event]:
    """The events of a stream, and its comments as events without a name.

    Raises `ValueError` for what is none, and what the connection raises.
    """
    number, name, data = 0, "", ""
    while line := response.readline(MOST_BYTES).decode():
        if not line.endswith("\n"):
            raise ValueError("an event that does not end")
        field_name, _, value = line.rstrip("\r\n").partition(": ")
        match field_name:
            case "id":
                number = int(value)
            case "event":
                name = value
            case "data":
                data = value
            case "" if data:
                yield Event(number, name, json.loads(data))
                name, data = "", ""
            case "" if value:
                yield Event(number, "", {})
