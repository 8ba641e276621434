"""`builtin` declares a verb of `std/session`: it reads the arguments and reports the errors. Spec: 10 §C9.

    @builtin("__session_fork(id: string, opts?: dict) -> string", "id?: string, at?: int, label?: string")
    def fork(call: Call, id: str, opts: Dict) -> str: ...

The first text is the signature, the second one lists the options that ``opts`` may hold beside ``store``. A
verb receives checked arguments: the options that were given, and nil for a missing optional argument.
"""

from __future__ import annotations

from functools import cached_property, wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

from harnpy.builtins.bridge.callables import python_function
from harnpy.builtins.bridge.contexts import under_rules_of_now
from harnpy.builtins.sessions.service import Durable, durable_of
from harnpy.builtins.sessions.session_values import errors_told, info_value, invalid
from harnpy.formats.options import Option
from harnpy.formats.suggestions import hint
from harnpy.session.errors import SessionBusy
from harnpy.vm.declare import Signature
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import VmError
from harnpy.vm.values import Builtin, Duration, Fn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from harnpy.formats.options import OptionTable
    from harnpy.session.info import SessionInfo
    from harnpy.session.log import Session
    from harnpy.session.resize_policy import ResizePolicy
    from harnpy.session.runtime import SessionRuntime
    from harnpy.vm.declare import Parameter
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

    Dict = dict[str, Any]

T = TypeVar("T")

_OPTIONS: Final = ("opts", "filter")
#: ``true`` is the configured store, as it is for `agent_session_open`.
_EVERYWHERE: Final = "store?: string | bool"
#: The names of types: their words in messages, and the Python types.
_TYPES: Final[Mapping[str, tuple[str, tuple[type, ...]]]] = {
    "string": ("a string", (str,)),
    "int": ("an int", (int,)),
    "float": ("a number", (int, float)),
    "bool": ("a bool", (bool,)),
    "list": ("a list", (list,)),
    "dict": ("a dict", (dict,)),
    "bytes": ("bytes", (bytes,)),
    "closure": ("a function", (Fn, Builtin)),
    "duration": ("a duration", (Duration,)),
    "nil": ("nil", (type(None),)),
}


class Call:
    """One call of a verb: the Vm's `Durable`, and the store that the options name."""

    __slots__ = ("durable", "name", "store", "vm")

    def __init__(self, vm: Vm, name: str, store: str | None) -> None:
        self.vm = vm
        self.name = name
        self.store = store
        self.durable: Durable = durable_of(vm)

    @property
    def runtime(self) -> SessionRuntime:
        return self.durable.runtime(self.store)

    def session(self, id: str) -> Session:
        """Return the session as the store has it now, or the one that a hook or an action sees.

        Raises `SessionNotFound`.
        """
        inside = self.durable.handles.get(id)
        return self.runtime.get(id) if inside is None else inside

    def info(self, id: str) -> SessionInfo:
        """Return what lists show of a session. Raises `SessionNotFound`."""
        inside = self.durable.handles.get(id)
        return self.runtime.info(id) if inside is None else inside.info

    def shown(self, info: SessionInfo) -> Dict:
        """Return an info as the program gets it."""
        return info_value(info, self.durable.listening.facts(info.id))

    def policies(self, id: str | None) -> list[ResizePolicy]:
        """Return the resize policy of a session; without one those of all sessions of the program."""
        if id is None:
            return self.durable.policies.all()
        inside = self.durable.handles.get(id)
        return [self.durable.policies.own(self.runtime.get(id if inside is None else inside.id))]

    def alone(self, id: str, act: Callable[[], T]) -> T:
        """Return what ``act()`` returns, while nobody else works on the session."""
        inside = self.durable.handles.get(id)
        if inside is not None:
            raise SessionBusy(
                f"session '{inside.id}' is busy: this runs inside one of its actions", inside.id
            )
        return act()


