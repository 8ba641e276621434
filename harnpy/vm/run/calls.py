"""What generated code calls by name: calling, tail calls, names found late, results, errors.

Backtraces look through the frames of this module. `Calls` belongs to one Vm; the module functions are pure.
Spec: 02 §7.4, §9, §19.
"""

from __future__ import annotations

import sys

from harnpy.vm.errors import (
    FAILURES,
    OVERFLOW,
    CalledOff,
    Leaving,
    PlainFault,
    RuntimeFault,
    Thrown,
    TypeFault,
)
from harnpy.vm.values import Builtin, EnumValue, Fn, Generator, Struct, display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Never

    from harnpy.vm.errors import VmError
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

#: Stand for the value of a variable that has none yet, and for an argument that was not passed.
UNSET = Builtin("unset", lambda vm: None, 0)
MISSING = Builtin("missing", lambda vm: None, 0)


class TaskAborted(Leaving):
    """Unwinds a task that is being aborted: none of the program's own code runs (05 §2)."""


class Tail:
    """A tail call in the making, which a function returns to have another one called."""

    __slots__ = ("args", "body")
    body: Callable[..., Value]
    args: Sequence[Value]


def tool_handler(fn: Fn, by_name: bool) -> Fn:
    """Return the handler of a `tool` declaration, which says how agents call it."""
    fn.by_name = by_name
    return fn


