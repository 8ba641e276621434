"""The hooks that a manifest names: functions of modules, found and installed. Spec: 07 §8.4, 09 §12."""

from __future__ import annotations

import os.path
from contextlib import suppress

import msgspec

from harnpy.builtins.agents.tool_runtime import hooks_of
from harnpy.builtins.bridge.callables import python_function
from harnpy.faults import MisuseError
from harnpy.formats.dicts import read_toml
from harnpy.formats.mismatch import mismatch
from harnpy.project import MANIFEST, ManifestError
from harnpy.vm.errors import FAILURES
from harnpy.vm.modules import Modules, load_module
from harnpy.vm.run.backtrace import finish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from harnpy.formats.manifest import Manifest
    from harnpy.vm.modules import Module
    from harnpy.vm.values import Fn
    from harnpy.vm.vm import Vm
    from harnpy.world.files import Files

_LIBRARY = "lib.harn"
_SPELLING = (
    f'a handler is written "<module>::<function>": "rules::check" is `check` of rules.harn beside {MANIFEST}'
)
_OWN_NAME = (
    f"a module called like the package is {_LIBRARY} beside {MANIFEST}: create it, or name another one"
)
_EXPORTED = f"correct its path under [exports], which starts at the directory of {MANIFEST}"


class _Package(msgspec.Struct, frozen=True):
    name: str | None = None


class _Hook(msgspec.Struct, frozen=True):
    event: str
    handler: str
    pattern: str = "*"


class _Tables(msgspec.Struct, frozen=True):
    """The tables that hooks need."""

    package: _Package = _Package()
    exports: dict[str, str] = {}
    hooks: list[_Hook] = []


class _Refused(Exception):
    """Return why a hook can't be installed, and what to do about it."""

    def __init__(self, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.help = help


def install(vm: Vm, manifest: Manifest) -> None:
    """Install the hooks of a manifest. Raises `ManifestError`."""
    try:
        tables = _read(manifest.tables)
        for each in tables.hooks:
            handler = _handler(vm, tables, os.path.dirname(manifest.path), each.handler)
            hooks_of(vm).add(each.event, python_function(vm, handler), each.pattern)
    except (MisuseError, _Refused) as error:
        help_ = error.help if isinstance(error, _Refused) else None
        raise ManifestError(f"failed to install manifest hooks: {error}", manifest.path, help_) from error


def hook_modules(files: Files, root: str) -> list[str]:
    """Return the modules that the hooks of a manifest name, trusted or not, each as an import in its
    directory would; none of what `install` refuses."""
    try:
        text = files.read_text(os.path.join(root, MANIFEST))
        tables = _read(read_toml(text)) if "hooks" in text or "\\" in text else _Tables()
    except (OSError, ValueError, _Refused):
        return []
    found = []
    for each in tables.hooks:
        with suppress(_Refused):
            found.append(_file(files, tables, root, each.handler.rpartition("::")[0]))
    return found


def _read(tables: Mapping[str, Any]) -> _Tables:
    try:
        return msgspec.convert(tables, _Tables)
    except msgspec.ValidationError:
        raise _Refused(mismatch(tables, _Tables)) from None


def _handler(vm: Vm, tables: _Tables, root: str, handler: str) -> Fn:
    name, _, function = handler.rpartition("::")
    if not name or not function:
        raise _Refused(f"invalid hook handler '{handler}': expected <module>::<function>", _SPELLING)
    module = _module(vm, _file(vm.unguarded.files, tables, root, name), root, handler)
    if function not in module.exports:
        help_ = f"declare `pub fn {function}(payload)` in {module.name}"
        raise _Refused(f"hook handler '{function}' is not exported by module '{name}'", help_)
    return module.exports[function]


def _file(files: Files, tables: _Tables, root: str, name: str) -> str:
    """Return the file or import path that a module's name in a handler stands for."""
    if name == tables.package.name:
        path = os.path.join(root, _LIBRARY)
        if not files.is_file(path):
            text = f"module '{name}' resolves to local {_LIBRARY}, but {path} is missing"
            raise _Refused(text, _OWN_NAME)
        return path
    if name in tables.exports:
        path = os.path.normpath(os.path.join(root, tables.exports[name]))
        if not files.exists(path):
            raise _Refused(f"export '{name}' resolves to {path}, but that path does not exist", _EXPORTED)
        return path
    return name


def _module(vm: Vm, path: str, root: str, handler: str) -> Module:
    """Return the module, loaded: as one of the program, which may import it too."""
    modules = vm.state(Modules)
    try:
        module = modules.open(vm, path, root)
        load_module(vm, module)
    except FAILURES as error:
        failure = finish(error)
        at = "".join(f"; it fails at {top.file}:{top.line}:{top.column}" for top in failure.frames[:1])
        raise _Refused(failure.text, f"the handler '{handler}' needs {path} to load{at}") from failure
    return module
