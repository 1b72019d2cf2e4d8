"""Conversion of sources that are right but unusual: every kind is read as what it is."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import tracemalloc
import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.unit.trainer.test_convert import COUNT, contents, convert, pictures
from trainer.data import arrays
from trainer.data.arrays import open_npz
from trainer.data.commands import main
from trainer.data.labels import whole_number
from trainer.data.pixels import as_bytes, scale_of, without_alpha
from trainer.data.tables import open_table
from trainer.faults import ExitCode, TrainerError

if TYPE_CHECKING:
    from pathlib import Path

LABELS = np.arange(COUNT) % 10


def save_png(path: Path, pixels: Any) -> None:
    """Write a picture, and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(tf.io.encode_png(pixels).numpy())


def write_rows(path: Path, rows: Any, **form: Any) -> Path:
    """Write a CSV file."""
    encoding = form.pop("encoding", "utf-8")
    with path.open("w", newline="", encoding=encoding) as file:
        csv.writer(file, **form).writerows(rows)
    return path


@pytest.mark.parametrize(
    ("images", "labels"),
    [
        (pictures().astype(np.uint16) * 257, LABELS),
        (pictures().astype(np.float64) / 255, LABELS.astype(np.float32)),
        (pictures().reshape(COUNT, 784), np.eye(10)[LABELS]),
        (pictures().astype(np.int64), np.array([f"class {n}" for n in LABELS])),
        (np.stack([pictures(), np.full((COUNT, 28, 28), 255, np.uint8)], axis=-1), LABELS),
    ],
    ids=["16 bits", "fractions", "flat and one-hot", "names", "grey with alpha"],
)
def test_arrays_of_each_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], images: Any, labels: Any
) -> None:
    np.savez_compressed(tmp_path / "a.npz", images=images, labels=labels)
    code, told = convert(capsys, tmp_path / "a.npz", "--out", tmp_path / "out")
    assert code == 0, told
    found = contents(told["train_files"]) + contents(told["eval_files"])
    assert sorted(found) == [(number, number % 10) for number in range(COUNT)]
    assert told["notes"] == []


def test_arrays_larger_than_memory_are_streamed_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "_KEPT_BYTES", 0)
    monkeypatch.setattr(arrays, "_BYTES_AT_ONCE", 7 * 784)
    np.savez_compressed(tmp_path / "a.npz", x=pictures(), y=LABELS)
    code, told = convert(capsys, tmp_path / "a.npz", "--out", tmp_path / "out", "--shards", 2)
    assert code == 0, told
    found = contents(told["train_files"]) + contents(told["eval_files"])
    assert sorted(found) == [(number, number % 10) for number in range(COUNT)]


def test_streaming_needs_little_memory_whatever_the_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrays, "_KEPT_BYTES", 0)
    monkeypatch.setattr(arrays, "_BYTES_AT_ONCE", 2**20)
    count = 64
    images = np.zeros((count, 1024, 1024), np.uint8)
    np.savez_compressed(tmp_path / "a.npz", images=images, labels=np.zeros(count, int))
    del images
    tracemalloc.start()
    part = open_npz(tmp_path / "a.npz").parts[0]
    assert sum(1 for _ in part.read(None)) == count
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2**20, "of 64 MiB of images"


