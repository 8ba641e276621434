"""The version of harnpy, and the command that adds an extra to it. Imports nothing at first."""

from __future__ import annotations

__version__ = "0.1.0"


def install_command(extra: str) -> str:
    """Return the command that installs an extra: from the folder that harnpy came from, or else by its name.

    Installing from a folder writes down its URL (`direct_url.json`, of PyPA's specification).
    """
    import shlex
    import sys

    folder, is_editable = _origin()
    target = f"{folder or 'harnpy'}[{extra}]"
    quoted = f'"{target}"' if sys.platform == "win32" else shlex.quote(target)
    return f"pip install {'-e ' if is_editable else ''}{quoted}"


def _origin() -> tuple[str, bool]:
    """Return the folder that harnpy was installed from, and whether it is editable; "" for an index."""
    import json
    from importlib.metadata import PackageNotFoundError, distribution
    from urllib.parse import urlsplit
    from urllib.request import url2pathname

    try:
        found = json.loads(distribution("harnpy").read_text("direct_url.json") or "{}")
        url, folder = urlsplit(found.get("url", "")), found.get("dir_info")
    except (PackageNotFoundError, OSError, ValueError, AttributeError):
        return "", False
    if url.scheme != "file" or not isinstance(folder, dict):
        return "", False
    return url2pathname(url.path), folder.get("editable") is True
