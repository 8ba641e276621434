"""The hooks that a manifest names: functions of modules, found and installed. Spec: 07 §8.4, 09 §12."""

from __future__ import annotations

import os.path

import msgspec

from harnpy.builtins.agents.tool_runtime import hooks_of
from harnpy.builtins.bridge.callables import python_function
from harnpy.faults import MisuseError
from harnpy.formats.mismatch import mismatch
from harnpy.formats.toml import parse_toml
from harnpy.project import MANIFEST, ManifestError
from harnpy.vm.errors import FAILURES
from harnpy.vm.modules import Modules, load_module
from harnpy.vm.run.backtrace import finish

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.modules import Module
    from harnpy.vm.values import Fn
    from harnpy.vm.vm import Vm

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


class _Manifest(msgspec.Struct, frozen=True):
    """The tables that hooks need."""

    package: _Package = _Package()
    exports: dict[str, str] = {}
    hooks: list[_Hook] = []


class _Refused(Exception):
    """Return why a hook can't be installed, and what to do about it."""

    def __init__(self, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.help = help


def install(vm: Vm, path: str, text: str) -> None:
    """Install the hooks of the manifest at ``path``, whose ``text`` is given. Raises `ManifestError`."""
    try:
        manifest = _read(text)
        for each in manifest.hooks:
            handler = _handler(vm, manifest, os.path.dirname(path), each.handler)
            hooks_of(vm).add(each.event, python_function(vm, handler), each.pattern)
    except (MisuseError, _Refused) as error:
        help_ = error.help if isinstance(error, _Refused) else None
        raise ManifestError(f"failed to install manifest hooks: {error}", path, help_) from error


def _read(text: str) -> _Manifest:
    try:
        tables = parse_toml(text)
    except ValueError as error:
        raise _Refused(str(error)) from None
    try:
        return msgspec.convert(tables, _Manifest)
    except msgspec.ValidationError:
        raise _Refused(mismatch(tables, _Manifest)) from None


def _handler(vm: Vm, manifest: _Manifest, root: str, handler: str) -> Fn:
    name, _, function = handler.rpartition("::")
    if not name or not function:
        raise _Refused(f"invalid hook handler '{handler}': expected <module>::<function>", _SPELLING)
    module = _module(vm, _file(vm, manifest, root, name), root, handler)
    if function not in module.exports:
        help_ = f"declare `pub fn {function}(payload)` in {module.name}"
        raise _Refused(f"hook handler '{function}' is not exported by module '{name}'", help_)
    return module.exports[function]


def _file(vm: Vm, manifest: _Manifest, root: str, name: str) -> str:
    """Return the file or import path that a module's name in a handler stands for."""
    if name == manifest.package.name:
        path = os.path.join(root, _LIBRARY)
        if not vm.unguarded.files.is_file(path):
            text = f"module '{name}' resolves to local {_LIBRARY}, but {path} is missing"
            raise _Refused(text, _OWN_NAME)
        return path
    if name in manifest.exports:
        path = os.path.normpath(os.path.join(root, manifest.exports[name]))
        if not vm.unguarded.files.exists(path):
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
