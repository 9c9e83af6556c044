"""The client against brokers that are hostile, broken or unusual: an error in time, or the right entries."""

from __future__ import annotations

import json
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lithify.errors import BrokerError, DamagedError, LithifyError, SubscriptionBusyError, UnknownSourceError
from lithify.model.message import MessageId
from lithify.pulsar.client import ClientConfig, Cluster, TopicEnd, TopicReader
from lithify.pulsar.client.broker_refusals import NAMES, SealedEndError, TransientBrokerError, refusal
from lithify.pulsar.client.commands_pb2 import BaseCommand
from lithify.pulsar.client.connection import Connection, command
from lithify.pulsar.client.consumer import CONSUMER
from lithify.pulsar.client.frames import ENTRY_BYTES, Frames, framed
from lithify.pulsar.client.topic_reader import LIST_BYTES
from lithify.pulsar.format.entry import joined
from support.pulsar.entries import Sent, batch
from support.pulsar.fake_broker import FakeBroker, a_fake_broker, entry_bytes, message_frame
from support.pulsar.web_server import a_web_server
from support.servers.tcp_proxy import wait_until

TOPIC = "persistent://t/n/topic"
END = MessageId(1 << 40, 0)
ENTRY = entry_bytes()


def config_of(broker: FakeBroker, **more: float) -> ClientConfig:
    return ClientConfig(broker.url, **{"answer_s": 0.5, "outage_s": 0.5, **more})


def read(broker: FakeBroker, end: MessageId = END, **more: float) -> list[tuple[int, int]]:
    reader = TopicReader(config_of(broker, **more), TOPIC)
    return [(entry.ledger, entry.entry) for part in reader.read(None, end) for entry in part]


def test_a_refusal_without_a_text_ends_with_its_name():
    assert refusal(NAMES.index("TopicNotFound"), "", TOPIC).message == f"{TOPIC}: the broker refused with TopicNotFound"


def test_what_a_proper_broker_has_is_read():
    with a_fake_broker((1, 0, ENTRY), (1, 1, ENTRY), (2, 0, ENTRY)) as broker:
        assert read(broker) == [(1, 0), (1, 1), (2, 0)]
        assert read(broker, MessageId(1, 7)) == [(1, 0), (1, 1)]
        (subscribe, _) = (seen.subscribe for seen in broker.of("subscribe"))
        assert not subscribe.durable and not subscribe.force_topic_creation


def test_an_entry_without_a_checksum_or_with_the_brokers_metadata_is_taken():
    brokers = b"\x0e\x02" + struct.pack(">I", 2) + b"\x08\x01"
    with a_fake_broker((1, 0, ENTRY[6:]), (1, 1, brokers + ENTRY), (1, 2, brokers + ENTRY[6:])) as broker:
        assert len(read(broker)) == 3


def test_an_entry_whose_producer_wrote_its_metadata_wrong_is_left_to_who_reads_it():
    """C74: it may be skipped there, whatever is before its metadata."""
    liar = batch(1, 0, [Sent("a")], num_messages_in_batch=0).data
    cut = joined(None, b"\x0a\x01p\x10\x00\x18", b"payload")
    for brokers in (b"", b"\x0e\x02" + struct.pack(">I", 2) + b"\x08\x01"):
        with a_fake_broker(*((1, number, brokers + data[6:]) for number, data in enumerate((liar, cut)))) as broker:
            assert len(read(broker)) == 2


