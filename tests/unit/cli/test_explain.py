"""`tpudash explain`: from a file, a pipe and standard input, however long."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from typing import TYPE_CHECKING

from tpudash import cli
from tpudash.commands import explain as explain_module

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

STOCKOUT = 'There is no more capacity in the zone "us-east1-a" [EID: 0x191e4b746b2c69a9]\n'


def items_of(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return list(json.loads(capsys.readouterr().out)["items"])


def test_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "error.txt"
    file.write_text(STOCKOUT)
    assert cli.run(["explain", "--json", str(file)]) == 0
    (item,) = items_of(capsys)
    assert set(item) == {"class", "scope", "evidence", "eid", "advice", "retry"}
    assert (item["class"], item["retry"]) == ("STOCKOUT", "next-zone")
    assert item["eid"] == "0x191e4b746b2c69a9"
    scope = item["scope"]
    assert isinstance(scope, dict)
    assert scope["zone"] == "us-east1-a"


def test_standard_input_of_which_only_the_end_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(explain_module, "MOST_BYTES", 10_000)
    monkeypatch.setattr(explain_module, "CHUNK_BYTES", 512)
    text = "Ran out of memory in memory space hbm\n" + "step 1\n" * 10_000 + STOCKOUT
    stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert cli.run(["explain", "--json", "-"]) == 0
    assert [item["class"] for item in items_of(capsys)] == ["STOCKOUT"]


def test_a_pipe_that_can_not_be_wound_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(STOCKOUT,))
    writer.start()
    assert cli.run(["explain", "--json", str(pipe)]) == 0
    writer.join()
    assert [item["class"] for item in items_of(capsys)] == ["STOCKOUT"]


def test_a_text_that_tells_of_no_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "calm.txt"
    file.write_text("step 100 of 600, loss 0.2\n")
    assert cli.run(["explain", str(file)]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "nothing" in said.err


def test_what_is_no_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in (tmp_path, tmp_path / "absent"):
        assert cli.run(["explain", str(path)]) == 2
        assert "can't be read" in capsys.readouterr().err
