"""Directories of the repository that ship with the package: `stdlib`, `spec`."""

from __future__ import annotations

import os

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_REPOSITORY = os.path.dirname(_PACKAGE)


def read(name: str, file: str, in_checkout: str | None = None) -> str:
    """Return the text of a file in the directory `name`."""
    with open(os.path.join(directory(name, in_checkout), file), encoding="utf-8") as opened:
        return opened.read()


def directory(name: str, in_checkout: str | None = None) -> str:
    """Return the directory `name` in an installed package, `in_checkout` (or `name`) in a checkout."""
    installed = os.path.join(_PACKAGE, name)
    return installed if os.path.isdir(installed) else os.path.join(_REPOSITORY, in_checkout or name)
