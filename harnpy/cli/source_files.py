"""The Harn files that `check`, `lint` and `fmt` work on: which, their manifests' settings, replacing them.

Spec: 03 §1, 09 §4.1-4.3, §12.
"""

from __future__ import annotations

import errno
import os
import os.path
import stat
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from os import walk
from pathlib import Path
from typing import Any

from harnpy import Vm
from harnpy.check.lint.rules import RULES
from harnpy.check.lint.settings import ALIASES, COMPLEXITY, Settings
from harnpy.cli.console import complain
from harnpy.formats.manifest import Manifest, manifest_of
from harnpy.formats.suggestions import hint
from harnpy.project import MANIFEST, leads_out, upwards
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import SyntaxFault
from harnpy.syntax.parser import parse_cached
from harnpy.vm.modules import Modules
from harnpy.world import World
from harnpy.world.files import RealFiles, plain_reason

# The files that a command is to look at: those it is given, and those in the directories. Spec: 09 §4.1.


def program_files(targets: Iterable[Path]) -> list[Path]:
    """The files among ``targets``, and the programs below the directories among them; sorted, each once."""
    return sorted({file for target in targets for file in _files(target)})


def _files(target: Path) -> Iterator[Path]:
    if not target.is_dir():
        yield target
        return
    root = os.path.realpath(target)
    for folder, _, names in walk(target):
        for file in (Path(folder, name) for name in names if name.endswith(".harn")):
            # Nobody has named what a link in the directory leads to outside.
            if not file.is_symlink() or not leads_out(RealFiles(), root, os.path.realpath(file)):
                yield file


# Which names of the files at hand others of them import: those are in use, whoever declares them.


def consumed_names(vm: Vm, programs: Mapping[Path, str]) -> dict[Path, set[str]]:
    """By the real paths of modules, the names that the ``programs``, texts by file, import one by one."""
    consumed: dict[Path, set[str]] = {}
    for file, source in programs.items():
        try:
            items = parse_cached(source).items
        except SyntaxFault:
            continue
        for node in items:
            if isinstance(node, ast.Import) and node.names is not None:
                module = vm.state(Modules).look(vm, node.path, str(file.absolute().parent))
                if module is not None:
                    consumed.setdefault(Path(module.name), set()).update(node.names)
    return consumed


# The tables of `harn.toml` for `check`, `lint`, `fmt` and `--workspace`. Spec: 09 §12.


#: How far up the search for a manifest goes, in directories.
_LEVELS = 16


def nearest_manifest(path: str) -> str | None:
    """The `harn.toml` for a file or directory: the nearest one upwards, not beyond the repository."""
    start = os.path.abspath(path)
    for directory in islice(upwards(start if os.path.isdir(start) else os.path.dirname(start)), _LEVELS):
        manifest = os.path.join(directory, MANIFEST)
        if os.path.isfile(manifest):
            return manifest
        if os.path.exists(os.path.join(directory, ".git")):
            return None
    return None


class Manifests:
    """The manifests that one command has met; each is read once, and complained of once."""

    def __init__(self) -> None:
        self._read: dict[str, Manifest | None] = {}

    def table(self, name: str, path: str, required: bool = False) -> dict[str, Any]:
        """The table ``[name]`` that holds for a file or directory, its keys in snake case; often empty.

        Raises `ManifestError` if a ``required`` one isn't trusted.
        """
        nearest = nearest_manifest(path)
        if nearest is None:
            return {}
        if nearest not in self._read:
            self._read[nearest] = _manifest(nearest)
        manifest = self._read[nearest]
        refusal = None if manifest is None or not required else manifest.refusal(name)
        if refusal is not None:
            raise refusal
        table = {} if manifest is None else manifest.tables.get(name)
        return (
            {key.replace("-", "_"): value for key, value in table.items()} if isinstance(table, dict) else {}
        )


def _manifest(path: str) -> Manifest | None:
    """A manifest; None, and a warning, when it can't be read."""
    try:
        return manifest_of(World(), os.path.dirname(path))
    except (OSError, ValueError) as error:
        reason = plain_reason(error)
        complain(f"warning: failed to parse {path}: {reason}")
        return None


# What manifests and the command line ask of the linter. Spec: 03 §1, 09 §12.


#: What a rule may be called.
NAMES = (*(rule.id for rule in RULES), *ALIASES)

#: By key of the manifest, its default and what it has to be.
_KEYS: dict[str, tuple[Any, str]] = {
    "disabled": ([], "a list of rules"),
    "disable_rules": ([], "a list of rules"),
    "require_file_header": (False, "true or false"),
    "complexity_threshold": (COMPLEXITY, "an integer"),
}


class LintSettings:
    """The settings of each file: what the command line asks for, on top of the manifest's."""

    def __init__(
        self,
        *,
        enabled: Collection[str] = (),
        selected: Collection[str] = (),
        disabled: Collection[str] = (),
    ) -> None:
        self._enabled = enabled
        self._selected = selected
        self._disabled = disabled
        self._manifests = Manifests()
        self._complained: set[str] = set()

    def of(self, file: Path) -> Settings:
        """The settings that hold for a file."""
        disabled = self._value(file, "lint", "disabled") + self._value(file, "check", "disable_rules")
        for name in disabled:
            if name not in NAMES:
                what = f"harn.toml disables the lint rule `{name}`, which isn't one"
                self._warn(f"{what}; {hint(name, NAMES)}")
        header = ("require-file-header",) if self._value(file, "lint", "require_file_header") else ()
        return Settings(
            disabled=(*disabled, *self._disabled),
            enabled=(*header, *self._enabled),
            selected=self._selected,
            complexity=self._value(file, "lint", "complexity_threshold"),
        )

    def _value(self, file: Path, table: str, key: str) -> Any:
        """Return a value of the manifest, or the default where it has none that could be meant."""
        default, wanted = _KEYS[key]
        value = self._manifests.table(table, str(file)).get(key, default)
        if type(value) is type(default) and (
            not isinstance(value, list) or all(isinstance(one, str) for one in value)
        ):
            return value
        self._warn(f"[{table}] of harn.toml: `{key}` must be {wanted}, not {value!r}")
        return default

    def _warn(self, message: str) -> None:
        """Say it once, however many files it holds for."""
        if message not in self._complained:
            self._complained.add(message)
            complain(f"warning: {message}")

    def strict(self, file: Path) -> bool:
        """Return whether warnings fail the command."""
        return self._manifests.table("check", str(file)).get("strict") is True


# A new text for a file, in one step. Spec: 09 §4.2–4.3.


def replace_text(path: str, text: str) -> None:
    """Give a file another text; whoever reads it sees the old one or the new one, also after a crash.

    Its mode and, where that is allowed, its owner stay; a link goes on pointing to it. Raises OSError for a
    file that can't be written, which is also one that nobody may write to, whoever asks.
    """
    target = os.path.realpath(path)
    before = os.stat(target)
    if not before.st_mode & (stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH) or not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
    handle, partial = tempfile.mkstemp(prefix=".harnpy-", dir=os.path.dirname(target))
    try:
        with open(handle, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(partial, stat.S_IMODE(before.st_mode))
        with suppress(PermissionError):
            os.chown(partial, before.st_uid, before.st_gid)
        os.replace(partial, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(partial)
        raise
