"""What a caller may do: each operation needs its role, for the stream that it works on."""

import time

import pytest
import requests

import lithify
from lithify.errors import AccessDeniedError
from lithify.gateway.access.audit import AuditEntry, ToldAudit
from lithify.gateway.access.callers import Caller, put_caller
from lithify.gateway.operations.operation import Operation, Target
from lithify.gateway.operations.table import OPERATIONS
from lithify.gateway.server.rights import check_rights, streams_of, visible
from lithify.model.access.roles import ALL, Role, parse_grant
from lithify.testing import memory_lake
from support.servers.gateways import serving_gateway

OPEN_TO_ALL = ("/", "/page/app.js", "/healthz", "/readyz", "/openapi.json")
ARGUMENTS = {
    "topic": "shop/orders",
    "stream": "shop",
    "group": "billing",
    "replica": "copy",
}


def given(operation: Operation) -> dict[str, str]:
    """Arguments that name the stream `shop`, where the operation has some for that."""
    named = {
        name: ARGUMENTS[name] for name in ARGUMENTS if f"{{{name}}}" in operation.path or name in operation.accepts
    }
    named |= dict.fromkeys(set(operation.topics) - {"topic"}, "shop/orders")
    return named | dict.fromkeys(set(operation.streams) - {"stream"}, "shop")


def scope_of(*grants: str) -> dict[str, object]:
    scope: dict[str, object] = {}
    put_caller(scope, Caller("alice", tuple(map(parse_grant, grants))))
    return scope


def allowed(operation: Operation, *grants: str) -> bool:
    try:
        check_rights(scope_of(*grants), operation, given(operation))
    except AccessDeniedError:
        return False
    return True


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_an_operation_needs_its_role_for_its_stream(operation):
    about = streams_of(operation, given(operation))
    assert allowed(operation, "admin")
    assert allowed(operation, operation.role)
    assert not allowed(operation) or operation.by_stream
    others = {role for role in Role if operation.role not in role.includes}
    assert not any(allowed(operation, role) for role in others) or operation.by_stream
    is_of_shop = about != (ALL,)
    assert allowed(operation, f"{operation.role}:shop") == (is_of_shop or operation.by_stream)
    assert allowed(operation, f"{operation.role}:other") == operation.by_stream


def test_what_is_of_a_topic_or_stream_is_never_of_all():
    """Else a right for one stream would be one for none, and a mistake in the table would go unnoticed."""
    of_one = [one for one in OPERATIONS if one.of in (Target.TOPIC, Target.STREAM)]
    assert of_one and all(streams_of(one, given(one)) == ("shop",) for one in of_one)


@pytest.mark.parametrize("like", ["kafka", "pulsar", "mapr"])
def test_the_defaults_of_a_new_topic_are_of_no_stream(like):
    create = next(one for one in OPERATIONS if one.name == "create_topic")
    assert check_rights(scope_of("topic:shop"), create, {"name": "shop/new", "like": like}).name == "alice"
    with pytest.raises(AccessDeniedError, match="stream secret"):
        check_rights(scope_of("topic:shop"), create, {"name": "secret/new", "like": like})


@pytest.mark.parametrize("name", ["status", "list_topics", "list_streams", "quarantine"])
def test_a_list_over_all_streams_has_those_that_a_caller_may_see(name):
    operation = next(one for one in OPERATIONS if one.name == name)
    lake = memory_lake()
    for topic in ("shop/orders", "secret/orders", "plain"):
        lake.create_topic(topic)
    result = getattr(lake, operation.call)()
    for grants, hidden in ((["look:shop"], True), (["admin"], False)):
        shown = visible(operation, result, Caller("alice", tuple(map(parse_grant, grants))))
        told = str(shown.to_json() if hasattr(shown, "to_json") else [one.to_json() for one in shown])
        assert ("secret" in told) == (not hidden and name != "quarantine")
        assert ("shop" in told) == (name != "quarantine")


