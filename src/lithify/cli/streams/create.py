"""`lithify stream create` (C56)."""

from __future__ import annotations

from lithify.cli import parameters
from lithify.cli.invocation import Invocation, verb
from lithify.cli.terminal.output import say
from lithify.errors import InvalidNameError, InvalidSettingError, RefusedError


@verb("create")
@parameters.new_stream
@parameters.pairs("--config", "A stream attribute or a topic setting. Repeatable.")
@parameters.if_not_exists
def create(invocation: Invocation, stream_name: str, config: dict[str, str], if_not_exists: bool) -> None:
    """Create a stream. An existing one is an error, and with --if-not-exists left as it is.

    Its topics inherit its attributes, and may have settings of their own. Attributes are MapR's: compact,
    mincompactionlag, deleteretention, ttl (in seconds), defaultpartitions, autocreate, compression,
    defaulttimestamptype; and any topic setting by Kafka's name. Durations and sizes may have units.

    \b
    What topics keep:
      compact=false ttl=0       every record, for ever
      compact=false ttl=7d      every record, for 7 days
      compact=true ttl=0        the latest record of every key, for ever
      compact=true ttl=7d       the same: a ttl alone lets no live key expire
      cleanup.policy=compact,delete ttl=7d
                                the latest record of every key, for 7 days

    \b
    Examples:
      lithify stream create eu --config compact=true --config defaultpartitions=4
      lithify stream create /apps/events --config compact=false --config ttl=7d
    """
    lake = invocation.open_lake()
    try:
        info, done = lake.create_stream(stream_name, config).info(), "created"
    except RefusedError as error:
        if not if_not_exists or isinstance(error, InvalidSettingError | InvalidNameError):
            raise
        info, done = lake.stream(stream_name).info(), "exists already; nothing was changed"
    if invocation.printed(info):
        return
    say(f"{info.stream}: {done}; topics keep {info.keeps}")
