"""The file ``FORMAT``: what a store's version is, and on what file system it lies. Spec: 10 §C6.1."""

from __future__ import annotations

import os

import msgspec

from harnpy.storage.errors import SchemaTooNew, StorageError
from harnpy.storage.jsonl.folders import Folder

_FILE = "FORMAT"
_NAME = "harn-sessions"
#: The newest version of the layout.
_VERSION = 1


class Format(msgspec.Struct):
    """The content of the file. ``folded``: the file system takes ``A`` for ``a``."""

    format: str = ""
    version: int = 0
    folded: bool = False


def opened_format(root: Folder, url: str) -> bool:
    """Return whether capitals must be encoded in names; make a store of a directory that is none.

    Raises `SchemaTooNew` for a store of a newer version, which isn't touched.
    """
    root.make()
    content = root.read(_FILE)
    if content is None:
        found = Format(_NAME, _VERSION, _folds(root))
        root.replace(_FILE, msgspec.json.encode(found) + b"\n")
        return found.folded
    try:
        found = msgspec.json.decode(content, type=Format)
    except msgspec.DecodeError:
        found = Format()
    if found.format != _NAME:
        raise StorageError(f"{url} is not a store: {root.where(_FILE)} is of something else")
    if found.version > _VERSION:
        raise SchemaTooNew(url, found.version, _VERSION)
    return found.folded


def _folds(root: Folder) -> bool:
    """Whether the file system takes capitals for small letters."""
    name = f"probe-{os.urandom(4).hex()}"
    os.close(root.open(name + "-A", os.O_WRONLY | os.O_CREAT))
    try:
        return root.stat(name + "-a") is not None
    finally:
        root.remove(name + "-A")
