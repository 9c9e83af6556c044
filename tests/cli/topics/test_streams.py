"""`lithify stream create|edit|info|list|delete`, and what topics show of their stream (C56)."""

from __future__ import annotations

import pytest

from lithify.model.settings.stream_attributes import ATTRIBUTES, INHERITABLE


@pytest.fixture
def eu(lithify):
    """A stream with two topics, of which one has a policy of its own."""
    lithify("stream", "create", "eu", "--config", "compact=true", "--config", "defaultpartitions=2")
    lithify("topic", "create", "eu/orders")
    lithify("topic", "create", "eu/clicks", "--partitions", 1, "--config", "cleanup.policy=delete")
    lithify("produce", "eu/orders", stdin='{"key":"k","value":"v","partition":0}\n')
    return lithify


def test_a_stream_that_was_never_created_is_deleted_with_its_topics(lithify):
    lithify("topic", "create", "eu/clicks")
    assert lithify("stream", "delete", "eu", "--topics", "--yes").err == "eu: deleted with 1 topic\n"
    assert lithify.error("stream", "delete", "eu", "--topics", "--yes").startswith("eu: no such stream")
    lithify("topic", "create", "eu/clicks")


def test_a_stream_is_created_listed_and_deleted(lithify):
    made = lithify("stream", "create", "/apps/events", "--config", "compact=false", "--config", "ttl=7d")
    assert (made.out, made.err) == ("", "/apps/events: created; topics keep every record, for 7 d\n")
    lithify("topic", "create", "/apps/events:clicks")
    lithify("topic", "create", "orders")
    assert [" ".join(line.split()) for line in lithify("stream", "list").out.splitlines()] == [
        "STREAM TOPICS KEEPS",
        "default 1 the latest record of every key, for ever",
        "/apps/events 1 every record, for 7 d",
    ]
    assert lithify.error("stream", "delete", "/apps/events", "--yes") == (
        "/apps/events: the stream has 1 topic (--topics deletes the topics as well)"
    )
    assert lithify.error("stream", "delete", "/apps/events", "--topics") == (
        "/apps/events: nothing was deleted (--yes deletes the stream with 1 topic and 0 records irreversibly)"
    )
    gone = lithify("stream", "delete", "/apps/events", "--topics", "--yes")
    assert gone.err == "/apps/events: deleted with 1 topic\n"
    assert [stream["stream"] for stream in lithify("stream", "list", "--json").lines] == ["default"]


def test_an_empty_warehouse_has_no_streams_and_stays_empty(lithify):
    assert lithify("stream", "list").err == "no streams yet (`lithify stream create` makes one)\n"
    assert "no such stream" in lithify.error("stream", "info", "eu")
    assert not lithify.warehouse.exists()


def test_a_stream_as_json(eu):
    found = eu("stream", "info", "eu", "--json").json
    assert list(found) == ["stream", "namespace", "attributes", "topics", "keeps", "error", "error_code"]
    assert (found["stream"], found["topics"]) == ("eu", 2)
    assert list(found["attributes"]) == [*ATTRIBUTES, *INHERITABLE]
    assert found["attributes"]["compact"] == {"value": "true", "from": "stream"}
    assert found["attributes"]["ttl"] == {"value": "604800", "from": "default"}
    assert found["attributes"]["cleanup.policy"] == {"value": "compact", "from": "stream"}
    assert eu("stream", "list", "--json").json == found
    assert eu("stream", "create", "asia", "--json").json["stream"] == "asia"
    deleted = eu("stream", "delete", "asia", "--yes", "--json").json
    assert deleted == {"stream": "asia", "deleted": True, "topics": [], "left": []}


def test_a_stream_shows_what_was_set(eu):
    shown = [" ".join(line.split()) for line in eu("stream", "info", "eu").out.splitlines()]
    assert shown[:3] == ["eu", "topics 2", "keeps the latest record of every key, for ever"]
    for line in ("compact true, of the stream", "autocreate false", "cleanup.policy compact, of the stream"):
        assert line in shown


