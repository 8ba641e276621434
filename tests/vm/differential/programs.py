"""Whole programs: their declarations, their form, and how they end."""

from __future__ import annotations

from tests.vm.differential.choices import Choices
from tests.vm.differential.concurrency import Concurrency
from tests.vm.differential.outcomes import Program
from tests.vm.differential.shapes import ANY, INT, Shape, function, list_of
from tests.vm.differential.statements import SECTION

_SAY = 'fn say(p) {\nprintln("say ${p}")\nreturn p\n}\n'
_COLOR = "enum Color { Red\nGreen(v) }\n"


def program_of(seed: int) -> Program:
    """The program that a seed stands for."""
    return Programs(Choices(seed)).program()


class Programs(Concurrency):
    def program(self) -> Program:
        forms = ((5, self.script), (3, self.pipeline), (3, self.inside_function), (1, self.session))
        form = self.choices.weighted(forms)
        module = self.module() if self.choices.chance(15) else ""
        importing = 'import "shared"\n' if module else ""
        return Program(indented(importing + form()), indented(module), form == self.session)

    # --- forms ------------------------------------------------------------------------------------------

    def script(self) -> str:
        """Statements at the top level, with functions between them."""
        text = self.say() + _COLOR + self.struct()
        if self.choices.chance(50):
            text += self.function_declaration() + "\n"
        return text + self.sections(self.length()) + self.finish()

    def session(self) -> str:
        """A script, each statement of which is an input: one that fails doesn't end the others."""
        return self.script()

    def length(self) -> int:
        return 1 + self.choices.below(6)

    def pipeline(self) -> str:
        """Variables and functions around a pipeline."""
        variables = "".join(self.declaration() + "\n" for _ in range(1 + self.choices.below(3)))
        prelude = self.say() + _COLOR + self.struct()
        functions = "".join(self.new_function() + "\n" for _ in range(1 + self.choices.below(3)))
        text = variables + prelude + functions
        with self.function("fn"):
            body = self.sections(self.length()) + self.finish()
        return f"{text}pipeline main(task) {{\n{body}}}\n"

    def inside_function(self) -> str:
        """Everything in one function."""
        text = self.say() + _COLOR + self.struct()
        with self.function("fn"):
            body = self.sections(self.length()) + self.finish()
        return f"{text}fn main() {{\n{body}}}\nreturn main()\n"

    def say(self) -> str:
        """The function that shows when a value is computed."""
        self.declare("say", function(ANY, ("p", ANY)), cost=2)
        return _SAY

    def struct(self) -> str:
        """A struct with methods, or nothing."""
        if not self.choices.chance(35):
            return ""
        shape = Shape("struct", None, (("a", INT), ("b", list_of(self.scalar()))), "Point")
        self.structs.append(shape)
        methods = "\n".join(self.method_declaration(shape) for _ in range(1 + self.choices.below(2)))
        return f"struct Point {{ a: int\nb: list }}\nimpl Point {{\n{methods}\n}}\n"

    def finish(self) -> str:
        """The last statements: the state of everything, then perhaps an error or a value."""
        names = [v.name for v in self.visible() if v.shape.kind != "fn"]
        text = f"println([{', '.join(names)}])\n"
        if self.choices.chance(25):
            return text + self.crash()
        return text + f"return {self.expression(self.any_shape(1), 2)}\n"

    def crash(self) -> str:
        """An error that nobody catches, mostly some calls deep."""
        failing = self.mistake(1)
        for _ in range(self.choices.below(3)):
            failing = self.choices.pick(
                (f"[1].map({{ z -> {failing} }})", f"say({failing})", f"1 + {failing}", f"({failing} |> say)")
            )
        return f"throw {failing}\n" if self.choices.chance(20) else f"println({failing})\n"

    # --- modules ----------------------------------------------------------------------------------------

    def module(self) -> str:
        """A module whose variables its functions share and change."""
        outer, self.scopes = self.scopes, [{}]
        text = ""
        for _ in range(1 + self.choices.below(3)):
            shape, name = self.any_shape(), self.numbered("s")
            if shape.kind == "fn":
                shape = INT
            text += f"var {name} = {self.literal(shape)}\n"
            self.declare(name, shape, mutable=True)
        shapes, functions = [variable.shape for variable in self.visible()], []
        text += self.say()
        for _ in range(1 + self.choices.below(3)):
            self.left = SECTION - 1
            # Of the kind of a variable, so that `s = s + f()` is frequent, where `f` changes `s`.
            text += f"pub {self.plain_function(self.choices.pick(shapes))}\n"
            functions.append(list(self.scopes[-1].values())[-1])
        self.scopes = outer
        self.scopes[-1].update({variable.name: variable for variable in functions})
        return text


def indented(text: str) -> str:
    """A program's lines, each as deep as its brackets say."""
    lines, depth = [], 0
    for line in map(str.strip, text.splitlines()):
        opening = sum(line.count(bracket) for bracket in "{[(")
        closing = sum(line.count(bracket) for bracket in "}])")
        first = len(line) - len(line.lstrip("}])"))
        lines.append("  " * max(depth - first, 0) + line)
        depth += opening - closing
    return "\n".join(lines) + "\n" if lines else ""
