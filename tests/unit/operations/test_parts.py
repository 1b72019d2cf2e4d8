"""The bundle, the owner and the choice of an image."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING

import pytest

from tpudash.domain.accelerator import AcceleratorType, load_catalog
from tpudash.domain.runtimes import default_runtime, misfit
from tpudash.errors import ConfigurationError
from tpudash.operations.bundle import make_bundle
from tpudash.operations.owner import label_value

if TYPE_CHECKING:
    from pathlib import Path


def names_in(data: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return archive.getnames()


def test_the_installed_trainer_is_packed_with_its_data() -> None:
    bundle = make_bundle()
    names = names_in(bundle.data)
    assert "trainer/__main__.py" in names
    assert "trainer/agent/agent.py" in names
    assert any(name.endswith(".npz") for name in names)
    assert not [name for name in names if "__pycache__" in name or "/tests/" in name]
    assert all(name.startswith("trainer/") for name in names)
    assert bundle.startup_script.startswith("#!/bin/bash")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    root = tmp_path / "trainer"
    for name in ("startup.sh", "a.py", "deep/b.py", "tests/test_a.py", "__pycache__/a.pyc", ".x"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return root


def test_the_same_files_give_the_same_bytes(package: Path) -> None:
    first = make_bundle(package)
    for path in package.rglob("*.py"):
        os.utime(path, (1, 1))
        path.chmod(0o600)
    again = make_bundle(package)
    assert first.data == again.data
    assert names_in(first.data) == ["trainer/a.py", "trainer/deep/b.py", "trainer/startup.sh"]
    (package / "a.py").write_text("changed")
    assert make_bundle(package).sha256 != first.sha256


def test_an_incomplete_trainer_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="can't be read"):
        make_bundle(tmp_path)


def test_packing_imports_nothing_of_the_trainer() -> None:
    code = (
        "import sys; from tpudash.operations.bundle import make_bundle; make_bundle(); "
        "sys.exit(any(name.split('.')[0] in ('trainer', 'tensorflow') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("alice", "alice"),
        ("Alice.Smith@example.com", "alice-smith"),
        ("CORP\\Bob", "bob"),
        ("-x-", "x"),
        ("a" * 80, "a" * 63),
        ("æ", ""),
    ],
)
def test_a_login_name_becomes_a_label(name: str, label: str) -> None:
    assert label_value(name) == label


def kind(name: str) -> AcceleratorType:
    found = load_catalog().find(name)
    assert found is not None
    return found


IMAGES = (
    "tpu-ubuntu2204-base",
    "tpu-vm-tf-2.13.0",
    "tpu-vm-tf-2.17.1-pjrt",
    "tpu-vm-tf-2.18.0-pjrt-v5e-and-v6",
    "tpu-vm-tf-2.18.0-pjrt-v5p-and-below",
    "tpu-vm-tf-2.18.0-pod-pjrt-v5e-and-v6",
    "tpu-vm-tf-nightly",
    "v2-alpha-tpuv6e",
)


@pytest.mark.parametrize(
    ("name", "image"),
    [
        ("v2-8", "tpu-vm-tf-2.18.0-pjrt-v5p-and-below"),
        ("v5litepod-8", "tpu-vm-tf-2.18.0-pjrt-v5e-and-v6"),
        ("v6e-16", "tpu-vm-tf-2.18.0-pod-pjrt-v5e-and-v6"),
        ("v2-32", "tpu-ubuntu2204-base"),
    ],
)
def test_the_newest_supported_image_that_fits_is_chosen(name: str, image: str) -> None:
    assert default_runtime(kind(name), IMAGES) == image


def test_without_any_fitting_image_none_is_chosen() -> None:
    assert default_runtime(kind("v2-32"), ("tpu-vm-tf-2.17.1-pjrt",)) is None
    assert default_runtime(kind("v6e-8"), ("v2-alpha-tpuv6e",)) == "v2-alpha-tpuv6e"


def test_an_image_that_nothing_is_known_of_is_let_through() -> None:
    assert misfit("tpu-vm-tf-nightly", kind("v2-8")) is None
