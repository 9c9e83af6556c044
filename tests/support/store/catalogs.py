"""Catalogs for tests: embedded ones that fail on purpose or note what is opened, and named ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pytest
from pyiceberg.utils.config import Config

from lithify.columnar.files.access import FileAccess
from lithify.store.iceberg.catalog.embedded import EmbeddedCatalog
from lithify.store.iceberg.io.local_io import LocalFileIO, LocalInput, LocalOutput

Commit = Callable[..., Any]


class FaultyCatalog:
    """A catalog whose `commit_table` goes through `fault`, which gets the real one and its arguments."""

    def __init__(self, real: Any, fault: Callable[..., Any]) -> None:
        self._real = real
        self._fault = fault

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def commit_table(self, *arguments: Any) -> Any:
        return self._fault(self._real.commit_table, *arguments)


class FaultySource(EmbeddedCatalog):
    """An embedded catalog with a fault in its commits."""

    def __init__(self, directory: str, fault: Callable[..., Any]) -> None:
        super().__init__(directory)
        self._fault = fault

    def existing(self) -> Any:
        catalog = super().existing()
        return None if catalog is None else FaultyCatalog(catalog, self._fault)

    def created(self) -> Any:
        super().created()
        return self.existing()


class Faults:
    """Strikes the commits to come in turn; the others go through. Notes what was sent."""

    def __init__(self) -> None:
        self.to_come: list[Commit] = []
        self.sent: list[tuple[Any, ...]] = []

    def __call__(self, commit: Commit, *arguments: Any) -> Any:
        self.sent.append(arguments)
        return self.to_come.pop(0)(commit, *arguments) if self.to_come else commit(*arguments)


def raising(error: BaseException) -> Commit:
    """The commit fails so."""

    def fault(*_: Any) -> Any:
        raise error

    return fault


def lost_answer(commit: Commit, *arguments: Any) -> Any:
    """The commit lands, and its answer is lost."""
    commit(*arguments)
    raise TimeoutError("the answer was lost")


def lost_request(commit: Commit, *arguments: Any) -> Any:
    """The request of the commit is lost, so the outcome is unknown."""
    raise TimeoutError("the request was lost")


class NotingFileIO(LocalFileIO):
    """Notes the files that are opened, in the order of opening."""

    read: ClassVar[list[str]] = []
    written: ClassVar[list[str]] = []

    def new_input(self, location: str) -> LocalInput:
        self.read.append(location)
        return super().new_input(location)

    def new_output(self, location: str) -> LocalOutput:
        self.written.append(location)
        return super().new_output(location)


class NotingSource(EmbeddedCatalog):
    """An embedded catalog whose files are opened through `NotingFileIO`."""

    @property
    def io_properties(self) -> Mapping[str, str]:
        return {"py-io-impl": f"{__name__}.NotingFileIO"}


def noted_reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of small files that are read without PyIceberg, from now on."""
    read, paths = FileAccess.read, list[str]()
    monkeypatch.setattr(FileAccess, "read", lambda access, path: paths.append(path) or read(access, path))
    return paths


def describe_catalog(monkeypatch: pytest.MonkeyPatch, **properties: str) -> None:
    """Describes the catalog `prod` in the environment, which PyIceberg reads once."""
    for name, value in properties.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__PROD__{name.upper()}", value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
