"""Help on a builtin: its signature, its documentation, what the specification says of it. Runs no program."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING, Any

from harnpy import shipped
from harnpy.builtins import catalog
from harnpy.builtins.documentation import without_citation
from harnpy.cli.console import columns, fold, say_folded
from harnpy.cli.library_help import library_functions, search
from harnpy.formats.suggestions import nearest
from harnpy.vm.run import methods as receivers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from harnpy.cli.library_help import Hit, LibraryFunction
    from harnpy.vm.declare import Declaration

# The specification by section, and the citations that lead there.
#
# A citation names a chapter and a section, `08 §1.4` (or the chapter's file). Further sections share the
# chapter: `02 §2–4, §8`. Numbered rows of a table (`| 8.3 …`) count as sections.


#: Where the chapters are in the repository.
DIRECTORY = "docs/spec"

_NUMBER = r"[A-C]?\d+(?:\.\d+)*"
_CITATION = re.compile(
    r"(?:\b(?P<chapter>0[1-9]|1[0-3])(?:-[a-z-]+\.md)?[\s#*/]+)?"
    rf"§(?P<first>{_NUMBER})(?:[-–]§?(?P<last>{_NUMBER}))?"
)
_HEADING = re.compile(rf"(?P<marks>#+) (?:(?P<number>{_NUMBER})\.? )?(?P<title>.*)")
_ROW = re.compile(r"\| (?P<number>\d+(?:\.\d+)+) (?P<title>[^|]*)")
#: What opens a code block; a line with further backticks only begins with code.
_FENCE = re.compile(r"(`{3,})[^`]*")
#: A citation without a chapter shares that of the one before, within so many characters.
_REACH = 60


@dataclass(frozen=True)
class Citation:
    """A chapter and a section as cited; `chapter` is empty when the text doesn't say which."""

    chapter: str
    section: str

    def __str__(self) -> str:
        return f"{self.chapter} §{self.section}"


@dataclass
class Section:
    """A numbered heading with its lines up to the next numbered heading, or a numbered row of a table."""

    chapter: str
    number: str
    title: str
    level: int
    lines: list[str] = field(default_factory=list)
    is_row: bool = False


@dataclass(frozen=True)
class Chapter:
    """One file of the specification."""

    file: str
    sections: Mapping[str, Section]

    def within(self, number: str) -> list[Section]:
        """Return the section `number` and the sections inside it, in order."""
        found = list(self.sections.values())
        start = found.index(self.sections[number])
        level = found[start].level
        end = next((i for i in range(start + 1, len(found)) if found[i].level <= level), len(found))
        return found[start:end]


@cache
def chapters() -> Mapping[str, Chapter]:
    """Return the chapters by number, `01` to `10`."""
    return {file[:2]: _chapter(file) for file in shipped.specification() if re.match(r"\d\d-.*\.md\Z", file)}


def find_section(citation: Citation) -> Section | None:
    """Return the section that a citation names, None when there is none."""
    chapter = chapters().get(citation.chapter)
    return chapter.sections.get(citation.section) if chapter else None


def citations(text: str, chapter: str = "") -> Iterator[Citation]:
    """Yield the citations in `text`, both ends and the middle of a range.

    `chapter` is the one meant where no chapter is near the section.
    """
    current, end = chapter, 0
    for match in _CITATION.finditer(text):
        near = match.start() - end <= _REACH
        current = match["chapter"] or (current if near else chapter)
        end = match.end()
        for section in _expand(match["first"], match["last"]):
            yield Citation(current, section)


def _expand(first: str, last: str | None) -> list[str]:
    """Return the numbers from `first` to `last`, which differ in their final part."""
    if last is None:
        return [first]
    stem, start = re.fullmatch(r"(.*?)(\d+)", first).groups()  # type: ignore[union-attr]
    if not re.fullmatch(re.escape(stem) + r"\d+", last):
        return [first, last]
    return [f"{stem}{number}" for number in range(int(start), int(last.removeprefix(stem)) + 1)]


