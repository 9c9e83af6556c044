"""The API says what the Python API says, for every operation of its table."""

import inspect
import json
import re
from urllib.parse import quote

import pytest
from starlette.requests import Request

from gateway.conftest import Served, orders
from lithify import Record
from lithify.errors import DamagedError
from lithify.gateway.operations.operation import Target
from lithify.gateway.operations.table import OPERATIONS
from lithify.gateway.server.arguments import arguments_type, schema
from lithify.gateway.server.live import listed
from lithify.gateway.server.routes import page_of
from lithify.service.look.status import infos_of
from lithify.testing.memory_store import MemoryStore

ORDERS = "/api/v1/topics/shop%2Forders"


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_an_operation_is_a_method_that_takes_what_it_accepts(operation):
    takes = inspect.signature(operation.function()).parameters
    in_path = {name.strip("{}") for name in operation.path.split("/") if name.startswith("{")}
    assert set(operation.accepts) <= set(takes)
    assert not in_path - {"topic", "stream", "group", *takes}
    assert schema(arguments_type(operation))
    assert operation.report == "" or schema(operation.report_class())


def test_operations_have_different_names_and_places():
    assert len({one.name for one in OPERATIONS}) == len(OPERATIONS)
    assert len({one.http for one in OPERATIONS}) == len(OPERATIONS)
    assert len({(one.of, one.call) for one in OPERATIONS}) == len(OPERATIONS)


def test_reports_are_those_of_the_python_api(served: Served):
    orders(served.lake)
    topic = served.lake.topic("shop/orders")
    assert served.ask("GET", ORDERS).json() == json.loads(json.dumps(topic.info().to_json()))
    listed = served.ask("GET", "/api/v1/topics").json()
    assert (listed["total"], listed["next"]) == (1, None)
    assert listed["items"] == [json.loads(json.dumps(one.to_json())) for one in served.lake.topic_infos()]
    status = served.ask("GET", f"{ORDERS}/status", params={"now_ms": 1}).json()
    assert status == json.loads(json.dumps(topic.status(now_ms=1).to_json()))


def test_a_round_is_a_job_with_events_and_a_report(served: Served):
    orders(served.lake)
    begun = served.ask("POST", f"{ORDERS}/rounds", json={"partitions": [0]})
    assert begun.status_code == 202
    job = served.ended(begun.json()["job"])
    assert (job["state"], job["error"]) == ("done", None)
    assert job["report"]["logs"][0]["records_out"] == 2
    history = served.ask("GET", f"{ORDERS}/rounds").json()["items"]
    assert [one["run_id"] for one in history] == [job["report"]["run_id"]]
    events = served.ask("GET", begun.headers["Location"] + "/events").text
    assert "event: progress\n" in events
    assert json.loads(events.rpartition("data: ")[2]) == job


def test_the_events_of_a_round_can_be_its_response(served: Served):
    orders(served.lake)
    events = served.ask("POST", f"{ORDERS}/rounds", json={}, headers={"Accept": "text/event-stream"})
    last = json.loads(events.text.rpartition("data: ")[2])
    assert last["report"]["logs"][0]["records_out"] == 2
    assert events.headers["Location"] == f"/api/v1/jobs/{last['job']}"


def test_a_job_has_the_fields_that_the_description_has(served: Served):
    orders(served.lake)
    job = served.ended(served.ask("POST", f"{ORDERS}/rounds", json={}).json()["job"])
    described = served.ask("GET", "/openapi.json").json()["components"]["schemas"]["Job"]["properties"]
    assert job.keys() == described.keys()


def test_a_job_that_fails_has_the_error(served: Served):
    orders(served.lake)
    job = served.ask("POST", f"{ORDERS}/rounds", json={"partitions": [7]}).json()["job"]
    told = served.ended(job)
    assert (told["state"], told["report"]) == ("failed", None)
    assert told["error"]["code"] == "UnknownTopic"


