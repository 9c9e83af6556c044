"""What removes records, files or rounds; a plan of it is a GET on the same path."""

from __future__ import annotations

from lithify.gateway.operations.operation import Operation, Target
from lithify.model.access.roles import Role

_TOPIC = Target.TOPIC
_CUT = "cut:CutReport"


def _planned(name: str, path: str, accepts: tuple[str, ...] = ()) -> tuple[Operation, Operation]:
    return (
        Operation(f"plan_{name}", _TOPIC, f"plan_{name}", f"GET {path}", Role.TOPIC, _CUT, accepts),
        Operation(name, _TOPIC, name, f"POST {path}", Role.TOPIC, _CUT, accepts),
    )


OPERATIONS = (
    Operation(
        "retain",
        _TOPIC,
        "retain",
        "POST /topics/{topic}/retain",
        Role.TOPIC,
        _CUT,
        ("now_ms", "allow_clock_jump"),
    ),
    *_planned("delete_records", "/topics/{topic}/delete-records", ("partition", "before")),
    *_planned("truncate", "/topics/{topic}/truncate", ("partition", "to", "below_compacted")),
    *_planned("uncompact", "/topics/{topic}/uncompact", ("lose_trimmed",)),
    *_planned("undo", "/topics/{topic}/undo"),
    Operation(
        "sweep",
        _TOPIC,
        "sweep",
        "POST /topics/{topic}/sweep",
        Role.TOPIC,
        "topic_space:SweepReport",
        ("delete", "allow_unusual", "allow_clock_jump"),
        is_job=True,
    ),
)
