"""How the soak asks gateways over HTTP: any of them, and another one if that gives no answer."""

from __future__ import annotations

import time
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from threading import Lock, local
from typing import Any
from urllib.parse import quote

import requests

import lithify.errors
from gateway.records.exchanges import ARROW, LINES, sent
from lithify.errors import LithifyError
from lithify.model.record import Record

ANSWERS_S = 10.0
"""A gateway that is frozen does not answer; then another one is asked."""
HANGS_UP_S = (0.02, 0.3)
"""Some clients do not wait for the answer."""
HANGS_UP = 0.1
KNOWN_WITHIN_S = 240.0
"""Until an append that is sent again and again is answered."""
PAUSES_S = (0.05, 1.0)


class NoAnswerError(Exception):
    """What became of it is not known: no answer came, or one that says to try again."""


@dataclass(slots=True)
class Gateways:
    """All of them, and what they have answered. Any number of threads may use it."""

    urls: Mapping[str, str]
    """By name of a gateway."""
    answers: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    _sessions: local = field(default_factory=local)
    _lock: Lock = field(default_factory=Lock)

    def ask(self, url: str, method: str, path: str, timeout_s: float = ANSWERS_S, **more: Any) -> requests.Response:
        """The answer, if it is one. Raises `NoAnswerError`, or the error that a gateway has told."""
        try:
            answer = self._session.request(method, url + path, timeout=timeout_s, **more)
        except requests.RequestException as error:
            self._count(type(error).__name__)
            raise NoAnswerError(type(error).__name__) from None
        if answer.ok:
            self._count(f"{answer.status_code}")
            return answer
        raise self._told(answer)

    def append(self, topic: str, records: Sequence[Record], key: str, luck: Random) -> dict[str, Any]:
        """Sends it to one after the other until one tells what became of it. Raises the error that one tells."""
        until_s = time.monotonic() + KNOWN_WITHIN_S
        while True:
            try:
                return self.append_once(luck.choice(self.all), topic, records, key, _patience_s(luck))
            except NoAnswerError as error:
                if time.monotonic() > until_s:
                    raise lithify.errors.UnknownOutcomeError(f"{topic}: no gateway answers: {error}") from None
            time.sleep(luck.uniform(*PAUSES_S))

    def append_once(
        self, url: str, topic: str, records: Sequence[Record], key: str, timeout_s: float = ANSWERS_S
    ) -> dict[str, Any]:
        """One attempt, in the same bytes whenever it is made: they belong to what a key stands for. Raises as `ask`."""
        media = (LINES, ARROW)[zlib.crc32(key.encode()) % 2]
        body = sent(records, media)
        headers = {"Content-Type": media, "Idempotency-Key": key}
        path = f"{path_of(topic)}/records"
        answer = self.ask(url, "POST", path, timeout_s, params={"encoding": "base64"}, data=body, headers=headers)
        told: dict[str, Any] = answer.json()
        return told

    @property
    def all(self) -> list[str]:
        return list(self.urls.values())

    def _told(self, answer: requests.Response) -> Exception:
        """What an answer that is a problem says."""
        try:
            problem = answer.json()
            code, detail = problem["code"], problem["detail"]
        except (ValueError, KeyError):
            self._found(f"an answer that is no problem: {answer.status_code} {answer.text[:200]}")
            return NoAnswerError(f"{answer.status_code}")
        self._count(f"{answer.status_code} {code}")
        error: LithifyError = getattr(lithify.errors, f"{code}Error", LithifyError)(detail, hint=problem["hint"] or "")
        if code == "Defect":
            self._found(f"a defect: {detail}")
        if answer.status_code == 429 or answer.status_code >= 500 or code == "Conflict":
            return NoAnswerError(f"{answer.status_code} {error}")
        return error

    def _count(self, what: str) -> None:
        with self._lock:
            self.answers[what] += 1

    def _found(self, finding: str) -> None:
        with self._lock:
            self.findings.append(finding)

    @property
    def _session(self) -> requests.Session:
        if not hasattr(self._sessions, "session"):
            self._sessions.session = requests.Session()
        session: requests.Session = self._sessions.session
        return session


def path_of(topic: str) -> str:
    return f"/api/v1/topics/{quote(topic, safe='')}"


def _patience_s(luck: Random) -> float:
    return luck.uniform(*HANGS_UP_S) if luck.random() < HANGS_UP else ANSWERS_S
