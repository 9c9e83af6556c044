"""Names of data files and of their copies (C65)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lithify.model.replicas.file_names import copied_name, is_copy, origin, was_written_to
from lithify.model.stored_file import FileKind
from lithify.rules.lifecycle.sweeping import run_of
from lithify.store.iceberg.layout import is_ours, kind_of

IDS = st.text("0123456789abcdef", min_size=12, max_size=12)
ATTEMPTS = st.sampled_from(["v3", "united", "7f", "task-1-0", "0000-of-0000"])  # none is named `of`
OFFSETS = st.integers(0, 2**62)
FOLDERS = st.sampled_from(["/lake/eu/orders-", "s3://bucket/eu/orders-", "/lake/data/", "file:///a b/of-"])


@st.composite
def paths(draw: st.DrawFn) -> str:
    name = f"{draw(OFFSETS):020d}-{draw(IDS)}-{draw(ATTEMPTS)}-{draw(st.integers(0, 99))}.parquet"
    return f"{draw(FOLDERS)}{draw(IDS)[-8:]}/data/partition={draw(st.integers(0, 9))}/{name}"


def copied(path: str, folder: str, run: str) -> str:
    partition = path.split("/")[-2]
    return f"{folder}/data/{partition}/{copied_name(path, run)}"


@given(paths(), st.lists(st.tuples(IDS, IDS), min_size=1, max_size=4))
def test_a_file_and_all_its_copies_have_one_origin_c65(path: str, copies: list[tuple[str, str]]) -> None:
    own = "/".join(path.split("/")[-4:])
    now = path
    for folder, run in copies:
        now = copied(now, f"/elsewhere/orders-{folder[-8:]}", run)
        assert origin(now) == origin(path)
        assert run_of(now) == run
        assert is_copy(now)
        assert was_written_to(now, own)
        relative = "/".join(now.split("/")[-3:])
        assert is_ours(relative)
        assert kind_of(relative) == (FileKind.OUTPUT, run)
        assert now.count("-of-") <= path.count("-of-") + 1
    assert was_written_to(path, own)


@given(paths(), paths(), IDS)
def test_two_files_have_two_origins_c65(one: str, other: str, run: str) -> None:
    """Also those of another partition, offset, run, or topic of the same names."""
    if one.split("/")[-4:] == other.split("/")[-4:]:
        return
    unlike = one.split("/")[-4][-8:] != other.split("/")[-4][-8:] or one.split("/")[-2:] != other.split("/")[-2:]
    assert (origin(one) != origin(other)) == unlike
    if unlike:
        assert not was_written_to(copied(one, "/elsewhere/orders-0", run), "/".join(other.split("/")[-4:]))


def test_a_file_that_is_no_copy_is_told_apart_c65() -> None:
    path = "/lake/eu/orders-1f0c93aa/data/partition=0/00000000000000000042-9e107d9d372b-v3-0.parquet"
    assert origin(path) == "1f0c93aa/0/00000000000000000042-9e107d9d372b-v3-0.parquet"
    assert not is_copy(path)
    assert copied_name(path, "aa") == "00000000000000000042-aa-of-1f0c93aa-9e107d9d372b-v3-0.parquet"
    assert not was_written_to(path, "orders-77b20de1/data/partition=0/00000000000000000042-9e107d9d372b-v3-0.parquet")
    assert not was_written_to(path, "")
    assert not was_written_to("/x/data/partition=0/" + copied_name(path, "aa"), "../../etc/passwd")
