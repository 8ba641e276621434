"""Model calls: `llm_call`, calls that never throw, structured output, streams, the mock model.

Spec: 07 §1-2.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from harnpy.agent.loop.transcript_entries import call_transcript
from harnpy.builtins.bridge.callables import with_callables
from harnpy.builtins.bridge.live_sessions import active_session, sessions_of
from harnpy.builtins.language.errors import classify
from harnpy.builtins.live_models import models_of
from harnpy.builtins.options import check_options, checked_system
from harnpy.faults import Fault, OptionError
from harnpy.llm.call import complete_infill, infill_prompt
from harnpy.llm.call_result import (
    answer_envelope,
    error_envelope,
    repair_options,
    repair_prompt,
    repaired_envelope,
    result_dict,
)
from harnpy.llm.errors import CallError, cause
from harnpy.llm.streaming import stream_into
from harnpy.llm.structured import Answer, settle
from harnpy.vm.declare import builtin as declare
from harnpy.vm.errors import Thrown
from harnpy.vm.run.channels import Channel
from harnpy.vm.values import display, type_name

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from harnpy.formats.dicts import Dict, Options
    from harnpy.llm.reply import Reply
    from harnpy.llm.request import Request
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

builtin = partial(declare, family="llm")


@builtin(
    "llm_call<T>(prompt: string, system?: string | nil, options?: {output_schema?: Schema<T>}) ->"
    " {text: string, model: string, provider: string, input_tokens: int, output_tokens: int, data: T,"
    " visible_text?: string, tool_calls?: list, thinking?: string, stop_reason?: string, refusal?: string}",
    guarded=True,
)
def llm_call(vm: Vm, prompt: str, system: Value, options: Value) -> Dict:
    """Call a model once and return `{text, model, provider, usage, transcript, …}`.

    On an active session (`std/session`) its window comes first, and prompt and answer are recorded there.
    Throws `{category, kind, reason, message, provider, model}` when the call fails, and a string when
    the options are wrong. Spec: 07 §1.

    Example:
        llm_mock({text: "Paris."})
        llm_call("The capital of France?", "Be brief.", {provider: "mock"}).text  // "Paris."
    """
    text = checked_system(vm, "llm_call", system, options)
    active = active_session(vm)
    if active is None or (type(options) is dict and options.get("messages") is not None):
        return call_result(vm, answer_to(vm, prompt, text, options))
    from harnpy.builtins.bridge.live_sessions import ActiveCall

    call = ActiveCall(active, prompt)
    result = call_result(vm, answer_to(vm, prompt, text, {**(options or {}), "messages": call.messages()}))
    call.record(result["text"])
    return result


def answer_to(vm: Vm, prompt: str, system: str | None, options: Value) -> Answer:
    """Return the answer to a call, validated as its options ask.

    Raises `OptionError` and `MisuseError` before the call; a call that fails throws the error's dict.
    """
    models = models_of(vm)
    request = models.request(prompt, system, options_of(vm, options))
    with CallErrors(vm, request):
        return settle(models.answer(request), models.world.warn)


def call_result(vm: Vm, answer: Answer) -> Dict:
    """Return the dict that `llm_call` returns."""
    reply, request = answer.reply, answer.request
    note = request.experiment_note
    transcript = call_transcript(request, reply, sessions_of(vm).world, structural_experiment=note)
    return {**result_dict(reply, request.tools, answer.reading), "transcript": transcript}


def options_of(vm: Vm, given: Value) -> Options:
    """Return the options of a call as `harnpy.llm` reads them: their functions are Python functions."""
    return models_of(vm).options(with_experiment(vm, given))


def with_experiment(vm: Vm, options: Value) -> Value:
    """Return the options with the function of a structural experiment, if any, as a Python function."""
    options = with_callables(vm, options, "structural_experiment")
    if type(options) is not dict or type(options.get("structural_experiment")) is not dict:
        return options
    experiment = with_callables(vm, options["structural_experiment"], "transform", "handler")
    return {**options, "structural_experiment": experiment}


def ask(vm: Vm, request: Request) -> Reply:
    """Return the model's reply; a call that fails throws the error's dict (07 §1.7)."""
    with CallErrors(vm, request):
        return models_of(vm).ask(request)


class CallErrors:
    """``with CallErrors(vm, request):`` turns the error of a call into what `llm_call` throws."""

    def __init__(self, vm: Vm, request: Request) -> None:
        self.vm = vm
        self.request = request

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, CallError):
            raise Thrown(error.as_dict(self.request.provider, self.request.model)) from error


@builtin("llm_mock(config: dict) -> nil")
def llm_mock(vm: Vm, config: Value) -> None:
    """Queue a reply from the mock model: `{text?, tool_calls?, match?, error?, …}`.

    Replies without `match` are used once, oldest first; a `match` is a pattern over the messages, with
    `*` for any text. Spec: 07 §2.2.

    Example:
        llm_mock_clear()
        llm_mock({text: "Sunny.", match: "*weather*"})
        llm_call("How is the weather?", nil, {provider: "mock"}).text  // "Sunny."
    """
    check_options(vm, "llm_mock", config)
    models_of(vm).mock.add(config)


@builtin("llm_mock_calls() -> list")
def llm_mock_calls(vm: Vm) -> list[Dict]:
    """Return the calls that the mock model received, as `{messages, system, tools, thinking}`.

    Example:
        llm_mock_clear()
        llm_call("Hi", nil, {provider: "mock"})
        llm_mock_calls()[0].messages[0].content  // "Hi"
    """
    return models_of(vm).mock.calls()


@builtin("llm_mock_clear() -> nil")
def llm_mock_clear(vm: Vm) -> None:
    """Forget queued replies, the log of calls, saved scopes, and fixtures from the command line.

    Example:
        llm_call("Hi", nil, {provider: "mock"})
        llm_mock_clear()
        llm_mock_calls()  // []
    """
    models_of(vm).clear_mocks()


@builtin("llm_mock_push_scope() -> nil")
def llm_mock_push_scope(vm: Vm) -> None:
    """Save the mock model's queue and log, and start with empty ones.

    Example:
        llm_mock_push_scope()
        let calls = llm_mock_calls()
        llm_mock_pop_scope()
        calls  // []
    """
    models_of(vm).mock.push_scope()


@builtin("llm_mock_pop_scope() -> nil")
def llm_mock_pop_scope(vm: Vm) -> None:
    """Restore what `llm_mock_push_scope` saved.

    Example:
        llm_mock_push_scope()
        llm_mock({text: "inside"})
        llm_mock_pop_scope()  // nil
    """
    models_of(vm).mock.pop_scope()


# Model calls that never throw, and calls for structured output. Spec: 07 §1.1, §1.9.


_RETRIES = 3
_NO_SCHEMA = "llm_call_structured: missing required `schema` argument (expected (prompt, schema, options?))"


@builtin("llm_call_safe(prompt: string, system?: string | nil, options?: dict) -> dict", guarded=True)
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


@builtin("llm_call_structured<T>(prompt: string, schema?: Schema<T>, options?: dict) -> T", guarded=True)
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


@builtin("llm_call_structured_safe(prompt: string, schema?: dict, options?: dict) -> dict", guarded=True)
def llm_call_structured_safe(vm: Vm, prompt: str, schema: Value, options: Value) -> Dict:
    """Do what `llm_call_structured` does, but return `{ok, data, error}` instead of throwing.

    Example:
        llm_mock({text: "[1, 2]"})
        llm_call_structured_safe("Two numbers", {type: "array"}, {provider: "mock"}).data  // [1, 2]
    """
    tried = _try_structured(vm, "llm_call_structured_safe", prompt, schema, options)
    data = None if tried.answer is None else tried.answer.reading.data
    return {"ok": tried.error is None, "data": data, "error": tried.error_dict(vm)}


@builtin(
    "llm_call_structured_result<T>(prompt: string, schema?: Schema<T>, options?: dict) ->"
    " {ok: bool, data: T | nil, raw_text: string, error: string, error_category: string | nil,"
    " attempts: int, repaired: bool, extracted_json: bool,"
    " usage: {input_tokens: int, output_tokens: int, cache_read_tokens: int, cache_write_tokens: int},"
    " model: string, provider: string}",
    guarded=True,
)
def llm_call_structured_result(vm: Vm, prompt: str, schema: Value, options: Value) -> Dict:
    """Do what `llm_call_structured` does, but return a full report and never throw.

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
            return error.as_dict(self.request.provider, self.request.model)
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
    """Return the options of ``caller`` with what a structured call adds to them. Raises `OptionError`."""
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


