"""Statements as Python text: loops, branches, `try`, tasks, and what leaves a block.

Spec: 02 §11, §19; 05 §5, §7.1.
"""

from __future__ import annotations

from harnpy.syntax import ast
from harnpy.syntax.ast import walk
from harnpy.syntax.names import pack_names
from harnpy.vm.emit import NIL, POLL, Operand, joined, reading, type_of
from harnpy.vm.emit.bounds import assignments, assume, bounds, forget_assigned
from harnpy.vm.emit.calls import tail_call
from harnpy.vm.emit.emitter import DISCARD, RETURN, around, parameters_text
from harnpy.vm.emit.expressions import condition, deciding
from harnpy.vm.emit.patterns import bind
from harnpy.vm.emit.updates import sums, totals, updated_alone
from harnpy.vm.resolve.kinds import leaves

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.vm.emit import Text
    from harnpy.vm.emit.emitter import Destination, Emitter

# `for`, `while`, `break`, `continue`. Spec: 02 §11.2.
#
# Every turn of a loop checks one flag: that is how deadlines and cancellation reach code that never waits
# (05 §9, §11).


@around
def around_loop(e: Emitter, loop: ast.For | ast.While) -> Iterator[None]:
    """Around a loop: what is known of variables when it begins, and while it runs."""
    nodes = list(walk(loop))
    assigned = assignments(e, nodes)
    forget_assigned(e, assigned)
    declared = [variable for node in nodes for variable in e.unit.kinds.declared.get(id(node), ())]
    with (
        e.looping([*declared, *(variable for _, variable in assigned)]),
        e.leftovers.loop(),
        e.updating(updated_alone(e, loop, assigned)),
        e.summing(sums(e, assigned)),
        e.adding_up(totals(e, nodes, assigned)),
    ):
        yield


def while_(e: Emitter, node: ast.While) -> None:
    with around_loop(e, node):
        while_loop(e, node)


def while_loop(e: Emitter, node: ast.While) -> None:
    signal = e.temp() if e.loops and _may_leave(node.cond) else None
    with e.apart() as lines, e.loop(signal) if signal else e.here():
        cond = deciding(e, node.cond)
    if signal:
        e.line(f"{signal} = 0")
    # Not `while {cond}`: Python 3.11 warms up where a function begins and where it jumps back, and the jump
    # at the end of such a loop doesn't count. So a loop that is entered once would never be specialised.
    with e.suite("while True"):
        e.lines.extend(lines)
        e.line(f"if not {cond}: break")
        e.line(POLL)
        with e.loop():
            block_where(e, node.body, DISCARD, (node.cond, True))
    if signal:
        relay(e, signal)


def _may_leave(cond: ast.Node) -> bool:
    """Return True if a condition may leave the loop around its own: it is not inside that yet."""
    return any(isinstance(each, ast.Break | ast.Continue) for each in walk(cond))


def for_(e: Emitter, node: ast.For) -> None:
    with around_loop(e, node):
        for_loop(e, node)


def for_loop(e: Emitter, node: ast.For) -> None:
    items = iterable(e, node.iterable)
    pattern = node.pattern
    simple = None
    if isinstance(pattern, ast.NamePattern) and pattern.name != "_":
        simple = e.declared_by(pattern, pattern.name)
    slot = reading(simple) if simple else e.temp()
    if simple:
        e.declare_slot(slot.text)
        e.assigned(slot)
    target = e.temp() if simple and simple.in_table else slot
    with e.suite(f"for {target} in {items}"):
        if target is not slot:
            e.line(f"{slot} = {target}")
        e.line(POLL)
        e.open_scope(node)
        if simple:
            e.show_in_box(simple)
        else:
            bind(e, pattern, slot)
        e.known.enter()
        if simple and isinstance(node.iterable, ast.RangeTo):
            first, last = bounds(e, node.iterable.first), bounds(e, node.iterable.last)
            e.known.learn(simple, (first[0], last[1] - node.iterable.exclusive))
        with e.loop():
            e.statements(node.body.statements, DISCARD)
        e.known.leave()


def iterable(e: Emitter, node: ast.Node) -> str:
    """Text for a Python iterable over what ``node`` gives; ranges of ints are Python's own."""
    if isinstance(node, ast.RangeTo):
        first, last = e.operands([node.first, node.last])
        if e.kind(node.first) == "int" and e.kind(node.last) == "int":
            return f"range({first}, {last}{'' if node.exclusive else ' + 1'})"
        return f"iterate_for(range_to({first}, {last}, {node.exclusive}))"
    return e.mark(node, f"iterate_for({e.expr(node)})")


