"""The errors of stores, as one tree with stable codes. Spec: 10 §C11.

    StorageError [store]
    ├─ VersionConflict [version_conflict]   .stream, .expected, .found
    ├─ StreamExists [exists]                .stream
    ├─ LeaseHeld [lease_held]               .key, .owner, .expires_at
    ├─ LeaseLost [lease_lost]               .key, .owner
    ├─ StoreBusy [busy]  StoreFull [full]  StoreClosed [closed]  StoreUnreachable [unreachable]
    ├─ NoStore [store]
    ├─ SchemaTooNew [schema]
    ├─ Unsupported [unsupported]
    └─ CorruptLog [corrupt]                 .path, .line, .offset, .reason

Each says in a sentence what was wrong, where, and what to do. All of them pickle, and none names a password.
"""

from __future__ import annotations

from typing import ClassVar

from harnpy.faults import Fault


class StorageError(Fault):
    """A store could not do what was asked. Nothing has changed."""

    code: ClassVar[str] = "store"

    def message_from(self, builtin: str) -> str:
        return f"{builtin}: {self.message}"

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[StorageError], args: tuple[object, ...], state: dict[str, object]) -> StorageError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class VersionConflict(StorageError):
    """Somebody else wrote first: the stream isn't at the version that the caller saw last."""

    code = "version_conflict"

    def __init__(self, stream: str, expected: int, found: int) -> None:
        super().__init__(f"Version conflict in stream '{stream}': expected {expected}, found {found}")
        self.stream = stream
        self.expected = expected
        self.found = found


class StreamExists(StorageError):
    """A branch would overwrite a stream."""

    code = "exists"

    def __init__(self, stream: str) -> None:
        super().__init__(f"Stream already exists: '{stream}'")
        self.stream = stream


class LeaseHeld(StorageError):
    """Somebody else has the lease. ``expires_at`` is seconds since 1970."""

    code = "lease_held"

    def __init__(self, key: str, owner: str, expires_at: float) -> None:
        from harnpy.world.clock import rfc3339

        super().__init__(f"{key} is held by {owner} until {rfc3339(expires_at)}")
        self.key = key
        self.owner = owner
        self.expires_at = expires_at


class LeaseLost(StorageError):
    """Somebody else has the lease by now, or it was let go; nothing was written."""

    code = "lease_lost"

    def __init__(self, key: str, owner: str | None = None) -> None:
        super().__init__(f"lease on {key} was lost" + (f" to {owner}" if owner else ": it was let go"))
        self.key = key
        self.owner = owner


class StoreBusy(StorageError):
    """Somebody else kept the store locked for longer than the timeout."""

    code = "busy"

    def __init__(self, url: str, seconds: float) -> None:
        super().__init__(
            f"{url} was locked for {seconds:g} s by another process: try again, or raise ?timeout="
        )


class StoreFull(StorageError):
    """The medium has no room. What was stored before is untouched."""

    code = "full"

    def __init__(self, where: str) -> None:
        super().__init__(f"no space left for {where}: free some and try again; nothing was written")


class StoreClosed(StorageError):
    """A call on a store after its `close`."""

    code = "closed"

    def __init__(self, url: str) -> None:
        super().__init__(f"{url} is closed")


class StoreUnreachable(StorageError):
    """The file or server can't be opened."""

    code = "unreachable"

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"cannot open {url}: {reason}")


class SchemaTooNew(StorageError):
    """The store was written by a newer harnpy. It was not touched."""

    code = "schema"

    def __init__(self, url: str, found: int, known: int) -> None:
        super().__init__(
            f"{url} has format {found}, and this harnpy knows formats up to {known}: update harnpy"
        )
        self.found = found
        self.known = known


class NoStore(StorageError):
    """There is no store at the URL, and none was made; with ``reason``, there isn't any more."""

    def __init__(self, url: str, reason: str = "") -> None:
        super().__init__(f"there is no store at {url}" + (f" any more: {reason}" if reason else ""))


class Unsupported(StorageError):
    """The store can't do that at all."""

    code = "unsupported"


class AppendLost(StorageError):
    """Earlier appends to the stream were acknowledged and couldn't be written: it ends before them."""


class CorruptLog(StorageError):
    """The log can't be read, and not only at its end, where a crash would leave it so.

    ``line`` and ``offset`` (bytes) are None where a store has no lines.
    """

    code = "corrupt"

    def __init__(self, path: str, reason: str, line: int | None = None, offset: int | None = None) -> None:
        where = "" if line is None else f"line {line}: "
        super().__init__(f"Invalid session file [{path}]: {where}{reason}")
        self.path = path
        self.reason = reason
        self.line = line
        self.offset = offset
