"""What every place for positions of groups does, whatever it is made of (C58)."""

from __future__ import annotations

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import create_engine, text

from leases.conftest import Open
from lithify.coordination.leases.database import engine_at
from lithify.coordination.leases.groups_sql import SqlGroups
from lithify.coordination.leases.lease_transactions import Transactions
from lithify.errors import CoordinationError, InvalidNameError
from lithify.model.cursor import Cursor
from lithify.model.groups.positions import GroupTopic, Position
from lithify.model.names import LogId, TopicName, checked_group
from lithify.ports.groups import Groups
from lithify.ports.leases import Lease
from lithify.testing.memory_groups import MemoryGroups
from support.servers.postgres import Postgres

SCOPE = "file:///lake"
ORDERS, CLICKS = TopicName("default", "orders"), TopicName("web", "clicks")
ALPHA, BETA = "alpha", "beta"


def at(offset: int, partition: int = 0, topic: TopicName = ORDERS, group: str = "g") -> Position:
    return Position(group, LogId(topic, partition), Cursor("id1", 2, offset, 7), False, 1_700_000_000_000 + offset)


def take(groups: Groups, owner: str, *positions: Position, scope: str = SCOPE) -> None:
    """The leases that the owner needs to write them."""
    names = [GroupTopic(scope, p.group, p.log.topic).partition(p.log.partition) for p in positions]
    groups.leases.take([Lease(name, owner, 1) for name in names], {})


def test_at_first_there_are_none_and_nothing_is_made_by_reading(opened: Open) -> None:
    assert opened(SCOPE).positions() == ()
    assert opened(SCOPE).positions("g", ORDERS) == ()


def test_what_is_committed_is_read_by_others_whole(opened: Open) -> None:
    groups = opened(SCOPE)
    first, second = at(5), replace(at(2**53, 3), compacted=True)
    take(groups, ALPHA, first, second)
    assert groups.commit([second, first], ALPHA) == frozenset()
    assert opened(SCOPE).positions() == (first, second)
    assert groups.commit([at(6)], ALPHA) == frozenset()
    assert opened(SCOPE).positions() == (at(6), second)


def test_positions_are_of_a_group_a_topic_and_a_warehouse(opened: Open) -> None:
    here, elsewhere = opened(SCOPE), opened("s3://other@lake")
    ours = [at(1), at(2, topic=CLICKS), at(3, group="h")]
    take(here, ALPHA, *ours)
    here.commit(ours[:2], ALPHA)
    here.commit(ours[2:], ALPHA)
    take(elsewhere, ALPHA, at(9), scope="s3://other@lake")
    elsewhere.commit([at(9)], ALPHA)
    assert here.positions() == tuple(ours)
    assert (here.positions("g"), here.positions("g", CLICKS)) == (tuple(ours[:2]), (ours[1],))
    assert (here.positions(topic=ORDERS), here.positions("i")) == ((ours[0], ours[2]), ())
    assert elsewhere.positions() == (at(9),)


def test_a_file_that_is_not_there_is_no_database_in_which_named_groups_have_read_nothing(tmp_path: Path) -> None:
    """C61: a mistake in its path is told, rather than that all groups hold everything."""
    groups = SqlGroups(Transactions(engine_at(f"sqlite:///{tmp_path}/gruops.db")), SCOPE)
    with pytest.raises(CoordinationError, match=r"sqlite:///.*gruops\.db does not exist"):
        groups.positions_of(["g"])
    assert groups.positions_of([]) == ()
    assert list(tmp_path.iterdir()) == []


def test_positions_of_named_groups_are_read_together(opened: Open) -> None:
    """C61: in one topic or in all, and of more groups than one statement may name."""
    groups = opened(SCOPE)
    take(groups, ALPHA, at(1))
    assert groups.positions_of(["g"]) == groups.positions_of([]) == ()
    ours = [at(1), at(2, topic=CLICKS), at(3, group="h"), at(4, group="i")]
    for position in ours:
        take(groups, ALPHA, position)
        groups.commit([position], ALPHA)
    assert groups.positions_of(["h", "g", "unknown"]) == tuple(ours[:3])
    assert groups.positions_of({"g", "i"}, ORDERS) == (ours[0], ours[3])
    assert groups.positions_of([f"none{n}" for n in range(3_000)] + ["i"]) == (ours[3],)
    assert groups.positions_of([]) == ()


