"""Bodies of predictions: what fits the model is read exactly, everything else is refused."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.serve.bodies import BodyReader, answer
from trainer.serve.numbers import NumbersOnly, RequestError, to_array
from trainer.serve.signatures import Signature, Tensor, difference


def tensor(name: str, dtype: Any, *shape: int | None) -> Tensor:
    return Tensor(name, np.dtype(dtype), shape, "DT_X")


IMAGES = Signature(
    "serving_default",
    {"images": tensor("images", np.uint8, None, 2, 3)},
    {"scores": tensor("scores", np.float32, None, 2)},
)
TWO = Signature(
    "two",
    {"a": tensor("a", np.float32, None), "text": tensor("text", object, None)},
    {
        "x": tensor("x", np.float32, None),
        "raw_bytes": tensor("raw_bytes", object, None),
    },
)
READER = BodyReader({"serving_default": IMAGES, "two": TWO})
ROW = [[1, 2, 3], [4, 5, 255]]


def body(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


@pytest.mark.parametrize(
    "given",
    [
        body(instances=[ROW, ROW]),
        body(instances=[ROW, ROW]).replace(b" ", b""),
        json.dumps({"instances": [ROW, ROW]}, indent=2).encode(),
        body(instances=[{"images": ROW}, {"images": ROW}]),
        body(inputs=[ROW, ROW]),
        body(inputs={"images": [ROW, ROW]}, signature_name="serving_default"),
    ],
)
def test_every_shape_of_the_api_gives_the_same_array(given: bytes) -> None:
    ask = READER.read(given)
    assert ask.arrays["images"].tolist() == [ROW, ROW]
    assert ask.arrays["images"].dtype == np.uint8
    assert ask.rows == 2


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (b"", "JSON Parse error"),
        (b"\xff\xfe{", "JSON Parse error"),
        ('{"instances": 1}'.encode("utf-16"), "JSON Parse error"),
        (b"[" * 100_000, "JSON Parse error"),
        (b'{"instances":' + b"[" * 500 + b"]" * 500 + b"}", "nested too deeply"),
        (b"[1]", "not a JSON object"),
        (body(), "neither"),
        (body(instances=[ROW], inputs=[ROW]), "not both"),
        (body(instances=[]), "empty"),
        (body(instances={"images": 1}), "not a list"),
        (body(instances=[ROW], extra=1), "unknown key 'extra'"),
        (body(instances=[ROW], signature_name="none"), "no signature 'none'"),
        (body(instances=[ROW], signature_name=[]), "no signature"),
        (body(instances=[[1, 2, 3]]), "shape [1, 3], wanted is uint8 [n, 2, 3]"),
        (body(instances=[[[1, 2, 3], [4, 5]]]), "ragged"),
        (body(instances=[[[1, 2, 3], 4]]), "ragged"),
        (body(instances=[[[1, 2, 3], [4, 5, 256]]]), "out of the range of uint8"),
        (body(instances=[[[1, 2, 3], [4, 5, -1]]]), "out of the range"),
        (body(instances=[[[1, 2, 3], [4, 5, 10**30]]]), "1e+30 is of another type"),
        (body(instances=[[[1, 2, 3], [4, 5, 0.5]]]), "0.5 is of another type"),
        (body(instances=[[[1, 2, 3], [4, 5, True]]]), "true is of another type"),
        (body(instances=[[[1, 2, 3], [4, 5, None]]]), "null is of another type"),
        (body(instances=[[[1, 2, 3], [4, 5, "6"]]]), "is of another type"),
        (body(instances=[{"images": ROW}, {"other": ROW}]), "exactly the inputs images"),
        (body(instances=[{"a": 1, "text": {"b64": "?"}}], signature_name="two"), "not base64"),
        (body(inputs={"a": [1], "text": ["x", "y"]}, signature_name="two"), "numbers of rows"),
        (body(inputs={"a": [1e300], "text": ["x"]}, signature_name="two"), "out of the range"),
        (b'{"instances":[[[1,2,3],[4,5,6]]]}x', "JSON Parse error"),
        (b'{"instances":[[[1,2,3],4[,5,6]]]}', "JSON Parse error"),
        (b'{"instances":[[[01,2,3],[4,5,6]]]}', "JSON Parse error"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line(given: bytes, says: str) -> None:
    with pytest.raises(RequestError) as refused:
        READER.read(given)
    assert refused.value.status == 400
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400


def test_two_inputs_and_bytes() -> None:
    ask = READER.read(
        body(
            instances=[{"a": 1, "text": "ü"}, {"a": 2.5, "text": {"b64": "AP8="}}],
            signature_name="two",
        )
    )
    assert ask.arrays["text"].tolist() == ["ü".encode(), b"\x00\xff"]
    outputs = {"x": np.array([1, np.nan], np.float32), "raw_bytes": ask.arrays["text"]}
    assert json.loads(answer(ask, outputs)) == {
        "predictions": [
            {"x": 1.0, "raw_bytes": {"b64": "w7w="}},
            {"x": None, "raw_bytes": {"b64": "AP8="}},
        ]
    }


def test_answers_by_rows_and_by_columns() -> None:
    outputs = {"scores": np.array([[0.5, 0.25], [1, 2]], np.float32)}
    rows = answer(READER.read(body(instances=[ROW, ROW])), outputs)
    assert json.loads(rows) == {"predictions": [[0.5, 0.25], [1.0, 2.0]]}
    columns = answer(READER.read(body(inputs=[ROW, ROW])), outputs)
    assert json.loads(columns) == {"outputs": [[0.5, 0.25], [1.0, 2.0]]}


_TEXTS = st.text(alphabet='0123456789[]{}, .-+eE"instances:tru\n', max_size=60)


@given(
    start=st.sampled_from([b'{"instances":[[[1,2,3],[4,5,6]],[[7,8,9],[0,1,2]]]}', b'{"inst']),
    at=st.integers(0, 60),
    cut=st.integers(0, 8),
    put=_TEXTS,
)
def test_the_quick_reader_never_differs_from_the_careful_one(
    start: bytes, at: int, cut: int, put: str
) -> None:
    text = start[:at] + put.encode() + start[at + cut :]
    quick = NumbersOnly((2, 3), np.dtype(np.uint8)).read(text)
    if quick is None:
        return
    careful = to_array(json.loads(text)["instances"], IMAGES.inputs["images"])
    assert (quick == careful).all()


@given(
    st.lists(
        st.lists(st.floats(-1e30, 1e30, allow_subnormal=False), min_size=4, max_size=4),
        min_size=1,
        max_size=4,
    )
)
def test_the_quick_reader_reads_any_floats(rows: list[list[float]]) -> None:
    array = NumbersOnly((4,), np.dtype(np.float32)).read(body(instances=rows))
    assert array is not None
    assert (array == np.array(rows, np.float32)).all()


def test_another_model_is_told_from_a_newer_one() -> None:
    other = Signature("serving_default", {"x": tensor("x", np.float32, None, 4)}, IMAGES.outputs)
    assert difference({"serving_default": IMAGES}, {"serving_default": IMAGES, "two": TWO}) == ""
    assert "no signature two" in difference({"two": TWO}, {"serving_default": IMAGES})
    assert "input images of serving_default is nothing instead of uint8" in difference(
        {"serving_default": IMAGES}, {"serving_default": other}
    )
