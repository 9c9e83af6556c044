"""How requests are treated, by their paths."""

import pytest

from lithify.gateway.operations.records import APPENDED_BYTES
from lithify.gateway.server.kinds import kind_of


@pytest.mark.parametrize(
    ("request_line", "lane"),
    [
        ("GET /api/v1/events", "streams"),
        ("GET /api/v1/jobs/17/events", "streams"),
        ("GET /api/v1/topics/events", "requests"),
        ("GET /api/v1/streams/events/topics", "requests"),
        ("POST /api/v1/topics/events/records", "appends"),
        ("GET /api/v1/topics/shop%2Forders/records", "reads"),
        ("GET /api/v1/topics/shop%2Forders/table", "reads"),
        ("DELETE /api/v1/topics/records", "requests"),
        ("GET /metrics", "requests"),
    ],
)
def test_the_lane_of_a_request(request_line, lane):
    method, path = request_line.split(" ")
    kind = kind_of(method, path)
    assert (kind.lane, kind.is_open) == (lane, False)
    assert (kind.body_bytes == APPENDED_BYTES) == (lane == "appends")


@pytest.mark.parametrize("path", ["/", "/page/app.js", "/healthz", "/readyz", "/openapi.json"])
def test_what_has_nothing_of_the_warehouse_in_it_is_open(path):
    assert kind_of("GET", path).is_open


@pytest.mark.parametrize(
    "path", ["/metrics", "/api/v1/topics", "/pages", "/page", "/healthz/x", "//", "/api/v1/page/x"]
)
def test_all_else_needs_a_token(path):
    assert not kind_of("GET", path).is_open
