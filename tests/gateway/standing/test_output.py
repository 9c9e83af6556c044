"""What is kept of the lines that a job prints, however they come."""

from __future__ import annotations

import json
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from lithify.gateway.standing.output import KEPT_LINES, LINE_BYTES, REPORT_CHARACTERS, JobOutput


def reading(data: bytes, piece: int = 65_536) -> Callable[[int], bytes]:
    pieces = iter([*(data[start : start + piece] for start in range(0, len(data), piece)), b""])
    return lambda _most: next(pieces)


def output_of(out: bytes = b"", err: bytes = b"", piece: int = 65_536) -> JobOutput:
    output = JobOutput(lambda _seconds: None)
    output.begin()
    output.follow(reading(out, piece), errors=False)
    output.follow(reading(err, piece), errors=True)
    return output


@given(st.lists(st.binary(max_size=200).filter(lambda line: b"\n" not in line), max_size=30), st.integers(1, 50))
def test_lines_are_the_same_in_whatever_pieces_they_come(lines: list[bytes], piece: int) -> None:
    data = b"\n".join(lines)
    assert output_of(data, piece=piece).events() == output_of(data).events()
    assert len(output_of(data).events()) == sum(bool(line.strip()) for line in lines)


def test_objects_are_events_and_all_else_is_text() -> None:
    events = output_of(b'{"event": "copied"}\nhello\n[1]\n{"a": NaN}\n{"a": \n\xff\n').events()
    assert events == [{"event": "copied"}, *({"text": text} for text in ("hello", "[1]", '{"a": NaN}', '{"a": ', "�"))]


def test_a_number_that_json_cannot_have_is_text() -> None:
    output = output_of(b'{"rows": 1e999}\n')
    assert (output.events(), output.report()) == ([{"text": '{"rows": 1e999}'}], None)


def test_only_the_last_lines_are_kept_and_the_beginnings_of_long_ones() -> None:
    lines = [json.dumps({"n": number}).encode() for number in range(KEPT_LINES * 3)]
    assert output_of(b"\n".join(lines)).events() == [{"n": n} for n in range(KEPT_LINES * 2, KEPT_LINES * 3)]
    (event, after) = output_of(b"x" * 50 * LINE_BYTES + b'\n{"after": 1}\n', piece=1_000).events()
    assert after == {"after": 1}
    assert len(event["text"]) <= 500


def test_what_nests_deeply_is_text() -> None:
    assert "text" in output_of(b'{"a":' * 1_500 + b"1" + b"}" * 1_500).events()[0]
    assert output_of(b'{"a":' * 1_500 + b"1" + b"}" * 1_500).report() is None


def test_a_report_is_bounded() -> None:
    assert output_of(b'{"event": "begins"}\n{"records": 3}\nbye\n').report() == '{"records": 3}'
    long = {"records": 3, "logs": [{"partition": number} for number in range(300)]}
    assert output_of(json.dumps(long).encode()).report() == '{"records": 3}'
    assert output_of(json.dumps({"text": "x" * REPORT_CHARACTERS}).encode()).report() is None


def test_an_error_is_the_last_one_and_has_no_secret() -> None:
    first = {"code": "Usage", "message": "first", "hint": None, "exit_code": 2}
    last = {"code": "Broker", "message": "no kafka://me:s3cret@broker", "hint": "check `it`", "exit_code": 1}
    err = "\n".join(map(json.dumps, (first, last, {"event": "ending", "text": "soon"})))
    output = output_of(err=err.encode())
    assert output.error() == ("no kafka://me:***@broker (check `it`)", "Broker")
    assert "s3cret" not in repr(output.events())
    output.begin()
    assert (output.error(), output.report()) == ((None, None), None)


def test_errors_of_any_shape() -> None:
    unstorable = {"exit_code": 1, "message": "a\0b\ud800", "code": "x\0"}
    assert output_of(err=json.dumps(unstorable).encode()).error() == ("a�b?", "x�")
    for value in ({"exit_code": 1}, {"exit_code": 1, "message": 5}, {"exit_code": 1, "message": "m", "code": ["x"]}):
        assert output_of(err=json.dumps(value).encode()).error() in ((None, None), ("m", None))
