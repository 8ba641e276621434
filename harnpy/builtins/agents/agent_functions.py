"""Harn functions in the options and graphs of agents as Python ones, and the model calls of compaction.

Spec: 08 §4.4.
"""

from __future__ import annotations

import os.path

from harnpy.agent.tool_registry import ToolFailure
from harnpy.builtins.agents.llm_calls import ask, with_experiment
from harnpy.builtins.bridge.callables import callables_within, with_callables
from harnpy.builtins.bridge.contexts import module_directory
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.builtins.bridge.named_arguments import in_order, input_schema, refusal
from harnpy.builtins.language.templates import rendered
from harnpy.builtins.live_models import models_of
from harnpy.faults import Interruption
from harnpy.formats.templates import assets
from harnpy.llm.native_tools import Parameters, json_type, parameters_of
from harnpy.vm.errors import CategorizedFault, Interrupted, RuntimeFault, Thrown, VmError
from harnpy.vm.run.backtrace import describe
from harnpy.vm.run.calls import MISSING
from harnpy.vm.run.channels import Channel
from harnpy.vm.values import Builtin, Fn, Generator, display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from harnpy.formats.dicts import Dict
    from harnpy.llm.request import Request
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

# The model calls of compaction: which model, and which prompt. Spec: 08 §4.4.


#: Options of a call that don't apply to summaries.
_NOT_FOR_SUMMARIES = frozenset(
    "messages system prefill tools tool_choice tool_format tool_search response_format output_format "
    "output_schema json_schema schema session_id".split()
)


def session_summarizer(vm: Vm) -> Callable[[str], str]:
    """Return a function that asks the default model; a call that fails raises `CallError`."""
    return lambda prompt: models_of(vm).ask(_request(vm, prompt, {})).text


def summarizer(vm: Vm, options: Value = None) -> Callable[[str], str]:
    """Return a function that asks the model of ``options``, else the default one, and returns its text.

    A call that fails throws the error's dict.
    """

    def summarize(prompt: str) -> str:
        return ask(vm, _request(vm, prompt, options if type(options) is dict else {})).text

    return summarize


def _request(vm: Vm, prompt: str, given: Dict) -> Request:
    chosen = {key: value for key, value in given.items() if key not in _NOT_FOR_SUMMARIES}
    chosen["structural_experiment"] = False  # nor one set by the environment
    models = models_of(vm)
    return models.request(prompt, None, models.options(chosen))


def prompt_from(vm: Vm, path: str) -> Callable[[str, int], str]:
    """Return a function that renders the template ``path`` with the archived messages."""

    def prompt(lines: str, count: int) -> str:
        target = path
        try:
            target = assets.resolve(vm.world.files, path, module_directory(vm))
            source = assets.read(vm.world.files, target)
        except assets.AssetError as error:
            raise RuntimeFault(f"failed to read compaction summarize_prompt {target}: {error}") from None
        bindings = {"formatted_messages": lines, "archived_count": count}
        try:
            return rendered(vm, source, os.path.dirname(target), target, bindings).text
        except Thrown as error:
            raise RuntimeFault(f"compaction summarize_prompt render error: {error.value}") from None

    return prompt


# Harn functions in the options, nodes and graphs of agents, as Python ones: agents know no others.


#: What a tool's function may return to show its result piece by piece: streams are generators.
_IN_PIECES = (Generator, Channel)
#: Options of loops that are functions.
_CALLBACKS = ("compact_callback", "mask_callback", "compress_callback", "post_turn_callback", "on_chunk")


class _Warned:
    """Tools of a program that a warning has named."""

    def __init__(self) -> None:
        self.tools: set[str] = set()


def with_python_functions(vm: Vm, options: Value) -> Value:
    """Return a loop's options for `harnpy.agent`: callbacks, handlers and prompts as Python callables."""
    if type(options) is not dict:
        return options
    given = with_experiment(vm, with_callables(vm, options, *_CALLBACKS))
    if given.get("summarize_prompt") is not None:
        given["summarize_prompt"] = prompt_from(vm, display(given["summarize_prompt"]))
    for key in ("permissions", "skills", "command_policy", "policy"):
        if given.get(key) is not None:
            given[key] = callables_within(vm, given[key])
    if given.get("tools") is not None:
        given["tools"] = _tools(vm, given["tools"])
    return given


