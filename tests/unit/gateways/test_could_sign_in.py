"""Whether this machine has anything to sign in with, which decides where a newcomer lands."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tpudash.gateways import credential_files
from tpudash.gateways.credential_files import could_sign_in

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", *credential_files._ON_GOOGLE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setattr(credential_files, "PRODUCT_NAME", str(tmp_path / "product_name"))
    return tmp_path


def test_a_bare_machine_has_nothing() -> None:
    assert not could_sign_in()


def test_a_machine_of_another_make_has_nothing(bare_machine: Path) -> None:
    (bare_machine / "product_name").write_text("ThinkPad\n")
    assert not could_sign_in()


def test_compute_engine_has_its_service_account(bare_machine: Path) -> None:
    (bare_machine / "product_name").write_text("Google Compute Engine\n")
    assert could_sign_in()


def test_a_user_has_signed_in(bare_machine: Path) -> None:
    (bare_machine / "application_default_credentials.json").write_text("{}")
    assert could_sign_in()


@pytest.mark.parametrize("name", ["GOOGLE_APPLICATION_CREDENTIALS", "GCE_METADATA_HOST"])
def test_who_names_a_source_means_google_cloud_even_if_it_is_gone(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "/gone")
    assert could_sign_in()