def _chapter(file: str) -> Chapter:
    chapter = file[:2]
    sections: dict[str, Section] = {}
    current: Section | None = None
    for line, code in lines_and_code(shipped.read_specification(file).split("\n")):
        heading = None if code else _HEADING.fullmatch(line)
        level = len(heading["marks"]) if heading else 0
        if heading and heading["number"]:
            current = Section(chapter, heading["number"], heading["title"], level)
            sections[current.number] = current
        elif current is None or (heading and level <= current.level):
            current = None  # a part or the chapter's title: nothing can cite it
        else:
            current.lines.append(line)
            if not code and (row := _ROW.match(line)) and row["number"].startswith(current.number + "."):
                found = Section(
                    chapter, row["number"], row["title"].strip(), current.level + 1, [line], is_row=True
                )
                sections[found.number] = found
    return Chapter(f"{DIRECTORY}/{file}", sections)


def lines_and_code(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield each line of a page, and whether it is in a code block or opens or closes one."""
    fence = ""
    for line in lines:
        if fence:
            yield line, True
            fence = "" if line.strip() == fence else fence
        else:
            opening = _FENCE.fullmatch(line.strip())
            fence = opening[1] if opening else ""
            yield line, bool(fence)


# Of a section of the specification, the parts that concern one name.


#: A section of so many lines may be shown whole; of a longer one so many paragraphs and rows at most.
_SHORT, _MOST = 24, 8
#: So many functions and methods are shown of what a search has found.
_MOST_HITS = 20
_MARK = re.compile(r" *\*{0,2}\[(core|ext)[^\]]*\]\*{0,2}")
_LIST_ITEM = re.compile(r"([-*]|\d+\.) ")
#: A name at the beginning of a code span; tables abbreviate, `` `_detach` ``, `` `pause(t)` ``.
_CODE = re.compile(r"`(\w+)")


@dataclass(frozen=True)
class Excerpt:
    """Part of a section as Markdown; `left_out` counts further paragraphs that name the builtin."""

    heading: str
    text: str
    source: str
    left_out: int = 0


@dataclass(frozen=True)
class _Block:
    """A paragraph, a list item, a code block or a row of a table, with the header of its table."""

    lines: tuple[str, ...]
    header: tuple[str, ...] = ()
    is_code: bool = False


def excerpts(own: Sequence[Citation], shared: Sequence[Citation], name: str) -> list[Excerpt]:
    """Return what the specification says about `name`.

    `own` are the sections that its documentation cites: short ones are shown whole, of a long one what
    concerns the name or else its beginning. `shared` are those of its module, which count when there are no
    others; of them is shown what concerns the name, or else the beginning of each.
    """
    sections = [section for citation in own or shared if (section := find_section(citation))]
    found: dict[str, Excerpt] = {}
    for section in sections:
        is_whole = bool(own) and len(section.lines) <= _SHORT
        inner = [each for each in chapters()[section.chapter].within(section.number) if not each.is_row]
        parts = [
            _excerpt(each, each.lines) if each is section and is_whole else _about(each, name)
            for each in inner
        ]
        parts = parts if any(parts) or not own else [_opening(section)]
        found.update((part.source, part) for part in parts if part)
    shown = found.values() or map(_opening, sections)
    return [excerpt for excerpt in shown if excerpt.text]


def _about(section: Section, name: str) -> Excerpt | None:
    """Return the section if its heading has the name; else the rows that define it, else what mentions it."""
    if _mentions(section.title, name):
        return _excerpt(section, section.lines)
    blocks = [block for block in _blocks(section.lines) if not block.is_code]
    found = [block for block in blocks if block.header and _defines(block.lines[0], name)]
    found = found or [block for block in blocks if _mentions("\n".join(block.lines), name)]
    return _excerpt(section, _joined(found[:_MOST]), len(found[_MOST:])) if found else None


def _opening(section: Section) -> Excerpt:
    """Return a section that doesn't name the builtin: the whole of a short one, else its beginning."""
    if len(section.lines) <= _SHORT:
        return _excerpt(section, section.lines)
    return _excerpt(section, _joined(list(_blocks(section.lines))[:1]))


def _excerpt(section: Section, lines: Sequence[str], left_out: int = 0) -> Excerpt:
    title = _MARK.sub("", section.title)
    text = "\n".join(line for line in lines if line != "---").strip("\n")
    file = chapters()[section.chapter].file
    return Excerpt(f"{section.number} {title}", text, f"{file} §{section.number}", left_out)


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text) is not None