def test_array_that_ends_early_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "a.npz", images=pictures(), labels=LABELS)
    whole = (tmp_path / "a.npz").read_bytes()
    for keep in (len(whole) // 2, 30, 0):
        (tmp_path / "a.npz").write_bytes(whole[:keep])
        code, said = convert(capsys, tmp_path / "a.npz", "--out", tmp_path / "out")
        assert code == 66
        assert "a.npz: not a readable .npz file" in said


def test_splits_share_the_names_of_their_classes(tmp_path: Path) -> None:
    named: dict[str, Any] = {
        "y_train": np.array(["dog", "cat"]),
        "y_test": np.array(["cat", "bird"]),
    }
    np.savez(tmp_path / "a.npz", x_train=pictures()[:2], x_test=pictures()[:2], **named)
    source = open_npz(tmp_path / "a.npz")
    assert source.label_names == ("bird", "cat", "dog")
    labels = [[label for _, label in part.read(None)] for part in source.parts]
    assert labels == [[2, 1], [1, 0]]


def test_names_in_one_split_and_numbers_in_another_are_refused(tmp_path: Path) -> None:
    mixed: dict[str, Any] = {"y_train": np.array(["dog", "cat"]), "y_test": np.array([0, 1])}
    np.savez(tmp_path / "a.npz", x_train=pictures()[:2], x_test=pictures()[:2], **mixed)
    with pytest.raises(TrainerError, match="names in one split and numbers in another") as caught:
        open_npz(tmp_path / "a.npz")
    assert caught.value.exit_code == ExitCode.NO_INPUT


def test_names_in_any_script_and_files_that_are_none_of_ours(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "bilder ñ"
    decomposed = unicodedata.normalize("NFD", "größe")
    for number, image in enumerate(pictures(channels=1)[:20]):
        save_png(root / "train" / "größe" / f"bild {number}, 'é'.PNG", image)
        save_png(root / "train" / "日本" / f"{number}.png", image)
    save_png(root / "test" / decomposed / "1.png", pictures(channels=1)[1])
    (root / "train" / "größe" / "._bild 1.png").write_bytes(b"\0\5\x16\7")
    (root / "train" / "größe" / "Thumbs.db").write_bytes(b"x")
    (root / "train" / "größe" / "photo.webp").write_bytes(b"RIFF")
    (root / "train" / ".git").mkdir()
    code, told = convert(capsys, root, "--out", tmp_path / "aus gabe")
    assert code == 0, told
    assert told["label_names"] == ["größe", "日本"]
    assert told["splits"]["train"]["examples"] == 40
    assert told["splits"]["eval"]["examples"] == 1
    assert told["notes"] == ["left out, since only PNG, JPEG, GIF and BMP are read: 1 .webp"]


def test_pictures_of_all_kinds_become_one_form(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "mixed"
    for number in range(5):
        level = 40 * number
        save_png(root / "a" / f"grey{number}.png", np.full((20 + number, 28, 1), level, np.uint8))
        colour = np.full((28, 30, 3), level, np.uint8)
        (root / "a" / f"c{number}.jpg").write_bytes(tf.io.encode_jpeg(colour, quality=100).numpy())
        deep = np.full((28, 28, 1), level * 257, np.uint16)
        save_png(root / "a" / f"deep{number}.png", deep)
        clear = np.concatenate([colour, np.zeros((28, 30, 1), np.uint8)], axis=-1)
        save_png(root / "a" / f"clear{number}.png", clear)
    code, said = convert(capsys, root, "--out", tmp_path / "out")
    assert code == 66
    assert "give --image_size and --channels" in said
    options = ["--image_size", "28", "--channels", "1", "--held_out", "0"]
    code, told = convert(capsys, root, "--out", tmp_path / "out", *options)
    assert code == 0, told
    assert told["image_shape"] == [28, 28, 1]
    found = sorted(pixel for pixel, _ in contents(told["train_files"]))
    opaque = [level for number in range(5) for level in [40 * number] * 3]
    assert np.abs(np.array(found) - np.array(opaque + [255] * 5)).max() <= 1


def test_alpha_shows_the_paper() -> None:
    pixels = np.array([[[0, 0, 0, 0], [10, 20, 30, 255], [100, 100, 100, 51]]], np.uint8)
    assert without_alpha(pixels).tolist() == [[[255, 255, 255], [10, 20, 30], [224, 224, 224]]]


PIXELS = [[number % 10, *image.ravel()] for number, image in enumerate(pictures())]
HEADER = ["label", *(f"pixel{n}" for n in range(784))]


@pytest.mark.parametrize(
    ("rows", "form"),
    [
        ([HEADER, *PIXELS], {"quoting": csv.QUOTE_ALL, "encoding": "utf-8-sig"}),
        (PIXELS, {"encoding": "utf-8-sig", "lineterminator": "\n\n"}),
        ([HEADER, *PIXELS], {"delimiter": ";"}),
        ([HEADER, *PIXELS], {"delimiter": "|", "encoding": "utf-16"}),
        ([[f"{row[0]}.0", *(f"{each / 255:.6f}" for each in row[1:])] for row in PIXELS], {}),
    ],
    ids=["quoted with a mark", "blank lines and a mark", "semicolons", "UTF-16", "fractions"],
)
def test_tables_of_each_form(tmp_path: Path, rows: Any, form: Any) -> None:
    source = open_table(write_rows(tmp_path / "p.csv", rows, **form), 0)
    found = [(int(image[0, 0, 0]), label) for image, label in source.parts[0].read(None)]
    assert found == [(number, number % 10) for number in range(COUNT)]


def test_table_of_pictures_with_names_of_classes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows: list[list[object]] = [["width", "file_name", "Class"]]
    for number, image in enumerate(pictures(channels=1)):
        save_png(tmp_path / "ä, b" / f'{number} "q".png', image)
        rows.append([28, f'ä, b/{number} "q".png', ("Größe", "日本")[number % 2]])
    source = write_rows(tmp_path / "l.csv", rows)
    code, told = convert(capsys, source, "--out", tmp_path / "out")
    assert code == 0, told
    assert told["label_names"] == ["Größe", "日本"]
    found = contents(told["train_files"]) + contents(told["eval_files"])
    assert sorted(found) == [(number, number % 2) for number in range(COUNT)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "x.csv: empty"),
        ("\n\n", "x.csv: empty"),
        ("label,a,b,c,d\n", "no example to train on"),
        ("path,width\na.png,1\n", "no column is named label"),
        ("label,path\n1,\n", "line 2: no picture is named"),
        ("label,path\n1,gone.png\n", "gone.png: no readable picture"),
        ("label,a,b,c,d\n1,2,3,4,nan\n", "line 2: a pixel is not in 0 to 255"),
        ("label,a,b,c,d\n1,2,3,4,\0\n", "line 2: a pixel is no number"),
        ("label,a,b,c,d\n99999999999,2,3,4,5\n", "'99999999999' is no whole number"),
        ('label,a,b,c,d\n1,2,3,4,"' + "5," * 100_000, "line 2: no CSV: field larger than"),
    ],
)
def test_bad_table_is_named_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    (tmp_path / "x.csv").write_text(text)
    code, line = convert(capsys, tmp_path / "x.csv", "--out", tmp_path / "out")
    assert code == 66
    assert said in line


@pytest.mark.parametrize(("count", "held_out"), [(1, 0), (2, 1), (3, 1), (60, 6)])
def test_few_examples_are_shared_out_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int, held_out: int
) -> None:
    np.savez(tmp_path / "a.npz", images=pictures()[:count], labels=np.zeros(count, int))
    _, told = convert(capsys, tmp_path / "a.npz", "--out", tmp_path / "out")
    splits = [told["splits"][name]["examples"] for name in ("train", "eval")]
    assert splits == [count - held_out, held_out]
    assert any("no example is held out" in note for note in told["notes"]) is not bool(held_out)