def test_only_the_holder_of_every_lease_commits(opened: Open) -> None:
    groups = opened(SCOPE)
    take(groups, ALPHA, at(5), at(5, 1))
    groups.commit([at(5), at(5, 1)], ALPHA)
    seen = {lease.name: lease for lease in groups.leases.leases()}
    name = GroupTopic(SCOPE, "g", ORDERS).partition(1)
    assert opened(SCOPE).leases.take([Lease(name, BETA, 4)], seen) == {name}

    assert groups.commit([at(6), at(6, 1)], ALPHA) == {LogId(ORDERS, 1)}
    assert groups.positions() == (at(5), at(5, 1))
    assert groups.commit([at(6, 2)], ALPHA) == {LogId(ORDERS, 2)}, "nobody holds it"
    assert groups.commit([at(6)], ALPHA) == opened(SCOPE).commit([at(7, 1)], BETA) == frozenset()
    assert groups.positions() == (at(6), at(7, 1))

    groups.leases.release(BETA, [name])
    assert groups.commit([at(9, 1)], BETA) == groups.commit([at(9, 1)], ALPHA) == {LogId(ORDERS, 1)}


def test_a_lease_of_another_group_topic_or_warehouse_is_none(opened: Open) -> None:
    groups = opened(SCOPE)
    take(groups, ALPHA, at(5, group="G"), at(5, topic=CLICKS))
    take(groups, ALPHA, at(5), scope="file:///other")
    assert groups.commit([at(5)], ALPHA) == {LogId(ORDERS, 0)}
    assert groups.delete("g", [LogId(ORDERS, 0)], ALPHA) == {LogId(ORDERS, 0)}
    assert groups.positions() == ()


def test_the_holder_deletes_positions(opened: Open) -> None:
    groups = opened(SCOPE)
    assert groups.delete("g", [], ALPHA) == frozenset()
    three = [at(5, n) for n in range(3)]
    take(groups, ALPHA, *three)
    assert groups.delete("g", [p.log for p in three], ALPHA) == frozenset()
    groups.commit(three, ALPHA)
    assert groups.delete("g", [three[0].log], BETA) == {three[0].log}
    assert groups.delete("g", [p.log for p in three[:2]], ALPHA) == frozenset()
    assert opened(SCOPE).positions() == (three[2],)


def test_thousands_are_committed_and_deleted_at_once(opened: Open) -> None:
    groups = opened(SCOPE)
    many = [at(n, n) for n in range(1_234)]
    take(groups, ALPHA, *many)
    assert groups.commit(many, ALPHA) == frozenset()
    assert groups.positions("g", ORDERS) == tuple(many)
    assert groups.delete("g", [p.log for p in many], ALPHA) == frozenset()
    assert groups.positions() == ()


def test_leases_are_found_by_the_beginnings_of_their_names(opened: Open) -> None:
    groups = opened(SCOPE)
    names = ["g/a/1", "g/A/1", "g_a/1", "gxa/1", "g/%/1", "g"]
    groups.leases.take([Lease(name, ALPHA, 1) for name in names], {})
    for prefix in ("", "g/", "g/a", "g_", "g/%", "x"):
        found = {lease.name for lease in groups.leases.leases(prefix)}
        assert found == {name for name in names if name.startswith(prefix)}


def test_of_threads_that_take_over_from_each_other_only_the_holder_moves_the_position(opened: Open) -> None:
    """Each commits a number of its own as long as it may; the last that was accepted is the holder's."""
    groups, name = opened(SCOPE), GroupTopic(SCOPE, "g", ORDERS).partition(0)
    take(groups, "owner0", at(0))
    groups.commit([at(0)], "owner0")

    def member(number: int) -> int:
        mine, accepted = opened(SCOPE), 0
        for turn in range(12):
            seen = {lease.name: lease for lease in mine.leases.leases()}
            mine.leases.take([Lease(name, f"owner{number}", 100 + turn)], seen)
            offset = number * 1_000 + turn
            refused = mine.commit([at(offset)], f"owner{number}")
            (found,) = mine.positions()
            (lease,) = mine.leases.leases()  # read later: if it is still ours, it was when the position was read
            if not refused:
                accepted += 1
                assert found.cursor.offset == offset or lease.owner != f"owner{number}" or lease.beats != 100 + turn
        return accepted

    with ThreadPoolExecutor(4) as threads:
        accepted = list(threads.map(member, range(1, 5)))
    assert sum(accepted) > 0
    (lease,) = groups.leases.leases()
    assert groups.commit([at(77)], lease.owner) == frozenset()
    for number in range(1, 5):
        if f"owner{number}" != lease.owner:
            assert groups.commit([at(78)], f"owner{number}") == {LogId(ORDERS, 0)}
    assert groups.positions() == (at(77),)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(("commit", "delete", "take", "release", "look")),
        st.sampled_from((ALPHA, BETA)),
        st.sets(st.integers(0, 2), min_size=1),
        st.integers(0, 9),
    ),
    max_size=15,
)


