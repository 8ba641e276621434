"""Branches, `try` in its forms, `?`, `retry`, `deadline`. Spec: 02 §11, §19."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.function import DISCARD, RETURN
from harnpy.vm.emit.logic import condition
from harnpy.vm.emit.operand import NIL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.emit.function import Destination, Emitter


def if_(e: Emitter, node: ast.If, dest: Destination) -> None:
    """An `if` chain; an `else if` whose condition needs no lines before it stays flat."""
    word, current = "if", node
    test = condition(e, node.cond)
    closing = 0
    while True:
        branch = current
        e.suite(f"{word} {test}", lambda branch=branch: e.block(branch.then, dest))  # type: ignore[misc]
        following = current.otherwise
        if not isinstance(following, ast.If):
            break
        current = following
        test, lines = e.apart(lambda following=following: condition(e, following.cond))  # type: ignore[misc]
        word = "elif"
        if lines:
            e.line("else:")
            e.lines.extend(lines)
            e.indent += 1
            closing += 1
            word = "if"
    if isinstance(following, ast.Block):
        e.suite("else", lambda: e.block(following, dest))
    elif dest != DISCARD:
        e.suite("else", lambda: e.store(dest, NIL))
    e.indent -= closing


def try_(e: Emitter, node: ast.Try, dest: Destination) -> None:
    if node.catch is None and node.finally_ is None:
        result(e, node, dest)
        return
    if node.finally_ is None:
        guarded(e, node, dest)
        return
    finally_ = node.finally_
    e.suite("try", lambda: guarded(e, node, dest) if node.catch else protected(e, node.body, dest))
    e.line("finally:")
    e.indent += 1
    # An aborted task, or a generator that is not pulled again, runs nothing more.
    e.suite("if alive()", lambda: e.block(finally_, DISCARD))
    e.indent -= 1


def protected(e: Emitter, body: ast.Block, dest: Destination) -> None:
    """A block without tail calls: something is still to be done after its calls."""
    e.protected += 1
    e.block(body, dest)
    e.protected -= 1


def guarded(e: Emitter, node: ast.Try, dest: Destination) -> None:
    """``try { } catch (e: T) { }``; a bare type name selects enum values of that name (02 §19.4)."""
    catch = node.catch
    assert catch
    e.suite("try", lambda: protected(e, node.body, dest))
    error, value = e.temp(), e.temp()

    def handler() -> None:
        e.line(f"{value} = caught({error})")
        if isinstance(catch.type, ast.TypeName) and not catch.type.args:
            e.line(f"if type({value}) is not EnumValue or {value}.enum != {catch.type.name!r}: raise")
        variable = e.unit.resolution.variables.get((id(catch), catch.name or ""))
        e.open_scope(catch)
        if variable:
            e.assign_new(variable, value)
        # The handler's own errors go outwards, but a `finally` is still to run after it.
        protected(e, catch.body, dest) if node.finally_ else e.block(catch.body, dest)

    e.suite(f"except FAILURES as {error}", handler)


def result(e: Emitter, node: ast.Try, dest: Destination) -> None:
    """``try { }`` alone is a `Result` (02 §19.4)."""
    slot = e.temp() if dest in (RETURN, DISCARD) else dest
    error = e.temp()

    def body() -> None:
        protected(e, node.body, slot)
        e.line(f"{slot} = as_result({slot})")
        e.assigned(slot)

    e.suite("try", body)
    e.suite(f"except FAILURES as {error}", lambda: e.assign(slot, f"err(caught({error}))"))
    e.store(dest, slot)


def try_star(e: Emitter, node: ast.TryStar, into: str | None) -> str:
    """An error passes on unchanged, which is what errors do anyway (02 §19.4)."""
    return e.expr(node.value, into)


def propagate(e: Emitter, node: ast.Propagate, into: str | None) -> str:
    """``value?``: an `Err` leaves the function at once (02 §19.5)."""
    atom = e.settle(e.expr(node.value))
    e.at = node
    e.line(f"if type({atom}) is not EnumValue or {atom}.enum != 'Result': bad_propagation({atom})")
    e.suite(f"if {atom}.variant != 'Ok'", lambda: e.give(atom))
    slot = e.temp()
    e.line(f"{slot} = payload({atom})")
    return slot


def retry(e: Emitter, node: ast.Retry, dest: Destination) -> None:
    """Up to n attempts; the last error is thrown again (05 §10)."""
    last, error, signal = e.temp(), e.temp(), e.temp()
    attempt = e.temp()
    e.line(f"{last} = retry_count({e.expr(node.count)})")

    def body() -> None:
        e.loops.append(signal)
        e.protected += 1
        e.statements(node.body.statements, DISCARD)
        e.protected -= 1
        e.loops.pop()
        e.line("break")

    def attempts() -> None:
        e.line(f"{signal} = 0")
        e.suite("try", body)
        e.suite(
            f"except FAILURES as {error}",
            lambda: e.line(f"if {attempt} == {last}: raise again({error})"),
        )

    e.suite(f"for {attempt} in range(1, {last} + 1)", attempts)
    relay(e, signal)
    if dest != DISCARD:
        e.store(dest, NIL)


def relay(e: Emitter, signal: str) -> None:
    """After a loop of ours: pass on a `break` or `continue` that was meant for a Harn loop."""
    if e.loops:
        outer = e.loops[-1]
        if outer is None:
            e.line(f"if {signal} == 1: break")
            e.line(f"if {signal} == 2: continue")
        else:
            e.line(f"if {signal}:")
            e.line(f" {outer} = {signal}")
            e.line(" break")


def deadline(e: Emitter, node: ast.Deadline, dest: Destination) -> None:
    """Runs in place, under a clock (05 §9)."""
    token, error = e.temp(), e.temp()
    e.line(f"{token} = deadline_begin({e.expr(node.duration)})")
    e.deadlines.append(token)
    e.suite("try", lambda: protected(e, node.body, dest))
    e.deadlines.pop()
    e.suite(f"except Interrupted as {error}", lambda: e.line(f"raise {error}.outside({token}) from None"))
    e.suite("finally", lambda: e.line(f"deadline_end({token})"))