def test_the_audit_log_says_what_was_done_to_which_topic():
    lake, lines = memory_lake(), list[AuditEntry]()
    lake.create_topic("shop/orders")
    with serving_gateway(lake, audit=ToldAudit(lines.append)) as url:
        orders = f"{url}/api/v1/topics/shop%2Forders"
        stream = {"Accept": "text/event-stream"}
        begun = requests.post(f"{orders}/rounds", json={}, headers=stream, timeout=60)
        requests.patch(orders, json={"partitions": 2}, timeout=60)
        requests.post(f"{orders}/undo", timeout=60)
        requests.get(orders, timeout=60)
    told = [(entry.who, entry.status, dict(entry.facts)) for entry in lines]
    of_orders = {"topic": "shop/orders", "partition": None}
    job, ends = begun.headers["Location"].rpartition("/")[2], {"what": "compact", **of_orders}
    end = next(line for line in told if line[1] is None)
    told.remove(end)
    assert (end[0], end[2]["state"], end[2]["job"]) == ("local", "done", job)
    assert told[0] == ("local", 200, {**ends, "job": job})
    assert [(status, facts["what"], facts["topic"]) for _, status, facts in told[1:]] == [
        (200, "alter_topic", "shop/orders"),
        (409, "undo", "shop/orders"),
    ]
    assert told[2][2]["code"] == "NothingToUndo"


def test_refused_metrics_have_their_code_in_the_audit_log(tmp_path):
    lake, lines = lithify.open(str(tmp_path / "lake")), list[AuditEntry]()
    token = lake.tokens().create("shop", ["consume:shop"]).token
    with serving_gateway(lake, needs_token=True, audit=ToldAudit(lines.append)) as url:
        answer = requests.get(f"{url}/metrics", headers={"Authorization": f"Bearer {token}"}, timeout=60)
    assert answer.json()["code"] == "AccessDenied"
    assert [(entry.status, dict(entry.facts)["code"]) for entry in lines] == [(403, "AccessDenied")]


def test_tokens_let_in_over_http(tmp_path):
    lake = lithify.open(str(tmp_path / "lake"))
    for topic in ("shop/orders", "secret/orders"):
        lake.create_topic(topic)
    shop, looker = lake.tokens().create("shop", ["topic:shop"]).token, lake.tokens().create("looker", ["look"]).token
    expected = {
        "/topics/shop%2Forders": (401, 200, 200),
        "/topics/secret%2Forders": (401, 403, 200),
        "/topics/shop%2Forders/plan": (401, 200, 403),
        "/topics/secret%2Forders/plan": (401, 403, 403),
        "/standing-jobs": (401, 403, 403),
        "/warehouse": (401, 403, 200),
        "/events": (401, 403, 200),
        "/jobs": (401, 200, 200),
    }
    with serving_gateway(lake, needs_token=True) as url:
        for path, statuses in expected.items():
            for token, status in zip((None, shop, looker), statuses, strict=True):
                headers = {} if token is None else {"Authorization": f"Bearer {token}"}
                with requests.get(f"{url}/api/v1{path}", headers=headers, timeout=60, stream=True) as answer:
                    assert (path, answer.status_code) == (path, status)
        assert [requests.get(f"{url}{path}", timeout=60).status_code for path in OPEN_TO_ALL] == [200] * 5
        assert requests.get(f"{url}/metrics", timeout=60).status_code == 401


@pytest.mark.parametrize("grant", ["admin:shop", "admin"])
def test_errors_name_nothing_that_a_caller_may_not_see(tmp_path, grant):
    lake = lithify.open(str(tmp_path / "lake"))
    lake.create_topic("secret/gold-customers")
    lake.topic("secret/gold-customers").append([lithify.Record(key=b"k", value=b"v")])
    with lake.topic("secret/gold-customers").reader(group="billing") as reader:
        assert len(list(reader)) == 1
        reader.commit()
    headers = {"Authorization": f"Bearer {lake.tokens().create('a', [grant]).token}"}
    topic = "/api/v1/topics/shop%2Fgold-customers"
    with serving_gateway(lake, needs_token=True) as url:

        def ask(method, path, **more):
            told = requests.request(method, url + path, headers=headers | more.pop("headers", {}), timeout=60, **more)
            return told.json()

        job = ask("POST", f"{topic}/rounds")["job"]
        while ask("GET", f"/api/v1/jobs/{job}")["ended_ms"] is None:
            time.sleep(0.01)
        answers = [
            ask("GET", topic),
            ask("GET", f"{topic}/records"),
            ask("POST", f"{topic}/records", data="", headers={"Content-Type": "application/x-ndjson"}),
            ask("GET", "/api/v1/groups/bill", params={"topic": "shop/gold-customers"}),
            ask("GET", f"/api/v1/jobs/{job}")["error"],
        ]
    assert [told["code"].replace("Group", "Topic") for told in answers] == ["UnknownTopic"] * len(answers)
    told_names = ["secret" in str(told) or "billing" in str(told) for told in answers]
    assert told_names == [grant == "admin"] * len(answers)
