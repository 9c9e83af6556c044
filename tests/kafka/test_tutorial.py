"""The commands of the tutorial on Kafka print what it shows; the broker stands in for that at `localhost:9092`."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from lithify.model.record import Record
from support.kafka.broker import KafkaBroker
from support.kafka.ingest import connector_jars
from support.kafka.lake import send

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "start" / "from-kafka-to-the-lake.md"
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


def test_the_commands_of_the_tutorial_print_what_it_shows(broker: KafkaBroker, tmp_path: Path) -> None:
    shown = "".join(re.findall(r"^```console\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL))
    commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", shown, re.MULTILINE)
    assert len(commands) >= 8
    assert [bool(output) for _, output in commands].count(True) >= 4
    for command, output in commands:  # what a copy and a round say is not shown there
        told = printed(command, broker, tmp_path)
        assert not output or alike(told) == alike(output), command


def printed(command: str, broker: KafkaBroker, folder: Path) -> str:
    words = shlex.split(command)
    if words[0] == "kafka-topics.sh":
        broker.make_topic(name=words[words.index("--topic") + 1], cleanup_policy="compact")
        return ""
    if "kafka-console-producer.sh" in words:
        lines = words[2 : words.index("|")]
        pairs = [line.split(":") for line in lines]
        producer = broker.producer()
        send(
            producer, words[words.index("--topic") + 1], [Record(key.encode(), value.encode()) for key, value in pairs]
        )
        assert producer.flush(30) == 0
        return ""
    environment = {**os.environ, "PATH": PATH, "COLUMNS": "200", "LITHIFY_JARS": str(connector_jars())}
    line = command.replace("localhost:9092", broker.address)
    ended = subprocess.run(
        ["/bin/sh", "-c", f"{line} 2>&1"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout.replace(broker.address, "localhost:9092")


def alike(text: str) -> list[str]:
    """Without what varies: times, and widths that follow from them."""
    for pattern, name in (
        (r'"timestamp":\d+', '"timestamp":TIME'),
        (r"\d+ min \d+ s|[\d.]+ (?:ms|s)\b", "DURATION"),
        (r" +", " "),
    ):
        text = re.sub(pattern, name, text)
    return [line.strip() for line in text.strip().splitlines()]