def break_(e: Emitter, node: ast.Break) -> None:
    leave(e, 1, "break")


def continue_(e: Emitter, node: ast.Continue) -> None:
    leave(e, 2, "continue")


def leave(e: Emitter, code: int, word: str) -> None:
    """Inside a loop of ours (`retry`): note what was meant and leave that loop first."""
    signal = e.loops[-1]
    if signal is None:
        e.line(word)
    else:
        e.line(f"{signal} = {code}")
        e.line("break")


def relay(e: Emitter, signal: Operand) -> None:
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


# Branches, `try` in its forms, `?`, `retry`, `deadline`, `mutex`. Spec: 02 §11, §19, 05 §7.1.


def if_(e: Emitter, node: ast.If, dest: Destination) -> None:
    """An `if` chain; an `else if` whose condition needs no lines before it stays flat."""
    if_chain(e, node, deciding(e, node.cond), dest)


def block_where(e: Emitter, block: ast.Block, dest: Destination, *conds: tuple[ast.Node, bool]) -> None:
    """Write a block that runs where the conditions are true, or false."""
    e.known.enter()
    for cond, truth in conds:
        assume(e, cond, truth)
    e.block(block, dest)
    e.known.leave()


def if_chain(e: Emitter, node: ast.If, test: Text, dest: Destination) -> None:
    word = "if"
    passed: list[tuple[ast.Node, bool]] = []
    while True:
        with e.suite(f"{word} {test}"):
            block_where(e, node.then, dest, *passed, (node.cond, True))
        following = node.otherwise
        passed.append((node.cond, False))
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
            block_where(e, following, dest, *passed)
        return
    if dest is not DISCARD:
        with e.suite("else"):
            e.store(dest, NIL)
    if len(passed) == 1 and leaves(node.then):
        assume(e, node.cond, False)


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
            e.line(f"if {type_of(value)} is not EnumValue or {value}.enum != {catch.type.name!r}: raise")
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

    if t1.__class__ is not EnumValue or t1.enum != 'Result': bad_propagation(t1)
    if t1.variant != 'Ok':
     return t1
    t2 = payload(t1)
    """
    atom = e.slot(node.value)
    e.at = node
    e.line(f"if {type_of(atom)} is not EnumValue or {atom}.enum != 'Result': bad_propagation({atom})")
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
    forget_assigned(e, assignments(e, list(walk(node))))
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


# `select`: the arm of the first channel that has an item. Spec: 05 §5.


def select(e: Emitter, node: ast.Select, dest: Destination) -> None:
    arms = [case for case in node.cases if case.kind == "receive"]
    fallback = next((case for case in node.cases if case.kind != "receive"), None)
    waited = [case.source for case in (*arms, fallback) if case and case.source]
    texts = e.operands(waited)
    limit = "None" if fallback is None else "0"
    if len(texts) > len(arms):
        limit = f"select_limit({texts.pop()})"
    which, item = e.temp(), e.temp()
    e.line(f"{which}, {item} = select([{joined(texts)}], {limit})")
    for i, case in enumerate(arms):
        with e.suite(f"{'elif' if i else 'if'} {which} == {i}"):
            arm(e, case, item, dest)
    otherwise(e, fallback, dest, inside=bool(arms))


def arm(e: Emitter, case: ast.SelectCase, item: Operand, dest: Destination) -> None:
    e.open_scope(case)
    if case.name != "_":
        e.assign_new(e.declared_by(case, case.name or ""), item)
    # Let go of the item, so that the arm's variable is its only holder.
    e.line(f"{item} = None")
    e.block(case.body, dest)


def otherwise(e: Emitter, case: ast.SelectCase | None, dest: Destination, inside: bool) -> None:
    """The fallback's body, or nil; ``inside``: in the `else` of the arms."""

    def body() -> None:
        if case is not None:
            e.block(case.body, dest)
        else:
            e.store(dest, NIL)

    if not inside:
        body()
    elif case is not None or dest is not DISCARD:
        with e.suite("else"):
            body()


# Statements without blocks of their own, imports, structs, skills and eval packs.


