"""A run that asks for it begins with the trainer's tests of itself, and ends there if one fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.unit.trainer.node import FAKE_TRAINER, LogServer, record, spec
from tests.unit.trainer.test_agent import FINISHES, TRAINS_FOREVER
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.trainer.conftest import NodeFactory

CHECK = 'emit("check", check="{name}", verdict="{verdict}", message="{name}"{more})\n'
NO_BUCKET = (
    ', **{"class": "BUCKET_ACCESS", "detail": "cannot write to gs://x", "hint": "give the role"}'
)


def bundled(folder: Path, validates: str, trains: str) -> dict[str, Any]:
    """Return the spec of a run whose `python -m trainer` is a fake that can also validate."""
    package = folder / "fake" / "trainer"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    body = f"if 'validate' in sys.argv:\n{_indented(validates)}\nelse:\n{_indented(trains)}\n"
    (package / "__main__.py").write_text(FAKE_TRAINER + body)
    run = spec(folder, ["python3", "-m", "trainer"], validate_first=True)
    # The agent's own folder must not come before the fake.
    run["recipe"]["environment"] = {"PYTHONPATH": str(package.parent), "PYTHONSAFEPATH": "1"}
    return run


def _indented(body: str) -> str:
    return "\n".join(f"    {line}" for line in body.strip().splitlines())


def test_good_tests_come_first_and_then_it_trains(
    make_node: NodeFactory, run_folder: Path, logs: LogServer
) -> None:
    validates = CHECK.format(name="step", verdict="ok", more="") + 'emit("validate", verdict="ok")'
    node = make_node(bundled(run_folder, validates, FINISHES))
    assert node.start().wait(30) == 0, node.console()
    final = record(run_folder)
    assert final["state"] == "FINISHED"
    assert final["checks"] == [{"check": "step", "verdict": "ok", "message": "step", "hint": None}]
    assert logs.events()[:3] == ["check", "validate", "start"]


def test_failed_test_ends_the_attempt_before_it_trains(
    make_node: NodeFactory, run_folder: Path, logs: LogServer
) -> None:
    validates = CHECK.format(name="checkpoint_write", verdict="failed", more=NO_BUCKET)
    node = make_node(bundled(run_folder, validates + "sys.exit(70)", TRAINS_FOREVER))
    assert node.start().wait(30) == 65, node.console()
    final = record(run_folder)
    assert (final["state"], final["exit_code"]) == ("FAILED", 70)
    assert final["error"] == {
        "class": "BUCKET_ACCESS",
        "detail": "cannot write to gs://x",
        "hint": "give the role",
    }
    assert [each["verdict"] for each in final["checks"]] == ["failed"]
    assert logs.events() == ["check"], "it is not tested twice, and never trains"


def test_tests_that_end_without_a_word_are_a_failure_too(
    make_node: NodeFactory, run_folder: Path
) -> None:
    node = make_node(bundled(run_folder, "sys.stderr.write('no such flag')\nos._exit(64)", "pass"))
    assert node.start().wait(30) == 65, node.console()
    final = record(run_folder)
    assert (final["state"], final["exit_code"]) == ("FAILED", 64)
    assert final["error"]["class"] == "UNCLASSIFIED"


def test_tests_that_take_too_long_do_not_keep_it_from_training(
    make_node: NodeFactory, run_folder: Path
) -> None:
    run = bundled(run_folder, "time.sleep(60)", FINISHES)
    node = make_node(run)
    assert node.start(self_check_s=0.5).wait(30) == 0, node.console()
    assert "took too long" in node.console()


def test_notice_during_the_tests_ends_them(make_node: NodeFactory, run_folder: Path) -> None:
    node = make_node(bundled(run_folder, "time.sleep(60)", FINISHES))
    agent = node.start()
    wait_until(
        lambda: record(run_folder).get("stage") == "validate", within=20, what="the tests begun"
    )
    node.metadata.set("instance/preempted", "TRUE")
    assert agent.wait(20) == 75
    assert record(run_folder)["state"] == "PREEMPTED"
