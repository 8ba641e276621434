"""The Vm's session store, and how builtins reach it."""

from __future__ import annotations

from harnpy.builtins.bridge.contexts import context_of
from harnpy.builtins.language.text.json_writer import write, write_pretty
from harnpy.faults import Interruption
from harnpy.session.effects import Effects
from harnpy.session.registry import SessionRegistry
from harnpy.text.json.reader import read
from harnpy.vm.errors import Interrupted
from harnpy.vm.values.objects import Builtin, Fn, display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


def _make_store(vm: Vm) -> SessionRegistry:
    """The session store of a Vm: its effects are the host's, its stack the running task's."""
    world = vm.world

    def warn(topic: str, message: str) -> None:
        world.streams.write_err(f"warning: {topic}: {message}\n")

    effects = Effects(
        now=world.clock.now,
        new_id=world.ids.new,
        show=display,
        warn=warn,
        cwd=world.files.cwd,
        env=world.environment.get,
        to_json=_to_json,
        parse_json=read,
        read_text=world.files.read_text,
        write_text=world.files.write_text,
        make_directory=world.files.make_directory,
        rename=world.files.rename,
        exists=world.files.exists,
        as_data=_as_data,
    )
    return SessionRegistry(effects=effects, stack=lambda: context_of(vm).sessions)


def store_of(vm: Vm) -> SessionRegistry:
    """The live sessions of a Vm."""
    return vm.service(SessionRegistry, lambda: _make_store(vm))


def with_callables(vm: Vm, options: Value, *keys: str) -> Value:
    """The options with the functions under ``keys`` as Python ones; what is no function stays."""
    if type(options) is not dict:
        return options
    return {**options, **{key: _callable(vm, options[key]) for key in keys if key in options}}


def callables_within(vm: Vm, value: Value) -> Value:
    """``value`` with Python functions for the functions anywhere in its dicts and lists."""
    if type(value) is dict:
        return {key: callables_within(vm, item) for key, item in value.items()}
    if type(value) is list:
        return [callables_within(vm, item) for item in value]
    return _callable(vm, value)


def _callable(vm: Vm, value: Value) -> Any:
    return python_function(vm, value) if type(value) in (Fn, Builtin) else value


class _PythonFunction:
    """A function of Harn that Python can call. It is shown as what it is: options may want its text."""

    __slots__ = ("_function", "_vm")

    def __init__(self, vm: Vm, function: Value) -> None:
        self._vm = vm
        self._function = function

    def __call__(self, *args: Value) -> Value:
        try:
            return self._vm.call(self._function, *args)
        except Interrupted as error:
            raise Interruption(str(error)) from error

    @property
    def type_name(self) -> str:
        return type_name(self._function)

    def display(self) -> str:
        return display(self._function)


def python_function(vm: Vm, function: Value) -> Callable[..., Any]:
    """A function of Harn for a domain package to call."""
    return _PythonFunction(vm, function)


def _as_data(value: Value) -> Any:
    from harnpy.builtins.agents.event_log import as_data

    return as_data(value)


def _to_json(value: Value, pretty: bool = False) -> str:
    return write_pretty(value) if pretty else write(value)
