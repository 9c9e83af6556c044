"""The page about records over HTTP: its commands and programs run in their order, against a gateway."""

import subprocess
from contextlib import redirect_stdout
from io import StringIO

import lithify
from gateway.conftest import ENOUGH_S
from support.pages.text import alike, blocks, commands
from support.servers.gateways import serving_gateway

PAGE = "docs/data-in/over-http.md"


def test_the_page_runs_in_its_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lake = lithify.open(str(tmp_path / "lake"))
    names, printed = {}, []
    with serving_gateway(lake) as url:
        for block in blocks(PAGE):
            text = block.text.replace("localhost:7660", url.removeprefix("http://"))
            if block.language == "python":
                with redirect_stdout(StringIO()) as out:
                    exec(compile(text, PAGE, "exec"), names)
                printed.append(out.getvalue())
            elif block.language == "sh":
                for command in commands(block):
                    typed = command.typed.replace("localhost:7660", url.removeprefix("http://"))
                    ended = subprocess.run(
                        ["bash", "-ec", typed], capture_output=True, text=True, check=True, timeout=ENOUGH_S
                    )
                    printed.append(ended.stdout)
                    assert '"exit_code"' not in ended.stdout
                    assert not block.shown or alike(printed[-1]).startswith(alike(block.shown).rstrip()[:40])
    topic = lake.topic("shop/prices")
    assert topic.info().records == 4
    assert [(row["key"], row["value"]) for row in topic.table().to_pylist()] == [(b"pear", b"4"), (b"apple", b"5")]
    assert "/records?partition=0&max=2&cursor=" in "".join(printed)
    assert printed[-1] == "4\n"
