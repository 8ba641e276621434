"""Texts that are read as if they were files: what an editor shows, or what a service received."""

from __future__ import annotations

import os.path
from collections.abc import Mapping

from harnpy.world.files import RealFiles


class TextFiles(RealFiles):
    """``texts`` by path; with ``disk``, what isn't among them is looked for in the file system."""

    def __init__(self, texts: Mapping[str, str], disk: bool) -> None:
        self.texts = {os.path.abspath(path): text for path, text in texts.items()}
        self._disk = disk

    def read_text(self, path: str, errors: str = "strict") -> str:
        text = self.texts.get(os.path.abspath(path))
        if text is not None:
            return text
        if not self._disk:
            raise FileNotFoundError(2, "No such file or directory", path)
        return super().read_text(path, errors)

    def exists(self, path: str) -> bool:
        return self.is_file(path) or self.is_dir(path)

    def is_file(self, path: str) -> bool:
        return os.path.abspath(path) in self.texts or (self._disk and super().is_file(path))

    def is_dir(self, path: str) -> bool:
        inside = os.path.join(os.path.abspath(path), "")
        return any(each.startswith(inside) for each in self.texts) or (self._disk and super().is_dir(path))

    def real_path(self, path: str) -> str:
        return super().real_path(path) if self._disk else os.path.abspath(path)
