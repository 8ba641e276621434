"""Finding and reading the file of a template path. Spec: 04 §23.1, 06 §8."""

from __future__ import annotations

import os.path

from harnpy.formats.manifest import Manifest
from harnpy.project import MANIFEST, project_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.world.files import Files


_NO_TEXT = "stream did not contain valid UTF-8"


class AssetError(Exception):
    """A path that names no file, or a file that can't be read."""


def is_anchored(path: str) -> bool:
    """Return whether the path starts at the project root: ``@/rel`` or ``@alias/rel``."""
    return path.startswith("@") and "/" in path


def resolve(files: Files, path: str, directory: str) -> str:
    """Return the file that ``path`` names in a module or template of ``directory``. Raises `AssetError`."""
    if not is_anchored(path):
        return os.path.normpath(os.path.join(directory, path))
    alias, _, rest = path[1:].partition("/")
    root = project_root(directory, files)
    if root is None:
        raise AssetError(
            f"package-root prompt path '{path}' has no project root: no {MANIFEST} found above {directory}"
        )
    if not _is_inside(rest):
        kind = "asset" if alias else "project-root asset"
        raise AssetError(f"invalid {kind} path '{path}'")
    return os.path.normpath(os.path.join(root, _alias_target(files, root, alias) if alias else "", rest))


def read(files: Files, path: str) -> str:
    """Return the text of a file. Raises `AssetError`."""
    try:
        return files.read_text(path)
    except OSError as error:
        raise _unreadable(error) from None
    except UnicodeDecodeError:
        raise AssetError(_NO_TEXT) from None
    except ValueError:
        raise AssetError("file name contained an unexpected NUL byte") from None


def _unreadable(error: OSError) -> AssetError:
    return AssetError(f"{error.strerror} (os error {error.errno})")


def _is_inside(path: str) -> bool:
    """Return whether a path written with slashes stays below its start."""
    return bool(path) and not path.startswith("/") and "\\" not in path and ".." not in path.split("/")


def _alias_target(files: Files, root: str, alias: str) -> str:
    manifest = os.path.join(root, MANIFEST)
    try:
        roots = Manifest(files, root).tables.get("asset_roots", {})
    except UnicodeDecodeError:
        raise AssetError(_NO_TEXT) from None
    except OSError as error:
        raise _unreadable(error) from None
    except ValueError as error:
        raise AssetError(f"{manifest}: {error}") from None
    target = roots.get(alias) if isinstance(roots, dict) else None
    if not isinstance(target, str):
        raise AssetError(f"asset alias '{alias}' is not defined in [asset_roots] of {manifest}")
    if not _is_inside(target):
        raise AssetError(
            f"asset alias '{alias}' resolves to an unsafe path '{target}' "
            "(must be a project-relative directory without `..` segments)"
        )
    return target