def _defines(row: str, name: str) -> bool:
    """Return whether the first cell of a table's row has the name, or its last part as an abbreviation."""
    first = row.split("|")[1]
    if _mentions(first, name):
        return True
    abbreviations = _CODE.findall(first)
    return any(short.startswith("_") and name.endswith(short) for short in abbreviations) or (
        "." in name and name.rpartition(".")[2] in abbreviations
    )


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    """Split a section's text. Only the lines of a table begin with `|`, its header is the first two."""
    paragraph: list[str] = []
    header: list[str] = []
    for is_code, group in groupby(lines_and_code(lines), key=lambda pair: pair[1]):
        texts = [line for line, _ in group]
        if is_code:
            yield _Block(tuple(texts), is_code=True)
            continue
        for line in [*texts, ""]:
            is_row = line.startswith("|")
            if paragraph and (is_row or not line.strip() or _LIST_ITEM.match(line)):
                yield _Block(tuple(paragraph))
                paragraph = []
            if not is_row:
                header = []
                paragraph += [line] if line.strip() else []
            elif len(header) < 2:
                header.append(line)
            else:
                yield _Block((line,), tuple(header))


def _joined(blocks: Sequence[_Block]) -> list[str]:
    """Return the lines of the blocks as a page; neighbouring rows of a table share its header."""
    lines: list[str] = []
    for header, group in groupby(blocks, key=lambda block: block.header):
        lines += header
        for block in group:
            lines += block.lines if header else [*block.lines, ""]
        lines += [""] if header else []
    return lines


@dataclass(frozen=True)
class BuiltinHelp:
    """The help of one function or method."""

    signature: str
    doc: str
    example: str
    options: Sequence[str]
    excerpts: Sequence[Excerpt]

    @property
    def plain(self) -> str:
        parts = [self.doc, self.example, "\n".join(self.options)]
        own = [_indented(part) for part in parts if part]
        return "\n\n".join([self.signature, *own, *map(_plain, self.excerpts)])


def find_builtin(name: str) -> list[Declaration]:
    """Return the function called `name`, the methods that share the name, and those of the kind `name`.

    Raises LookupError.
    """
    found = _found(name)
    if not found:
        raise LookupError(_unknown(name))
    return found


def _unknown(name: str) -> str:
    absence = catalog.absence(name)
    if absence:
        return f"`{name}` is {absence}"
    methods = [method.name for method in all_methods()]
    functions = [known for known in catalog.names() if not known.startswith("__")]
    library = [function.name for function in library_functions()]
    near = nearest(name, [*functions, *methods, *receivers.LISTED, *library], limit=2)
    hint = f" (did you mean `{near}`?)" if near else ""
    return f"no builtin is called `{name}`{hint}"


def _found(name: str) -> list[Declaration]:
    function = catalog.find(name)
    methods = [method for method in all_methods() if name in (method.name, method.receiver)]
    return [function, *methods] if function else methods


def all_methods() -> Iterator[Declaration]:
    """Yield the methods of every kind of value."""
    for receiver in receivers.LISTED:
        yield from receivers.declared_methods(receiver).values()


def print_help(name: str) -> None:
    """Print what is known about everything called `name`, or else what a search for it finds.

    Raises LookupError.
    """
    of_library = [describe_library(function) for function in library_functions() if function.name == name]
    found = _found(name)
    if not found and not of_library:
        hits = [] if catalog.absence(name) else search(name)
        if not hits:
            raise LookupError(_unknown(name))
        say_folded("\n".join(_found_lines(name, hits)))
        return
    listed = [declaration for declaration in found if declaration.receiver == name]
    entries = [describe_builtin(declaration) for declaration in found if declaration not in listed]
    entries += of_library
    if sys.stdout.isatty():
        from rich.console import Group

        from harnpy.cli.tables import show as show_view

        width = columns() or 0
        methods = (part for line in _method_lines(listed) for part in fold(line, width))
        show_view(Group(*(part for entry in entries for part in _rich(entry)), *methods))
    else:
        parts = [*(entry.plain for entry in entries), "\n".join(_method_lines(listed))]
        sys.stdout.write("\n\n".join(filter(None, parts)) + "\n")


