"""What ships with the package from other directories of the repository: the library, the specification.

The library is a directory of the package. The specification, which only help reads, is a zip archive, which
takes a quarter.
"""

from __future__ import annotations

import os

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_REPOSITORY = os.path.dirname(_PACKAGE)
_SPECIFICATION = os.path.join(_PACKAGE, "spec.zip")
_IN_CHECKOUT = os.path.join(_REPOSITORY, "docs", "spec")


def library() -> str:
    """Return the directory of the modules `std/*`."""
    installed = os.path.join(_PACKAGE, "stdlib")
    return installed if os.path.isdir(installed) else os.path.join(_REPOSITORY, "stdlib")


def specification() -> list[str]:
    """Return the names of the specification's files, sorted."""
    if not os.path.isfile(_SPECIFICATION):
        return sorted(os.listdir(_IN_CHECKOUT))
    from zipfile import ZipFile

    with ZipFile(_SPECIFICATION) as packed:
        return sorted(packed.namelist())


def read_specification(file: str) -> str:
    """Return the text of a file of the specification."""
    if not os.path.isfile(_SPECIFICATION):
        with open(os.path.join(_IN_CHECKOUT, file), encoding="utf-8") as opened:
            return opened.read()
    from zipfile import ZipFile

    with ZipFile(_SPECIFICATION) as packed:
        return packed.read(file).decode()
