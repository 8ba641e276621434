"""The builtins that render templates, and Harn's values for the engine. Spec: 04 §23.1."""

from __future__ import annotations

import os.path

from harnpy.builtins.bridge.contexts import module_directory
from harnpy.formats.case import WHITESPACE
from harnpy.formats.json import pretty_json, to_json
from harnpy.formats.templates import assets, engine
from harnpy.formats.templates.expressions import TemplateError
from harnpy.vm.declare import builtin
from harnpy.vm.errors import Thrown, TypeFault
from harnpy.vm.values import Duration, Range, Set, display, type_name
from harnpy.vm.values.equality import compare, equal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.formats.templates.engine import Rendering
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm


class HarnOperations:
    """Harn's values as the template engine sees them. Spec: 04 §23.4."""

    def __init__(self, vm: Vm) -> None:
        self._vm = vm

    def truthy(self, value: Value) -> bool:
        """Harn's truthiness, but blank strings are false, and sets, bytes and durations true."""
        if type(value) is str:
            return bool(value.strip(WHITESPACE))
        return type(value) in (Set, bytes, Duration) or bool(value)

    def text(self, value: Value) -> str:
        return display(value)

    def type_name(self, value: Value) -> str:
        return type_name(value)

    def equal(self, a: Value, b: Value) -> bool:
        return equal(a, b)

    def compare(self, a: Value, b: Value) -> int:
        return compare(a, b)

    def items(self, value: Value) -> list[Value] | range | None:
        if type(value) is Range:
            return range(value.first, value.stop)
        if type(value) is Set:
            return value.items
        return value if type(value) is list else None

    def json(self, value: Value, pretty: bool) -> str:
        return pretty_json(value, display) if pretty else to_json(value, display)

    def go_on(self, written: int) -> None:
        """Notice a deadline, or that the text is too long."""
        if self._vm.signal.pending:
            self._vm.poll()
        self._vm.sizes.check_text(written)


class Prompts:
    """The count of prompts rendered with provenance, and how often each was marked as used."""

    def __init__(self) -> None:
        self.count = 0
        self.marked: dict[str, int] = {}


@builtin("render(path: string, bindings?: dict) -> string", family="strings")
@builtin("render_prompt(path: string, bindings?: dict) -> string", family="strings")
def render(vm: Vm, path: str, bindings: Value) -> str:
    """Return the text of a template file, filled in with `bindings`.

    The path is absolute, relative to the executing module, or `@/…` from the project root.

    Example:
        write_file("hello.prompt", "Hello {{ name }}!")
        render("hello.prompt", {name: "Ada"})  // "Hello Ada!"
    """
    return _rendered_file(vm, path, bindings)[1].text


@builtin("render_string(template: string, bindings?: dict) -> string", family="strings")
def render_string(vm: Vm, template: str, bindings: Value) -> str:
    """Return the text of a template given as a string; its includes are relative to the executing module.

    Example: render_string("{{ for x in xs }}<{{ x }}>{{ end }}", {xs: [1, 2]})  // "<1><2>"
    """
    return rendered(vm, template, module_directory(vm), None, bindings).text


@builtin("render_with_provenance(path: string, bindings?: dict) -> dict", family="strings")
def render_with_provenance(vm: Vm, path: str, bindings: Value) -> dict[str, Value]:
    """Return `{text, template_uri, prompt_id, spans}`: a rendered file, and the source of each part.

    Example:
        write_file("hi.prompt", "Hi {{ name }}")
        render_with_provenance("hi.prompt", {name: "Ada"}).text  // "Hi Ada"
    """
    target, run = _rendered_file(vm, path, bindings, records=True)
    prompts = vm.state(Prompts)
    prompts.count += 1
    return {
        "text": run.text,
        "template_uri": target,
        "prompt_id": f"prompt-{prompts.count}",
        "spans": run.spans,
    }


@builtin("prompt_mark_rendered(prompt_id: any) -> int", family="strings")
def prompt_mark_rendered(vm: Vm, prompt_id: Value) -> int:
    """Count a use of the prompt; return the number of uses so far.

    Example:
        prompt_mark_rendered("greeting")
        prompt_mark_rendered("greeting")  // 2
    """
    if type(prompt_id) is not str:
        raise TypeFault("prompt_mark_rendered: prompt_id must be a string")
    marked = vm.state(Prompts).marked
    marked[prompt_id] = marked.get(prompt_id, 0) + 1
    return marked[prompt_id]


def _rendered_file(vm: Vm, path: str, bindings: Value, records: bool = False) -> tuple[str, Rendering]:
    try:
        target = assets.resolve(vm.world.files, path, module_directory(vm))
    except assets.AssetError as error:
        raise Thrown(str(error)) from None
    try:
        source = assets.read(vm.world.files, target)
    except assets.AssetError as error:
        raise Thrown(f"Failed to read template {target}: {error}") from None
    return target, rendered(vm, source, os.path.dirname(target), target, bindings, records)


def rendered(
    vm: Vm, source: str, directory: str, path: str | None, bindings: Value, records: bool = False
) -> Rendering:
    """Render a template that lies in ``directory``; ``path`` is its file, for errors."""
    scope = bindings if type(bindings) is dict else {}
    try:
        return engine.render(source, scope, directory, vm.world.files, HarnOperations(vm), records)
    except TemplateError as error:
        raise Thrown(error.text(path)) from None
