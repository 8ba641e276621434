"""Lint rules about what other languages do and Harn doesn't: programs that run and do something else.

docs/surprises.md has a program for each. Spec: 02 §2, §4, §14; 03 §15; 04.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from harnpy.check.lint.subject import Remark, Subject, remark
from harnpy.check.lint.values import kind, origin
from harnpy.formats.suggestions import nearest_at_run_time
from harnpy.syntax import ast
from harnpy.syntax.diagnostic import Edit

# Fields, items and keys that surely aren't there. Spec: 02 §14, 03 §15.


#: Operators one of whose sides may be nil: somebody has thought of that.
_ASKING = frozenset(["??", "==", "!=", "&&", "||", "in", "not in"])


def absent_field(subject: Subject) -> Iterator[Remark]:
    """Fields of dicts and lists that are written down, and that never change."""
    for node in subject.each(ast.Member, ast.Index):
        if node.optional or _is_asked(subject, node):
            continue
        text = _absent(subject, node)
        if text is not None:
            yield remark(node, f"`{subject.text(node)}` is nil: {text[0]}", help=text[1])


def _is_asked(subject: Subject, node: ast.Node) -> bool:
    """Return True if an expression only asks whether something is there."""
    above = subject.parent(node)
    if isinstance(above, ast.Binary):
        return above.op in _ASKING
    if isinstance(above, ast.If | ast.Ternary | ast.While | ast.Guard | ast.Require):
        return above.cond is node
    if isinstance(above, ast.Assign):
        return above.target is node
    return isinstance(above, ast.Unary)


def _absent(subject: Subject, node: ast.Member | ast.Index) -> tuple[str, str | None] | None:
    """Why a field or an item is missing, and what to write instead."""
    value = origin(subject, node.object)
    if isinstance(node, ast.Index):
        at = _number(node.index)
        if isinstance(value, ast.List) and at is not None and not _has_spread(value):
            count = len(value.items)
            if not -count <= at < count:
                return f"the list has {count} item{'s' * (count != 1)}", None
        name = node.index.value if isinstance(node.index, ast.Str) else None
    else:
        name = node.name
    if name is None:
        return None
    if isinstance(value, ast.Dict):
        keys = _keys(value)
        if keys is None or name in keys:
            return None
        return f"the dict has no entry `{name}`", _hint(subject, "dict", name, keys)
    owner = kind(subject, node.object)
    knowledge = subject.knowledge
    if owner not in ("list", "string") or isinstance(node, ast.Index) or knowledge is None:
        return None
    properties = knowledge.properties(owner)
    if name in properties:
        return None
    return f"a {owner} has no property `{name}`", _hint(subject, owner, name, properties)


def _hint(subject: Subject, owner: str, name: str, own: Collection[str]) -> str | None:
    """What a name was probably meant to be: a key or property, or a method."""
    near = nearest_at_run_time(name, list(own))
    if near is not None:
        return f"did you mean `{near}`?"
    knowledge = subject.knowledge
    if knowledge is None:
        return None
    if name in knowledge.methods(owner):
        return f"did you mean the method `{name}()`?"
    return knowledge.method_hint(owner, name).strip(" ()") or None


def _keys(value: ast.Dict) -> list[str] | None:
    """The keys of a dict that is written down; None where not all of them are."""
    found = []
    for entry in value.entries:
        if not isinstance(entry, ast.DictEntry) or entry.computed or not isinstance(entry.key, ast.Str):
            return None
        found.append(entry.key.value)
    return found


def _has_spread(value: ast.List) -> bool:
    return any(isinstance(item, ast.Spread) for item in value.items)


def _number(node: ast.Node) -> int | None:
    """The value of an integer that is written down."""
    if isinstance(node, ast.Unary) and node.op == "-" and isinstance(node.operand, ast.Int):
        return -node.operand.value
    return node.value if isinstance(node, ast.Int) else None


def number_as_key(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Index):
        text = _number(node.index)
        if text is not None and kind(subject, node.object) == "dict":
            yield remark(
                node,
                f'the keys of a dict are texts: `{subject.text(node)}` is its entry "{text}"',
                help=f'write `["{text}"]`',
                edits=[Edit(node.index.start, node.index.end, f'"{text}"')],
            )


# Arguments that a builtin ignores, or takes otherwise than its namesake does. Spec: 04 §0.1, 03 §15.


def ignored_argument(subject: Subject) -> Iterator[Remark]:
    if subject.knowledge is None:
        return
    for call in subject.each(ast.Call):
        signature = subject.knowledge.signature(call.name)
        if signature is None or any(isinstance(one, ast.Spread) for one in call.args):
            continue
        parameters = signature.parameters
        if len(call.args) <= len(parameters) or (parameters and parameters[-1].rest):
            continue
        if subject.means_builtin(call):
            first, count = call.args[len(parameters)], len(parameters)
            many = "no argument" if count == 0 else f"{count} argument{'s' * (count != 1)}"
            help = 'one text can have several values: `"${a} ${b}"`' if call.name in _PRINTING else None
            yield Remark(
                first.start, call.args[-1].end, f"`{call.name}` takes {many}: this is ignored", help=help
            )


_PRINTING = frozenset({"print", "println", "log", "eprint", "eprintln"})


def implicit_separator(subject: Subject) -> Iterator[Remark]:
    """The function and the method have different separators when none is given."""
    for call in subject.each(ast.Call):
        if call.name == "split" and len(call.args) == 1 and subject.means_builtin(call):
            text = "without a separator, `split(text)` splits at blanks, and `text.split()` at commas"
            yield remark(call, text, help='say which: `split(text, ",")`')
    for method in subject.each(ast.MethodCall):
        if method.name == "split" and not method.args and kind(subject, method.object) == "string":
            text = "without a separator, `text.split()` splits at commas, and `split(text)` at blanks"
            yield remark(method, text, help='say which: `.split(",")`')


def pointless_length(subject: Subject) -> Iterator[Remark]:
    for call in subject.each(ast.Call):
        if call.name == "len" and len(call.args) == 1 and subject.means_builtin(call):
            owner = kind(subject, call.args[0])
            if owner in _UNCOUNTED:
                text = f"`len` of {_UNCOUNTED[owner]} is always 0"
                yield remark(
                    call, text, help="`len(to_string(x))` counts its digits" if owner == "int" else None
                )


#: Kinds of values that have no items, as people call them.
_UNCOUNTED = {
    "int": "a number",
    "float": "a number",
    "bool": "a bool",
    "nil": "nil",
    "duration": "a duration",
    "closure": "a function",
}


def loop_over_nothing(subject: Subject) -> Iterator[Remark]:
    for loop in subject.each(ast.For):
        owner = kind(subject, loop.iterable)
        help: str | None
        if owner == "string":
            text, help = "a loop over a string runs zero times", "go through its characters: `.chars()`"
        elif owner in _UNCOUNTED:
            text = f"a loop over {_UNCOUNTED[owner]} runs zero times"
            help = "count with `0 to n` or `range(n)`" if owner in ("int", "float") else None
        else:
            continue
        edits = [Edit(loop.iterable.end, loop.iterable.end, ".chars()")] if owner == "string" else []
        plain = isinstance(loop.iterable, ast.Str | ast.Interp | ast.Name)
        yield remark(loop.iterable, text, help=help, edits=edits if plain else [], safe=False)


# Arithmetic and logic that give something else than elsewhere. Spec: 02 §2, §4; 03 §15.


_VALUES = (ast.Str, ast.Interp, ast.Int, ast.Float, ast.List, ast.Dict, ast.Nil, ast.Duration)


def logic_as_default(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Binary):
        if node.op in ("&&", "||"):
            value = next((side for side in (node.right, node.left) if isinstance(side, _VALUES)), None)
            if value is not None:
                instead = (
                    "for a default, write `??`" if node.op == "||" else "for one of two values, write `? :`"
                )
                text = f"`{node.op}` gives true or false, never `{subject.text(value)}`"
                yield remark(node, text, help=instead)


#: Kinds whose values equal those of no other kind.
_DISTINCT = {
    "string": "a string",
    "int": "a number",
    "float": "a number",
    "bool": "a bool",
    "list": "a list",
    "dict": "a dict",
}


def never_equal(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Binary):
        if node.op in ("==", "!="):
            left, right = (_DISTINCT.get(kind(subject, side) or "") for side in (node.left, node.right))
            if left is not None and right is not None and left != right:
                always = "false" if node.op == "==" else "true"
                text = f"{left} never equals {right}: this is always {always}"
                yield remark(node, text, help="convert one of them first: `to_int`, `to_float`, `to_string`")


def truncated_division(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Binary):
        if node.op == "/":
            left, right = _number(node.left), _number(node.right)
            if left is not None and right and left % right:
                cut = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
                yield remark(
                    node,
                    f"the quotient of integers is an integer: `{left} / {right}` is {cut}",
                    help=f"for the exact one, write `{left} / {right}.0`",
                    edits=[Edit(node.end, node.end, ".0")],
                    safe=False,
                )


_WORD = 1 << 63
_FOLDED = {"+": int.__add__, "-": int.__sub__, "*": int.__mul__}


def integer_overflow(subject: Subject) -> Iterator[Remark]:
    for node in subject.each(ast.Binary):
        if node.op in _FOLDED:
            left, right = _number(node.left), _number(node.right)
            if left is None or right is None:
                continue
            result = _FOLDED[node.op](left, right)
            if not -_WORD <= result < _WORD:
                wrapped = (result + _WORD) % (2 * _WORD) - _WORD
                text = f"integers wrap at 64 bits: `{subject.text(node)}` is {wrapped}"
                yield remark(node, text, help="floats are larger, and less exact")


# Files and clocks. Spec: 03 §15; 04 §14, §19.


def deep_glob(subject: Subject) -> Iterator[Remark]:
    """`*` as the last part of a pattern matches in sub-directories, too."""
    for call in subject.each(ast.Call):
        pattern = call.args[0] if call.name == "glob" and call.args else None
        if not isinstance(pattern, ast.Str) or "*" not in pattern.value or "**" in pattern.value:
            continue
        if subject.means_builtin(call):
            text = "`*` of `glob` matches `/`, too: this finds files in sub-directories"
            deep = pattern.value.replace("*", "**/*", 1)
            yield remark(pattern, text, help=f'where that is meant, say so: `"{deep}"`')


_MOCKED = "mock_time"
_UNMOCKED = "unmock_time"
#: What tells the real time even where it is mocked.
_REAL = frozenset({"date_now", "date_now_iso"})


def unmocked_clock(subject: Subject) -> Iterator[Remark]:
    mocks = [call for call in subject.each(ast.Call) if call.name in (_MOCKED, _UNMOCKED)]
    mocks.sort(key=lambda call: call.start)
    for call in subject.each(ast.Call) if mocks else ():
        if call.name not in _REAL or not subject.means_builtin(call):
            continue
        before = next((mock for mock in reversed(mocks) if mock.start < call.start), None)
        if before is None or before.name != _MOCKED:
            continue
        if _function(subject, before) is _function(subject, call):
            text = f"`{call.name}` goes by the real clock, not by the one of `{_MOCKED}`"
            yield remark(call, text, help="use `now_ms` or `timestamp`")


def _function(subject: Subject, node: ast.Node) -> ast.Node | None:
    return next((one for one in subject.above(node) if isinstance(one, _BODIES)), None)


_BODIES = (ast.FnDecl, ast.ToolDecl, ast.Pipeline)
