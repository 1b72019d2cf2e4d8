"""Counts the TCP payload of processes, where the kernel tells.

Linux keeps byte counters per TCP socket and hands them out over netlink (`sock_diag(7)`, struct
tcp_info). Sockets are told apart by inode and assigned to processes through /proc/PID/fd. What a
socket carried between the last look and its end is not seen. Other systems offer no such counter
without privileges, and nothing is reported there.
"""

from __future__ import annotations

import os
import socket
import struct
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

Traffic: TypeAlias = tuple[int, int]
"""Bytes received and sent."""

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLMSG_ERROR, _NLMSG_DONE = 2, 3
_REQUEST_DUMP = 0x301
_INET_DIAG_INFO = 2
_CONNECTED_STATES = 0xFFF & ~(1 << 10)
_HEADER = struct.Struct("=IHHII")
_DIAG_REQUEST = struct.Struct("=BBBBI48x")
_MESSAGE_BYTES = 72
_INODE_OFFSET = 68
_BYTES_ACKED_OFFSET = 120
_BYTES_RECEIVED_OFFSET = 128


class SocketCounters:
    """Keeps, per worker, how far each of its sockets' counters had come."""

    def __init__(self) -> None:
        self._by_inode: dict[int, Traffic] | None = None
        self._before: dict[int, dict[int, Traffic]] = {}

    def refresh(self) -> None:
        """Read the counters of all TCP sockets."""
        self._by_inode = None
        if sys.platform.startswith("linux"):
            with suppress(OSError):
                self._by_inode = dict(_read_counters())

    def take(self, worker: int, pids: list[int]) -> Traffic | None:
        """Return the traffic of a worker's processes since the last call, or None if unknown."""
        if self._by_inode is None:
            return None
        current = {
            inode: self._by_inode[inode]
            for pid in pids
            for inode in _socket_inodes(pid)
            if inode in self._by_inode
        }
        before = self._before.get(worker, {})
        self._before[worker] = current
        received = sent = 0
        for inode, (now_received, now_sent) in current.items():
            old_received, old_sent = before.get(inode, (0, 0))
            received += max(0, now_received - old_received)
            sent += max(0, now_sent - old_sent)
        return received, sent


def _socket_inodes(pid: int) -> Iterator[int]:
    with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as entries:
        for entry in entries:
            with suppress(OSError):
                target = os.readlink(entry.path)  # noqa: PTH115  (there are thousands)
                if target.startswith("socket:["):
                    yield int(target[8:-1])


def _read_counters() -> Iterator[tuple[int, Traffic]]:
    """Yield (inode, traffic) of every TCP socket that is or was connected."""
    for family in (socket.AF_INET, socket.AF_INET6):
        body = _DIAG_REQUEST.pack(
            family, socket.IPPROTO_TCP, 1 << (_INET_DIAG_INFO - 1), 0, _CONNECTED_STATES
        )
        header = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0)
        with socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, _NETLINK_SOCK_DIAG) as netlink:
            netlink.settimeout(1.0)
            netlink.send(header + body)
            yield from _read_dump(netlink)


def _read_dump(netlink: socket.socket) -> Iterator[tuple[int, Traffic]]:
    while True:
        data = netlink.recv(262_144)
        offset = 0
        while offset + _HEADER.size <= len(data):
            length, kind, _, _, _ = _HEADER.unpack_from(data, offset)
            if kind in {_NLMSG_DONE, _NLMSG_ERROR} or length < _HEADER.size:
                return
            message = data[offset + _HEADER.size : offset + length]
            (inode,) = struct.unpack_from("=I", message, _INODE_OFFSET)
            info = _attribute(message[_MESSAGE_BYTES:], _INET_DIAG_INFO)
            if inode and len(info) >= _BYTES_RECEIVED_OFFSET + 8:
                (acked,) = struct.unpack_from("=Q", info, _BYTES_ACKED_OFFSET)
                (received,) = struct.unpack_from("=Q", info, _BYTES_RECEIVED_OFFSET)
                yield inode, (received, acked)
            offset += (length + 3) & ~3


def _attribute(data: bytes, wanted: int) -> bytes:
    """Return the payload of one netlink attribute, empty if it is not there."""
    offset = 0
    while offset + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, offset)
        if length < 4:
            break
        if kind == wanted:
            return data[offset + 4 : offset + length]
        offset += (length + 3) & ~3
    return b""