def return_(e: Emitter, node: ast.Return) -> None:
    if node.value is None:
        e.give(NIL)
    elif not tail_call(e, node.value):
        e.into(node.value, RETURN)


def throw(e: Emitter, node: ast.Throw) -> None:
    text = e.expr(node.value)
    e.at = node
    e.line(f"raise Thrown({text})")


def yield_(e: Emitter, node: ast.Yield | ast.Emit) -> None:
    """Hand an item to the consumer; outside a generator it does nothing (02 §18)."""
    text = e.expr(node.value) if node.value else NIL
    if e.generator and e.deadlines:
        # The consumer is another task (05 §1.1): its clock is another one.
        paused = e.temp()
        text = e.settle(text)
        e.line(f"{paused} = pause_deadlines({e.deadlines[0]})")
        e.line(f"yield {text}")
        e.line(f"resume_deadlines({paused})")
    elif e.generator:
        e.line(f"yield {text}")
    else:
        e.compute(text)


def guard(e: Emitter, node: ast.Guard) -> None:
    with e.suite(f"if not {condition(e, node.cond)}"):
        block_where(e, node.otherwise, DISCARD, (node.cond, False))
    if leaves(node.otherwise):
        assume(e, node.cond, True)


def require(e: Emitter, node: ast.Require) -> None:
    with e.suite(f"if not {condition(e, node.cond)}"):
        text = e.expr(node.message) if node.message else "'require condition failed'"
        e.line(f"raise Thrown({text})")


def struct(e: Emitter, node: ast.StructDecl) -> None:
    """The name is a constructor function too (02 §15.1)."""
    if e.refuses(node, node.name):
        return
    variable = e.declared_by(node, node.name)
    names = tuple(field.name for field in node.fields)
    e.assign_new(variable, f"constructor({node.name!r}, {names!r})")


def skill(e: Emitter, node: ast.SkillDecl) -> None:
    """The name is a registry of one skill, made by `skill_define` (07 §13.1)."""
    if e.refuses(node, node.name):
        return
    values = e.operands([field.value for field in node.fields])
    fields = [f"{field.name!r}: {value}" for field, value in zip(node.fields, values, strict=True)]
    define, empty = e.unit.builtin_function("skill_define"), e.unit.builtin_function("skill_registry")
    text = f"{define}(vm, {empty}(vm), {node.name!r}, {{{', '.join(fields)}}})"
    e.assign_new(e.declared_by(node, node.name), e.mark(node, text))


def import_(e: Emitter, node: ast.Import) -> None:
    """What an import binds are variables like any others; it is run before them all (06 §1)."""
    variables = e.unit.resolution.imported[id(node)]
    wanted = ", ".join(f"{variable.name!r}: ({parameters_text(variable)})" for variable in variables)
    brought = e.temp()
    bring = "bring" if node in e.unit.program.items else "bring_again"
    e.line(f"{brought} = {bring}({node.path!r}, {node.names!r}, {{{wanted}}})")
    for i, variable in enumerate(variables):
        e.assign_new(variable, f"{brought}[{i}]")


def eval_pack(e: Emitter, node: ast.EvalPack) -> None:
    """The name is the manifest of the fields; then the statements run, unless it is only bound (08 §8.7)."""
    if e.refuses(node, node.name):
        return
    given: dict[str, Text] = {"id": repr(node.id or node.name)}
    values = e.atoms([field.value for field in node.fields])
    given |= {field.name: value for field, value in zip(node.fields, values, strict=True)}
    entries = ", ".join(f"{name!r}: {value}" for name, value in given.items())
    normalise = e.unit.builtin_function("eval_pack_manifest")
    manifest = e.declared_by(node, node.name)
    e.assign_new(manifest, e.mark(node, f"{normalise}(vm, {{{entries}}})"))
    if id(node) in e.unit.resolution.bound_only:
        return
    for owner, name in pack_names(node):
        value = given[name] if owner is not node else f"{manifest.python}[{name!r}]"
        e.assign_new(e.declared_by(owner, name), value)
    e.open_scope(node)
    e.statements(node.body, DISCARD)
    if node.summarize is not None:
        e.block(node.summarize, DISCARD)


def nothing(e: Emitter, node: ast.Node) -> None:
    """Declarations that only the checker, or the whole file, looks at."""


def block(e: Emitter, node: ast.Block) -> None:
    e.block(node, DISCARD)
