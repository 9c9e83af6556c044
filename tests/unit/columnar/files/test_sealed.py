"""Documents that tell whether they are what was written, and as which file (C48)."""

from __future__ import annotations

import json

import pytest

from lithify.columnar.files.access import SMALL_BYTES, FileAccess
from lithify.columnar.files.sealed import checksum_of_json, parsed_object, sealed, unsealed
from lithify.errors import DamagedError

PATH = "file:///w/default/orders-0f3a9c21/lithify/failures.json"
CONTENT = {"logs": {"0": {"failures": 3, "error": "Größe", "at": None}}}


def test_a_sealed_document_reads_back():
    assert unsealed(PATH, sealed(PATH, CONTENT)) == CONTENT


def test_the_checksum_is_that_of_the_format_page():
    """docs/reference/format.md: `printf '["x/lithify/source.json",{"name":"a"}]' | sha256sum | cut -c1-16`."""
    text = sealed("/x/lithify/source.json", {"name": "a"})
    assert json.loads(text)["checksum"] == "4dc42a1783e061c4"


def test_it_may_be_written_in_any_form_and_order():
    content = json.loads(sealed(PATH, CONTENT))
    assert unsealed(PATH, json.dumps(dict(reversed(content.items()))).encode()) == CONTENT


def test_one_of_before_there_were_checksums_is_read():
    assert unsealed(PATH, json.dumps(CONTENT).encode()) == CONTENT


@pytest.mark.parametrize(
    "elsewhere",
    [
        "file:///w/default/orders-aaaaaaaa/lithify/failures.json",
        "file:///w/default/orders-0f3a9c21/lithify/source.json",
        "file:///w/default/orders-0f3a9c21/lithify/reports/failures.json",
        "file:///w/.lithify/failures.json",
    ],
)
def test_in_the_place_of_another_one_it_is_damage(elsewhere):
    with pytest.raises(DamagedError, match="is not what was written"):
        unsealed(elsewhere, sealed(PATH, CONTENT))


@pytest.mark.parametrize("place", ["s3://bucket/w/default/orders-0f3a9c21/lithify/failures.json", PATH[7:]])
def test_the_same_file_by_another_path_is_the_same(place):
    assert unsealed(place, sealed(PATH, CONTENT)) == CONTENT


@pytest.mark.parametrize("place", ["/mnt/b/wh", "s3://bucket/lithify", "/a/lithify/wh", "/b/lithify/wh"])
def test_a_document_of_a_warehouse_is_the_same_in_whatever_folder_that_is(place):
    """C47, and docs/reference/format.md: its path begins with `.lithify`, also in a folder that is called `lithify`."""
    text = sealed("file:///a/lithify/wh/.lithify/format.json", CONTENT)
    assert unsealed(f"{place}/.lithify/format.json", text) == CONTENT
    with pytest.raises(DamagedError, match="is not what was written"):
        unsealed(f"{place}/.lithify/rates.json", text)


def test_one_of_a_warehouse_that_was_sealed_with_the_folder_above_is_read():
    """Earlier versions took the folder `lithify` above a warehouse for that of the documents of a topic."""
    checksum = checksum_of_json(["a/lithify/wh/.lithify/rates.json", CONTENT])
    text = json.dumps({**CONTENT, "checksum": checksum}).encode()
    assert unsealed("file:///a/lithify/wh/.lithify/rates.json", text) == CONTENT


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"{", b'{"a": "\xff"}', b"[" * 200_000, b'{"a":' * 200_000, b'{"a": ' + b"9" * 9000 + b"}", b"7"],
    ids=lambda text: repr(text[:12]),
)
def test_whatever_is_no_object_is_damage_of_that_file(text):
    with pytest.raises(DamagedError, match=r"failures\.json: the file is no longer"):
        parsed_object(PATH, text)


def test_a_file_that_is_far_too_large_is_not_read(tmp_path):
    file = tmp_path / "failures.json"
    with file.open("wb") as sink:
        sink.truncate(SMALL_BYTES + 1)
    with pytest.raises(DamagedError, match=rf"failures\.json: the file has {SMALL_BYTES + 1} bytes"):
        FileAccess().read(str(file))
