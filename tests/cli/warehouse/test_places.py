"""Which warehouse a command uses, and what it says where that is not the one that was meant."""

from __future__ import annotations

import subprocess

import pytest

from support.processes.programs import PROGRAM


@pytest.fixture
def described(tmp_path, monkeypatch):
    """A configuration of PyIceberg's with the catalogs `prod` and `test`."""
    folder = tmp_path / "configured"
    folder.mkdir()
    lines = ["catalog:"]
    for name in ("prod", "test"):
        lines += [f"  {name}:", "    type: sql", f"    uri: sqlite:///{folder}/{name}.db"]
        lines += [f"    warehouse: file://{folder}"]
    (folder / ".pyiceberg.yaml").write_text("\n".join(lines))
    monkeypatch.setenv("PYICEBERG_HOME", str(folder))


def test_a_catalog_may_be_named_by_a_variable(lithify, described, monkeypatch):
    monkeypatch.delenv("LITHIFY_WAREHOUSE")
    monkeypatch.setenv("LITHIFY_CATALOG", "prod")
    assert lithify("topic", "list").err == "no topics yet in catalog prod (`lithify topic create` makes one)\n"
    lithify("topic", "create", "orders")
    assert lithify("topic", "list", "--catalog", "prod", "--json").lines[0]["topic"] == "orders"
    checked = {check["name"]: check["detail"] for check in lithify("doctor", "--json").json["checks"]}
    assert checked["catalog"] == "1 topic"
    assert checked["warehouse"].endswith("/configured, writable")  # and not the default one


def test_two_variables_that_name_two_places_are_refused_and_a_flag_wins(lithify, described, monkeypatch):
    monkeypatch.setenv("LITHIFY_CATALOG", "prod")
    said = lithify.error("topic", "list", code=1)
    assert said == (
        "LITHIFY_WAREHOUSE and LITHIFY_CATALOG are both set (unset one of them, or pass a warehouse or a catalog)"
    )
    assert "catalog prod" in lithify("topic", "list", "--catalog", "prod").err
    assert str(lithify.warehouse) in lithify("topic", "list", "--warehouse", lithify.warehouse).err


def test_a_place_of_blanks_is_none(lithify, tmp_path, monkeypatch):
    """A file of variables may have one after the sign: it would be a folder that nobody sees."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LITHIFY_WAREHOUSE", " ")
    monkeypatch.setenv("LITHIFY_CATALOG", "\t")
    assert f"in {tmp_path}/lithify-warehouse (" in lithify("topic", "list").err
    assert "it is empty; omit the option" in lithify.error("topic", "list", "--warehouse", " ")


@pytest.mark.parametrize("value", [" {}", "{} ", "{}\r"])
def test_blanks_around_a_place_are_none_of_it(lithify, monkeypatch, value):
    """As a file of variables has them, or lines that end as on Windows: `./ /data/lake` would be a folder here."""
    monkeypatch.setenv("LITHIFY_WAREHOUSE", value.format(lithify.warehouse))
    assert f"in {lithify.warehouse} (" in lithify("topic", "list").err


def test_an_unknown_catalog_is_answered_with_those_there_are(lithify, described):
    assert lithify.error("topic", "list", "--catalog", "warehouse", code=1) == (
        "PyIceberg's configuration does not describe a catalog warehouse: it describes prod, test "
        "(describe it in ~/.pyiceberg.yaml, or in variables such as PYICEBERG_CATALOG__WAREHOUSE__URI)"
    )
    assert lithify.error("topic", "list", "--catalog", "Prods", code=1).endswith("(did you mean prod?)")


def test_a_bucket_without_a_catalog_is_refused_with_the_way_to_one(lithify):
    said = lithify.error("topic", "list", "--warehouse", "s3://lake/topics", code=1)
    assert "describe a catalog in ~/.pyiceberg.yaml" in said
    assert "`warehouse: s3://lake/topics`, and give it with --catalog NAME" in said


def test_a_scheme_has_no_case(lithify, tmp_path):
    lithify("topic", "create", "orders", "--warehouse", f"FILE://{tmp_path}/lake")
    assert (tmp_path / "lake" / "catalog.db").is_file()


def test_links_in_a_circle_are_said_to_be_some(lithify, tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "Too many levels of symbolic links" in lithify.error(
        "topic", "list", "--warehouse", tmp_path / "loop", code=1
    )
    (tmp_path / "link").symlink_to(tmp_path / "away")
    assert "mount its disk" in lithify.error("topic", "list", "--warehouse", tmp_path / "link", code=1)


def test_short_help(lithify):
    assert lithify("compact", "-h").out == lithify("compact", "--help").out


def test_a_user_that_is_not_there_is_a_folder_as_in_shells(lithify, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LITHIFY_WAREHOUSE")
    place = "~nobody-of-this-name/lake"
    lithify("topic", "create", "orders", "--warehouse", place)
    assert (tmp_path / place / "catalog.db").is_file()
    assert "orders" in lithify("topic", "list", "--warehouse", f"file://{tmp_path}/{place}").out


@pytest.mark.parametrize("place", ["lake", "./lake", "~/lake", "file:lake", "file://host/lake"])
def test_a_catalog_with_another_folder_for_every_program_takes_no_new_topic(lithify, tmp_path, monkeypatch, place):
    """Tables hold the paths of their files: from another folder those of such a warehouse would not be there."""
    (tmp_path / ".pyiceberg.yaml").write_text(
        f'catalog:\n  prod:\n    type: sql\n    uri: sqlite:///{tmp_path}/prod.db\n    warehouse: "{place}"\n'
    )
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    said = lithify.error("topic", "create", "orders", "--catalog", "prod", code=1)
    assert "which is not the same place for all programs (write its `warehouse` as an absolute path" in said
    assert list(tmp_path.rglob("*.metadata.json")) == []


def test_a_path_that_is_not_utf8_makes_no_half_of_a_warehouse(lithify, tmp_path):
    place = f"{tmp_path}/lake-\udcff"
    said = lithify.error("topic", "create", "orders", "--warehouse", place, code=1)
    assert "the path of a warehouse must be UTF-8 (use another path; if the path is UTF-8 but the locale is not" in said
    assert list(tmp_path.iterdir()) == []


def test_a_current_folder_that_is_gone_is_named(lithify, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    command = 'rmdir ../gone && exec "$@"'
    told = subprocess.run(
        ["sh", "-c", command, "sh", *PROGRAM, "topic", "list"], cwd=gone, capture_output=True, text=True, check=False
    )
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr == (
        "error[UnusableEnvironment]: the folder that this program runs in no longer exists "
        "(change to an existing folder and try again)\n"
    )
