"""The model calls of compaction: which model, and which prompt. Spec: 08 §4.4."""

from __future__ import annotations

import os.path

from harnpy.builtins.agents.models.llm_calls import ask
from harnpy.builtins.bridge.live_models import models_of
from harnpy.builtins.bridge.places import module_directory
from harnpy.builtins.language.text.templates import rendered
from harnpy.text.templates import assets
from harnpy.vm.errors import RuntimeFault, Thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.llm.request import Request
    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

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
