"""What is known about a builtin: its signature, its documentation, what the specification says of it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harnpy.builtins import catalog
from harnpy.builtins.documentation import without_citation
from harnpy.cli.help.excerpt import excerpts
from harnpy.cli.help.specification import citations
from harnpy.text.spell import nearest
from harnpy.vm.run.methods import receivers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rich.console import RenderableType

    from harnpy.cli.help.excerpt import Excerpt
    from harnpy.vm.declare.builtin import Declaration


@dataclass(frozen=True)
class BuiltinHelp:
    """What is shown about one function or method."""

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


def find(name: str) -> list[Declaration]:
    """Return the function called `name`, the methods that share the name, and those of the kind `name`.

    Raises LookupError.
    """
    function = catalog.find(name)
    found = [function] if function else []
    found += [method for method in all_methods() if name in (method.name, method.receiver)]
    if found:
        return found
    absence = catalog.absence(name)
    if absence:
        raise LookupError(f"`{name}` is {absence}")
    methods = [method.name for method in all_methods()]
    near = nearest(name, [*catalog.names(), *methods, *receivers.LISTED], limit=2)
    hint = f" (did you mean `{near}`?)" if near else ""
    raise LookupError(f"no builtin is called `{name}`{hint}")


def all_methods() -> Iterator[Declaration]:
    """Yield the methods of every kind of value."""
    for receiver in receivers.LISTED:
        yield from receivers.declared(receiver).values()


def show(name: str) -> None:
    """Print what is known about everything called `name`. Raises LookupError."""
    found = find(name)
    listed = [declaration for declaration in found if declaration.receiver == name]
    entries = [describe(declaration) for declaration in found if declaration not in listed]
    if sys.stdout.isatty():
        from rich.console import Group

        from harnpy.cli.show.tables import show as show_view

        show_view(Group(*(part for entry in entries for part in _rich(entry)), *_method_lines(listed)))
    else:
        parts = [*(entry.plain for entry in entries), "\n".join(_method_lines(listed))]
        sys.stdout.write("\n\n".join(filter(None, parts)) + "\n")


def describe(declaration: Declaration) -> BuiltinHelp:
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
    found = excerpts(own, shared, declaration.name)
    return BuiltinHelp(signature, without_citation(doc), described["example"], options, found)


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