@given(steps=STEPS)
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_place_does_what_memory_does(
    opened: Open, steps: list[tuple[str, str, set[int], int]], request: pytest.FixtureRequest
) -> None:
    place = opened(SCOPE)
    part = GroupTopic(SCOPE, "g", ORDERS)
    names = [part.partition(n) for n in range(3)]
    for owner in (ALPHA, BETA):
        place.leases.release(owner, names)
    place.leases.take([Lease(name, ALPHA, 1) for name in names], {})
    place.delete("g", [LogId(ORDERS, n) for n in range(3)], ALPHA)
    place.leases.release(ALPHA, names)
    both: tuple[Groups, Groups] = (MemoryGroups(SCOPE), place)
    seen: dict[str, Lease] = {}
    for number, (step, owner, partitions, offset) in enumerate(steps):
        match step:
            case "commit":
                assert len({one.commit([at(offset, n) for n in partitions], owner) for one in both}) == 1
            case "delete":
                assert len({one.delete("g", [LogId(ORDERS, n) for n in partitions], owner) for one in both}) == 1
            case "take":
                wanted = [Lease(part.partition(n), owner, number + 2) for n in partitions]
                assert len({one.leases.take(wanted, seen) for one in both}) == 1
            case "release":
                for one in both:
                    one.leases.release(owner, [part.partition(n) for n in partitions])
            case _:
                seen = {lease.name: lease for lease in both[0].leases.leases()}
        assert both[0].positions() == both[1].positions()


def test_readers_need_no_right_to_create_tables(server: Postgres, database: str) -> None:
    owner = SqlGroups(Transactions(engine_at(server.uri(database))), SCOPE)
    with create_engine(server.uri(database)).begin() as admin:
        role = f"reader_{database}"
        admin.execute(text(f"CREATE ROLE {role} LOGIN PASSWORD 'x'"))
        admin.execute(text("REVOKE CREATE ON SCHEMA public FROM PUBLIC"))
    reader = SqlGroups(Transactions(engine_at(f"postgresql://{role}:x@127.0.0.1:{server.port}/{database}")), SCOPE)
    assert reader.positions() == ()
    take(owner, ALPHA, at(5))
    owner.commit([at(5)], ALPHA)
    with create_engine(server.uri(database)).begin() as admin:
        admin.execute(text(f"GRANT SELECT ON lithify_positions TO {role}"))
    assert reader.positions() == (at(5),)
    with create_engine(server.uri(database)).begin() as admin:
        admin.execute(text(f"DROP OWNED BY {role}"))
        admin.execute(text(f"DROP ROLE {role}"))


def test_positions_have_the_commit_that_was_read_until_a_version_before_moves_them(opened: Open) -> None:
    """C49: and no longer: it would be one that the moved position has not read."""
    groups = opened(SCOPE)
    known = replace(at(5), cursor=replace(at(5).cursor, version=3, run="r"))
    take(groups, ALPHA, known, other := at(9, 1))
    groups.commit([known, other], ALPHA)
    for found in (opened(SCOPE).positions(), opened(SCOPE).positions("g", ORDERS), groups.positions_of(["g"])):
        assert [(p.cursor.version, p.cursor.run) for p in found] == [(3, "r"), (None, None)]
    groups.commit([replace(known, committed_ms=known.committed_ms + 1, cursor=at(5).cursor)], ALPHA)
    groups.commit([replace(other, cursor=known.cursor)], ALPHA)
    assert [p.cursor.run for p in opened(SCOPE).positions()] == [None, "r"]
    assert groups.delete("g", [other.log], ALPHA) == frozenset()
    assert [p.log.partition for p in opened(SCOPE).positions()] == [0]


