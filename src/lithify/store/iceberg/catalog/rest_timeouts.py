"""Deadlines for requests to a REST catalog: PyIceberg gives its client no timeouts at all (C50)."""

from __future__ import annotations

from functools import partial
from typing import Any

from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter
from requests.exceptions import ReadTimeout

from lithify.waits.deadline import within

TIMEOUTS_S = (5.0, 30.0)
"""Seconds to connect, and without a single byte."""
REQUEST_S = 60.0
"""Seconds for a whole request with its answer."""


def bound_session(session: Session) -> None:
    """All requests of a session, from now on."""
    for prefix in ("https://", "http://"):
        session.mount(prefix, _BoundedAdapter())


class _BoundedAdapter(HTTPAdapter):
    def send(self, request: PreparedRequest, *more: Any, **given: Any) -> Response:
        """Raises `ReadTimeout`, after which it is unknown whether the request was done."""
        if given.get("timeout") is None:
            given["timeout"] = TIMEOUTS_S
        try:
            return within(REQUEST_S, partial(self._answered, request, *more, **given))
        except TimeoutError as error:
            raise ReadTimeout(f"{request.method} {request.url}: {error}", request=request) from error

    def _answered(self, request: PreparedRequest, *more: Any, **given: Any) -> Response:
        response = super().send(request, *more, **given)
        response.content  # noqa: B018 - read here, so that the time is for all of it
        return response
