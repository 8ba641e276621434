"""Model calls that never throw, and calls for structured output. Spec: 07 §1.1, §1.9."""

from __future__ import annotations

from typing import NamedTuple

from harnpy.builtins.agents.models.llm_calls import answer_to, call_result, options_of
from harnpy.builtins.bridge.classify import classify
from harnpy.builtins.bridge.live_models import models_of
from harnpy.builtins.bridge.option_tables import checked_system
from harnpy.faults import Fault, OptionError
from harnpy.llm.categories import cause
from harnpy.llm.errors import CallError
from harnpy.llm.structured.asking import Answer, settle
from harnpy.llm.structured.envelope import (
    answer_envelope,
    error_envelope,
    repair_options,
    repair_prompt,
    repaired_envelope,
)
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.values.objects import display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.llm.request import Request
    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


_RETRIES = 3
_NO_SCHEMA = "llm_call_structured: missing required `schema` argument (expected (prompt, schema, options?))"


@builtin(
    "llm_call_safe(prompt: string, system?: string | nil, options?: dict) -> dict", family="llm", guarded=True
)
def llm_call_safe(vm: Vm, prompt: str, system: Value, options: Value) -> Dict:
    """Call a model once and return `{ok, response, error}` instead of throwing.

    Example:
        llm_mock({error: {category: "rate_limit"}})
        llm_call_safe("Hi", nil, {provider: "mock", llm_retries: 0}).ok  // false
    """
    try:
        text = checked_system(vm, "llm_call_safe", system, options)
        tried = _try(vm, prompt, text, options)
    except OptionError as error:
        tried = _Tried(None, None, error)
    response = None if tried.answer is None else call_result(vm, tried.answer)
    return {"ok": tried.error is None, "response": response, "error": tried.error_dict(vm)}


@builtin(
    "llm_call_structured(prompt: string, schema?: dict, options?: dict) -> any", family="llm", guarded=True
)
def llm_call_structured(vm: Vm, prompt: str, schema: Value, options: Value) -> Value:
    r"""Ask a model for data that satisfies `schema`, and return that data.

    Asks up to three more times for valid data; then throws `{category: "schema_validation", …}`.

    Example:
        llm_mock({text: "{\"city\": \"Paris\"}"})
        let schema = {type: "object", properties: {city: {type: "string"}}}
        llm_call_structured("The capital of France?", schema, {provider: "mock"})  // {city: "Paris"}
    """
    given = _options(vm, "llm_call_structured", schema, options)
    return answer_to(vm, prompt, _system(given), given).reading.data


@builtin(
    "llm_call_structured_safe(prompt: string, schema?: dict, options?: dict) -> dict",
    family="llm",
    guarded=True,
)
def llm_call_structured_safe(vm: Vm, prompt: str, schema: Value, options: Value) -> Dict:
    """`llm_call_structured` that returns `{ok, data, error}` instead of throwing.

    Example:
        llm_mock({text: "[1, 2]"})
        llm_call_structured_safe("Two numbers", {type: "array"}, {provider: "mock"}).data  // [1, 2]
    """
    tried = _try_structured(vm, "llm_call_structured_safe", prompt, schema, options)
    data = None if tried.answer is None else tried.answer.reading.data
    return {"ok": tried.error is None, "data": data, "error": tried.error_dict(vm)}


@builtin(
    "llm_call_structured_result(prompt: string, schema?: dict, options?: dict) -> dict",
    family="llm",
    guarded=True,
)
def llm_call_structured_result(vm: Vm, prompt: str, schema: Value, options: Value) -> Dict:
    """`llm_call_structured` that returns a full report and never throws.

    `{ok, data, raw_text, error, error_category, attempts, repaired, extracted_json, usage, model,
    provider}`. With the option `repair`, one more call is made to correct invalid output.

    Example:
        llm_mock({text: "[1, 2]"})
        let schema = {type: "array", items: {type: "int"}}
        llm_call_structured_result("Two numbers", schema, {provider: "mock"}).attempts  // 1
    """
    caller = "llm_call_structured_result"
    main = _envelope(vm, options, _try_structured(vm, caller, prompt, schema, options, settled=False))
    if main["error_category"] not in ("missing_json", "schema_validation"):
        return main
    repair = repair_options(_options(vm, caller, schema, options))
    if repair is None:
        return main
    again = _try(vm, repair_prompt(main), None, repair, settled=False)
    return repaired_envelope(main, _envelope(vm, repair, again))


class _Tried(NamedTuple):
    """A call with either its answer or its error; without a request when the options were wrong."""

    request: Request | None
    answer: Answer | None
    error: Fault | None

    def error_dict(self, vm: Vm) -> Dict | None:
        error = self.error
        if error is None:
            return None
        if isinstance(error, CallError) and self.request is not None:
            return error.as_dict(self.request.provider, self.request.model, vm.world.clock.now())
        category = classify(error.message)
        kind, reason = cause(category, error.message)
        return {"category": category, "kind": kind, "reason": reason, "message": error.message}


def _try(vm: Vm, prompt: str, system: str | None, options: Value, settled: bool = True) -> _Tried:
    """Make a call; ``settled``: treat an invalid answer as the options say."""
    models = models_of(vm)
    request = None
    try:
        request = models.request(prompt, system, options_of(vm, options))
        answer = models.answer(request)
        return _Tried(request, settle(answer, models.world.warn) if settled else answer, None)
    except Fault as error:
        return _Tried(request, None, error)


def _try_structured(
    vm: Vm, caller: str, prompt: str, schema: Value, options: Value, settled: bool = True
) -> _Tried:
    try:
        given = _options(vm, caller, schema, options)
    except OptionError as error:
        return _Tried(None, None, error)
    return _try(vm, prompt, _system(given), given, settled)


def _envelope(vm: Vm, options: Value, tried: _Tried) -> Dict:
    if tried.answer is not None:
        return answer_envelope(tried.answer)
    error = tried.error_dict(vm) or {}
    if tried.request is not None:
        return error_envelope(error, tried.request.provider, tried.request.model)
    named = models_of(vm).options(options)
    return error_envelope(error, named.string("provider") or "", named.string("model") or "")


def _options(vm: Vm, caller: str, schema: Value, options: Value) -> Dict:
    """The options of ``caller`` with what a structured call adds to them. Raises `OptionError`."""
    checked_system(vm, caller, None, options)
    if schema is None:
        raise OptionError(_NO_SCHEMA)
    if type(schema) is not dict:
        wrong = f"must be a dict (JSON Schema), got {type_name(schema)}"
        raise OptionError(f"llm_call_structured: `schema` {wrong}")
    given = options if type(options) is dict else {}
    retries = [given[key] for key in ("schema_retries", "retries") if type(given.get(key)) is int]
    added = {
        "output_schema": schema,
        "json_schema": schema,
        "output_format": {"kind": "json_schema", "schema": schema, "strict": True},
        "response_format": "json",
        "output_validation": "error",
    }
    missing = {key: value for key, value in added.items() if given.get(key) is None}
    return {**given, **missing, "schema_retries": (*retries, _RETRIES)[0]}


def _system(given: Dict) -> str | None:
    return None if given.get("system") is None else display(given["system"])
