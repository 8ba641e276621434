"""The Harn files that `check`, `lint` and `fmt` work on: which, their manifests, replacing them.

Spec: 03 §1, 09 §4.1-4.3, §12.
"""

from __future__ import annotations

import errno
import os
import os.path
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from os import walk
from pathlib import Path

from harnpy import Vm
from harnpy.cli.console import complain
from harnpy.formats.manifest import Manifests
from harnpy.project import leads_out
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import SyntaxFault
from harnpy.syntax.parser import parse_cached
from harnpy.vm.modules import Modules
from harnpy.world import World
from harnpy.world.files import RealFiles

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


def manifests() -> Manifests:
    """Return the manifests that one command meets; each is read once, and complained of once."""
    return Manifests(World(), lambda problem: complain(f"warning: {problem}"))


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
