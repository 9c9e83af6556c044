"""A `.pyiceberg.yaml` that cannot be read is named, whatever the warehouse, and none of its text is shown."""

from __future__ import annotations

import pytest

SECRET = "hunter2"
ODD = {
    "no yaml": b"catalog:\n  c:\n    token: a: " + SECRET.encode(),
    "of one line": SECRET.encode(),
    "a list": b"- " + SECRET.encode(),
    "empty": b"",
    "twice": b"token: 1\ntoken: " + SECRET.encode(),
    "no text": b"token: \xff" + SECRET.encode(),
    "json": b'{"token": "' + SECRET.encode() + b'"}',
}


@pytest.mark.parametrize("odd", ODD)
def test_a_file_of_catalogs_that_cannot_be_read(lithify, tmp_path, monkeypatch, odd):
    file = tmp_path / ".pyiceberg.yaml"
    file.write_bytes(ODD[odd])
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    said = lithify("topic", "list", "--warehouse", tmp_path / "lake", code=1).err
    assert f"error[Warehouse]: {file}: PyIceberg cannot read its configuration: " in said
    assert "correct or remove it" in said
    assert SECRET not in said


def test_variables_that_contradict_each_other(lithify, tmp_path, monkeypatch):
    file = tmp_path / ".pyiceberg.yaml"
    file.write_text("catalog: none\n")
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.setenv("PYICEBERG_CATALOG__C__URI", f"postgresql://{SECRET}@h/d")
    said = lithify("topic", "list", "--warehouse", tmp_path / "lake", code=1).err
    assert str(file) in said
    assert SECRET not in said
