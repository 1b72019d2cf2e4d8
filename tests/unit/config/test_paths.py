"""Paths: by the platform, by variables, and what a folder that can't be written to is answered."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tpudash.config.paths import ensure_writable, find_paths
from tpudash.errors import ConfigurationError, ExitCode


def test_variables_name_other_folders(tmp_path: Path) -> None:
    paths = find_paths({"TPUDASH_CONFIG_DIR": str(tmp_path / "c"), "TPUDASH_STATE_DIR": "relative"})
    assert paths.config_file == tmp_path / "c" / "config.toml"
    assert paths.state_dir == Path.cwd() / "relative"
    assert paths.cache_dir.is_absolute()


def test_a_folder_is_made_for_this_user_alone(tmp_path: Path) -> None:
    folder = ensure_writable(tmp_path / "a" / "b", "state directory")
    assert folder.is_dir()
    assert folder.stat().st_mode & 0o077 == 0


def test_a_file_in_the_way_is_a_plain_error(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("")
    with pytest.raises(ConfigurationError, match="state directory can't be written to") as caught:
        ensure_writable(tmp_path / "state" / "x", "state directory")
    assert caught.value.exit_code is ExitCode.USAGE
    assert str(tmp_path) in caught.value.detail


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_a_plain_error(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ConfigurationError, match="can't be written to"):
        ensure_writable(tmp_path / "state", "state directory")