@pytest.mark.parametrize(
    ("method", "path", "more", "status", "code"),
    [
        ("GET", "/api/v1/topics/none", {}, 404, "UnknownTopic"),
        ("GET", f"{ORDERS}/truncate", {"params": {"partition": 0, "to": 99}}, 400, "OffsetOutOfRange"),
        ("GET", f"{ORDERS}/truncate", {"params": {"partition": 0}}, 400, "InvalidInput"),
        ("GET", f"{ORDERS}/status", {"params": {"now_ms": 10**30}}, 400, "InvalidInput"),
        ("GET", f"{ORDERS}/status", {"params": {"later": 1}}, 400, "InvalidInput"),
        ("GET", "/api/v1/topics", {"params": {"limit": -1}}, 400, "InvalidInput"),
        ("GET", "/api/v1/jobs", {"params": {"offset": "x"}}, 400, "InvalidInput"),
        ("GET", "/api/v1/jobs", {"params": {"limit": 0}}, 400, "InvalidInput"),
        ("GET", "/api/v1/topics", {"params": {"limit": "00"}}, 400, "InvalidInput"),
        ("POST", f"{ORDERS}/rounds", {"data": "{"}, 400, "InvalidInput"),
        ("PATCH", ORDERS, {"data": '{"config":' + '{"a":' * 100_000}, 400, "InvalidInput"),
        ("POST", "/api/v1/topics", {"json": {"name": "shop/orders"}}, 409, "TopicExists"),
        ("POST", "/api/v1/topics", {"json": {"name": "x", "config": {"no.setting": 1}}}, 400, "InvalidSetting"),
    ],
)
def test_errors_are_problems_with_the_codes_of_the_command_line(served: Served, method, path, more, status, code):
    orders(served.lake)
    answer = served.ask(method, path, **more)
    told = answer.json()
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert (answer.status_code, told["status"], told["code"]) == (status, status, code)
    assert told["detail"]
    assert told["exit_code"] == 2


@pytest.mark.parametrize("path", ["/nothing", "/api/v1/topics/a/b/c", "/api/v1/topics/", f"/{'a' * 4000}"])
def test_paths_that_there_are_not_are_problems(served: Served, path):
    answer = served.ask("GET", path)
    assert (answer.status_code, answer.headers["Content-Type"]) == (404, "application/problem+json")
    assert answer.json() == {
        "type": "about:blank",
        "title": "InvalidInput",
        "status": 404,
        "detail": f"there is nothing at {path[:200]}",
        "code": "InvalidInput",
        "hint": "GET /openapi.json describes what there is; write / in a name as %2F",
        "exit_code": 2,
    }


def test_a_job_that_there_is_not_is_a_problem(served: Served):
    told = served.ask("GET", "/api/v1/jobs/none").json()
    assert (told["status"], told["code"], told["hint"]) == (
        404,
        "InvalidInput",
        "GET /api/v1/jobs lists those that there are",
    )


def test_a_slash_in_the_name_of_a_topic_is_explained(served: Served):
    told = served.ask("GET", "/api/v1/topics/shop/orders/records").json()
    assert told["hint"] == "GET /openapi.json describes what there is; write / in a name as %2F"


def test_a_path_that_programs_may_read_differently_is_a_problem(served: Served):
    answer = served.ask("GET", "/api/v1//topics")
    assert (answer.status_code, answer.headers["Content-Type"]) == (400, "application/problem+json")


def test_a_list_is_sent_in_pages(served: Served):
    for name in "abcde":
        served.lake.create_topic(name)
    names, place = [], "/api/v1/topics?limit=2"
    while place:
        page = served.ask("GET", place).json()
        names += [one["topic"] for one in page["items"]]
        place = page["next"]
    assert names == ["a", "b", "c", "d", "e"]


def test_a_page_of_topics_costs_what_it_has(served: Served, monkeypatch):
    """Only topics with new commits are read, and only those of the page are told of."""
    for name in ("t1", "t2", "t10", "shop/orders", "gone"):
        served.lake.create_topic(name)
    first = served.ask("GET", "/api/v1/topics").json()
    assert first["items"] == [json.loads(json.dumps(one.to_json())) for one in served.lake.topic_infos()]
    read, told, load = [], [], MemoryStore.load

    def loads(store, name):
        read.append(str(name))
        return load(store, name)

    monkeypatch.setattr(MemoryStore, "load", loads)
    monkeypatch.setattr(
        listed, "infos_of", lambda store, some: told.extend(one.name for one in some) or infos_of(store, some)
    )
    served.lake.create_topic("t3")
    served.lake.topic("t2").append([Record(b"k", b"v")])
    served.lake.delete_topic("gone")
    read.clear()
    page = served.ask("GET", "/api/v1/topics?offset=1&limit=2").json()
    assert [(one["topic"], one["records"]) for one in page["items"]] == [("t1", 0), ("t2", 1)]
    assert (page["total"], page["next"]) == (5, "/api/v1/topics?offset=3&limit=2")
    assert (sorted(read), len(told)) == (["t2", "t3"], 2)
    assert [one["topic"] for one in served.ask("GET", page["next"]).json()["items"]] == ["t3", "t10"]


def test_a_list_names_topics_that_cannot_be_read_beside_the_others(served: Served, monkeypatch):
    for name in ("a", "b"):
        served.lake.create_topic(name)
    served.ask("GET", "/api/v1/topics")
    load = MemoryStore.load

    def fails(store, name):
        if name.topic == "b":
            raise DamagedError("b: gone", hint="restore it")
        return load(store, name)

    served.lake.topic("b").append([Record(b"k", b"v")])
    monkeypatch.setattr(MemoryStore, "load", fails)
    told = served.ask("GET", "/api/v1/topics").json()
    assert ([one["topic"] for one in told["items"]], told["total"]) == (["a"], 1)
    assert [(one["topic"], one["code"], one["hint"]) for one in told["failed"]] == [("b", "Damaged", "restore it")]


