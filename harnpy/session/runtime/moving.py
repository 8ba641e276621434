"""The part of a `SessionRuntime` that writes sessions to files, and reads them. Spec: 10 §C7, §C17."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harnpy.session.runtime.live import LiveSession
    from harnpy.session.transfer.directories import ExportReport, ImportReport
    from harnpy.storage.contract import Store
    from harnpy.world import World


class Moving:
    """Export and import: `harnpy.session.transfer` for the sessions of one runtime."""

    store: Store
    _world: World

    def get(self, id: str) -> LiveSession:
        raise NotImplementedError

    def export(self, id: str, format: str = "jsonl", path: str | None = None, *, strict: bool = False) -> str:
        """Return a session as the text of a file, and write it to ``path``.

        ``strict``: raise `TransferError` when the format can't hold everything of it.
        """
        from harnpy.session.transfer import files

        return files.export(self.get(id), format, path, strict=strict)

    def import_(
        self,
        path_or_text: str,
        format: str = "auto",
        *,
        id: str | None = None,
        on_conflict: str = "error",
        strict: bool = False,
    ) -> LiveSession | None:
        """Make a session of a file, or of a text whose ``format`` is named; return None if it was skipped.

        ``on_conflict`` says what happens when its id is taken: ``error``, ``skip`` or ``rename``. Raises
        `TransferError`, `SessionExists` and OSError; nothing is stored then.
        """
        from harnpy.session.transfer import files

        found = files.import_(
            path_or_text, self.store, format, id=id, on_conflict=on_conflict, strict=strict, world=self._world
        )
        return None if found is None else self.get(found.id)

    def export_dir(self, directory: str, format: str = "jsonl", *, strict: bool = False) -> ExportReport:
        """Write all sessions to a directory, a file each."""
        from harnpy.session.transfer import directories

        return directories.export_dir(self.store, directory, format, strict=strict, world=self._world)

    def import_dir(
        self, directory: str, format: str = "auto", *, on_conflict: str = "error", strict: bool = False
    ) -> ImportReport:
        """Make sessions of a directory's files, parents before those that were forked from them."""
        from harnpy.session.transfer import directories

        return directories.import_dir(
            self.store, directory, format, on_conflict=on_conflict, strict=strict, world=self._world
        )

    def save_ancestry(self, record: dict[str, Any]) -> bool:
        """Note where a session stands whose log is elsewhere: ``session_id``, ``created_at``, and of a fork
        ``parent_session_id``, ``branch_label``, ``fork_reason``, ``depth``.

        Return False if there is a session of that id: it stays as it is. Raises `InvalidArgument`.
        """
        from harnpy.session.transfer.canto.ancestry import save_ancestry

        return save_ancestry(record, self.store, self._world)
