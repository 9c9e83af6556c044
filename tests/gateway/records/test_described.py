"""The description has records in and out, with what their requests take."""

import msgspec

from gateway.conftest import Served
from lithify.gateway.operations.records import OPERATIONS
from lithify.gateway.server.records.arguments import AppendQuery, ReadQuery, TableQuery


def test_the_description_has_records(served: Served):
    told = served.ask("GET", "/openapi.json").json()
    for one, query in zip(OPERATIONS, (AppendQuery, ReadQuery, TableQuery), strict=True):
        described = told["paths"][one.path][one.method.lower()]
        names = {parameter["name"] for parameter in described["parameters"] if parameter["in"] == "query"}
        assert names == {field.encode_name for field in msgspec.structs.fields(query)}
        assert described["operationId"] == one.name
        assert described["summary"].endswith(".")
    append = told["paths"][OPERATIONS[0].path]["post"]
    assert "Idempotency-Key" in {parameter["name"] for parameter in append["parameters"]}
    assert len(append["requestBody"]["content"]) == 2
