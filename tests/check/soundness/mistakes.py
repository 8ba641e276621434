"""Mistakes that the checker must find: statements that have one, at a place known. Spec: 03 §8–§10."""

from __future__ import annotations

from collections.abc import Callable

from tests.check.soundness.kinds import (
    BOOL,
    FLOAT,
    INT,
    STRING,
    Enum,
    Kind,
    ListOf,
    Scalar,
    Scope,
    Struct,
    Tagged,
    Words,
)
from tests.check.soundness.statements import Lines, Statements
from tests.check.soundness.wrong import Wrong

#: Stands before the line of the mistake where that isn't the first one.
MARK = "\0"

#: Lines with a mistake, or None where it would be none.
Mistake = Callable[[Wrong, Statements, Scope], "Lines | None"]


def _declared_as(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    kind = wrong.random.choice(program.kinds)
    return [f"let {program.name('wrong')}: {kind} = {wrong.value(program, kind, scope)}"]


def _assigned(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    targets = [one for one in scope.variables if one.mutable and one.certain]
    if not targets:
        return None
    target = wrong.random.choice(targets)
    return [f"{target.name} = {wrong.value(program, target.kind, scope)}"]


def _argument(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    routines = [one for one in program.routines if one.params]
    if not routines:
        return None
    routine = wrong.random.choice(routines)
    arguments = [program.written(kind, Scope(), 0) for kind in routine.params]
    at = wrong.random.randrange(len(arguments))
    arguments[at] = wrong.value(program, routine.params[at], scope) or ""
    call = f"{routine.name}({', '.join(arguments)})"
    return [wrong.random.choice([call, f"let {program.name('wrong')} = {call}"])]


def _argument_count(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    if not program.routines:
        return None
    routine = wrong.random.choice(program.routines)
    arguments = [program.written(kind, Scope(), 0) for kind in routine.params]
    few = arguments[: len(arguments) - routine.defaults - 1]
    chosen = few if arguments[routine.defaults :] and wrong.random.random() < 0.5 else [*arguments, "1"]
    return [f"{routine.name}({', '.join(chosen)})"]


def _returned(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    if not scope.direct or scope.returns is None:
        return None
    known = Scope([one for one in scope.variables if one.param])
    return ["if 1 < 2 {", f"{MARK}  return {wrong.value(program, scope.returns, known)}", "}"]


def _field_type(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    struct = wrong.random.choice(program.structs)
    fields = {name: program.written(kind, Scope(), 0) for name, kind in struct.fields}
    name, kind = wrong.random.choice(struct.fields)
    fields[name] = wrong.value(program, kind, scope) or ""
    return [_built(program, struct, fields)]


def _field_missing(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    struct = wrong.random.choice(program.structs)
    fields = {name: program.written(kind, Scope(), 0) for name, kind in struct.fields[1:]}
    return [_built(program, struct, fields)] if fields else None


def _field_unknown(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    struct = wrong.random.choice(program.structs)
    fields = {name: program.written(kind, Scope(), 0) for name, kind in struct.fields}
    return [_built(program, struct, fields | {"colour": '"red"'})]


def _built(program: Statements, struct: Struct, fields: dict[str, str]) -> str:
    inside = ", ".join(f"{name}: {value}" for name, value in fields.items())
    return f"let {program.name('wrong')} = {struct.name} {{{inside}}}"


def _struct_misspelt(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    struct = wrong.random.choice(program.structs)
    return [f"let {program.name('wrong')} = {struct.name}x {{a: 1}}"]


def _missing_variant(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    if scope.file_level:
        return None
    name = program.name("wrong")
    kind = wrong.random.choice([one for one in program.kinds if isinstance(one, Enum | Words | Tagged)])
    subject = name
    match kind:
        case Enum(variants=variants):
            patterns = [f"{kind.name}.{variant}" for variant, _ in variants]
            subject = wrong.random.choice([name, f"{name}.variant"])
            if subject != name:
                patterns = [f'"{variant}"' for variant, _ in variants]
        case Words(words=words):
            patterns = [f'"{word}"' for word in words]
        case Tagged(variants=variants_):
            patterns = [f'"{tag}"' for tag, _, _ in variants_]
            subject = f"{name}.kind"
    patterns.remove(wrong.random.choice(patterns))
    lines = [f"let {name}: {kind} = {program.written(kind, Scope(), 0)}", f"{MARK}match {subject} {{"]
    return [*lines, *(f"  {pattern} -> {{ println(1) }}" for pattern in patterns), "}"]


def _missing_member(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    if scope.file_level:
        return None
    name = program.name("wrong")
    lines = [f"let {name}: int | string | nil = 4", f"{MARK}match {name} {{"]
    return [*lines, "  1 -> { println(1) }", "  nil -> { println(2) }", "}"]


def _method(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    if scope.handled:
        return None
    known = [one.name for one in scope.variables if one.param and isinstance(one.kind, Scalar | ListOf)]
    value = wrong.random.choice(['"text"', "[1, 2]", "(1 to 3)", *known])
    method = wrong.random.choice(["frobnicate", "upcase_all", "push_back"])
    return [f"println({value}.{method}())"]


def _struct_method(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    if scope.handled:
        return None
    structs = [one for one in program.structs if one.named]
    if not structs:
        return None
    struct = wrong.random.choice(structs)
    return [f"println({program.written(struct, Scope(), 0)}.labell())"]


def _property(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    if scope.handled:
        return None
    return [f"println({wrong.random.choice(['[1, 2]', chr(34) + 'text' + chr(34)])}.lenght)"]


def _call_misspelt(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    names = [one.name for one in program.routines] + ["println", "to_string", "either"]
    return [f"{wrong.random.choice(names)}q(1)"]


def _name_misspelt(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    if scope.handled:
        return None
    names = [one.name for one in scope.variables] or ["count"]
    name = f"{wrong.random.choice(names)}q"
    return [
        wrong.random.choice([f"println({name})", f"let {program.name('wrong')} = [{name}]", f"{name} = 1"])
    ]


def _operands(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    known = {one.name: one.kind for one in scope.variables if one.certain and isinstance(one.kind, Scalar)}
    operands = {'"text"': STRING, "17": INT, "2.5": FLOAT, "true": BOOL, "nil": None, **known}
    for _ in range(20):
        left, right = wrong.random.choice(list(operands)), wrong.random.choice(list(operands))
        op = wrong.random.choice("+-*/%")
        if not _calculates(op, operands[left], operands[right]):
            value = f"{left} {op} {right}"
            return [wrong.random.choice([f"println({value})", f"let {program.name('wrong')} = {value}"])]
    return None


def _calculates(op: str, left: Kind | None, right: Kind | None) -> bool:
    if {left, right} <= {INT, FLOAT}:
        return True
    return (op == "+" and left == right == STRING) or (op == "*" and {left, right} == {STRING, INT})


def _comparison(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    pair = wrong.random.choice([("true", "1"), ('"text"', "1"), ("nil", "2.5"), ("1", '"text"')])
    return [f"println({pair[0]} {wrong.random.choice(['<', '>=', '<='])} {pair[1]})"]


def _immutable(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    if scope.handled:
        return None
    names = [one.name for one in scope.variables if not one.mutable and one.certain and one.kind == INT]
    return [f"{wrong.random.choice(names)} = 3"] if names else None


def _conflict(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    pair = wrong.random.choice([("1", '"text"'), ("true", "2"), ("1", "2.5")])
    return [f"println(either({pair[0]}, {pair[1]}, true))"]


def _bound(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    unnamed = [program.written(one, Scope(), 0) for one in program.structs if not one.named]
    value = wrong.random.choice(["1", '"text"', *unnamed])
    return [f"println({wrong.random.choice(['shout', 'labelled'])}({value}))"]


def _narrowing(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    """What may be nil is taken for what isn't: before it is looked at, and where it is known to be nil."""
    if scope.file_level:
        return None
    name = program.name("wrong")
    lines = [f"let {name}: int | nil = 4"]
    taken = f"let {name}_i: int = {name}"
    if wrong.random.random() < 0.5:
        return [*lines, MARK + taken]
    return [*lines, f"if {name} == nil {{", f"{MARK}  {taken}", "}"]


def _ruled_out(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    if scope.file_level:
        return None
    name = program.name("wrong")
    lines = [f"let {name}: int | string = 4", f'if type_of({name}) == "int" {{']
    return [*lines, f"{MARK}  let {name}_s: string = {name}", "}"]


def _emitted(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    if scope.emits is None:
        return ["emit 1"] if not scope.emits and not scope.file_level and scope.returns else None
    return [f"emit {wrong.value(program, scope.emits, scope)}"]


def _unknown_value(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    if scope.file_level:
        return None
    name = program.name("wrong")
    lines = [f"let {name}: unknown = 4"]
    return [*lines, f"{MARK}{wrong.random.choice([f'let {name}_i: int = {name}', f'println({name} + 1)'])}"]


def _element(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    name, kind = program.name("wrong"), wrong.random.choice([INT, STRING, BOOL])
    lines = [f"for {name} in [{program.written(kind, Scope(), 0)}] {{"]
    return [*lines, f"{MARK}  let {name}_e: {kind} = {wrong.value(program, kind, Scope())}", "}"]


def _in_closure(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    name = program.name("wrong")
    return [f"let {name} = {{ x: int ->", f"{MARK}  let y: string = x", "  y", "}"]


def _option(wrong: Wrong, program: Statements, scope: Scope) -> Lines | None:
    if scope.handled:
        return None
    option = wrong.random.choice(["temprature: 0.5", "max_token: 100", 'modle: "m"'])
    return [f'let {program.name("wrong")} = llm_call("hello", nil, {{provider: "mock", {option}}})']


MISTAKES: dict[str, Mistake] = {
    "declared": _declared_as,
    "assigned": _assigned,
    "argument": _argument,
    "argument count": _argument_count,
    "returned": _returned,
    "field type": _field_type,
    "field missing": _field_missing,
    "field unknown": _field_unknown,
    "struct misspelt": _struct_misspelt,
    "variant missing": _missing_variant,
    "member missing": _missing_member,
    "method": _method,
    "method of a struct": _struct_method,
    "property": _property,
    "call misspelt": _call_misspelt,
    "name misspelt": _name_misspelt,
    "operands": _operands,
    "comparison": _comparison,
    "immutable": _immutable,
    "conflict": _conflict,
    "bound": _bound,
    "nil": _narrowing,
    "ruled out": _ruled_out,
    "emitted": _emitted,
    "unknown": _unknown_value,
    "element": _element,
    "in a closure": _in_closure,
    "option": _option,
}
