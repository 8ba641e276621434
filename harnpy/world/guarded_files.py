"""Files behind a guard: what each function of `Files` does, as effects."""

from __future__ import annotations

from harnpy.world.effects import DELETE, LIST, READ, WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.world.effects import Guard
    from harnpy.world.files import Files


class GuardedFiles:
    """``files``, where ``guard`` is asked before each effect."""

    def __init__(self, files: Files, guard: Guard) -> None:
        self._files = files
        self._require = guard.require

    def cwd(self) -> str:
        return self._files.cwd()

    def read_text(self, path: str, errors: str = "strict") -> str:
        self._require(READ, path)
        return self._files.read_text(path, errors)

    def write_text(self, path: str, text: str, append: bool = False, durable: bool = False) -> None:
        self._require(WRITE, path)
        self._files.write_text(path, text, append, durable)

    def replace_text(self, path: str, text: str, durable: bool = True, mark: str = ".partial") -> None:
        self._require(WRITE, path)
        self._files.replace_text(path, text, durable, mark)

    def rename(self, path: str, new: str) -> None:
        self._require(WRITE, path)
        self._require(WRITE, new)
        self._files.rename(path, new)

    def delete_file(self, path: str, root: str) -> None:
        self._require(DELETE, path)
        self._files.delete_file(path, root)

    def make_directory(self, path: str) -> None:
        self._require(WRITE, path)
        self._files.make_directory(path)

    def list_dir(self, path: str) -> list[str]:
        self._require(LIST, path)
        return self._files.list_dir(path)

    def files_under(self, directory: str) -> list[str]:
        self._require(LIST, directory)
        return self._files.files_under(directory)

    def modified(self, path: str) -> int | None:
        self._require(LIST, path)
        return self._files.modified(path)

    def exists(self, path: str) -> bool:
        self._require(LIST, path)
        return self._files.exists(path)

    def is_dir(self, path: str) -> bool:
        self._require(LIST, path)
        return self._files.is_dir(path)

    def is_file(self, path: str) -> bool:
        self._require(LIST, path)
        return self._files.is_file(path)

    def real_path(self, path: str) -> str:
        return self._files.real_path(path)

    def try_lock(self, path: str) -> Callable[[], object] | None:
        self._require(WRITE, path)
        return self._files.try_lock(path)
