"""`python -m trainer.data`: conversion of each source, and of each bad one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tests.unit.trainer.jobs import write_examples
from trainer.config import parse
from trainer.data.commands import main
from trainer.model_specs import CNN

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.trains

COUNT = 60


def pictures(size: int = 28, channels: int = 0) -> Any:
    """Return images whose every pixel is their number."""
    shape = (COUNT, size, size) + ((channels,) if channels else ())
    numbers = np.arange(COUNT, dtype=np.uint8).reshape((COUNT,) + (1,) * (len(shape) - 1))
    return np.broadcast_to(numbers, shape).copy()


def convert(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, Any]:
    """Run the conversion. Returns the exit code, and the JSON or the line of the error."""
    code = main(["convert", *map(str, arguments)])
    said = capsys.readouterr()
    return code, json.loads(said.out) if code == 0 else said.err.splitlines()[-1]


def contents(pattern: str) -> list[tuple[int, int]]:
    """Return (first pixel, label) of every example of some files, in order."""
    from trainer.data.records import decoded_batches, expand, make_decoder

    files = expand([pattern], "files")
    found: list[tuple[int, int]] = []
    for images, labels in decoded_batches(files, make_decoder(files, CNN)):
        found += zip(images.numpy()[:, 0, 0, 0].tolist(), labels.numpy().tolist(), strict=True)
    return found


def save_arrays(folder: Path) -> Path:
    """Write an .npz file of images with whole labels."""
    np.savez(folder / "a.npz", images=pictures(), labels=np.arange(COUNT) % 10)
    return folder / "a.npz"


def save_floats(folder: Path) -> Path:
    """Write float pixels of 0 to 1 with a channel, and labels in a column."""
    images = pictures(channels=1).astype(np.float32) / 255
    np.savez(folder / "f.npz", x=images, y=(np.arange(COUNT) % 10)[:, np.newaxis])
    return folder / "f.npz"


def save_pixels(folder: Path) -> Path:
    """Write a CSV file of labels and pixels with a header."""
    with (folder / "p.csv").open("w") as file:
        file.write("label," + ",".join(f"pixel{n}" for n in range(784)) + "\n")
        for number, image in enumerate(pictures()):
            file.write(f"{number % 10}," + ",".join(map(str, image.ravel())) + "\n")
    return folder / "p.csv"


def save_folders(folder: Path) -> Path:
    """Write PNG files in a folder for each class."""
    import tensorflow as tf

    for number, image in enumerate(pictures(channels=1)):
        place = folder / "classes" / f"digit{number % 10}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.png").write_bytes(tf.io.encode_png(image).numpy())
    return folder / "classes"


def save_list(folder: Path) -> Path:
    """Write a CSV file that names PNG files."""
    save_folders(folder)
    with (folder / "l.csv").open("w") as file:
        file.write("path,label\n")
        for number in range(COUNT):
            file.write(f"classes/digit{number % 10}/{number}.png,{number % 10}\n")
    return folder / "l.csv"


@pytest.mark.parametrize("compression", ["none", "gzip"])
@pytest.mark.parametrize("save", [save_arrays, save_floats, save_pixels, save_folders, save_list])
def test_each_source_is_converted_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], save: Any, compression: str
) -> None:
    out = tmp_path / "out"
    options = ["--out", out, "--shards", 3, "--compression", compression, "--held_out", "0.2"]
    code, told = convert(capsys, save(tmp_path), *options)
    assert code == 0, told
    train, held_out = contents(told["train_files"]), contents(told["eval_files"])
    assert sorted(train + held_out) == [(number, number % 10) for number in range(COUNT)]
    assert train != sorted(train), "the order is mixed"
    assert told["splits"]["train"] == {"examples": len(train), "files": 3}
    assert told["image_shape"] == [28, 28, 1]
    assert told["classes"] == 10
    assert told["encoding"] == "raw"
    ending = ".gz" if compression == "gzip" else ".tfrecord"
    names = sorted(path.name for path in out.iterdir())
    assert names == ["dataset.json", *sorted(told["files"])]
    assert all(name.endswith(ending) for name in told["files"])


def test_counts_beside_the_files_are_used_and_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from trainer.data import index
    from trainer.data.loading import load

    code, told = convert(capsys, save_arrays(tmp_path), "--out", tmp_path / "out")
    assert code == 0
    flags = f"--train_files {told['train_files']} --eval_files {told['eval_files']}"
    settings = parse(f"--model_dir {tmp_path} --batch_size 8 {flags}".split())
    with monkeypatch.context() as patch:
        patch.setattr(index, "_count", lambda *_: pytest.fail("counted again"))
        assert load(settings)[0].examples == 54
    name = next(iter(told["files"]))
    write_examples(tmp_path / "out" / name, pictures(), [0] * COUNT)
    assert load(settings)[0].examples > 54, "a file that was replaced is counted"
    assert (tmp_path / "data_index.json").exists()
    with monkeypatch.context() as patch:
        patch.setattr(index, "_count", lambda *_: pytest.fail("counted again"))
        load(settings)


def test_train_and_test_arrays_keep_their_split(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    images, labels = pictures(), np.arange(COUNT) % 10
    arrays = {"x_train": images[:40], "y_train": labels[:40]}
    np.savez(tmp_path / "s.npz", **arrays, x_test=images[40:], y_test=labels[40:])
    _, told = convert(capsys, tmp_path / "s.npz", "--out", tmp_path / "out")
    assert sorted(pixel for pixel, _ in contents(told["train_files"])) == list(range(40))
    assert sorted(pixel for pixel, _ in contents(told["eval_files"])) == list(range(40, COUNT))


def test_seed_names_the_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = save_arrays(tmp_path)
    orders = []
    for out, seed in (("a", 1), ("b", 1), ("c", 2)):
        _, told = convert(capsys, source, "--out", tmp_path / out, "--seed", seed)
        orders.append(contents(told["train_files"]))
    assert orders[0] == orders[1] != orders[2]


def test_pictures_are_resized_or_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = save_folders(tmp_path)
    options = ["--image_size", 40, "--channels", 3, "--image_format", "png"]
    _, told = convert(capsys, source, "--out", tmp_path / "a", *options)
    assert (told["image_shape"], told["encoding"]) == ([40, 40, 3], "encoded")
    _, told = convert(capsys, source, "--out", tmp_path / "b", "--image_format", "keep")
    assert (told["image_shape"], told["encoding"]) == ([28, 28, 1], "encoded")
    assert len(contents(told["train_files"])) == 54
    assert told["label_names"][:2] == ["digit0", "digit1"]


def test_earlier_conversion_is_not_overwritten_unasked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = save_arrays(tmp_path)
    assert convert(capsys, source, "--out", tmp_path / "out", "--shards", 4)[0] == 0
    code, said = convert(capsys, source, "--out", tmp_path / "out", "--shards", 2)
    assert code == 64
    assert "holds" in said
    assert "--overwrite" in said
    options = ["--out", tmp_path / "out", "--shards", 2, "--overwrite"]
    code, told = convert(capsys, source, *options)
    assert code == 0
    found = {path.name for path in (tmp_path / "out").iterdir()}
    assert found == {"dataset.json", *told["files"]}


def bad_label(folder: Path) -> Path:
    """Write a label that is no number."""
    (folder / "x.csv").write_text("label,a,b,c,d\n1,0,0,0,0\nseven,0,0,0,0\n")
    return folder / "x.csv"


def short_row(folder: Path) -> Path:
    """Write a row that ends early."""
    (folder / "x.csv").write_text("1,0,0,0,0\n1,0,0\n")
    return folder / "x.csv"


def bright_pixel(folder: Path) -> Path:
    """Write a pixel above 255."""
    (folder / "x.csv").write_text("1,0,0,0,256\n")
    return folder / "x.csv"


def odd_width(folder: Path) -> Path:
    """Write rows that are no square images."""
    (folder / "x.csv").write_text("1,0,0\n")
    return folder / "x.csv"


def broken_picture(folder: Path) -> Path:
    """Write a picture that is none."""
    (folder / "c" / "a").mkdir(parents=True)
    (folder / "c" / "a" / "1.png").write_bytes(b"\x89PNG nothing")
    return folder / "c"


def two_sizes(folder: Path) -> Path:
    """Write pictures of two sizes."""
    import tensorflow as tf

    (folder / "c" / "a").mkdir(parents=True)
    for size in (20, 28):
        image = np.zeros((size, size, 1), np.uint8)
        (folder / "c" / "a" / f"{size}.png").write_bytes(tf.io.encode_png(image).numpy())
    return folder / "c"


def no_arrays(folder: Path) -> Path:
    """Write an .npz file of other arrays."""
    np.savez(folder / "x.npz", weights=np.zeros(3))
    return folder / "x.npz"


def one_hot(folder: Path) -> Path:
    """Write labels that are vectors."""
    np.savez(folder / "x.npz", images=pictures(), labels=np.zeros((COUNT, 10)))
    return folder / "x.npz"


def not_npz(folder: Path) -> Path:
    """Write something else under the name of arrays."""
    (folder / "x.npz").write_bytes(b"hello")
    return folder / "x.npz"


def nothing(folder: Path) -> Path:
    """Make a folder without pictures."""
    (folder / "c").mkdir()
    return folder / "c"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (bad_label, "x.csv, line 3: label 'seven' is no whole number"),
        (short_row, "x.csv, line 2: 3 columns instead of 5"),
        (bright_pixel, "line 1: a pixel is not in 0 to 255"),
        (odd_width, "2 values beside the label are no square image"),
        (broken_picture, "1.png: no readable picture"),
        (two_sizes, "has the shape"),
        (no_arrays, "its arrays are weights"),
        (one_hot, "labels of shape [60, 10]"),
        (not_npz, "not a readable .npz file"),
        (nothing, "no images in class folders"),
        (lambda folder: folder / "gone", "no such file or folder"),
    ],
)
def test_bad_source_is_named_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Any, said: str
) -> None:
    code, line = convert(capsys, make(tmp_path), "--out", tmp_path / "out")
    assert code == 66
    assert said in line
    assert not list((tmp_path / "out").glob("*")) if (tmp_path / "out").exists() else True


def test_wrong_options_end_64(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for options in (
        ["--held_out", "1"],
        ["--shards", "-1"],
        ["--format", "x"],
        ["--image_size", "-1"],
        ["--image_size", "5000"],
    ):
        assert convert(capsys, tmp_path, "--out", tmp_path / "out", *options)[0] == 64
    keep = ["--image_format", "keep", "--image_size", "8"]
    assert convert(capsys, tmp_path, "--out", tmp_path / "out", *keep)[0] == 64


def test_check_names_the_damaged_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_examples(tmp_path / "good", pictures(), [n % 10 for n in range(COUNT)])
    write_examples(tmp_path / "wrong", pictures(), [n % 11 for n in range(COUNT)])
    assert main(["check", str(tmp_path / "good")]) == 0
    assert main(["check", f"{tmp_path}/*"]) == 66
    reports = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [each["ok"] for each in reports] == [True, True, False]
    assert reports[0]["records"] == COUNT
    assert "a label is not in 0 to 9 but 10" in reports[2]["problem"]
