"""What TensorFlow does without is hidden only while it is imported."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

from trainer import lean_import


def test_unused_packages_are_hidden_during_the_import_and_can_be_had_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lean_import, "_UNUSED", ("email.mime.audio",))
    monkeypatch.delitem(sys.modules, "email.mime.audio", raising=False)
    asked = []

    def importing(name: str) -> None:
        asked.append(name)
        with pytest.raises(ImportError):
            import_module("email.mime.audio")

    monkeypatch.setattr(lean_import, "import_module", importing)
    lean_import.import_tensorflow()
    assert asked == ["tensorflow", "keras"]
    assert import_module("email.mime.audio").MIMEAudio


def test_what_is_imported_already_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lean_import, "_UNUSED", ("json",))
    monkeypatch.setattr(lean_import, "import_module", lambda _: import_module("json"))
    lean_import.import_tensorflow()
    assert sys.modules["json"]