def described(name: str) -> list[dict[str, Any]]:
    """Return all that is called `name` as data. Raises LookupError."""
    library = [_as_data(function) for function in library_functions() if function.name == name]
    return [*map(catalog.describe, _found(name) if library else find_builtin(name)), *library]


def _as_data(function: LibraryFunction) -> dict[str, Any]:
    of_builtin = catalog.describe(function.builtin) if function.builtin else {}
    own = {"name": function.name, "family": function.module, "signature": function.signature}
    return {"doc": function.doc, **of_builtin, **own}


def describe_builtin(declaration: Declaration) -> BuiltinHelp:
    """Return what is shown about a builtin."""
    receiver = f"{declaration.receiver}." if declaration.receiver else ""
    signature = f"{receiver}{declaration.signature_text}  [{declaration.family}]"
    described = catalog.describe(declaration)
    doc: str = described["doc"]
    options = [_option_line(option) for option in described["options"]]
    if options:
        options.insert(0, "Options:")
    module = sys.modules[declaration.function.__module__]
    own, shared = list(citations(doc)), list(citations(module.__doc__ or ""))
    found = excerpts(own, shared, _public_name(declaration.name))
    return BuiltinHelp(signature, without_citation(doc), described["example"], options, found)


def describe_library(function: LibraryFunction) -> BuiltinHelp:
    """Return what is shown about a function of the library, which has the options of its builtin."""
    signature = f'{function.signature}  [import "{function.module}"]'
    if function.builtin is None:
        return BuiltinHelp(signature, function.doc, "", [], [])
    described = describe_builtin(function.builtin)
    return replace(described, signature=signature, doc=described.doc or function.doc)


def _found_lines(name: str, hits: Sequence[Hit]) -> Iterator[str]:
    """Yield what a search has found, the best first."""
    yield f"no builtin is called `{name}`; these have it in their name or their documentation:"
    for hit in hits[:_MOST_HITS]:
        yield f"\n{hit.signature}"
        yield f"    {hit.sentence}"
    if len(hits) > _MOST_HITS:
        yield f"\n… and {len(hits) - _MOST_HITS} more: add a word"


def _public_name(name: str) -> str:
    """Return the name that programs call a builtin by: `memory_store` of `std/memory` is `__memory_store`."""
    return name.removeprefix("__")


def _option_line(option: Mapping[str, str]) -> str:
    """Return ``  name: type = default — meaning``."""
    default = f" = {option['default']}" if option["default"] else ""
    return f"  {option['name']}: {option['type']}{default} — {option['meaning']}"


def _method_lines(methods: Sequence[Declaration]) -> Iterator[str]:
    """Yield the methods of a kind, each with the first line of its documentation."""
    for method in sorted(methods, key=lambda method: method.name):
        yield f"{method.receiver}.{method.signature_text}"
        yield f"    {without_citation(method.summary)}"


def _plain(excerpt: Excerpt) -> str:
    more = [f"… and {excerpt.left_out} more in this section"] if excerpt.left_out else []
    text = excerpt.text.replace("\\|", "|")
    body = "\n".join([excerpt.heading, "", text, *more, f"file: {excerpt.source}"])
    return _indented(body)


def _rich(entry: BuiltinHelp) -> Iterator[RenderableType]:
    from rich.markdown import Markdown
    from rich.padding import Padding
    from rich.text import Text

    yield Text(entry.signature, style="bold")
    yield Padding(Text(entry.doc), (1, 0, 1, 2))
    if entry.example:
        yield Padding(Text(entry.example), (0, 0, 1, 2))
    if entry.options:
        yield Padding(Text("\n".join(entry.options)), (0, 0, 1, 2))
    for excerpt in entry.excerpts:
        yield Padding(Text(excerpt.heading, style="bold"), (0, 0, 1, 2))
        yield Padding(Markdown(excerpt.text), (0, 0, 0, 2))
        if excerpt.left_out:
            yield Padding(f"… and {excerpt.left_out} more in this section", (0, 0, 0, 2))
        yield Padding(Text(f"file: {excerpt.source}", style="dim"), (0, 0, 1, 2))


def _indented(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.split("\n"))
