"""Sessions of resumable uploads, which outlive the emulator's process: a file for each."""

from __future__ import annotations

import json
import logging
import secrets
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from tpudash.emulator.storage.content import Content
from tpudash.emulator.storage.errors import StorageError
from tpudash.emulator.storage.objects import Conditions, StoredObject

if TYPE_CHECKING:
    from pathlib import Path

    from tpudash.emulator.storage.store import BucketStore

_log = logging.getLogger(__name__)
_MOST = 1_000


@dataclass(slots=True)
class Session:
    """One resumable upload."""

    bucket: str
    name: str
    fields: dict[str, Any]
    check: Conditions
    content: Content
    result: StoredObject | None = None
    """The object, once it is complete: its writer may ask again."""


class Sessions:
    """The sessions that were begun and are not forgotten."""

    def __init__(self, store: BucketStore) -> None:
        self._store = store
        self._folder = store.uploads
        self._sessions: dict[str, Session] = {}
        for path in sorted(self._folder.glob("*.json"), key=lambda one: one.stat().st_mtime):
            self._take_up(path)
        known = {session.content.path for session in self._sessions.values()}
        for part in self._folder.glob("part-*"):
            if part not in known:
                part.unlink(missing_ok=True)

    def _take_up(self, path: Path) -> None:
        """Go on with a session of an earlier process; one that can't be read is dropped."""
        try:
            kept = json.loads(path.read_bytes())
            bucket, name = str(kept["bucket"]), str(kept["name"])
            part = "" if kept["done"] else str(kept["part"])
            session = Session(
                bucket=bucket,
                name=name,
                fields=dict(kept["fields"]),
                check=Conditions(**kept["check"]),
                content=Content(self._folder, part),
                result=self._store.find(bucket, name) if kept["done"] else None,
            )
        except (OSError, ValueError, KeyError, TypeError, StorageError) as error:
            _log.warning("upload session %s can't be taken up: %s", path.name, error)
            path.unlink(missing_ok=True)
            return
        if kept["done"]:
            session.content.discard()
        self._sessions[path.stem] = session

    def open(self, session: Session) -> str:
        """Keep a new session and return its id; of too many, the oldest is forgotten."""
        if len(self._sessions) >= _MOST:
            self.forget(next(iter(self._sessions)))
        upload_id = secrets.token_urlsafe(24)
        self._sessions[upload_id] = session
        self.save(upload_id)
        return upload_id

    def save(self, upload_id: str) -> None:
        """Write down what a later process needs to go on with a session."""
        session = self._sessions[upload_id]
        kept = {
            "bucket": session.bucket,
            "name": session.name,
            "fields": session.fields,
            "check": asdict(session.check),
            "part": session.content.path.name,
            "done": session.result is not None,
        }
        fresh = self._folder / f"{upload_id}.new"
        fresh.write_text(json.dumps(kept))
        fresh.replace(self._folder / f"{upload_id}.json")

    def get(self, upload_id: str) -> Session:
        """Return a session.

        Raises:
            StorageError: 404 for an id that is not known.
        """
        session = self._sessions.get(upload_id)
        if session is None:
            raise StorageError(404, "notFound", "There is no such upload session.")
        return session

    def forget(self, upload_id: str) -> None:
        """Forget a session and what arrived in it.

        Raises:
            StorageError: 404 for an id that is not known.
        """
        self.get(upload_id).content.discard()
        del self._sessions[upload_id]
        (self._folder / f"{upload_id}.json").unlink(missing_ok=True)