def test_an_edit_says_what_became_of_the_topics(eu):
    """C43: the attribute and every topic that inherits it."""
    done = eu("stream", "edit", "eu", "--config", "compact=false", "--config", "compression=lz4")
    assert [" ".join(line.split()) for line in done.err.splitlines()] == [
        "eu: changed, and 2 topics of 2 with it",
        "compact true → false",
        "compression (not set) → lz4",
        "eu/clicks: compression.type zstd → lz4",
        "eu/orders: cleanup.policy compact → delete, compression.type zstd → lz4",
        "topics keep every record, for 7 d",
    ]
    again = eu("stream", "edit", "eu", "--config", "compact=false", "--json").json
    assert again == {
        "stream": "eu",
        "attributes": {},
        "topics": [
            {"topic": f"eu/{name}", "altered": None, "error": None, "error_code": None} for name in ("clicks", "orders")
        ],
    }
    assert eu("stream", "edit", "eu", "--unset", "autocreate").err.splitlines()[0] == "eu: nothing to change"


def test_a_topic_that_cannot_inherit_is_named(eu):
    """C56: exit code 1; the others have changed."""
    eu("topic", "create", "eu/view", "--config", "compaction.mode=side-by-side")
    failed = eu("stream", "edit", "eu", "--config", "compact=false", code=1)
    assert "eu: changed, and 1 topic of 3 with it" in failed.err
    assert "eu/view: not changed: [InvalidSetting] compaction.mode=side-by-side needs compact" in failed.err
    assert eu("topic", "info", "eu/orders", "--json").json["config"]["cleanup.policy"] == "delete"
    assert "needs compact in cleanup.policy" in eu.error("compact", "eu/view")


def test_what_is_wrong_is_refused(eu):
    """C56."""
    assert "did you mean eu?" in eu.error("stream", "info", "eus")
    assert "the stream exists already" in eu.error("stream", "create", "eu")
    assert "did you mean compact?" in eu.error("stream", "edit", "eu", "--config", "compat=true")
    contradiction = eu.error("stream", "edit", "eu", "--config", "cleanup.policy=delete")
    assert "compact=true contradicts cleanup.policy=delete" in contradiction
    assert "nothing to change" in eu.error("stream", "edit", "eu")
    both = eu.error("stream", "edit", "eu", "--config", "ttl=1", "--unset", "ttl")
    assert "given with both --config and --unset" in both
    assert "is not a stream" in eu.error("stream", "info", "eu/orders")
    assert eu("stream", "info", "eu", "--json").json["attributes"]["ttl"]["from"] == "default"


def test_a_topic_shows_where_its_values_come_from(eu):
    """C56: and a setting of its own is given back to the stream."""
    info = eu("topic", "info", "eu/clicks", "--json").json
    assert info["config_from"]["cleanup.policy"] == "topic"
    assert info["config_from"]["delete.retention.ms"] == "default"
    assert eu("topic", "info", "eu/orders", "--json").json["partitions"] == 2
    text = " ".join(eu("topic", "info", "eu/clicks").out.split())
    assert "cleanup.policy delete, of the topic, default compact" in text
    done = eu("topic", "alter", "eu/clicks", "--unset", "cleanup.policy")
    assert "cleanup.policy delete → compact" in " ".join(done.err.split())
    assert "cleanup.policy inherited from the stream from now on" in " ".join(done.err.split())
    pinned = eu("topic", "alter", "eu/clicks", "--config", "cleanup.policy=compact")
    assert "cleanup.policy the topic's own from now on" in " ".join(pinned.err.split())


def test_produce_creates_a_topic_where_its_stream_says_so(eu):
    """C56."""
    line = '{"key":"k","value":"v"}\n'
    assert "no such topic" in eu.error("produce", "eu/new", stdin=line)
    eu("stream", "edit", "eu", "--config", "autocreate=true")
    assert "no such topic" in eu.error("status", "eu/new")
    assert eu("produce", "eu/new", stdin=line).err == "eu/new: 1 record written, version 2\n"
    assert eu("topic", "info", "eu/new", "--json").json["partitions"] == 2


def test_an_existing_stream_is_left_as_it_is_if_that_is_asked_for(lithify):
    create = ("stream", "create", "eu", "--if-not-exists")
    made = lithify(*create, "--config", "compact=true", "--json").json
    again = lithify(*create, "--config", "compact=false").err
    assert again == "eu: exists already; nothing was changed; topics keep the latest record of every key, for ever\n"
    assert lithify(*create, "--json").json == made
    assert "no such" in lithify.error(*create, "--config", "nope=1")
    assert "exists already" in lithify.error("stream", "create", "eu")