@pytest.mark.parametrize("table", ["lithify_positions", "lithify_position_runs"])
def test_a_member_that_runs_makes_tables_again_that_were_lost(table: str, tmp_path: Path) -> None:
    """As those of a database that was put back as it was before they were made."""
    groups = SqlGroups(Transactions(engine_at(f"sqlite:///{tmp_path}/groups.db")), SCOPE)
    known = replace(at(5), cursor=replace(at(5).cursor, version=3, run="r"))
    take(groups, ALPHA, known)
    for _ in range(2):
        assert groups.commit([known], ALPHA) == frozenset()
        assert [(p, p.cursor.run) for p in groups.positions()] == [(known, "r")]
        with closing(sqlite3.connect(tmp_path / "groups.db")) as database:
            database.execute(f"DROP TABLE {table}")


def test_members_need_no_right_to_a_table_of_a_later_version(server: Postgres, database: str) -> None:
    """The owner of the tables was the last with the right to create some."""
    owner = SqlGroups(Transactions(engine_at(server.uri(database))), SCOPE)
    known = replace(at(5), cursor=replace(at(5).cursor, version=3, run="r"))
    take(owner, ALPHA, at(5))
    owner.commit([at(5)], ALPHA)
    role = f"member_{database}"
    with create_engine(server.uri(database)).begin() as admin:
        admin.execute(text(f"CREATE ROLE {role} LOGIN PASSWORD 'x'"))
        admin.execute(text("REVOKE CREATE ON SCHEMA public FROM PUBLIC"))
        admin.execute(text(f"GRANT ALL ON lithify_positions, lithify_group_leases TO {role}"))
    url = f"postgresql://{role}:x@127.0.0.1:{server.port}/{database}"
    for _ in range(2):
        member = SqlGroups(Transactions(engine_at(url)), SCOPE)
        assert member.commit([known], ALPHA) == frozenset()
        assert [(p, p.cursor.run) for p in member.positions()] == [(known, None)]
        owner.commit([known], ALPHA)  # from now on the table is there, and not the member's
        assert [p.cursor.run for p in owner.positions()] == ["r"]
    for right, run in (("GRANT ALL ON {} TO", "r"), ("REVOKE ALL ON {} FROM", None)):  # while it runs
        with create_engine(server.uri(database)).begin() as admin:
            admin.execute(text(f"{right.format('lithify_position_runs')} {role}"))
        member = member if run is None else SqlGroups(Transactions(engine_at(url)), SCOPE)
        assert member.commit([known], ALPHA) == frozenset()
        assert [(p, p.cursor.run) for p in member.positions()] == [(known, run)]
    assert member.delete("g", [known.log], ALPHA) == frozenset()
    assert owner.positions() == ()
    with create_engine(server.uri(database)).begin() as admin:
        admin.execute(text(f"DROP OWNED BY {role}"))
        admin.execute(text(f"DROP ROLE {role}"))


def test_a_database_that_others_write_to_for_long_is_an_error_and_nothing_is_stored(
    tmp_path: Path, impatient: None
) -> None:
    groups = SqlGroups(Transactions(engine_at(f"sqlite:///{tmp_path}/groups.db")), SCOPE)
    take(groups, ALPHA, at(5))
    groups.commit([at(5)], ALPHA)
    with closing(sqlite3.connect(tmp_path / "groups.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(CoordinationError, match="locked"):
            groups.commit([at(6)], ALPHA)
        other.execute("ROLLBACK")
    assert groups.positions() == (at(5),)
    assert groups.commit([at(6)], ALPHA) == frozenset()


def test_names_of_leases_are_read_back_and_never_mistaken() -> None:
    part = GroupTopic("s3://a@b", "g", CLICKS)
    assert part.read(part.partition(3)) == 3
    assert part.read(part.member("host-1.x/9")) == "host-1.x/9"
    for later in ("fence:1", "", "-1", "٣"):
        assert part.read(f"{part.prefix}{later}@{part.scope}") is None
    for other in (
        GroupTopic("b", "g", CLICKS),
        GroupTopic("a@b", "g", CLICKS),
        GroupTopic("s3://a@b", "h", CLICKS),
        GroupTopic("s3://a@b", "g", ORDERS),
        GroupTopic("s3://a@b", "g", TopicName("web", "clicks2")),
    ):
        assert part.read(other.partition(3)) is None
        assert part.read(other.member("m")) is None


@pytest.mark.parametrize("name", ["", "a/b", "a@b", "ä", "x" * 250, "a b", "a\n"])
def test_a_name_that_is_none_of_a_group_is_refused(name: str) -> None:
    with pytest.raises(InvalidNameError, match="is not a group"):
        checked_group(name)