DAMAGED = {
    "a wrong checksum": entry_bytes(checksum=1),
    "a wrong checksum behind the broker's metadata": b"\x0e\x02\x00\x00\x00\x00" + entry_bytes(checksum=1),
    "nothing": b"",
    "half a checksum": ENTRY[:4],
    "metadata that is longer than the entry": struct.pack(">I", 1 << 31) + b"x",
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_entry_is_named_and_read_no_second_time(case):
    with a_fake_broker((1, 0, ENTRY), (7, 33, DAMAGED[case])) as broker:
        with pytest.raises(DamagedError, match="7:33"):
            read(broker)
        assert len(broker.of("subscribe")) == 1


HOSTILE = {
    "a frame of 4 GiB": b"\xff" * 8,
    "a frame without a command": struct.pack(">II", 0, 0),
    "a command that is longer than its frame": struct.pack(">II", 10, 7) + b"x" * 6,
    "a command that is none": struct.pack(">II", 12, 8) + b"\xff" * 8,
    "a frame above the largest entry": struct.pack(">II", ENTRY_BYTES + (1 << 20), 4),
    "HTTP": b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "a message that comes twice": message_frame(1, 0, ENTRY) * 2,
    "messages that go back": message_frame(2, 0, ENTRY) + message_frame(1, 5, ENTRY),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_what_no_broker_sends_is_an_error_at_once(case):
    with a_fake_broker((9, 9, ENTRY), flow=lambda *_: HOSTILE[case]) as broker:
        with pytest.raises(BrokerError) as caught:
            read(broker, outage_s=30)
        assert not isinstance(caught.value, TransientBrokerError)


def test_an_entry_before_the_start_is_an_error_and_no_second_copy():
    said = pytest.raises(BrokerError, match="sent entry 1:0 after 1:0")
    with a_fake_broker((9, 9, ENTRY), flow=lambda *_: message_frame(1, 0, ENTRY)) as broker, said:
        list(TopicReader(config_of(broker), TOPIC).read(MessageId(1, 1), END))


STEPS = ("connect", "lookup_topic", "subscribe", "get_last_message_id", "flow")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("answer", [b"", b"\x00\x00", struct.pack(">II", 100, 90) + b"\x08", None], ids=repr)
def test_a_broker_that_stops_in_the_middle_is_an_error_in_time(step, answer):
    """It is silent, or sends half a frame and is silent then, or ends the connection."""
    with a_fake_broker((1, 0, ENTRY), **{step: lambda *_: answer}) as broker:
        begun_s = time.monotonic()
        with pytest.raises(BrokerError):
            read(broker, answer_s=0.1, outage_s=0.1)
        assert time.monotonic() - begun_s < 5


def test_a_broker_that_pings_and_sends_nothing_does_not_stretch_a_deadline():
    with a_fake_broker((1, 0, ENTRY), flow=lambda *_: framed(command("ping")), pong=ping_again) as broker:
        begun_s = time.monotonic()
        with pytest.raises(BrokerError):
            read(broker, answer_s=0.3, outage_s=0.1)
        assert time.monotonic() - begun_s < 5


def ping_again(broker: FakeBroker, _received: object) -> bytes:
    time.sleep(0.05)
    return framed(command("ping"))


def test_pings_and_challenges_are_answered_between_messages():
    def flow(broker: FakeBroker, _received: object) -> bytes:
        asks = framed(command("ping")) + framed(command("auth_challenge"))
        return b"".join(asks + message_frame(*entry) for entry in broker.entries)

    with a_fake_broker((1, 0, ENTRY), (1, 1, ENTRY), flow=flow) as broker:
        config = replace(config_of(broker), token="secret")
        entries = [entry for part in TopicReader(config, TOPIC).read(None, END) for entry in part]
        wait_until(lambda: len(broker.of("auth_response")) == len(broker.of("pong")) == 2, "no answer comes")
        assert len(entries) == 2
        assert broker.of("auth_response")[0].auth_response.response.auth_data == b"secret"
        assert broker.of("connect")[0].connect.auth_method_name == "token"


def test_a_reader_asks_again_when_the_last_entry_does_not_come():
    """It was trimmed, or compacted away, after the broker had named it."""
    answers = [(1, 5), (1, 1)]

    def told(broker: FakeBroker, received: object) -> bytes:
        broker.last = answers.pop(0) if len(answers) > 1 else answers[0]
        return broker.on_get_last_message_id(received)

    with a_fake_broker((1, 0, ENTRY), (1, 1, ENTRY), get_last_message_id=told) as broker:
        assert read(broker, outage_s=5) == [(1, 0), (1, 1)]


@pytest.mark.parametrize(
    ("start", "place"),
    [
        (None, "at its first entry"),
        (MessageId(1, 0), "at the beginning of ledger 1"),
        (MessageId(1, 5), "after entry 1:4"),
    ],
)
def test_an_entry_that_does_not_come_is_told_by_the_one_before(start, place):
    """Brokers say nothing where bookies cannot read it."""
    with a_fake_broker((2, 0, ENTRY), flow=lambda *_: b"") as broker:
        reader = TopicReader(config_of(broker, answer_s=1, outage_s=1), TOPIC)
        with pytest.raises(BrokerError, match=f"^{TOPIC}: {place}: .*sends nothing"):
            list(reader.read(start, END))


def test_one_entry_is_asked_for_and_may_be_gone():
    """C52: what is trimmed, or lost by bookies, is no reason to try again: nothing depends on it."""
    with a_fake_broker((1, 0, ENTRY), (1, 1, ENTRY)) as broker:
        reader = TopicReader(config_of(broker), TOPIC)
        assert reader.entry(MessageId(1, 1, 3)) == (1, 1, ENTRY)
        (flow,) = broker.of("flow")
        assert flow.flow.message_permits == 1
        assert reader.entry(MessageId(1, 2)) is None
    with a_fake_broker((2, 0, ENTRY)) as broker:
        assert TopicReader(config_of(broker), TOPIC).entry(MessageId(1, 1)) is None
    with a_fake_broker((1, 1, ENTRY), flow=lambda *_: b"") as broker:
        assert TopicReader(config_of(broker, answer_s=0.2), TOPIC).entry(MessageId(1, 1)) is None
    with a_fake_broker((1, 1, ENTRY), flow=lambda *_: None) as broker, pytest.raises(TransientBrokerError):
        TopicReader(config_of(broker), TOPIC).entry(MessageId(1, 1))


@pytest.mark.parametrize("at", [(1, 1 << 63), (1 << 63, 1)])
def test_an_id_that_is_no_number_of_pulsars_is_an_error(at):
    with a_fake_broker((1, 0, ENTRY), flow=lambda *_: message_frame(*at, ENTRY)) as broker:
        with pytest.raises(BrokerError, match="an invalid id"):
            read(broker, outage_s=30)
        broker.last = at
        with pytest.raises(BrokerError, match="an invalid last id"):
            Cluster(config_of(broker)).last_id(TOPIC)


def test_partitions_without_end_are_an_error():
    def told(_broker: FakeBroker, received: BaseCommand) -> bytes:
        made = command("partition_metadata_response")
        made.partition_metadata_response.request_id = received.partition_metadata.request_id
        made.partition_metadata_response.partitions = (1 << 32) - 1
        return framed(made)

    with a_fake_broker(partition_metadata=told) as broker, pytest.raises(BrokerError, match="4294967295 partitions"):
        Cluster(config_of(broker)).partitions(TOPIC)


def test_a_topic_that_has_nothing_yet_is_read_as_nothing():
    with a_fake_broker() as broker:
        broker.last = ((1 << 64) - 1, (1 << 64) - 1)
        assert read(broker) == []
        assert Cluster(config_of(broker)).last_id(TOPIC) is None


def test_an_end_is_asked_for_over_one_connection_as_long_as_that_holds():
    answers = [True, True, True, None, True, True]

    def told(broker: FakeBroker, received: object) -> bytes | None:
        broker.last = (1, len(answers))
        return broker.on_get_last_message_id(received) if answers.pop(0) else None

    with a_fake_broker(get_last_message_id=told) as broker:
        end = TopicEnd(config_of(broker), TOPIC)
        assert [end.last_id() for _ in range(5)] == [MessageId(1, left) for left in (6, 5, 4, 2, 1)]
        assert len(broker.of("subscribe")) == 2
        end.close()


def test_an_end_that_cannot_be_asked_for_is_an_error_and_asked_for_anew():
    answers = [None, None, True]

    def told(broker: FakeBroker, received: object) -> bytes | None:
        return broker.on_get_last_message_id(received) if answers.pop(0) else None

    with a_fake_broker((1, 0, ENTRY), get_last_message_id=told) as broker:
        end = TopicEnd(config_of(broker), TOPIC)
        for _ in range(2):
            with pytest.raises(TransientBrokerError):
                end.last_id()
        assert end.last_id() == MessageId(1, 0)
        end.close()


def test_redirects_are_followed_to_the_owner():
    with a_fake_broker((1, 0, ENTRY)) as owner:

        def redirect(broker: FakeBroker, received: object) -> bytes:
            return _located(received, owner.url, response=0, authoritative=True)

        with a_fake_broker(lookup_topic=redirect) as other:
            assert read(other) == [(1, 0)]
        assert owner.of("lookup_topic")[0].lookup_topic.authoritative


def test_redirects_in_a_circle_end():
    def redirect(broker: FakeBroker, received: object) -> bytes:
        return _located(received, broker.url, response=0)

    with a_fake_broker(lookup_topic=redirect) as broker, pytest.raises(BrokerError, match="redirected to another one"):
        read(broker)


def test_a_proxy_is_asked_to_pass_on_to_the_owner():
    def located(broker: FakeBroker, received: object) -> bytes:
        return _located(received, "pulsar://inside:6650", proxy_through_service_url=True)

    with a_fake_broker((1, 0, ENTRY), lookup_topic=located) as proxy:
        assert read(proxy) == [(1, 0)]
        assert [seen.connect.proxy_to_broker_url for seen in proxy.of("connect")] == ["", "inside:6650"]


def test_an_owner_that_takes_no_plain_connections_is_named():
    said = pytest.raises(BrokerError, match="does not accept connections without TLS")
    with a_fake_broker(lookup_topic=lambda _, received: _located(received, "")) as broker, said:
        read(broker)


def test_the_second_broker_of_a_service_url_is_asked_where_the_first_is_gone():
    with a_fake_broker((1, 0, ENTRY)) as broker:
        config = replace(config_of(broker), service_url=f"pulsar://127.0.0.1:1,127.0.0.1:{broker.port}")
        assert [len(part) for part in TopicReader(config, TOPIC).read(None, END)] == [1]


def test_a_subscription_ends_with_a_broker_that_closes_it():
    def close(broker: FakeBroker, _received: object) -> bytes:
        made = command("close_consumer")
        made.close_consumer.consumer_id = made.close_consumer.request_id = 1
        return framed(made)

    with a_fake_broker(ack=close) as broker:
        held = Cluster(config_of(broker)).subscribe(TOPIC, "mine")
        assert held.is_open
        with pytest.raises(BrokerError):
            held.acknowledge(MessageId(1, 2), {"n": 3})
        assert not held.is_open
        sent = broker.of("ack")[0].ack
        assert [(p.key, p.value) for p in sent.properties] == [("n", 3)] and sent.ack_type == 1
        held.close()


def test_a_subscription_that_the_broker_does_not_know_is_lost():
    """Also before anything has said so: a program that was frozen is woken before it hears."""

    def refuse(_broker: FakeBroker, received: object) -> bytes:
        made = command("error")
        made.error.request_id, made.error.error = received.get_last_message_id.request_id, 1
        made.error.message = "Consumer not found"
        return framed(made)

    with a_fake_broker((1, 0, ENTRY), get_last_message_id=refuse) as broker:
        held = Cluster(config_of(broker)).subscribe(TOPIC, "mine")
        assert held.is_open and not held.is_confirmed()
        assert not held.is_open
    with a_fake_broker((1, 0, ENTRY)) as broker, Cluster(config_of(broker)).subscribe(TOPIC, "mine") as held:
        assert held.is_confirmed() and held.is_open


SEALED_END = "Failed to read last entry of the compacted Ledger attempt to write last literal outside of a buffer"


def refusing(text: str) -> Callable[[FakeBroker, object], bytes]:
    """To tell the last id."""

    def refuse(_broker: FakeBroker, received: object) -> bytes:
        made = command("error")
        made.error.request_id, made.error.error = received.get_last_message_id.request_id, NAMES.index("MetadataError")
        made.error.message = text
        return framed(made)

    return refuse


def test_a_view_whose_last_entry_the_broker_cannot_open_is_not_asked_for_again():
    """Pulsar 4.2 cannot tell the last id of a view with an encrypted end, whenever it is asked."""
    with a_fake_broker((1, 0, ENTRY), get_last_message_id=refusing(SEALED_END)) as broker:
        with pytest.raises(SealedEndError, match="until the topic gets a message"):
            list(TopicReader(config_of(broker), TOPIC).read(None, END, compacted=True))
        assert len(broker.of("get_last_message_id")) == 1
        with Cluster(config_of(broker)).subscribe(TOPIC, "mine") as held:
            assert held.is_confirmed() and held.is_open


@pytest.mark.parametrize(
    ("start", "end", "wanted"),
    [
        (None, END, [(1, 0), (1, 3), (2, 0), (2, 5)]),
        (MessageId(1, 1), END, [(1, 3), (2, 0), (2, 5)]),
        (MessageId(1, 1), MessageId(2, 4), [(1, 3), (2, 0)]),
        (MessageId(2, 6), END, []),
    ],
)
def test_a_view_whose_last_entry_the_broker_cannot_open_is_read_to_as_many_entries_as_it_has(start, end, wanted):
    """Also where the connection is lost after some."""
    view = [(at, entry, entry_bytes(bytes(LIST_BYTES))) for at, entry in ((1, 0), (1, 3), (2, 0), (2, 5))]
    parts = [view[:2], view]

    def flow(broker: FakeBroker, _received: object) -> bytes | None:
        part = parts.pop(0) if len(parts) > 1 else parts[0]
        return b"".join(message_frame(*entry) for entry in part) + (b"" if part is view else goodbye())

    refused = refusing(SEALED_END)
    with a_stats_server(4) as admin_url, a_fake_broker(*view, get_last_message_id=refused, flow=flow) as broker:
        reader = TopicReader(replace(config_of(broker, outage_s=5), admin_url=admin_url), TOPIC)
        found = [entry[:2] for part in reader.read(start, end, compacted=True) for entry in part]
        assert found == wanted


def test_a_view_that_has_less_entries_than_its_ledger_is_an_error_in_time():
    with (
        a_stats_server(3) as admin_url,
        a_fake_broker((1, 0, ENTRY), get_last_message_id=refusing(SEALED_END)) as broker,
    ):
        reader = TopicReader(replace(config_of(broker, answer_s=0.1), admin_url=admin_url), TOPIC)
        with pytest.raises(BrokerError, match=r"after entry 1:0: .*sends nothing"):
            list(reader.read(None, END, compacted=True))


def goodbye() -> bytes:
    """What a broker sends that closes a consumer."""
    made = command("close_consumer")
    made.close_consumer.consumer_id, made.close_consumer.request_id = CONSUMER, 1
    return framed(made)


@contextmanager
def a_stats_server(entries: int) -> Iterator[str]:
    """An admin interface that tells a view of so many entries."""
    stats = json.dumps({"compactedLedger": {"ledgerId": 9, "entries": entries, "size": 1}}).encode()
    with a_web_server(lambda request: request.send(200, stats)) as server:
        yield f"http://127.0.0.1:{server.server_port}"


@pytest.mark.parametrize(
    "reason", ["Bookie operation timeout", "No such ledger exists on Bookies", "Connection closed"]
)
def test_a_view_whose_last_entry_bookies_do_not_give_is_asked_for_again(reason):
    text = f"{SEALED_END[:49]} {reason}"
    with (
        a_fake_broker((1, 0, ENTRY), get_last_message_id=refusing(text)) as broker,
        pytest.raises(TransientBrokerError, match=reason),
    ):
        Cluster(config_of(broker)).last_id(TOPIC, compacted=True)


KINDS = {
    "ConsumerBusy": SubscriptionBusyError,
    "TopicNotFound": UnknownSourceError,
    "ServiceNotReady": TransientBrokerError,
    "AuthorizationError": BrokerError,
    "UnsupportedVersionError": BrokerError,
}


@pytest.mark.parametrize("name", KINDS)
def test_refusals_have_their_place_in_the_tree(name):
    def refuse(broker: FakeBroker, received: object) -> bytes:
        made = command("error")
        made.error.request_id = received.subscribe.request_id
        made.error.error, made.error.message = NAMES.index(name), "because"
        return framed(made)

    with a_fake_broker((1, 0, ENTRY), subscribe=refuse) as broker:
        with pytest.raises(KINDS[name], match=f"{name}: because") as caught:
            Cluster(config_of(broker)).subscribe(TOPIC, "mine")
        assert TOPIC in str(caught.value)
        with pytest.raises(LithifyError, match=name):
            read(broker)
        assert (len(broker.of("subscribe")) > 2) == (name == "ServiceNotReady")  # readers try those that pass again


def test_an_error_that_pulsar_may_have_one_day_is_named_by_its_number():
    assert "error 99" in str(refusal(99, "x", "here"))


@given(st.binary(max_size=200), st.integers(0, 200))
def test_any_bytes_are_frames_or_an_error_and_cuts_do_not_matter(data, cut):
    assert _frames_of(data[:cut], data[cut:]) == _frames_of(data)


def _frames_of(*parts: bytes) -> object:
    """All frames, or the kind of the error."""

    class Wire:
        def __init__(self) -> None:
            self.parts = [part for part in parts if part]

        def settimeout(self, _timeout_s: float) -> None: ...

        def recv(self, _size: int) -> bytes:
            return self.parts.pop(0)

    wire, found = Wire(), []
    frames = Frames(wire, "here")
    try:
        while wire.parts:
            frames.receive(1)
            found += frames.whole()
    except BrokerError:
        return "error"
    return [(received.SerializeToString(), data) for received, data in found]


def _located(received: object, url: str, response: int = 1, **more: bool) -> bytes:
    made = command("lookup_topic_response")
    told = made.lookup_topic_response
    told.request_id, told.response = received.lookup_topic.request_id, response
    if url:
        told.broker_service_url = url
    for name, value in more.items():
        setattr(told, name, value)
    return framed(made)


def test_a_thread_that_waits_for_bytes_may_find_the_connection_closed_between_any_two_calls():
    """As a subscription's does, which another thread closes."""
    with a_fake_broker() as broker, Connection(config_of(broker), ("127.0.0.1", broker.port)) as connection:
        assert not connection.wait_for_bytes(0)
        connection.close()
        assert connection.wait_for_bytes(0)
        with pytest.raises(TransientBrokerError, match="the connection broke"):
            connection.arrived(0)
