"""Settings: who wins, who is named as the origin, and what a mistake is answered with."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tpudash.config.load import load_settings, unknown_variables
from tpudash.config.settings import OriginKind
from tpudash.config.toml_lines import line_of
from tpudash.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path


def write(folder: Path, text: str) -> Path:
    file = folder / "config.toml"
    file.write_text(text, "utf-8")
    return file


def test_flags_win_over_variables_over_the_file_over_defaults(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        '# mine\nproject = "from-file"\nendpoint = "localhost:1"\ntheme = "light"\n'
        'zones = ["us-central1-b"]\n\n[intervals]\nnodes = 30\n\n[keys]\nlaunch = "f5"\n',
    )
    environment = {"TPUDASH_PROJECT": "from-variable", "TPUDASH_ENDPOINT": "localhost:2"}
    loaded = load_settings(
        file, environment=environment, flags={"endpoint": "localhost:3", "theme": None}
    )
    settings = loaded.settings
    assert settings.project == "from-variable"
    assert settings.endpoint == "localhost:3"
    assert settings.theme == "light"
    assert settings.zones == ("us-central1-b",)
    assert settings.intervals.nodes == 30
    assert settings.intervals.metrics == 60
    assert settings.keys == {"launch": "f5"}
    assert str(loaded.origin("project")) == "environment TPUDASH_PROJECT"
    assert str(loaded.origin("endpoint")) == "flag --endpoint"
    assert str(loaded.origin("theme")) == f"file {file}:4"
    assert str(loaded.origin("intervals.nodes")) == f"file {file}:8"
    assert str(loaded.origin("keys.launch")) == f"file {file}:11"
    assert loaded.origin("bucket").kind is OriginKind.DEFAULT


def test_no_file_is_fine_unless_it_was_named(tmp_path: Path) -> None:
    absent = tmp_path / "absent.toml"
    assert load_settings(absent, environment={}).settings.project is None
    with pytest.raises(ConfigurationError, match="does not exist"):
        load_settings(absent, must_exist=True, environment={})


def test_the_project_is_taken_from_google_s_variable_last(tmp_path: Path) -> None:
    google = {"GOOGLE_CLOUD_PROJECT": "googles"}
    loaded = load_settings(tmp_path / "none", environment=google)
    assert loaded.settings.project == "googles"
    assert str(loaded.origin("project")) == "environment GOOGLE_CLOUD_PROJECT"
    both = google | {"TPUDASH_PROJECT": "ours"}
    assert load_settings(tmp_path / "none", environment=both).settings.project == "ours"


@pytest.mark.parametrize(
    ("text", "line", "says", "hint"),
    [
        ('theme = "dark"\n\nprojekt = "p"\n', 3, "unknown setting 'projekt'", "project"),
        ("[intervals]\nnode = 3\n", 2, "unknown setting 'intervals.node'", "intervals.nodes"),
        ("[intervals]\nnodes = 0\n", 2, "at least 1", ""),
        ("[intervals]\nnodes = nan\n", 2, "at least 1", ""),
        ('zones = "us-central1-b"\n', 1, "a list of texts", ""),
        ("ascii = 1\n", 1, "true or false", ""),
        ("project = 3\n", 1, "a text in quotes", ""),
        ('project = "../etc"\n', 1, "the id of a project", ""),
        ('quota_project = "a\\u001b[2Jb"\n', 1, "the id of a project", ""),
        ("keys = 3\n", 1, r"a table, written \[keys\]", ""),
        ('log_level = "LOUD"\n', 1, "one of DEBUG", ""),
        ("[project]\nname = 1\n", 1, "a text in quotes", ""),
    ],
)
def test_a_mistake_names_file_line_and_nearest_key(
    tmp_path: Path, text: str, line: int, says: str, hint: str
) -> None:
    file = write(tmp_path, text)
    with pytest.raises(ConfigurationError, match=says) as caught:
        load_settings(file, environment={})
    assert f"{file}:{line}" in caught.value.detail
    assert hint in caught.value.hint


def test_text_that_is_not_toml_is_named_with_its_place(tmp_path: Path) -> None:
    file = write(tmp_path, "project = \n")
    with pytest.raises(ConfigurationError, match="not TOML") as caught:
        load_settings(file, environment={})
    assert "line 1" in caught.value.detail


def test_bytes_that_are_no_text_and_huge_files_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigurationError, match="can't be read"):
        load_settings(file, environment={})
    file.write_bytes(b"#" * 1_000_001)
    with pytest.raises(ConfigurationError, match="too large"):
        load_settings(file, environment={})


def test_variables_are_read_as_what_their_setting_wants(tmp_path: Path) -> None:
    environment = {
        "TPUDASH_ZONES": "us-central1-b, us-central1-c",
        "TPUDASH_ASCII": "yes",
        "TPUDASH_INTERVALS_METRICS": "5",
        "TPUDASH_LOG_LEVEL": "debug",
    }
    settings = load_settings(tmp_path / "none", environment=environment).settings
    assert settings.zones == ("us-central1-b", "us-central1-c")
    assert settings.ascii is True
    assert settings.intervals.metrics == 5
    assert settings.log_level == "DEBUG"
    with pytest.raises(ConfigurationError, match="number of seconds") as caught:
        load_settings(tmp_path / "none", environment={"TPUDASH_INTERVALS_NODES": "often"})
    assert "TPUDASH_INTERVALS_NODES" in caught.value.detail


def test_a_variable_that_nothing_reads_is_found_with_the_one_that_was_meant() -> None:
    assert unknown_variables({"TPUDASH_PROJET": "p", "TPUDASH_THEME": "x", "HOME": "/"}) == (
        "TPUDASH_PROJET (did you mean 'TPUDASH_PROJECT'?)",
    )


def test_the_line_of_a_key_is_that_of_its_own_table() -> None:
    text = "[keys]\nnodes = 'x'\n[intervals]\n'nodes' = 3\nkeys.launch = 'L'\n"
    assert line_of(text, "keys.nodes") == 2
    assert line_of(text, "intervals.nodes") == 4
    assert line_of("keys.launch = 'L'\n", "keys.launch") == 1


@pytest.mark.parametrize(
    "project", ["my-project-1", "123456789012", "example.com:old", "one, two-b", "one,,two ,"]
)
def test_ids_numbers_and_lists_of_projects_are_taken(tmp_path: Path, project: str) -> None:
    loaded = load_settings(tmp_path / "none", environment={}, flags={"project": project})
    assert loaded.settings.project == project
