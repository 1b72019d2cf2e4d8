"""Models in memory: padding, large requests, signatures that cannot be batched, damage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.unit.trainer.serve.conftest import export
from trainer.faults import ExitCode, TrainerError
from trainer.serve.exports import find_exports
from trainer.serve.servable import InputError, Servable, padded_sizes

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("rows", [1, 3, 4, 9])
def test_rows_are_padded_and_split_as_a_tpu_wants_and_come_back_as_they_were(
    rows: int, models: Path
) -> None:
    (found,) = find_exports(str(models))
    sizes = padded_sizes(4)
    servable = Servable(found, device="/device:CPU:0", sizes=sizes, max_batch=4)
    told: list[str] = []
    servable.warm_up(told.append)
    assert told == []
    x = np.arange(4.0 * rows, dtype=np.float32).reshape(rows, 4)
    assert (servable.call("serving_default", {"x": x})["y"] == 2 * x).all()


def test_a_signature_without_rows_is_called_as_it_is(tmp_path: Path) -> None:
    import tensorflow as tf

    class Words(tf.Module):  # type: ignore[misc]
        @tf.function(input_signature=[tf.TensorSpec([], tf.string, name="text")])
        def join(self, text: Any) -> dict[str, Any]:
            tf.debugging.assert_greater(tf.strings.length(text), 0)
            return {"twice": tf.strings.join([text, text])}

    module = Words()
    tf.saved_model.save(module, str(tmp_path / "1"), signatures={"join": module.join})
    servable = Servable(find_exports(str(tmp_path))[0], device="", sizes=(), max_batch=4)
    told: list[str] = []
    servable.warm_up(told.append)
    assert len(told) == 1, "an empty text is refused, which is no reason not to serve"
    assert not servable.signatures["join"].batches
    text = np.array(b"ab", dtype=object)
    assert servable.call("join", {"text": text})["twice"].item() == b"abab"
    with pytest.raises(InputError):
        servable.call("join", {"text": np.array(b"", dtype=object)})


@pytest.mark.parametrize("damage", ["variables", "graph", "signatures"])
def test_a_damaged_model_is_refused_in_one_line(damage: str, tmp_path: Path) -> None:
    import tensorflow as tf

    folder = export(tmp_path, 1)
    if damage == "variables":
        next(folder.glob("variables/*.data*")).write_bytes(b"")
    elif damage == "graph":
        (folder / "saved_model.pb").write_bytes(b"\xff" * 100)
    else:
        tf.saved_model.save(tf.Module(), str(folder))
    with pytest.raises(TrainerError) as refused:
        Servable(find_exports(str(tmp_path))[0], device="", sizes=(), max_batch=4)
    assert refused.value.exit_code == ExitCode.NO_INPUT
    assert "\n" not in refused.value.detail
    assert str(folder) in refused.value.detail
