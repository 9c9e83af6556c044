"""Records in and out: their bodies are not JSON objects, so that the server has routes of its own for them."""

from __future__ import annotations

from lithify.gateway.operations.operation import Operation, Target
from lithify.model.access.roles import Role

APPEND = Operation("append", Target.TOPIC, "append", "POST /topics/{topic}/records", Role.PRODUCE, "")
READ = Operation("read_records", Target.TOPIC, "reader", "GET /topics/{topic}/records", Role.CONSUME, "")
TABLE = Operation("read_table", Target.TOPIC, "table_batches", "GET /topics/{topic}/table", Role.CONSUME, "")

OPERATIONS = (APPEND, READ, TABLE)

ARROW = "application/vnd.apache.arrow.stream"
LINES = "application/x-ndjson"
"""The two forms of a body."""
APPENDED_BYTES = 32 * 2**20
"""The most in the body of an append: as much text as `lithify produce` appends at once, and what JSON adds to it."""