# Replies as they come, and text between two others. Spec: 07 §1.11.


@builtin("llm_stream(prompt: string, system?: string | nil, options?: dict) -> channel", guarded=True)
def llm_stream(vm: Vm, prompt: str, system: Value, options: Value) -> Channel:
    """Return a channel with the pieces of a model's reply: `for piece in llm_stream(…)`.

    A call that fails sends `error: <message>` as its last piece. Spec: 07 §1.11.

    Example:
        var story = ""
        for piece in llm_stream("A story", nil, {provider: "mock"}) { story = story + piece }
        story.contains("story")  // true
    """
    models = models_of(vm)
    text = checked_system(vm, "llm_stream", system, options)
    request = models.request(prompt, text, options_of(vm, options))
    with CallErrors(vm, request):
        models.account.check(request)
    channel = Channel(vm.tasks, "llm_stream")

    def produce(depth: int) -> None:
        try:
            stream_into(channel.send, models, request, channel.offer)
        except Fault as error:
            channel.send(f"error: {error.message}")
        finally:
            channel.close()

    vm.tasks.detach(produce)
    return channel


@builtin(
    "llm_completion<T>(prefix: string, suffix?: string, system?: string | nil,"
    " options?: {output_schema?: Schema<T>}) ->"
    " {text: string, model: string, provider: string, input_tokens: int, output_tokens: int, data: T,"
    " visible_text?: string, tool_calls?: list, thinking?: string, stop_reason?: string, refusal?: string}",
    guarded=True,
)
def llm_completion(vm: Vm, prefix: str, suffix: str | None, system: Value, options: Value) -> dict[str, Any]:
    r"""Ask a model for the text between `prefix` and `suffix`.

    Returns what `llm_call` does, without `transcript`. Spec: 07 §1.11.

    Example: llm_completion("def add(a, b):\n", nil, nil, {provider: "mock"}).provider  // "mock"
    """
    models = models_of(vm)
    text = checked_system(vm, "llm_completion", system, options)
    request = models.request(infill_prompt(prefix, suffix or ""), text, options_of(vm, options))
    with CallErrors(vm, request):
        return result_dict(complete_infill(models, request, prefix, suffix or ""))