def test_labels_that_never_occur_are_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.savez(tmp_path / "a.npz", images=pictures(), labels=LABELS * 3)
    assert main(["convert", str(tmp_path / "a.npz"), "--out", str(tmp_path / "out")]) == 0
    said = capsys.readouterr()
    told = json.loads(said.out)
    assert (told["classes"], told["notes"]) == (28, ["18 of 28 labels never occur, such as 1"])
    assert "18 of 28 labels never occur" in said.err


@given(st.text(max_size=12))
def test_whole_number_takes_what_float_takes(text: str) -> None:
    number = whole_number(text)
    if number is not None:
        assert float(text) == pytest.approx(number)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_a_table_or_a_failure_that_is_told(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(content)
    with contextlib.suppress(TrainerError):
        for image, label in open_table(path, 0).parts[0].read(None):
            assert image.dtype == np.uint8
            assert label >= 0


@settings(max_examples=60, deadline=None)
@given(where=st.floats(0, 1, exclude_max=True), patch=st.binary(max_size=40), cut=st.booleans())
@example(where=0.28515625, patch=b"\x00", cut=False)
@pytest.mark.parametrize("kept_bytes", [0, 2**28], ids=["streamed", "whole"])
def test_damaged_arrays_are_a_failure_that_is_told_or_whole(
    tmp_path_factory: pytest.TempPathFactory,
    kept_bytes: int,
    where: float,
    patch: bytes,
    *,
    cut: bool,
) -> None:
    content = io.BytesIO()
    np.savez_compressed(content, images=pictures(), labels=LABELS)
    whole = content.getvalue()
    at = int(where * len(whole))
    path = tmp_path_factory.getbasetemp() / "damaged.npz"
    path.write_bytes(whole[:at] + patch + (b"" if cut else whole[at + len(patch) :]))
    with pytest.MonkeyPatch.context() as changed, contextlib.suppress(TrainerError):
        changed.setattr(arrays, "_KEPT_BYTES", kept_bytes)
        (part,) = open_npz(path).parts
        found = [(int(image[0, 0, 0]), label) for image, label in part.read(None)]
        assert found == [(number, number % 10) for number in range(COUNT)]


def test_pixels_of_another_range_later_are_refused() -> None:
    scale = scale_of("x", np.array([0.0, 1.0]))
    with pytest.raises(TrainerError, match="others are in 0 to 1"):
        as_bytes("x", np.array([0.0, 200.0]), scale)
    with pytest.raises(TrainerError, match="pixels from -1 to 0"):
        scale_of("x", np.array([-1.0, 0.0]))
