"""The code made from `wire.proto` is what is in the tree."""

from __future__ import annotations

import sys
from pathlib import Path
from subprocess import run

import lithify.pulsar.format

FORMAT = Path(lithify.pulsar.format.__file__).parent
SRC = FORMAT.parents[2]


def test_the_generated_code_is_that_of_the_proto(tmp_path):
    made = [f"--python_out={tmp_path}", f"--pyi_out={tmp_path}"]
    proto = FORMAT.relative_to(SRC) / "wire.proto"
    run([sys.executable, "-m", "grpc_tools.protoc", "-I.", *made, str(proto)], cwd=SRC, check=True)
    for name in ("wire_pb2.py", "wire_pb2.pyi"):
        assert (tmp_path / FORMAT.relative_to(SRC) / name).read_text() == (FORMAT / name).read_text()
