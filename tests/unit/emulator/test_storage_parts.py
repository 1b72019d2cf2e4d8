"""Parts of the Cloud Storage face that need no server."""

from __future__ import annotations

import asyncio
import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tpudash.emulator.storage.bodies import split_related
from tpudash.emulator.storage.errors import StorageError
from tpudash.emulator.storage.listing import after_prefix
from tpudash.emulator.storage.names import check_bucket_name, file_of
from tpudash.emulator.storage.one_request import OneRequest

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=300)


@given(NAMES)
def test_files_stay_inside_and_fit_on_a_disk(name: str) -> None:
    path = file_of(name, 7)
    assert not path.is_absolute()
    for part in path.parts:
        assert part not in {"", ".", ".."}
        assert not part.startswith(".")
        assert "\0" not in part
        assert len(part.encode()) <= 255


@given(NAMES, NAMES)
def test_two_names_are_two_files(first: str, second: str) -> None:
    assert (file_of(first, 7) == file_of(second, 7)) is (first == second)


@given(NAMES, NAMES)
def test_no_file_is_a_folder_of_another(first: str, second: str) -> None:
    assert file_of(first, 7) not in file_of(second, 7).parents


@given(st.binary(min_size=1).filter(lambda prefix: prefix[-1] < 255), st.binary())
def test_after_a_prefix_come_no_names_with_it(prefix: bytes, rest: bytes) -> None:
    assert prefix + rest < after_prefix(prefix)


@pytest.mark.parametrize("name", ["ab", "Upper", "a_b-c.d", "x" * 223, "a..b", "-a-", "a/b"])
def test_names_of_buckets(name: str) -> None:
    if name == "a_b-c.d":
        check_bucket_name(name)
        return
    with pytest.raises(StorageError):
        check_bucket_name(name)


@pytest.mark.parametrize("newline", ["\r\n", "\n"])
@pytest.mark.parametrize("quote", ["", '"', "'"])
@pytest.mark.parametrize("data", ["", "x\r\ny\n", "--not the end\n"])
def test_multipart_uploads(newline: str, quote: str, data: str) -> None:
    lines = ["--==b==", "Content-Type: application/json", "", '{"name": "n"}']
    lines += ["--==b==", "content-type: text/plain", "", data, "--==b==--", ""]
    body = newline.join(lines).encode()
    kind = f"multipart/related; boundary={quote}==b=={quote}"
    assert split_related(kind, body) == ({"name": "n"}, "text/plain", data.encode())


@pytest.mark.parametrize(
    "body", [b"", b"--b\r\n\r\n{}\r\n--b--", b"--b\r\n\r\n[]\r\n--b\r\n\r\n\r\n--b--"]
)
def test_multipart_uploads_that_are_none(body: bytes) -> None:
    with pytest.raises(StorageError):
        split_related("multipart/related; boundary=b", body)


class Recorder(asyncio.Protocol):
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data


@given(st.lists(st.integers(1, 90), max_size=5), st.integers(0, 3))
def test_heads_are_mended_however_they_are_cut(cuts: list[int], early: int) -> None:
    body = b"GET / HTTP/1.1\r\nTransfer-Encoding: identity\r\n\r\n"
    head = b"PUT /x HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n"
    stream = head + b"Connection: keep-alive\r\n\r\n" + body
    edges = sorted({0, *cuts, len(stream)})
    pieces = [stream[a:b] for a, b in itertools.pairwise(edges)]
    recorder = Recorder()
    protocol = OneRequest(recorder, None)  # type: ignore[arg-type]
    for piece in pieces[:early]:
        protocol.data_received(piece)
    protocol.connection_made(asyncio.BaseTransport())
    for piece in pieces[early:]:
        protocol.data_received(piece)
    wanted = (
        b"PUT /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    )
    assert recorder.received == wanted + body
