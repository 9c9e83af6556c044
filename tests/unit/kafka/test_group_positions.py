"""Files of positions of groups, and what is told of translated ones."""

from __future__ import annotations

import pytest

from lithify.errors import RefusedError
from lithify.kafka.publisher.checkpoints import checkpoint
from lithify.kafka.publisher.group_offsets import GroupOffset, parse_positions, read_positions, written
from lithify.kafka.publisher.offset_map import OffsetMap, Run
from lithify.kafka.publisher.reports import TranslatedPosition
from lithify.kafka.publisher.transactions import Stored, _metadata, _stored
from lithify.kafka.publisher.translated_groups import Groups, summary, translated
from lithify.model.cursor import Cursor

CSV = 'billing,orders,0,12\n"a, b",orders,1,0\n'
TABLE = """
GROUP    TOPIC   PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG  CONSUMER-ID  HOST  CLIENT-ID
billing  orders  0          12              20              8    -            -     -
billing  orders  1          -               7               -    -            -     -

Consumer group 'search' has no active members.
"""
BILLING = GroupOffset("billing", "orders", 0, 12)


def test_both_forms_of_kafkas_tool_are_read():
    assert parse_positions(CSV) == (BILLING, GroupOffset("a, b", "orders", 1, 0))
    assert parse_positions(CSV.replace("\n", "\r\n")) == parse_positions(CSV)
    table = "\n".join(line for line in TABLE.split("\n") if not line.startswith("Consumer"))
    assert parse_positions(table) == (BILLING,)
    assert parse_positions(table.replace("-            -     -", "c-1 /10.0.0.1 the billing app")) == (BILLING,)
    assert parse_positions(written(parse_positions(CSV))) == tuple(sorted(parse_positions(CSV)))
    assert parse_positions("\n") == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("orders,0,12\n", "line 1, 'orders,0,12', is not a position"),
        (TABLE, "line 6, \"Consumer group 'search' has no active members.\", is not a position"),
        ("billing,orders,0,-1\n", "line 1"),
        ("billing,orders,zero,1\n", "line 1"),
        ("billing,orders,0,9223372036854775808\n", "line 1"),
        (",orders,0,1\n", "line 1"),
        ("billing,orders,0,1\nbilling,orders,0,2\n", "line 2 has a second position of billing in orders-0"),
    ],
)
def test_anything_else_is_refused_by_its_line(text, told, tmp_path):
    path = tmp_path / "positions"
    path.write_text(text)
    with pytest.raises(RefusedError, match=told) as refused:
        read_positions(path)
    assert "group,topic,partition,offset" in refused.value.hint


@pytest.mark.parametrize("text", ["", "\n\n", "GROUP TOPIC PARTITION CURRENT-OFFSET\nbilling orders 0 -\n"])
def test_a_file_without_positions_is_refused(tmp_path, text):
    """As the tool leaves it where it fails: without an error, groups would begin where their own settings say."""
    path = tmp_path / "positions"
    path.write_text(text)
    with pytest.raises(RefusedError, match="the file has no position of a group") as refused:
        read_positions(path)
    assert "with kafka-consumer-groups" in refused.value.hint


def test_a_mark_of_utf_8_is_not_of_the_first_groups_name(tmp_path):
    path = tmp_path / "positions"
    path.write_bytes(b"\xef\xbb\xbfbilling,orders,0,12\n")
    assert read_positions(path) == (BILLING,)


def test_positions_of_another_topic_or_partition_are_refused():
    with pytest.raises(RefusedError, match=r"no position is in payments, .* are in orders"):
        Groups((BILLING,)).of_topic("payments", range(2))
    with pytest.raises(RefusedError, match="billing has a position in orders-0, which was not copied"):
        Groups((BILLING,)).of_topic("orders", range(0))
    other = GroupOffset("billing", "payments", 0, 3)
    assert Groups((BILLING, other)).of_topic("orders", range(1)).exact_at == {0: [12]}


def test_a_position_below_the_targets_start_is_at_its_start():
    """Below it a consumer would go by its `auto.offset.reset`, and that may skip everything."""
    known = OffsetMap((Run(0, 10, 0, 5), Run(40, 40, 30, 1)), 41, 31)
    assert (translated(BILLING, known, 0).offset, translated(BILLING, known, 4).offset) == (2, 4)
    gone = translated(GroupOffset("g", "orders", 0, 20), known, 9)
    assert (gone.offset, gone.again) == (9, 21)
    assert summary([gone, gone]) == "2 positions of groups: 2 translated"


def test_maps_are_stored_with_the_cursor_and_may_be_missing():
    cursor = Cursor("id", 0, 41, 3, partition=0)
    stored = Stored(cursor, OffsetMap((Run(0, 10, 0, 5), Run(40, 40, 30, 1)), 41, 31))
    assert _stored(41, _metadata(stored)) == stored
    before = _stored(41, '{"identity": "id", "generation": 0, "offset": 41, "epoch": 3, "end": 31}')
    assert (before.cursor, before.map) == (cursor, OffsetMap((), 41, 31))
    for wrong in ("[1]", "[1,1,1,-1]", '"x"', "[1.5,1,1,1]", "[0,0,0,99]", "5"):
        with pytest.raises(RefusedError, match="another program"):
            _stored(41, f'{{"identity": "id", "generation": 0, "epoch": 3, "end": 31, "map": {wrong}}}')


def test_checkpoints_are_those_of_mirrormaker():
    """The bytes are what `Checkpoint` of Kafka 4.3.1's connect-mirror-client writes for the same."""
    key, value = checkpoint("orders", TranslatedPosition("bill\u00e9", 3, 2**40, 12345, 0, "committed"))
    assert key.hex() == "000662696c6cc3a900066f726465727300000003"
    assert value.hex() == "0000000001000000000000000000000030390000"