class Verb:
    """What is declared of a verb."""

    def __init__(self, signature: str, options: str, others: OptionTable | None) -> None:
        self._texts = signature, options
        self._others = others
        self.name = signature.partition("(")[0].removeprefix("__")

    @cached_property
    def _parameters(self) -> Sequence[Parameter]:
        return Signature(self._texts[0]).parameters

    @cached_property
    def kept(self) -> str:
        """The argument that a session is to keep: the last one that isn't options."""
        names = [each.name for each in self._parameters]
        return next((name for name in reversed(names) if name not in _OPTIONS), "opts")

    def session_of(self, given: Sequence[Value]) -> str | None:
        """Return the id of the session that a call is about."""
        is_about_one = bool(given) and self._parameters[0].name == "id" and type(given[0]) is str
        return given[0] if is_about_one else None

    def read(self, given: Sequence[Value], id: str | None) -> list[Value]:
        """Return the arguments, checked. Raises what `invalid` returns."""
        read = []
        for parameter, value in zip(self._parameters, given, strict=True):
            _check(f"{self.name}: `{parameter.name}`", parameter, value, id)
            if parameter.name in _OPTIONS:
                value = self.read_options(value or {}, id)
            read.append(value)
        return read

    @property
    def place_of_options(self) -> int | None:
        """Which argument holds the options, counted from 0; None without any."""
        names = [each.name for each in self._parameters]
        return next((place for place, name in enumerate(names) if name in _OPTIONS), None)

    @property
    def options(self) -> Sequence[Option]:
        """The options that it takes."""
        known = Signature(f"options({_EVERYWHERE}, {self._texts[1]})").parameters
        others = () if self._others is None else self._others.own.values()
        return [*(Option(each.name, each.type, "", "") for each in known), *others]

    def read_options(self, given: Dict, id: str | None) -> Dict:
        """Return the options, checked. Raises what `invalid` returns."""
        return read_options(self.name, given, f"{_EVERYWHERE}, {self._texts[1]}", id, self._others)

    def call(self, vm: Vm, function: Callable[..., Value], given: Sequence[Value]) -> Value:
        id = self.session_of(given)
        arguments = self.read(given, id)
        has_options = bool(arguments) and self._parameters[-1].name in _OPTIONS
        store = arguments[-1].pop("store", None) if has_options else None
        if store is False:
            raise invalid(f"{self.name}: `store: false` is no store: name one, or leave it out", id)
        store = None if store is True else store
        with errors_told(self.name, self.kept, id):
            return function(Call(vm, self.name, store), *arguments)


def read_options(
    caller: str, given: Dict, known: str, id: str | None, others: OptionTable | None = None
) -> Dict:
    """Return the options that are given, without those that are nil; ``known`` says which there are, and of
    which type, ``others`` which are read elsewhere. Raises what `invalid` returns."""
    options = {option.name: option for option in Signature(f"options({known})").parameters}
    names = [*options, *(() if others is None else others.own)]
    for key in given:
        if key not in names:
            raise invalid(f'{caller}: unknown option "{key}" ({hint(key, names)})', id)
    for key, option in options.items():
        _check(f"{caller}: option `{key}`", option, given.get(key), id)
    return {key: value for key, value in given.items() if value is not None}


def _check(what: str, parameter: Parameter, value: Value, id: str | None) -> None:
    """Raise what `invalid` returns for a value of another type."""
    allowed = parameter.type.split(" | ")
    if allowed == ["any"]:
        return
    if parameter.optional:
        allowed.append("nil")
    if not any(type(value) in _TYPES[name][1] for name in allowed):
        words = " or ".join(_TYPES[name][0] for name in allowed)
        raise invalid(f"{what} must be {words}", id)


def builtin(
    signature: str, options: str = "", others: OptionTable | None = None
) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    """Declare a verb ``(call, *arguments)``; ``options`` are those of its ``opts``, like parameters, besides
    ``others``."""
    verb = Verb(signature, options, others)

    def attach(function: Callable[..., Value]) -> Callable[..., Value]:
        @wraps(function)
        def called(vm: Vm, *given: Value) -> Value:
            return verb.call(vm, function, given)

        called.verb = verb  # type: ignore[attr-defined]
        return declare(_unconverted(signature), family="durable_sessions")(called)

    return attach


def verb_of(function: Callable[..., Value]) -> Verb | None:
    """Return what is declared of a verb, None for the function of another builtin."""
    verb: Verb | None = getattr(function, "verb", None)
    return verb


def _unconverted(signature: str) -> str:
    """Return the signature without types: what is given arrives as it is, and is checked by the verb."""
    found = Signature(signature)
    parameters = ", ".join(f"{each.name}?: any" for each in found.parameters)
    return f"{found.name}({parameters}) -> {found.returns}"


# Functions of a program that sessions call. Spec: 10 §C9; rules in force: 07 §8.


def callback(call: Call, fn: Value) -> Callable[..., Any]:
    """Return a function of the program for later: it obeys the rules that are in force now, too."""
    return under_rules_of_now(call.vm, python_function(call.vm, fn))


def listener(call: Call, fn: Value) -> Callable[..., Any]:
    """Return a `callback` whose failures are warnings."""
    function, warn = callback(call, fn), call.vm.world.warn

    def listen(name: str, data: dict[str, Any]) -> None:
        try:
            function(name, data)
        except VmError as error:
            warn("session.listener", str(error))

    return listen