class Calls:
    """The call helpers of one Vm."""

    def __init__(self, vm: Vm) -> None:
        self.vm = vm
        self.TAIL = Tail()

    def call(self, callee: Value, depth: int, args: Sequence[Value]) -> Value:
        """Call any callable value."""
        if type(callee) is Fn:
            if callee.arity == len(args):
                return callee.call(depth, *args)
            return callee.call(depth, *fit(callee, args))
        if type(callee) is Builtin:
            return callee.call(self.vm, *args[: callee.max_args])
        raise TypeFault(f"Cannot call {display(callee)}")

    def call_builtin(self, builtin: Builtin, args: Sequence[Value]) -> Value:
        return builtin.call(self.vm, *args[: builtin.max_args])

    def call_named(
        self, value: Value, name: str, depth: int, args: Sequence[Value], others: Sequence[Value] = ()
    ) -> Value:
        """Call what a variable holds, or the first callable that its name means beyond it (02 §7.4)."""
        for candidate in (value, *others):
            if type(candidate) is Fn or type(candidate) is Builtin:
                return self.call(candidate, depth, args)
        return self.undefined_builtin(name, args)

    call_late = call_named

    def call_dynamic(self, names: dict[str, Value], name: str, depth: int, args: Sequence[Value]) -> Value:
        return self.call_named(names.get(name), name, depth, args)

    def call_from_frames(self, name: str, depth: int, args: Sequence[Value]) -> Value:
        """Call a function that is bound in a calling frame, not in an enclosing scope (02 §7.4)."""
        return self.call_named(in_calling_frames(name), name, depth, args)

    def pipe(self, value: Value, target: Value, depth: int) -> Value:
        if type(target) is Fn or type(target) is Builtin:
            return self.call(target, depth, (value,))
        raise TypeFault(f"cannot pipe into {type_name(target)}")

    # --- tail calls -------------------------------------------------------------------------------

    def tail(self, fn: Fn, args: Sequence[Value]) -> Tail:
        """Return a tail call; the nearest `bouncing` function makes it."""
        self.TAIL.body = fn.body
        self.TAIL.args = args if fn.arity == len(args) else fit(fn, args)
        return self.TAIL

    def tail_named(
        self, value: Value, name: str, depth: int, args: Sequence[Value], others: Sequence[Value]
    ) -> Value:
        if type(value) is Fn:
            return self.tail(value, args)
        return self.call_named(value, name, depth, args, others)

    def tail_pipe(self, value: Value, depth: int, args: Sequence[Value]) -> Value:
        return self.tail(value, args) if type(value) is Fn else self.pipe(args[0], value, depth)

    def bouncing(
        self, name: str | None, params: tuple[str, ...], body: Callable[..., Value], rest: bool
    ) -> Fn:
        """A function that may return a tail call: calling it makes that one too, and so on."""
        if self.vm.traceable and name is not None:
            body = self._recorded(name, body)
        return Fn(name, params, body, rest, self.trampoline(body))

    def named(self, name: str, params: tuple[str, ...], body: Callable[..., Value], rest: bool = False) -> Fn:
        """A function that a program declares, and that returns no tail call."""
        return Fn(name, params, self._recorded(name, body) if self.vm.traceable else body, rest)

    def _recorded(self, name: str, body: Callable[..., Value]) -> Callable[..., Value]:
        """``body`` with its calls in spans while spans are recorded (04 §25)."""
        from harnpy.vm.run.spans import recorded_function

        return recorded_function(self, name, body)

    def trampoline(self, body: Callable[..., Value]) -> Callable[..., Value]:
        following = self.TAIL

        def bounce(depth: int, *args: Value) -> Value:
            result = body(depth, *args)
            while result is following:  # each function looks at the deadline itself
                target, args = following.body, following.args
                result = target(depth, args[0]) if len(args) == 1 else target(depth, *args)
            return result

        return bounce

    def generator(self, kind: type[Generator], items: Iterable[Value]) -> Generator:
        """A generator or stream over what a body yields."""
        handle = kind(items)
        handle.wait = self.wait_a_little
        return handle

    def wait_a_little(self) -> None:
        self.vm.tasks.sleep(0.001)

    def fill(self, shell: Fn, body: Callable[..., Value], bouncing: bool) -> None:
        """Complete a function that was named before its declaration."""
        if self.vm.traceable and shell.name is not None:
            body = self._recorded(shell.name, body)
        shell.body = body
        shell.call = self.trampoline(body) if bouncing else body

    def hasten(self, fn: Fn, body: Callable[..., Value], bouncing: bool) -> None:
        """Give ``fn`` a body for arguments of certain kinds, unless its calls are to be recorded."""
        fn.inlinable = not (self.vm.traceable or self.vm.every_call)
        if self.vm.traceable:
            fn.fast, fn.fast_body = fn.call, fn.body
        else:
            fn.fast, fn.fast_body = self.trampoline(body) if bouncing else body, body

    def shell(self, name: str, params: tuple[str, ...], rest: bool) -> Fn:
        """A function whose declaration has not been executed yet."""

        def undeclared(depth: int, *args: Value) -> Value:
            return self.undefined_builtin(name, args)

        fn = Fn(name, params, undeclared, rest)
        fn.fast = fn.fast_body = undeclared
        fn.inlinable = False
        return fn

    # --- names that mean nothing ------------------------------------------------------------------

    def undefined_builtin(self, name: str, args: Sequence[Value]) -> Never:
        raise self._meaningless(f"Undefined builtin: {name}", name, self.vm.builtins.names())

    def undefined_variable(self, name: str, visible: Sequence[str] = ()) -> Never:
        from harnpy.syntax.habits import giver_of

        giver = giver_of(name)
        if giver and not self.vm.suggest_name(name, visible):
            raise RuntimeFault(f"Undefined variable: {name} ({giver})")
        candidates = [*visible, *self.vm.global_names(), *self.vm.builtins.names()]
        raise self._meaningless(f"Undefined variable: {name}", name, candidates if name != "_" else ())

    def undefined_target(self, name: str, visible: Sequence[str]) -> Never:
        """Refuse an assignment to a name that nothing binds (02 §8)."""
        hint = self.vm.suggest(name, visible) or f"var {name} = …"
        raise RuntimeFault(f"Undefined variable: {name} (did you mean `{hint}`?)")

    def _meaningless(self, text: str, name: str, candidates: Iterable[str]) -> VmError:
        absence = self.vm.builtins.absence(name)
        if absence:
            return RuntimeFault(f"{text} ({absence})")
        hint = self.vm.suggest_name(name, candidates)
        return RuntimeFault(f"{text} (did you mean `{hint}`?)") if hint else PlainFault(text)

    def read_late(self, value: Value, name: str) -> Value:
        """A closure may see only callables that were bound after it was made (02 §7.4)."""
        if value is not UNSET and (type(value) is Fn or type(value) is Builtin):
            return value
        return self.undefined_variable(name)

    def read_dynamic(self, names: dict[str, Value], name: str) -> Value:
        return self.read_late(names.get(name, UNSET), name)


