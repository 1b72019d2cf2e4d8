"""Prometheus endpoints in the settings: good ones are read, bad ones named with their line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.unit.config.test_settings import write
from tpudash.config.load import load_settings
from tpudash.domain.serving import ServingEndpoint, ServingLimits
from tpudash.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

URL = "https://10.0.0.2:8501/metrics"


def test_endpoints_and_limits_are_read_in_both_ways_of_writing_them(tmp_path: Path) -> None:
    inline = f'[serving]\np99_limit_s = 0.2\nendpoints = [{{name = "a", url = "{URL}"}}]\n'
    tables = f'[[serving.endpoints]]\nname = "a"\nurl = "{URL}"\nlatency = "rpc_seconds"\n'
    one = load_settings(write(tmp_path, inline), environment={}).settings.serving
    assert one.endpoints == (ServingEndpoint("a", URL),)
    assert one.limits == ServingLimits(0.2, 0.01)
    other = load_settings(write(tmp_path, tables), environment={})
    assert other.settings.serving.endpoints[0].latency == "rpc_seconds"
    assert ("serving.endpoints", (f"a {URL}",)) in {
        (key, value) for key, value, _, _ in other.rows() if key == "serving.endpoints"
    }


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('endpoints = "http://x"', "a list of tables"),
        ('endpoints = [{name = "a"}]', "http://"),
        ('endpoints = [{name = "a", url = "ftp://x/"}]', "http://"),
        ('endpoints = [{name = "a", url = "http://[x/"}]', "http://"),
        ('endpoints = [{name = "a", url = "http://u:secret@x/"}]', "no user and no password"),
        ('endpoints = [{name = "a", url = "http://x", port = 3}]', "without 'port'"),
        ('endpoints = [{name = "a", url = "http://x", latency = "a b"}]', "names of metrics"),
        ('endpoints = [{name = "a", url = "http://x"}, {name = "a", url = "http://y"}]', "its own"),
        ("p99_limit_s = -1", "at least 0"),
        ("p99 = 1", "unknown setting 'serving.p99'"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(line: str, words: str, tmp_path: Path) -> None:
    file = write(tmp_path, f"[serving]\n{line}\n")
    with pytest.raises(ConfigurationError) as refused:
        load_settings(file, environment={})
    assert words in f"{refused.value.title} {refused.value.detail}"
    assert f"{file}:2" in refused.value.detail
