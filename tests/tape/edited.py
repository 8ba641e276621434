"""Programs for laws about edits: each statement is a line that asks for an effect of its own."""

from __future__ import annotations

from random import Random
from typing import NamedTuple

_OPTIONS = '{provider: "p", model: "m", llm_retries: 0}'


class Line(NamedTuple):
    """A line. ``mark`` is what tells its effect; ``is_alone``: it may be removed, and moved."""

    text: str
    mark: str = ""
    is_alone: bool = False


class Edit(NamedTuple):
    """What was done to a program. ``line`` is the first line that differs, 0 where the text is the same;
    ``mark`` tells the effect whose request differs, and is empty where the edit decides otherwise which one
    it is; ``is_seen`` says whether any effect differs; ``prompt`` is another text of the prompt."""

    kind: str
    text: str
    line: int
    mark: str = ""
    is_seen: bool = True
    prompt: str | None = None


class EditedProgram:
    """The program of a seed, and the prompt that it reads."""

    prompt = "be nice\nto m-prompt\n"

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._count = 0
        lines = [self._statement() for _ in range(self._random.randint(6, 14))]
        self._let = self._random.randrange(len(lines))
        lines.insert(self._let, Line('let system = read_file("prompt.txt")'))
        lines.append(Line(f'println(llm_call("with a prompt", system, {_OPTIONS}).text)', "with a prompt"))
        if self._random.random() < 0.5:
            lines += self._tasks()
        self._lines = [*lines, Line('println("end")')]
        self.text = _text(self._lines)

    def edit(self) -> Edit:
        """Return an edit of the program, or of its prompt."""
        edits = [self._literal] * 3 + [self._removed, self._added, self._swapped]
        return self._random.choice([*edits, self._comment, self._renamed, self._prompt])()

    # --- statements --------------------------------------------------------------------------------

    def _mark(self) -> str:
        self._count += 1
        return f"m{self._count}m"

    def _statement(self) -> Line:
        kinds = (self._ask, self._ask, self._exec, self._write, self._read, self._chance)
        return self._random.choice(kinds)()

    def _ask(self) -> Line:
        mark = self._mark()
        return Line(f'println(llm_call("ask {mark}", nil, {_OPTIONS}).text)', mark, True)

    def _exec(self) -> Line:
        mark = self._mark()
        return Line(f'println(exec("tool", "{mark}").stdout)', mark, True)

    def _write(self) -> Line:
        mark = self._mark()
        return Line(f'write_file("file-{mark}", "text")', mark, True)

    def _read(self) -> Line:
        mark = self._mark()
        return Line(f'try {{ read_file("gone-{mark}") }} catch (e) {{ println("none") }}', mark, True)

    def _chance(self) -> Line:
        self._count += 1
        number = 1000 + self._count
        return Line(f"println(random_int(1, {number}))", f"{number}", True)

    def _tasks(self) -> list[Line]:
        inner = [self._ask() for _ in range(self._random.randint(1, 2))]
        lines = [Line("  " + each.text.replace("ask ", "ask ${n} "), each.mark) for each in inner]
        return [Line("parallel each [1, 2, 3] { n ->"), *lines, Line("}")]

    # --- edits -------------------------------------------------------------------------------------

    def _literal(self) -> Edit:
        number = self._random.choice([number for number, line in enumerate(self._lines) if line.mark])
        line, lines = self._lines[number], [*self._lines]
        lines[number] = Line(line.text.replace(line.mark, f"{line.mark}1"))
        return Edit("literal", _text(lines), number + 1, line.mark)

    def _alone(self) -> list[int]:
        return [number for number, line in enumerate(self._lines) if line.is_alone]

    def _removed(self) -> Edit:
        number = self._random.choice(self._alone())
        return Edit("removed", _text(self._lines[:number] + self._lines[number + 1 :]), number + 1)

    def _added(self) -> Edit:
        number = self._random.choice(self._alone())
        added = self._random.choice((self._ask, self._exec, self._write))()
        return Edit("added", _text([*self._lines[:number], added, *self._lines[number:]]), number + 1)

    def _swapped(self) -> Edit:
        alone = self._alone()
        first = [number for number in alone if number + 1 in alone]
        if not first:
            return self._removed()
        number, lines = self._random.choice(first), [*self._lines]
        lines[number : number + 2] = lines[number + 1], lines[number]
        return Edit("swapped", _text(lines), number + 1)

    def _comment(self) -> Edit:
        number = self._random.randrange(len(self._lines))
        lines = [*self._lines[:number], Line("// says nothing"), *self._lines[number:]]
        return Edit("comment", _text(lines), number + 1, is_seen=False)

    def _renamed(self) -> Edit:
        text = self.text.replace("let system", "let manner").replace("system, {", "manner, {")
        return Edit("renamed", text, self._let + 1, is_seen=False)

    def _prompt(self) -> Edit:
        return Edit("prompt", self.text, 0, "with a prompt", prompt=self.prompt.replace("m-prompt", "others"))


def _text(lines: list[Line]) -> str:
    return "".join(f"{line.text}\n" for line in lines)
