"""`sqlite:<file>`: the store that needs no server, shared by the processes of one machine. Spec: 10 §C6.2."""

from harnpy.storage.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
