"""Files of metadata that are written in one piece, with a note of their bytes (C48)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyiceberg.io import InputFile, OutputFile


class WholeOutput(OutputFile):
    """Writes to `output` in one piece when it is closed, and calls `note` with its path and these bytes (C48)."""

    def __init__(self, output: OutputFile, note: Callable[[str, bytes], None]) -> None:
        super().__init__(output.location)
        self._output = output
        self._note = note

    def __len__(self) -> int:
        return len(self._output)

    def exists(self) -> bool:
        return self._output.exists()

    def to_input_file(self) -> InputFile:
        return self._output.to_input_file()

    def create(self, overwrite: bool = False) -> Any:
        return _Buffer(self, overwrite)

    def put(self, content: bytes, overwrite: bool) -> None:
        with self._output.create(overwrite=overwrite) as stream:
            stream.write(content)
        self._note(self.location, content)


class _Buffer:
    """Not an `io` stream: Python closes a discarded one, which would write this file."""

    def __init__(self, output: WholeOutput, overwrite: bool) -> None:
        self._output = output
        self._overwrite = overwrite
        self._pieces: list[bytes] = []
        self._size = 0
        self._closed = False

    def write(self, piece: bytes) -> int:
        self._pieces.append(bytes(piece))
        self._size += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._size

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._output.put(b"".join(self._pieces), self._overwrite)
