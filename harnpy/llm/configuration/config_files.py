"""Where the configuration comes from: a providers file over the defaults, harn.toml over both.

Spec: 07 §1.14.
"""

from __future__ import annotations

import os.path
from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.faults import OptionError
from harnpy.llm.configuration.defaults import DEFAULTS
from harnpy.llm.configuration.settings import Settings, convert
from harnpy.project import MANIFEST, upwards
from harnpy.text.toml.reader import parse_toml

if TYPE_CHECKING:
    from collections.abc import Callable

    Env = Callable[[str], str | None]
    Read = Callable[[str], str]

VARIABLE = "HARN_PROVIDERS_CONFIG"
_USUAL_PLACE = (".config", "harn", "providers.toml")

BUILT_IN = "<built-in defaults>"


class Configuration(NamedTuple):
    """``source`` is the providers file; ``capabilities`` the table of that name in ``manifest``."""

    settings: Settings = DEFAULTS
    source: str = BUILT_IN
    capabilities: dict[str, Any] | None = None
    manifest: str = MANIFEST


def load(env: Env, read: Read, directory: str) -> Configuration:
    """The configuration of a program in ``directory``. Raises `OptionError` for a file that is wrong."""
    settings, source = DEFAULTS, BUILT_IN
    path, text = _providers_file(env, read)
    if text is not None:
        settings, source = settings.overlaid(_parse(text, path), path), path
    manifest, table = _manifest(read, directory)
    overlay = convert(table.get("llm", {}), dict[str, Any], manifest, "llm")
    settings = settings.overlaid(overlay, f"{manifest}: llm")
    return Configuration(settings, source, table.get("capabilities"), manifest)


def _providers_file(env: Env, read: Read) -> tuple[str, str | None]:
    """Its path and text; the text is None when there is none."""
    named = env(VARIABLE)
    if named:
        text = _read(read, named)
        if text is None:
            raise OptionError(f"{VARIABLE}: {named}: no such file")
        return named, text
    home = env("HOME") or env("USERPROFILE")
    if not home:
        return "", None
    path = os.path.join(home, *_USUAL_PLACE)
    return path, _read(read, path)


def _manifest(read: Read, directory: str) -> tuple[str, dict[str, Any]]:
    """The nearest harn.toml, at ``directory`` or above it, and what it says."""
    for place in upwards(directory):
        path = os.path.join(place, MANIFEST)
        text = _read(read, path)
        if text is not None:
            return path, _parse(text, path)
    return MANIFEST, {}


def _read(read: Read, path: str) -> str | None:
    """The text of a file, None where there is no file."""
    try:
        return read(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def _parse(text: str, path: str) -> dict[str, Any]:
    try:
        return parse_toml(text)
    except ValueError as error:
        raise OptionError(f"{path}: {error}") from None