def node_with_python_functions(vm: Vm, node: Value) -> Value:
    """Return the same for a node of a workflow; what isn't a dict stays as it is."""
    if type(node) is not dict:
        return node
    given = callables_within(vm, {key: value for key, value in node.items() if key != "tools"})
    compaction = given.get("auto_compact")
    if type(compaction) is dict and compaction.get("summarize_prompt") is not None:
        prompt = prompt_from(vm, display(compaction["summarize_prompt"]))
        given["auto_compact"] = {**compaction, "summarize_prompt": prompt}
    return {**given, "tools": _tools(vm, node["tools"])} if "tools" in node else given


def graph_with_python_functions(vm: Vm, graph: Value) -> Value:
    """Return the same for a whole workflow, its shorthand nodes included."""
    if type(graph) is not dict:
        return graph
    given = {key: node_with_python_functions(vm, value) for key, value in graph.items()}
    nodes = given.get("nodes")
    if type(nodes) is dict:
        given["nodes"] = {id: node_with_python_functions(vm, node) for id, node in graph["nodes"].items()}
    return given


def _tools(vm: Vm, tools: Value) -> Value:
    """Return a registry or a list of entries, with handlers that Python can call."""
    if type(tools) is dict and type(tools.get("tools")) is list:
        return {**tools, "tools": _tools(vm, tools["tools"])}
    if type(tools) is not list:
        return tools
    return [_entry(vm, entry) for entry in tools]


def _entry(vm: Vm, entry: Value) -> Value:
    if type(entry) is not dict or type(entry.get("handler")) not in (Fn, Builtin):
        return entry
    handler = entry["handler"]
    if type(handler) is not Fn or not handler.by_name:
        if type(handler) is Fn and len(handler.params) > 1:
            _warn_of_parameters(vm, display(entry.get("name")), handler)
        return {**entry, "handler": _handler(vm, handler)}
    schema = input_schema({name: _schema(given) for name, given in parameters_of(entry).items()})
    called = _by_name(vm, display(entry.get("name")), schema, handler)
    return {**entry, "parameters": Parameters(schema), "handler": called}


def _schema(given: Value) -> Dict:
    return given if isinstance(given, dict) else json_type(given)


def _warn_of_parameters(vm: Vm, name: str, handler: Fn) -> None:
    """Say, once for each tool, that its function will not get its arguments one by one (07 §4.3)."""
    warned = vm.state(_Warned).tools
    if name not in warned:
        warned.add(name)
        sessions_of(vm).world.warn("agent.tools", takes_several(name, handler.params))


def takes_several(name: str, params: Iterable[str]) -> str:
    """Return what to say of a tool whose function has several parameters."""
    return (
        f"tool '{name}' takes ({', '.join(params)}), but a loop calls it with one dict of its "
        "arguments: let it be { args -> … }"
    )


def _handler(vm: Vm, function: Value) -> Callable[[Dict], Value]:
    """Return a tool's function: what it raises is a `ToolFailure`, in the words that a model gets to read."""

    return _telling(lambda arguments: vm.call(function, arguments))


def _by_name(vm: Vm, name: str, schema: Dict, function: Fn) -> Callable[[Dict], Value]:
    """Return the function of a `tool` declaration, which gets its arguments by name (07 §4.3)."""

    def call(arguments: Dict) -> Value:
        refused = refusal(name, schema, arguments)
        if refused is not None:
            raise ToolFailure(refused, "schema_validation")
        return vm.call(function, *in_order(function.params, function.rest, arguments, MISSING))

    return _telling(call)


def _telling(function: Callable[[Dict], Value]) -> Callable[[Dict], Value]:
    """Return the same function, which tells in a `ToolFailure` what it raised."""

    def call(arguments: Dict) -> Value:
        try:
            result = function(arguments)
        except VmError as error:
            raise _failure(error) from error
        return _pieces(result) if isinstance(result, _IN_PIECES) else result

    return call


def _pieces(items: Iterator[Value]) -> Iterator[Value]:
    """Yield what a tool's function shows piece by piece; what it raises then is a `ToolFailure`, too."""
    try:
        yield from items
    except VmError as error:
        raise _failure(error) from error


def _failure(error: VmError) -> Exception | Interruption:
    """Return what a tool's function raised as the agents' room knows it."""
    if isinstance(error, Interrupted):
        return Interruption(str(error))
    if isinstance(error, Thrown):
        return ToolFailure(error.text, _category(error.value))
    if isinstance(error, CategorizedFault):
        return ToolFailure(error.text, error.category)
    return ToolFailure(describe(error, 0))


def _category(thrown: Value) -> str | None:
    return display(thrown["category"]) if type(thrown) is dict and "category" in thrown else None
