"""Statements that give names values: declarations, patterns, assignments at any depth."""

from __future__ import annotations

from tests.vm.differential.expressions import Expressions
from tests.vm.differential.shapes import ANY, FLOAT, INT, STRING, Shape, Variable, list_of, paths

_OPERATORS = {"int": ("+=", "-=", "*=", "+="), "float": ("+=", "-=", "*=", "/="), "string": ("+=",)}


class Assignments(Expressions):
    def declaration(self) -> str:
        """`let` or `var`, of a name or a pattern."""
        if self.choices.chance(12):
            return self.destructuring()
        shape = self.any_shape()
        value = self.guarded(shape)
        mutable = self.choices.chance(65)
        name = self.fresh()
        if mutable and self.choices.chance(5):
            name = self._again() or name
        self.declare(name, shape, mutable, cost=self._cost_of(shape))
        return f"{'var' if mutable else 'let'} {name} = {value}"

    def _again(self) -> str:
        """A `var` of this scope, to be declared a second time."""
        found = [variable.name for variable in self.scopes[-1].values() if variable.mutable]
        return self.choices.pick(found) if found else ""

    def _cost_of(self, shape: Shape) -> int:
        """What a call of a closure in a variable may cost: closures are small."""
        return 6 if shape.kind == "fn" else 0

    def guarded(self, shape: Shape, depth: int = 3) -> str:
        """An expression; where it is likely to fail, mostly one that then has another value."""
        self.risky = False
        text = self.expression(shape, depth)
        if not self.risky or self.choices.chance(10):
            return text
        self.risky = False
        return f"(try {{ {text} }} catch (err) {{\nprintln(err)\n{self.literal(shape)}\n}})"

    # --- patterns ---------------------------------------------------------------------------------------

    def destructuring(self) -> str:
        word, mutable = self.choices.pick((("let", False), ("var", True)))
        shape = self.any_shape(1)
        if shape.kind not in ("list", "dict"):
            shape = list_of(shape)
        value = self.guarded(shape, 2)
        return f"{word} {self.pattern(shape, mutable)} = {value}"

    def pattern(self, shape: Shape, mutable: bool) -> str:
        """A pattern for a list or a dict; its names are declared, so defaults see the earlier ones."""
        entries = []
        if shape.kind == "list":
            assert shape.item
            for _ in range(1 + self.choices.below(3)):
                entries.append(self._entry("", shape.item, mutable))
            rest = list_of(shape.item)
        else:
            fields = (*shape.fields, (self.choices.pick(("z", "k")), INT))
            for key, inner in fields[self.choices.below(2) :]:
                entries.append(self._entry(key, inner, mutable))
            rest = Shape("dict", None, shape.fields)
        if self.choices.chance(25):
            name = self.fresh()
            self.declare(name, rest if shape.kind == "list" else ANY, mutable)
            entries.append(f"...{name}")
        inside = ", ".join(entries)
        return f"[{inside}]" if shape.kind == "list" else f"{{{inside}}}"

    def _entry(self, key: str, shape: Shape, mutable: bool) -> str:
        default = f" = {self.expression(shape, 1)}" if self.choices.chance(40) else ""
        if self.choices.chance(8):
            return f"{key}: _" if key else "_"
        if key and key not in self.scopes[-1] and self.choices.chance(40):
            self.declare(key, shape, mutable)
            return key + default
        name = self.fresh()
        self.declare(name, shape, mutable)
        return (f"{key}: {name}" if key else name) + default

    # --- assignments ------------------------------------------------------------------------------------

    def assignment(self) -> str:
        found = self.assignable()
        if not found:
            return self.declaration()
        variable = self.choices.pick(found)
        places = list(paths(variable.name, variable.shape))
        target, shape = self.choices.pick(places)
        if target != variable.name and self.choices.chance(25):
            target = self._computed(variable) or target
        if shape.kind in _OPERATORS and self.choices.chance(40):
            return f"{target} {self.choices.pick(_OPERATORS[shape.kind])} {self._operand_of(shape)}"
        if shape.kind == "list" and self.choices.chance(60):
            return self.growth(target, shape)
        if shape.kind == "dict" and self.choices.chance(20):
            return f"{target}.{self.tag()} = {self.guarded(self.any_shape(1), 2)}"
        if shape.kind == "dict" and self.choices.chance(20):
            entry = f"{self.tag()}: {self.guarded(self.any_shape(1), 2)}"
            return f"{target} = {self.choices.pick((f'{{...{target}, {entry}}}', f'{target} + {{{entry}}}'))}"
        if self.choices.chance(25) and shape in (INT, FLOAT, STRING):
            operation = self.choices.pick("+-*") if shape is not STRING else "+"
            return f"{target} = {target} {operation} {self._operand_of(shape)}"
        if self.choices.chance(7):
            return self.change_of_kind(variable)
        return f"{target} = {self.guarded(shape)}"

    def change_of_kind(self, variable: Variable) -> str:
        """A variable gets a value of another kind, which later statements of the same block know."""
        shape = self.any_shape(1)
        text = f"{variable.name} = {self.guarded(shape)}"
        if self.scopes[-1].get(variable.name) is variable:
            variable.shape = shape
        return text

    def _operand_of(self, shape: Shape) -> str:
        """What may be added again and again: of a string only a short one."""
        if shape is not STRING:
            return self.guarded(shape, 2)
        return self.choices.pick(
            (self.literal(STRING), f'"${{{self.guarded(INT, 1)}}}"', self._short_string())
        )

    def _short_string(self) -> str:
        return f"say({self.literal(STRING)})" if self.can_say else self.literal(STRING)

    def _computed(self, variable: Variable) -> str:
        """A place that an expression chooses: an index, or a key."""
        if variable.shape.kind == "list":
            return f"{variable.name}[{self.guarded(INT, 1)}]"
        if variable.shape.kind == "dict":
            return f"{variable.name}[{self.guarded(STRING, 1)}]"
        return ""

    def growth(self, target: str, shape: Shape) -> str:
        assert shape.item
        item = self.guarded(shape.item, 2)
        return self.choices.pick(
            (
                f"{target} = {target}.push({item})",
                f"{target} = {target} + [{item}]",
                f"{target} += [{item}]",
                f"{target} = [{item}] + {target}",
                f"{target} = [...{target}, {item}]",
                f"{target} = {target}[{self.choices.pick(('1:', ':-1', '-2:', ':1'))}]",
                f"{target} = {target}.pop()",
            )
        )
