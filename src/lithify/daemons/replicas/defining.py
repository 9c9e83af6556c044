"""Adds, changes and removes definitions of replicas.

    a/orders ──► b/orders ──► c/orders          may be added
       ▲                          │
       └──────────────────────────┘             a loop: refused, however many warehouses it leads through
    d/orders ──► b/orders                       a second source: refused

What a definition cannot know (one added at the same time, another database, a warehouse that cannot be reached) is
decided by every copy, which compares the two topics themselves (`rules/lifecycle/replicas.py`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from lithify.daemons.replicas.context import Place, ReplicaContext
from lithify.errors import ConflictError, InvalidNameError, LithifyError, RefusedError, UnknownTopicError
from lithify.model.names import TopicName, nearest, original_stream, parse_stream, parse_topic
from lithify.model.replicas.definition import ReplicaDefinition, checked_replica, default_name
from lithify.ports.store import LogStore, Warehouse
from lithify.rules.lifecycle.replicas import check_replicates
from lithify.waits.parallel import for_each

WAREHOUSES_WALKED = 16
"""How many of the warehouses that the copies of a copy lead to are checked for a loop."""
TRIES = 5
"""Of a change that others are faster than."""


@dataclass(frozen=True, slots=True)
class ReplicaRequest:
    """What is to be copied, as a person wrote it, and to which place."""

    what: str
    place: str
    name: str | None = None
    throttle_bytes: int | None = None
    paused: bool = False
    sync_groups: bool = False
    compact: bool = False


def add_replica(context: ReplicaContext, request: ReplicaRequest) -> ReplicaDefinition:
    """Defines a replica. Raises `UnknownTopicError`, `InvalidNameError`, `RefusedError` or `WarehouseError`."""
    stream, topic = resolved(context.warehouse.store, request.what)
    target = context.open_place(request.place)
    definition = ReplicaDefinition(
        name=checked_replica(request.name or default_name(stream, topic, request.place)),
        scope=context.replicas.scope,
        stream=stream,
        topic=topic,
        target=request.place,
        target_scope=target.scope.name,
        throttle_bytes=request.throttle_bytes,
        paused=request.paused,
        created_ms=context.warehouse.clock.now_ms(),
        sync_groups=request.sync_groups,
        compact=request.compact,
    )
    if target.scope.name == context.scope.name or target.scope.location == context.scope.location:
        raise RefusedError(
            f"{request.place} is the warehouse of {definition.what} itself",
            hint="choose another warehouse for the replica",
        )
    if target.scope.holds(context.scope) or context.scope.holds(target.scope):
        raise RefusedError(
            f"one of {request.place} and the warehouse of {definition.what} is inside the other",
            hint="choose a folder outside of the warehouse: deleting one of them must not delete the other",
        )
    if request.sync_groups:
        check_groups(target)
    _check_only_source(context, definition)
    _check_no_loop(context, definition, target.warehouse)
    _check_topics(context, target.warehouse, definition)
    if not context.replicas.add(definition):
        raise RefusedError(f"the replica {definition.name} already exists", hint="choose another --name")
    return definition


def change_replica(
    context: ReplicaContext, name: str, change: Callable[[ReplicaDefinition], ReplicaDefinition]
) -> ReplicaDefinition:
    """Changes a definition. Raises `RefusedError` for an unknown one, `ConflictError` if others are always faster."""
    for _ in range(TRIES):
        before = context.definition(name)
        after = change(before)
        if context.replicas.replace(before, after):
            return after
    raise ConflictError(f"replica {name}: other programs changed it during every attempt", hint="try again")


def check_groups(target: Place) -> None:
    """Raises `RefusedError` if a target can have no groups; a first topic makes a warehouse that can."""
    if target.exists():
        target.groups()


def paused(definition: ReplicaDefinition) -> ReplicaDefinition:
    """A change: its copies stop, and what is noted of them remains."""
    return replace(definition, paused=True)


def resumed(definition: ReplicaDefinition) -> ReplicaDefinition:
    return replace(definition, paused=False)


def remove_replica(context: ReplicaContext, name: str) -> ReplicaDefinition:
    """Forgets a definition; the topics at the target remain unchanged. Raises `RefusedError` for an unknown one."""
    definition = context.definition(name)
    context.replicas.remove(name)
    return definition


def resolved(store: LogStore, text: str) -> tuple[str, str | None]:
    """The stream that `text` names, and the topic unless it names the stream alone.

    Raises `UnknownTopicError`, `InvalidNameError`, or `RefusedError` if both have the name.
    """
    stream = _existing_stream(store, text.removesuffix("/"))
    topic = None if text.endswith("/") else _existing_topic(store, text)
    if stream is not None and topic is not None:
        raise RefusedError(
            f"{text} is a stream and a topic", hint=f"write {text}/ for the stream, default/{text} for the topic"
        )
    if topic is not None:
        return topic.stream, topic.topic
    if stream is not None:
        return stream, None
    known = [*map(str, store.topics()), *map(original_stream, store.streams())]
    raise UnknownTopicError(
        f"there is no topic or stream {text}", hint=nearest(text, known, "list all topics with `lithify topic list`")
    )


def _existing_stream(store: LogStore, text: str) -> str | None:
    with suppress(InvalidNameError):
        stream = parse_stream(text)
        return stream if stream in store.streams() else None
    return None


def _existing_topic(store: LogStore, text: str) -> TopicName | None:
    try:
        return store.load(parse_topic(text).whole("replicated")).name
    except UnknownTopicError:
        return None
    except InvalidNameError:
        if _is_stream(text):
            return None
        raise


def _is_stream(text: str) -> bool:
    with suppress(InvalidNameError):
        parse_stream(text)
        return True
    return False


def _check_only_source(context: ReplicaContext, definition: ReplicaDefinition) -> None:
    """Raises `RefusedError` if another definition copies one of its topics to its target."""
    for other in context.replicas.into(definition.target_scope):
        if not other.overlaps(definition):
            continue
        if other.scope == definition.scope:
            raise RefusedError(
                f"replica {other.name} already copies {other.what} to {definition.target}",
                hint=f"change it with `lithify replica edit {other.name}`",
            )
        raise RefusedError(
            f"{definition.target} already gets {other.what} from another warehouse ({other.scope}), by its replica "
            f"{other.name}",
            hint="choose another target: a replica has one source",
        )


def _check_no_loop(context: ReplicaContext, definition: ReplicaDefinition, target: Warehouse) -> None:
    """Raises `RefusedError` if definitions of the target, or of their targets, lead back to the source."""
    seen = {definition.scope, definition.target_scope}
    first: tuple[tuple[str, ...], Warehouse] = ((definition.target,), target)
    queue = deque([first])
    while queue:
        path, warehouse = queue.popleft()
        for other in _definitions(context, warehouse):
            if not other.overlaps(definition):
                continue
            if other.target_scope in (context.scope.name, context.scope.where):
                raise RefusedError(
                    f"a loop: {definition.what} would return from {' by way of '.join(reversed(path))}, "
                    f"by its replica {other.name}",
                    hint="remove that one first",
                )
            if other.target_scope not in seen and len(seen) < WAREHOUSES_WALKED:
                seen.add(other.target_scope)
                with suppress(LithifyError):
                    queue.append(((*path, other.target), context.open_place(other.target).warehouse))


def _definitions(context: ReplicaContext, warehouse: Warehouse) -> tuple[ReplicaDefinition, ...]:
    try:
        return context.replicas_of(warehouse).definitions()
    except LithifyError:  # it has no database, or it cannot be reached
        return ()


def _check_topics(context: ReplicaContext, target: Warehouse, definition: ReplicaDefinition) -> None:
    """Raises `PolicyError` or `ConflictError` if the target has a topic that is not a replica of its source."""
    source, where = context.warehouse, context.scope.where
    there = {name for name, _ in target.store.change_tokens() if definition.covers(name)}
    names = [name for name in source.store.stream_topics(definition.stream) if name in there]

    def check(name: TopicName) -> None:
        with suppress(UnknownTopicError):  # deleted meanwhile
            check_replicates(source.store.load(name), where, target.store.load(name))

    for_each(check, names, source.store.at_once)