def test_the_overview_is_that_of_the_python_api(served: Served):
    orders(served.lake)
    served.lake.create_topic("a")
    told = served.ask("GET", "/api/v1/status", params={"now_ms": 1})
    assert told.headers["Content-Type"] == "application/json"
    assert told.json() == json.loads(json.dumps(served.lake.status(now_ms=1).to_json()))


NAMES = (
    "a/b",
    "a%2Fb",
    "a%252Fb",
    "default/a.b",
    "a%2fb",
    "%25",
    "persistent://t/n/a/b",
    "persistent://t/n/a%2Fb",
    "persistent://t/n/caf\u00e9 ?#+",
    "/s/t:a",
    "/s%2Ft:a",
)


def test_a_path_names_one_topic_whatever_is_in_its_name(served: Served):
    for name in NAMES:
        served.lake.create_topic(name)
        served.lake.topic(name).append([])
    left = set(served.lake.topics())
    for name in NAMES:
        path, topic = f"/api/v1/topics/{quote(name, safe='')}", served.lake.topic(name)
        assert served.ask("GET", path).json()["topic"] == topic.info().topic
        line = '{"key": "k", "value": "v"}'
        headers = {"Content-Type": "application/x-ndjson"}
        assert served.ask("POST", f"{path}/records", data=line, headers=headers).status_code == 200
        assert topic.info().records == 1
        assert len(served.ask("GET", f"{path}/records").text.splitlines()) == 1
        assert served.ask("DELETE", path).status_code == 200
        left -= {topic}
        assert set(served.lake.topics()) == left


def test_the_next_page_has_the_path_as_it_was_sent():
    sent = {"type": "http", "raw_path": b"/api/v1/topics/a%252Fb%3F/rounds", "query_string": b"limit=1", "headers": []}
    assert page_of([1, 2], Request(sent))["next"] == "/api/v1/topics/a%252Fb%3F/rounds?offset=1&limit=1"


def shape_of(path: str) -> str:
    return re.sub(r"{\w+}", "{}", path)


def test_paths_of_the_description_differ_in_more_than_the_names_of_parameters(served: Served):
    paths = served.ask("GET", "/openapi.json").json()["paths"]
    assert len({shape_of(path) for path in paths}) == len(paths)
    for path, methods in paths.items():
        for one in methods.values():
            named = {given["name"] for given in one.get("parameters", ()) if given["in"] == "path"}
            assert named == set(re.findall(r"{(\w+)}", path))


def test_the_description_says_which_role_is_needed(served: Served):
    paths = served.ask("GET", "/openapi.json").json()["paths"]
    append, delete = (paths[f"/api/v1/topics/{{topic}}{path}"] for path in ("/records", ""))
    assert append["post"]["description"] == "Needs the role `produce`."
    assert delete["delete"]["description"] == "Needs the role `topic`."


def test_the_description_names_every_operation(served: Served):
    told = served.ask("GET", "/openapi.json").json()
    there = {(path, method) for path, methods in told["paths"].items() for method in methods}
    shapes = {(shape_of(path), method) for path, method in there}
    assert shapes >= {(shape_of(one.path), one.method.lower()) for one in OPERATIONS}
    jobs = "/api/v1/jobs"
    assert there >= {(jobs, "get"), (f"{jobs}/{{job}}", "get"), (f"{jobs}/{{job}}", "delete"), ("/metrics", "get")}
    assert there >= {(f"{jobs}/{{job}}/events", "get"), ("/api/v1/events", "get"), ("/readyz", "get")}
    assert all("default" in one["responses"] for methods in told["paths"].values() for one in methods.values())
    assert {one.of for one in OPERATIONS} == set(Target)


@pytest.mark.parametrize(
    ("path", "methods"),
    [("/api/v1/status", "GET, HEAD"), ("/api/v1/topics", "GET, HEAD, POST"), ("/healthz", "GET, HEAD")],
)
def test_a_method_that_a_path_has_not_names_those_that_it_has(served: Served, path, methods):
    answer = served.ask("DELETE", path)
    assert (answer.status_code, answer.headers["Allow"]) == (405, methods)
    told = answer.json()
    assert (told["code"], told["detail"]) == ("InvalidInput", f"{path} takes {methods}, not DELETE")
    assert told["hint"].startswith("GET /openapi.json")


def test_every_reference_of_the_description_is_to_something_in_it(served: Served):
    told = served.ask("GET", "/openapi.json").json()
    references = set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(told)))
    assert len(references) > 20
    for reference in references:
        place = told
        for name in reference.removeprefix("#/").split("/"):
            place = place[name]
    used = {reference.rpartition("/")[2] for reference in references}
    assert used == told["components"]["schemas"].keys()
