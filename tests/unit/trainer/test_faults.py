"""The classifier of known texts, and the checks of installed versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trainer.faults import ExitCode, TrainerError, classify, one_line, plain
from trainer.versions import cpu_has_bfloat16, preflight, tpu_chips_present

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "error_class"),
    [
        ("No OpKernel was registered to support Op 'ConfigureDistributedTPU' used by", "VERSION"),
        ("No matching devices found for '/device:TPU_SYSTEM:0'", "CONNECT"),
        ("F x ConfigureDistributedTpuOp_DoWork not available in this library.", "VERSION"),
        ("Failed to get TPU metadata (agent-worker-number) after 30 tries", "CONNECT"),
        ("RET_CHECK failure (x.cc:12) !tpu_node_interfaces.empty()", "CONNECT"),
        ("ValueError: Please provide a TPU Name to connect to.", "CONNECT"),
        ("Could not lookup TPU metadata from name 'b'gone''", "CONNECT"),
        ('RuntimeError: TPU "a" is not yet ready; state: "PREEMPTED"', "PREEMPTED"),
        ("The TPU is already in use by another process probably owned by x", "DEVICE_BUSY"),
        ("open(/dev/accel0): Operation not permitted: Device or resource busy", "DEVICE_BUSY"),
        ("open(/dev/vfio/0): Device or resource busy", "DEVICE_BUSY"),
        ("UnavailableError: Socket closed", "CONNECT"),
        ("failed to connect to all addresses; last error", "CONNECT"),
        ("Unable to find a context_id matching the specified one", "CONNECT"),
        ("RecvTensor expects a different device incarnation: 1 vs. 2", "CONNECT"),
        (
            (
                "Ran out of memory in memory space hbm. Used 17.06G of 16.00G hbm. "
                "Exceeded hbm capacity by 1.06G."
            ),
            "HBM_OOM",
        ),
        ("[Errno 28] No space left on device", "BUCKET_ACCESS"),
        ("terminate called after throwing an instance of 'std::bad_alloc'", "HOST_OOM"),
    ],
)
def test_known_text(text: str, error_class: str) -> None:
    diagnosis = classify(f"some context\n{text}\nmore")
    assert diagnosis is not None
    assert diagnosis.error_class == error_class
    assert diagnosis.hint


def test_unknown_text_is_not_guessed() -> None:
    assert classify("ValueError: shapes do not match") is None


def test_one_line() -> None:
    assert one_line("a\n  b\tc") == "a b c"
    assert len(one_line("x" * 900, 100)) == 100


def test_missing_tensorflow() -> None:
    with pytest.raises(TrainerError) as caught:
        preflight(needs_tpu=False, version=lambda _: None)
    assert caught.value.exit_code == ExitCode.NO_DEVICE
    assert "not installed" in caught.value.detail


@pytest.mark.parametrize(
    ("tensorflow", "libtpu", "aborts"),
    [
        ("2.20.0", "0.0.52", True),
        ("2.20.0", "0.0.43.2", True),
        ("2.19.1", "0.0.10", False),
        ("2.18.0", "2.18.0", False),
        ("2.20.0", "0.0.40", False),
    ],
)
def test_libtpu_that_would_abort_the_import(tensorflow: str, libtpu: str, aborts: bool) -> None:
    versions = {"tensorflow-tpu": tensorflow, "libtpu": libtpu}.get
    if not aborts:
        installed, warnings = preflight(needs_tpu=True, version=versions)
        assert (installed.wheel, installed.libtpu, warnings) == ("tensorflow-tpu", libtpu, [])
        return
    with pytest.raises(TrainerError) as caught:
        preflight(needs_tpu=True, version=versions)
    assert caught.value.error_class == "VERSION"


def test_old_and_doubled_wheels_are_warned() -> None:
    versions = {"tensorflow": "2.15.0", "tensorflow-cpu": "2.21.0"}.get
    _, warnings = preflight(needs_tpu=False, version=versions)
    assert any("over each other" in warning for warning in warnings)
    _, warnings = preflight(needs_tpu=False, version={"tensorflow": "2.15.0"}.get)
    assert any("untested" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("vendor", "flags", "fast"),
    [
        ("AuthenticAMD", "fpu avx2 avx512_bf16", True),
        ("GenuineIntel", "fpu avx512_bf16 amx_bf16", True),
        ("GenuineIntel", "fpu avx512_bf16", False),
        ("AuthenticAMD", "fpu avx2", False),
    ],
)
def test_bfloat16_is_taken_where_it_is_faster(
    tmp_path: Path, vendor: str, flags: str, fast: bool
) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text(f"processor: 0\nvendor_id\t: {vendor}\nflags\t\t: {flags}\nbugs: amx_bf16\n")
    assert cpu_has_bfloat16(info) is fast


def test_unknown_cpu_computes_in_float32(tmp_path: Path) -> None:
    assert not cpu_has_bfloat16(tmp_path / "none")


def test_chips_are_seen_in_dev(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TPU_ACCELERATOR_TYPE", raising=False)
    (tmp_path / "vfio").mkdir()
    (tmp_path / "vfio" / "0").touch()
    assert not tpu_chips_present(tmp_path), "a GPU passed through looks the same"
    (tmp_path / "accel0").touch()
    assert tpu_chips_present(tmp_path)


def test_text_of_tensorflow_is_told_without_its_graph() -> None:
    raw = (
        "{{function_node __wrapped__SaveV2_dtypes_28_device_/job:localhost/device:CPU:0}} "
        "/run/ckpt-80; No space left on device [Op:SaveV2] name: "
    )
    assert plain(raw) == "/run/ckpt-80; No space left on device"
    stack = 'Graph execution error:\n  File "x.py", line 3, in f\nthe file is damaged'
    assert plain(stack) == "the file is damaged"
    assert plain("Graph execution error:") == "Graph execution error:"