def fit(fn: Fn, args: Sequence[Value]) -> Sequence[Value]:
    """Arguments as ``fn``'s Python function takes them: no surplus, the rest as a list."""
    if not fn.rest:
        return args[: fn.arity]
    plain = len(fn.params) - 1
    return [*args[:plain], *[MISSING] * (plain - len(args)), list(args[plain:])]


def in_calling_frames(name: str) -> Value:
    """The callable that the nearest calling Harn function binds to ``name``, or None."""
    from harnpy.vm.run import backtrace

    home = None
    for distance, function in enumerate(backtrace.calling(sys._getframe(1))):
        module = backtrace.unit_of(function).module
        if not distance:
            home = module
        # A module sees no functions but its own and what it imports (06 §4).
        found = backtrace.function_in(function, name) if module == home else None
        if found is not None:
            return found
    return None


def overflow() -> Never:
    raise PlainFault(OVERFLOW)


def immutable(name: str) -> Never:
    raise PlainFault(f"Cannot assign to immutable binding: {name}")


def redeclared(name: str) -> Never:
    hint = "(use 'var' for mutable bindings)"
    raise RuntimeFault(f"Cannot redeclare immutable variable '{name}' in the same scope {hint}")


# --- Results, structs, enums ----------------------------------------------------------------------------


def err(value: Value) -> EnumValue:
    return EnumValue("Result", "Err", (value,))


def as_result(value: Value) -> EnumValue:
    """``Ok(value)``, or the value itself when it is a Result already."""
    if type(value) is EnumValue and value.enum == "Result":
        return value
    return EnumValue("Result", "Ok", (value,))


def payload(value: EnumValue) -> Value:
    return value.fields[0] if value.fields else None


def field(value: EnumValue, i: int) -> Value:
    return value.fields[i] if i < len(value.fields) else None


def bad_propagation(value: Value) -> Never:
    raise TypeFault(f"? operator requires a Result value, got {type_name(value)}")


def make_struct(name: str, declared: tuple[str, ...], fields: dict[str, Value]) -> Struct:
    return Struct(name, {key: fields[key] for key in declared if key in fields})


def construct(name: str, declared: tuple[str, ...], given: Value) -> Struct:
    """``Name(dict)``: a non-dict gives an instance without fields (02 §15.1)."""
    return make_struct(name, declared, given if type(given) is dict else {})


def constructor(name: str, declared: tuple[str, ...]) -> Fn:
    """The constructor function that a struct's name stands for."""
    return Fn(name, ("fields",), lambda depth, given=None: construct(name, declared, given))


# --- errors and leaving ---------------------------------------------------------------------------------


def alive() -> bool:
    """Return True if `finally` and `defer` blocks may run: not in what is being aborted or thrown away."""
    error = sys.exc_info()[1]
    if isinstance(error, Leaving):
        return error.grace is not None and error.grace.takes(1)
    return not isinstance(error, GeneratorExit)


def again(error: BaseException) -> Thrown:
    """The error to throw once more after the last attempt of a `retry` (05 §10)."""
    from harnpy.vm.run.backtrace import caught

    return error if isinstance(error, Thrown) else Thrown(caught(error))


def retry_count(value: Value) -> int:
    return max(value, 1) if type(value) is int else 1


def run_defers(blocks: list[Callable[[], None]]) -> None:
    """Run deferred blocks, last registered first; an error in one does not stop the others."""
    failure: BaseException | None = None
    while blocks:
        try:
            blocks.pop()()
        except FAILURES as error:
            failure = failure or error
        except CalledOff as leaving:
            if not alive():
                raise
            failure = leaving
    if failure:
        raise failure
