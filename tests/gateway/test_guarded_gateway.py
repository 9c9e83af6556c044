"""The guard before the whole application: pages of other sites change nothing, foreign names are refused."""

import pytest

from gateway.conftest import Served, orders
from lithify.gateway.access.middleware import BODY_BYTES

TRUNCATE = "/api/v1/topics/shop%2Forders/truncate"


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://127.0.0.1", ""])
def test_a_page_of_another_site_changes_nothing(served: Served, origin):
    orders(served.lake)
    headers = {"Origin": origin, "Content-Type": "text/plain"}
    answer = served.ask("POST", TRUNCATE, data='{"partition": 0, "to": 0}', headers=headers)
    assert (answer.status_code, answer.headers["Content-Type"]) == (403, "application/problem+json")
    assert served.lake.topic("shop/orders").info().records == 3


def test_its_own_pages_and_programs_may(served: Served):
    orders(served.lake)
    for headers in ({"Origin": served.url}, {}):
        assert served.ask("POST", TRUNCATE, json={"partition": 0, "to": 3}, headers=headers).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:7660", "127.0.0.1.evil.example", "127.8.8.8", "[::2]", "", "["]
)
def test_another_name_for_this_machine_is_refused(served: Served, host):
    answer = served.ask("GET", "/api/v1/topics", headers={"Host": host})
    name = host.removesuffix(":7660").strip("[]")
    hints = {400: "send the host of the gateway's URL", 421: f"run it with `--allow-host {name}`"}
    assert hints[answer.status_code] in answer.json()["hint"]


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.0.0.1:9", "[::1]:7660"])
def test_names_of_this_machine_are_let_through(served: Served, host):
    assert served.ask("GET", "/api/v1/topics", headers={"Host": host}).status_code == 200


def test_a_body_without_an_end_is_refused(served: Served):
    orders(served.lake)
    sent = (b" " * 2**16 for _ in range(1 + 2 * BODY_BYTES // 2**16))
    answer = served.ask("POST", TRUNCATE, data=sent)
    assert (answer.status_code, answer.json()["code"]) == (413, "InvalidInput")
    assert served.lake.topic("shop/orders").info().records == 3
