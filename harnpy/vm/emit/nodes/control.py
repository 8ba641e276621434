"""Branches, `try` in its forms, `?`, `retry`, `deadline`, `mutex`. Spec: 02 §11, §19, 05 §7.1."""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.vm.emit.function import DISCARD
from harnpy.vm.emit.nodes.logic import deciding
from harnpy.vm.emit.nodes.loops import relay
from harnpy.vm.emit.operand import NIL, Operand
from harnpy.vm.emit.protocol import POLL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.vm.emit.function import Destination, Emitter
    from harnpy.vm.emit.operand import Operand, Text


def if_(e: Emitter, node: ast.If, dest: Destination) -> None:
    """An `if` chain; an `else if` whose condition needs no lines before it stays flat."""
    if_chain(e, node, deciding(e, node.cond), dest)


def if_chain(e: Emitter, node: ast.If, test: Text, dest: Destination) -> None:
    word = "if"
    while True:
        with e.suite(f"{word} {test}"):
            e.block(node.then, dest)
        following = node.otherwise
        if not isinstance(following, ast.If):
            break
        with e.apart() as lines:
            test = deciding(e, following.cond)
        if lines:
            e.line("else:")
            e.lines.extend(lines)
            with e.indented():
                if_chain(e, following, test, dest)
            return
        node, word = following, "elif"
    if isinstance(following, ast.Block):
        with e.suite("else"):
            e.block(following, dest)
    elif dest is not DISCARD:
        with e.suite("else"):
            e.store(dest, NIL)


def try_(e: Emitter, node: ast.Try, dest: Destination) -> None:
    if node.catch is None and node.finally_ is None:
        result(e, node, dest)
        return
    if node.finally_ is None:
        guarded(e, node, dest)
        return
    with e.suite("try"):
        if node.catch:
            guarded(e, node, dest)
        else:
            protected(e, node.body, dest)
    # An aborted task, or a generator that is not pulled again, runs nothing more.
    with e.suite("finally"), e.suite("if alive()"):
        e.block(node.finally_, DISCARD)


def protected(e: Emitter, body: ast.Block, dest: Destination) -> None:
    with e.protected():
        e.block(body, dest)


def guarded(e: Emitter, node: ast.Try, dest: Destination) -> None:
    """``try { } catch (e: T) { }``; a bare type name selects enum values of that name (02 §19.4)."""
    catch = node.catch
    assert catch
    with e.suite("try"):
        protected(e, node.body, dest)
    error, value = e.temp(), e.temp()
    with e.suite(f"except FAILURES as {error}"):
        e.line(f"{value} = caught({error})")
        if isinstance(catch.type, ast.TypeName) and not catch.type.args:
            e.line(f"if type({value}) is not EnumValue or {value}.enum != {catch.type.name!r}: raise")
        variable = e.unit.resolution.variables.get((id(catch), catch.name or ""))
        e.open_scope(catch)
        if variable:
            e.assign_new(variable, value)
        # The handler's own errors go outwards, but a `finally` is still to run after it.
        protected(e, catch.body, dest) if node.finally_ else e.block(catch.body, dest)


def result(e: Emitter, node: ast.Try, dest: Destination) -> None:
    """``try { }`` alone is a `Result` (02 §19.4). ``x = try { f() }``:

    try:
     x_1 = f()
     x_1 = as_result(x_1)
    except FAILURES as t1:
     x_1 = err(caught(t1))
    """
    slot = dest if isinstance(dest, Operand) else e.temp()
    error = e.temp()
    with e.suite("try"):
        protected(e, node.body, slot)
        e.line(f"{slot} = as_result({slot})")
        e.assigned(slot)
    with e.suite(f"except FAILURES as {error}"):
        e.assign(slot, f"err(caught({error}))")
    e.store(dest, slot)


def try_star(e: Emitter, node: ast.TryStar, into: Operand | None) -> Text:
    """An error passes on unchanged, which is what errors do anyway (02 §19.4)."""
    return e.expr(node.value, into)


def propagate(e: Emitter, node: ast.Propagate, into: Operand | None) -> Text:
    """``value?``: an `Err` leaves the function at once (02 §19.5).

    if type(t1) is not EnumValue or t1.enum != 'Result': bad_propagation(t1)
    if t1.variant != 'Ok':
     return t1
    t2 = payload(t1)
    """
    atom = e.slot(node.value)
    e.at = node
    e.line(f"if type({atom}) is not EnumValue or {atom}.enum != 'Result': bad_propagation({atom})")
    with e.suite(f"if {atom}.variant != 'Ok'"):
        e.give(atom)
    slot = e.temp()
    e.line(f"{slot} = payload({atom})")
    return slot


def retry(e: Emitter, node: ast.Retry, dest: Destination) -> None:
    """Up to n attempts; the last error is thrown again (05 §10). ``retry n { if f() { break } }`` in a loop:

    t1 = retry_count(n_1)
    for t4 in range(1, t1 + 1):
     if signal.pending: poll()
     t3 = 0
     try:
      if f():
       t3 = 1
       break
      break
     except FAILURES as t2:
      if t4 == t1: raise again(t2)
    if t3 == 1: break
    if t3 == 2: continue
    """
    last, error, signal = e.temp(), e.temp(), e.temp()
    attempt = e.temp()
    e.line(f"{last} = retry_count({e.expr(node.count)})")
    with e.suite(f"for {attempt} in range(1, {last} + 1)"):
        e.line(POLL)
        e.line(f"{signal} = 0")
        with e.suite("try"):
            with e.loop(signal), e.protected():
                e.statements(node.body.statements, DISCARD)
            e.line("break")
        with e.suite(f"except FAILURES as {error}"):
            e.line(f"if {attempt} == {last}: raise again({error})")
    relay(e, signal)
    if dest is not DISCARD:
        e.store(dest, NIL)


def deadline(e: Emitter, node: ast.Deadline, dest: Destination) -> None:
    """Runs in place, under a clock (05 §9)."""
    token, error = e.temp(), e.temp()
    e.line(f"{token} = deadline_begin({e.expr(node.duration)})")
    with e.suite("try"), e.under_deadline(token):
        protected(e, node.body, dest)
    with e.suite(f"except Interrupted as {error}"):
        e.line(f"raise {error}.outside({token}) from None")
    with e.suite("finally"):
        e.line(f"deadline_end({token})")


def mutex(e: Emitter, node: ast.Mutex) -> None:
    """Runs in place, while no other task is in one; it is left free however the block ends (05 §7.1)."""
    token = e.temp()
    e.at = node
    e.line(f"{token} = mutex_begin()")
    with e.suite("try"):
        protected(e, node.body, DISCARD)
    with e.suite("finally"):
        e.line(f"mutex_end({token})")
