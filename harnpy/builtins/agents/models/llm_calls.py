"""Model calls: `llm_call` and the mock model. Spec: 07 §1–2."""

from __future__ import annotations

from harnpy.agent.loop.transcript_entries import call_transcript
from harnpy.builtins.bridge.active_sessions import active_session
from harnpy.builtins.bridge.callables import with_callables
from harnpy.builtins.bridge.live_models import models_of
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.builtins.bridge.option_tables import check_options, checked_system
from harnpy.llm.call_result import result_dict
from harnpy.llm.errors import CallError
from harnpy.llm.structured.asking import settle
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.errors import Thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

    from harnpy.llm.reply import Reply
    from harnpy.llm.request import Request
    from harnpy.llm.structured.asking import Answer
    from harnpy.reading.dicts import Dict
    from harnpy.reading.lenient import Options
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin(
    "llm_call(prompt: string, system?: string | nil, options?: dict) -> dict", family="llm", guarded=True
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
    from harnpy.builtins.bridge.active_calls import ActiveCall

    call = ActiveCall(active, prompt)
    result = call_result(vm, answer_to(vm, prompt, text, {**(options or {}), "messages": call.messages()}))
    call.record(result["text"])
    return result


def answer_to(vm: Vm, prompt: str, system: str | None, options: Value) -> Answer:
    """The answer to a call, validated as its options ask.

    Raises `OptionError` and `MisuseError` before the call; a call that fails throws the error's dict.
    """
    models = models_of(vm)
    request = models.request(prompt, system, options_of(vm, options))
    with CallErrors(vm, request):
        return settle(models.answer(request), models.world.warn)


def call_result(vm: Vm, answer: Answer) -> Dict:
    """The dict that `llm_call` returns."""
    reply, request = answer.reply, answer.request
    note = request.experiment_note
    transcript = call_transcript(request, reply, sessions_of(vm).world, structural_experiment=note)
    return {**result_dict(reply, request.tools, answer.reading), "transcript": transcript}


def options_of(vm: Vm, given: Value) -> Options:
    """The options of a call as `harnpy.llm` reads them: their functions are Python functions."""
    return models_of(vm).options(with_experiment(vm, given))


def with_experiment(vm: Vm, options: Value) -> Value:
    """The options with the function of a structural experiment, if any, as a Python function."""
    options = with_callables(vm, options, "structural_experiment")
    if type(options) is not dict or type(options.get("structural_experiment")) is not dict:
        return options
    experiment = with_callables(vm, options["structural_experiment"], "transform", "handler")
    return {**options, "structural_experiment": experiment}


def ask(vm: Vm, request: Request) -> Reply:
    """The model's reply; a call that fails throws the error's dict (07 §1.7)."""
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
            request = self.request
            thrown = error.as_dict(request.provider, request.model, self.vm.world.clock.now())
            raise Thrown(thrown) from error


@builtin("llm_mock(config: dict) -> nil", family="llm")
def llm_mock(vm: Vm, config: Value) -> None:
    """Queue a reply of the mock model: `{text?, tool_calls?, match?, error?, …}`.

    Replies without `match` are used once, oldest first; a `match` is a pattern over the messages, with
    `*` for any text. Spec: 07 §2.2.

    Example:
        llm_mock_clear()
        llm_mock({text: "Sunny.", match: "*weather*"})
        llm_call("How is the weather?", nil, {provider: "mock"}).text  // "Sunny."
    """
    check_options(vm, "llm_mock", config)
    models_of(vm).mock.add(config)


@builtin("llm_mock_calls() -> list", family="llm")
def llm_mock_calls(vm: Vm) -> list[Dict]:
    """The calls that the mock model received, as `{messages, system, tools, thinking}`.

    Example:
        llm_mock_clear()
        llm_call("Hi", nil, {provider: "mock"})
        llm_mock_calls()[0].messages[0].content  // "Hi"
    """
    return models_of(vm).mock.calls()


@builtin("llm_mock_clear() -> nil", family="llm")
def llm_mock_clear(vm: Vm) -> None:
    """Forget queued replies, the log of calls, saved scopes, and fixtures of the command line.

    Example:
        llm_call("Hi", nil, {provider: "mock"})
        llm_mock_clear()
        llm_mock_calls()  // []
    """
    models_of(vm).clear_mocks()


@builtin("llm_mock_push_scope() -> nil", family="llm")
def llm_mock_push_scope(vm: Vm) -> None:
    """Save the mock model's queue and log, and start with empty ones.

    Example:
        llm_mock_push_scope()
        let calls = llm_mock_calls()
        llm_mock_pop_scope()
        calls  // []
    """
    models_of(vm).mock.push_scope()


@builtin("llm_mock_pop_scope() -> nil", family="llm")
def llm_mock_pop_scope(vm: Vm) -> None:
    """Restore what `llm_mock_push_scope` saved.

    Example:
        llm_mock_push_scope()
        llm_mock({text: "inside"})
        llm_mock_pop_scope()  // nil
    """
    models_of(vm).mock.pop_scope()
