"""Transcripts as values, and the compaction of sessions, transcripts, messages and long texts.

Spec: 08 §2.4, §4.
"""

from __future__ import annotations

from harnpy.builtins.agents.agent_functions import prompt_from, session_summarizer, summarizer
from harnpy.builtins.bridge.callables import with_callables
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.builtins.options import check_options
from harnpy.formats.dicts import Options
from harnpy.formats.json import JsonError, parse_json, pretty_json
from harnpy.session import compaction as engine
from harnpy.session import transcript_operations
from harnpy.session.compaction import KEEP_LAST, CompactPolicy, conversation_lines
from harnpy.session.errors import ResizeError
from harnpy.session.lifecycle import compacted_event
from harnpy.session.strategies import microcompact as shortened
from harnpy.session.transcript_operations import Transcripts, is_transcript
from harnpy.vm.declare import ABSENT, builtin
from harnpy.vm.errors import RuntimeFault, Thrown
from harnpy.vm.values import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.formats.dicts import Dict
    from harnpy.vm.values import Value
    from harnpy.vm.vm import Vm

_KEEP_LAST = 6
_SUMMARY_PROMPT = (
    "Write a summary of this conversation that lets another agent take over: keep what was asked, the limits "
    "that apply, what was decided, open questions and the next steps. Short, with nothing needed left out."
)


@builtin("transcript(metadata?: any) -> dict", family="transcripts", counted=True)
def transcript(vm: Vm, metadata: Value = ABSENT) -> Dict:
    """Return an empty transcript. Spec: 08 §2.4.

    Example: transcript({topic: "bolts"}).metadata.topic  // "bolts"
    """
    made = _maker(vm).new()
    return made if metadata is ABSENT else {**made, "metadata": metadata}


@builtin("conversation() -> list", family="transcripts")
def conversation(vm: Vm) -> list[Value]:
    """Return an empty message list. Spec: 08 §2.4.

    Example: conversation()  // []
    """
    return []


@builtin("transcript_from_messages(messages: any) -> dict", family="transcripts")
def transcript_from_messages(vm: Vm, messages: Value) -> Dict:
    """Return a new transcript with the messages of a list or of another transcript.

    Example: transcript_messages(transcript_from_messages([{role: "user", content: "Hi"}])).count()  // 1
    """
    if is_transcript(messages):
        messages = transcript_operations.messages_of(messages)
    elif type(messages) is not list:
        raise Thrown("transcript_from_messages: argument must be a message list or transcript")
    return _maker(vm).new(messages)


@builtin("transcript_messages(t: dict) -> list", family="transcripts")
def transcript_messages(vm: Vm, t: Value) -> list[Value]:
    """Return the messages of a transcript.

    Example: transcript_messages(add_user(transcript(), "Hi"))[0].content  // "Hi"
    """
    return transcript_operations.messages_of(_transcript("transcript_messages", t))


@builtin("transcript_events(t: dict) -> list", family="transcripts")
def transcript_events(vm: Vm, t: Value) -> list[Value]:
    """Return the events of a transcript: messages and everything else that happened.

    Example: transcript_events(add_user(transcript(), "Hi")).map({ event -> event.kind })  // ["message"]
    """
    events = _transcript("transcript_events", t).get("events")
    return events if type(events) is list else []


@builtin("transcript_assets(t: dict) -> list", family="transcripts")
def transcript_assets(vm: Vm, t: Value) -> list[Value]:
    """Return the assets of a transcript.

    Example: transcript_assets(transcript())  // []
    """
    return transcript_operations.assets_of(_transcript("transcript_assets", t))


@builtin("transcript_summary(t: dict) -> string | nil", family="transcripts")
def transcript_summary(vm: Vm, t: Value) -> Value:
    """Return the summary of a transcript, or nil.

    Example: transcript_summary(transcript())  // nil
    """
    return _transcript("transcript_summary", t).get("summary")


@builtin("transcript_id(t: dict) -> string", family="transcripts")
def transcript_id(vm: Vm, t: Value) -> str:
    """Return the id of a transcript, or `""`.

    Example: len(transcript_id(transcript())) > 0  // true
    """
    id = _transcript("transcript_id", t).get("id")
    return "" if id is None else display(id)


@builtin("transcript_add_asset(t: dict, asset: any) -> dict", family="transcripts")
def transcript_add_asset(vm: Vm, t: Value, asset: Value) -> Dict:
    """Return the transcript with an asset added; one with the same id is replaced. Spec: 08 §2.4.

    Example: transcript_assets(transcript_add_asset(transcript(), {id: "plan", kind: "text"})).count()  // 1
    """
    former = _transcript("transcript_add_asset", t)
    if asset is None:
        raise Thrown("transcript_add_asset: missing asset")
    return _maker(vm).with_asset(former, asset)


@builtin("transcript_render_visible(t: dict) -> string", family="transcripts")
def transcript_render_visible(vm: Vm, t: Value) -> str:
    """Return a line `ROLE: TEXT` for each public event that has text.

    Example: transcript_render_visible(add_user(transcript(), "Hi"))  // "user: Hi"
    """
    return transcript_operations.rendered(_transcript("transcript_render_visible", t))


@builtin("transcript_render_full(t: dict) -> string", family="transcripts")
def transcript_render_full(vm: Vm, t: Value) -> str:
    """Return a line `[VISIBILITY] ROLE: TEXT` for each event.

    Example: transcript_render_full(add_user(transcript(), "Hi"))  // "[public] user: Hi"
    """
    return transcript_operations.rendered_in_full(_transcript("transcript_render_full", t))


@builtin("transcript_export(t: dict) -> string", family="transcripts")
def transcript_export(vm: Vm, t: Value) -> str:
    """Return a transcript as JSON, indented by two spaces.

    Example: transcript_import(transcript_export(transcript({topic: "bolts"}))).metadata.topic  // "bolts"
    """
    return pretty_json(_transcript("transcript_export", t))


@builtin("transcript_import(text: string) -> any", family="transcripts")
def transcript_import(vm: Vm, text: str) -> Value:
    r"""Return the value of a JSON text, without checking that it is a transcript.

    Example: transcript_import("{\"_type\": \"transcript\", \"messages\": []}").messages  // []
    """
    try:
        return parse_json(text)
    except JsonError as error:
        raise RuntimeFault(f"transcript_import: {error}") from None


@builtin("transcript_fork(t: dict, opts?: dict) -> dict", family="transcripts")
def transcript_fork(vm: Vm, t: Value, opts: Value) -> Dict:
    """Return the transcript as `forked`, under its id. `opts`: `retain_messages`, `retain_summary` (true).

    Example:
        let t = add_user(transcript(), "Hi")
        len(transcript_messages(transcript_fork(t, {retain_messages: false})))  // 0
    """
    former = _transcript("transcript_fork", t)
    check_options(vm, "transcript_fork", opts)
    options = opts if type(opts) is dict else {}
    retain = [bool(options.get(key, True)) for key in ("retain_messages", "retain_summary")]
    return _maker(vm).forked(former, *retain)


@builtin("transcript_reset(opts?: dict) -> dict", family="transcripts")
def transcript_reset(vm: Vm, opts: Value) -> Dict:
    """Return a new, empty, active transcript with an event that records the reset. `opts`: `metadata`.

    Example: transcript_messages(transcript_reset())  // []
    """
    return _maker(vm).reset(opts if type(opts) is dict else {})


@builtin("transcript_archive(t: dict) -> dict", family="transcripts")
def transcript_archive(vm: Vm, t: Value) -> Dict:
    """Return the transcript in state `archived`.

    Example: transcript_archive(transcript()).state  // "archived"
    """
    return _moved(vm, "archive", t, "archived")


@builtin("transcript_abandon(t: dict) -> dict", family="transcripts")
def transcript_abandon(vm: Vm, t: Value) -> Dict:
    """Return the transcript in state `abandoned`.

    Example: transcript_abandon(transcript()).state  // "abandoned"
    """
    return _moved(vm, "abandon", t, "abandoned")


@builtin("transcript_resume(t: dict) -> dict", family="transcripts")
def transcript_resume(vm: Vm, t: Value) -> Dict:
    """Return the transcript in state `active` again.

    Example: transcript_resume(transcript_archive(transcript())).state  // "active"
    """
    return _moved(vm, "resume", t, "active")


@builtin("transcript_summarize(t: dict, opts?: dict) -> dict", family="transcripts")
def transcript_summarize(vm: Vm, t: Value, opts: Value) -> Dict:
    """Return the transcript with its last messages and a model's summary of all.

    `opts`: `keep_last` (6), `prompt`, and options of `llm_call`. Spec: 08 §2.4.

    Example:
        llm_mock({text: "They greeted each other."})
        let t = add_user(transcript(), "Hi")
        transcript_summarize(t, {provider: "mock"}).summary  // "They greeted each other."
    """
    former = _transcript("transcript_summarize", t)
    check_options(vm, "transcript_summarize", opts)
    options = opts if type(opts) is dict else {}
    keep_last, prompt = options.get("keep_last"), options.get("prompt")
    question = _SUMMARY_PROMPT if prompt is None else display(prompt)
    lines = conversation_lines(transcript_operations.messages_of(former))
    reply = summarizer(vm, options)(f"{question}\n\nConversation:\n{lines}")
    kept = max(0, keep_last) if type(keep_last) is int else _KEEP_LAST
    return _maker(vm).summarised(former, kept, reply)


@builtin("transcript_stats(t: any) -> dict", family="transcripts")
def transcript_stats(vm: Vm, t: Value) -> Dict:
    """Return the numbers of messages and events by kind; all zero for anything but a dict.

    Example: transcript_stats(add_user(transcript(), "Hi")).message_count  // 1
    """
    return transcript_operations.statistics(t)


@builtin("transcript_events_by_kind(t: any, kind: string) -> list", family="transcripts")
def transcript_events_by_kind(vm: Vm, t: Value, kind: str) -> list[Dict]:
    """Return the events of one kind; none unless given a transcript.

    Example: transcript_events_by_kind(add_user(transcript(), "Hi"), "message").count()  // 1
    """
    return [event for event in transcript_operations.events_of(t) if event.get("kind") == kind]


@builtin("add_message(c: any, role: string, content: any) -> any", family="transcripts", counted=True)
def add_message(vm: Vm, c: Value = None, role: Value = "", content: Value = ABSENT) -> Value:
    """Return a message list, or a transcript, with a message added.

    Example: add_message(conversation(), "user", "Hi")  // [{role: "user", content: "Hi"}]
    """
    return _with_message(vm, "add_message", c, {"role": display(role), "content": _content(content)})


@builtin("add_user(c: any, content: any) -> any", family="transcripts", counted=True)
def add_user(vm: Vm, c: Value = None, content: Value = ABSENT) -> Value:
    """Return a message list, or a transcript, with a user message added. A transcript loses its other events.

    Example: add_user(transcript(), "Hi").messages[0].content  // "Hi"
    """
    return _said(vm, "user", c, content)


@builtin("add_assistant(c: any, content: any) -> any", family="transcripts", counted=True)
def add_assistant(vm: Vm, c: Value = None, content: Value = ABSENT) -> Value:
    """Return a message list, or a transcript, with an assistant message added.

    Example:
        let messages = add_assistant(add_user(conversation(), "Hi"), "Hello!")
        messages.map({ message -> message.role })  // ["user", "assistant"]
    """
    return _said(vm, "assistant", c, content)


@builtin("add_system(c: any, content: any) -> any", family="transcripts", counted=True)
def add_system(vm: Vm, c: Value = None, content: Value = ABSENT) -> Value:
    """Return a message list, or a transcript, with a system message added.

    Example: add_system(conversation(), "Be brief.")[0].role  // "system"
    """
    return _said(vm, "system", c, content)


@builtin("add_tool_result(c: any, tool_use_id: string, content: string) -> any", family="transcripts")
def add_tool_result(vm: Vm, c: Value, tool_use_id: str, content: str) -> Value:
    """Return a message list, or a transcript, with the result of a tool call added.

    Example: add_tool_result(conversation(), "call_1", "40 bolts").count()  // 1
    """
    message = {"role": "tool_result", "tool_use_id": tool_use_id, "content": content}
    return _with_message(vm, "add_tool_result", c, message)


def _maker(vm: Vm) -> Transcripts:
    return Transcripts(sessions_of(vm).world)


def _transcript(verb: str, value: Value) -> Dict:
    if not is_transcript(value):
        raise Thrown(f"{verb}: argument must be a transcript")
    found: Dict = value
    return found


def _moved(vm: Vm, verb: str, value: Value, state: str) -> Dict:
    former = _transcript(f"transcript_{verb}", value)
    return _maker(vm).moved(former, verb, state)


def _content(given: Value) -> Value:
    return "" if given is ABSENT else given


def _said(vm: Vm, role: str, given: Value, content: Value) -> Value:
    message = {"role": role, "content": _content(content)}
    return _with_message(vm, f"add_{role}", given, message, keep_events=False)


def _with_message(vm: Vm, verb: str, given: Value, message: Dict, keep_events: bool = True) -> Value:
    if type(given) is list:
        return [*given, message]
    if not is_transcript(given):
        raise Thrown(f"{verb}: first argument must be a message list or transcript")
    messages = [*transcript_operations.messages_of(given), message]
    return _maker(vm).with_messages(given, messages, keep_events=keep_events)


# Compaction: of a session, of a transcript, of a message list, of a long text. Spec: 08 §4.


@builtin("agent_session_compact(id: string, opts?: any) -> int", family="agent_sessions", strict=True)
def agent_session_compact(vm: Vm, id: str, opts: Value) -> int:
    """Replace a session's older messages with a summary; return the new number of messages.

    `opts`: `keep_last` (12), `compact_strategy` (`observation_mask`, `truncate`, `llm`, `custom`),
    `custom_compactor`, `mask_callback`, `compress_callback`, `hard_limit_tokens`, `hard_limit_strategy`,
    `token_threshold`, `tool_output_max_chars`. `agent_session_history` still has everything. Spec: 08 §4.6.

    Example:
        let s = agent_session_open()
        for n in 1 to 20 { agent_session_inject(s, {role: "user", content: "message ${n}"}) }
        agent_session_compact(s, {keep_last: 4, compact_strategy: "truncate"})  // 5
    """
    given = with_callables(vm, opts, "custom_compactor", "mask_callback", "compress_callback")
    return sessions_of(vm).compact(id, given, session_summarizer(vm))


@builtin("transcript_compact(t: any, opts?: dict) -> dict", family="transcripts")
def transcript_compact(vm: Vm, t: Value, opts: Value) -> Dict:
    """Return the transcript with its older messages replaced by a summary, or unchanged if nothing needs it.

    `opts`: `strategy`, `keep_last` (12), `target_tokens`, `summarize_prompt`, `summary`, and options of
    `llm_call`. The result keeps the whole old transcript as an asset. Spec: 08 §4.7.

    Example:
        let t = transcript_from_messages((1 to 20).map({ n -> {role: "user", content: "${n}"} }).to_list())
        len(transcript_messages(transcript_compact(t, {strategy: "truncate", keep_last: 3})))  // 4
    """
    former: Dict = t
    if not is_transcript(t):
        raise RuntimeFault("transcript_compact: first argument must be a transcript")
    check_options(vm, "transcript_compact", opts)
    options = opts if type(opts) is dict else {}
    store = sessions_of(vm)
    policy = _transcript_policy(vm, options)
    summary = options.get("summary")
    text = None if summary is None else display(summary)
    made = Transcripts(store.world).compacted(former, policy, text)
    if made is None:
        return former
    result, report = made
    id = t["id"] if type(t.get("id")) is str and t["id"] else store.current_id()
    if id is not None:
        asset = report.pop("snapshot_asset_id")
        store.emit(id, compacted_event(id, "manual", report, asset))
    return result


@builtin("transcript_auto_compact(messages: any, opts?: dict) -> list", family="workflows")
def transcript_auto_compact(vm: Vm, messages: Value, opts: Value) -> list[Value]:
    """Return a message list with its older messages replaced by a summary.

    `opts`: `keep_last` (12), `compact_strategy`, `compact_callback`, and options of `llm_call`.
    Spec: 08 §4.8.

    Example:
        let messages = (1 to 20).map({ n -> {role: "user", content: "message ${n}"} }).to_list()
        transcript_auto_compact(messages, {keep_last: 4, compact_strategy: "truncate"}).count()  // 5
    """
    if type(messages) is not list:
        raise RuntimeFault("transcript_auto_compact: first argument must be a message list")
    check_options(vm, "transcript_auto_compact", opts)
    options = with_callables(vm, opts, "compact_callback") if type(opts) is dict else {}
    dicts = [message for message in messages if type(message) is dict]
    callback, strategy = options.get("compact_callback"), options.get("compact_strategy")
    if strategy is None:
        strategy = "observation_mask" if callback is None else "custom"
    keep_last = options.get("keep_last")
    policy = CompactPolicy(
        keep_last=max(0, keep_last) if type(keep_last) is int else KEEP_LAST,
        strategy=display(strategy),
        custom_compactor=callback,
        summarize=summarizer(vm, options),
        pretty=pretty_json,
    )
    compaction = engine.compact(dicts, policy)
    return messages if compaction is None else compaction.applied(dicts)


@builtin("estimate_tokens(messages: any) -> int", family="workflows")
def estimate_tokens(vm: Vm, messages: Value) -> int:
    """Return roughly how many tokens a message list has: a quarter of the bytes of its texts.

    Example: estimate_tokens([{role: "user", content: "a".repeat(400)}])  // 100
    """
    return engine.estimate_tokens(messages) if type(messages) is list else 0


@builtin("microcompact(text: string, max_chars: int = 20000) -> string", family="workflows")
def microcompact(vm: Vm, text: str, max_chars: int) -> str:
    r"""Return a long text's beginning, its end, and the lines that look like errors. Spec: 08 §4.10.

    Example: len(microcompact("x\n".repeat(5000), 200)) < 1000  // true
    """
    return shortened(text, max_chars)


def _transcript_policy(vm: Vm, options: Dict) -> CompactPolicy:
    strategy = options.get("strategy")
    if strategy is None:
        strategy = options.get("compact_strategy")
    strategy = "observation_mask" if strategy is None else display(strategy)
    if strategy == "custom":
        raise ResizeError(
            "transcript_compact: strategy 'custom' is not supported; use 'llm', 'truncate', or "
            "'observation_mask'"
        )
    read = Options(options)
    keep_last = read.limit("keep_last", "transcript_compact")
    target = read.limit("target_tokens", "transcript_compact")
    prompt = options.get("summarize_prompt")
    if prompt is not None and strategy != "llm":
        raise ResizeError("transcript_compact: summarize_prompt is only supported with strategy 'llm'")
    return CompactPolicy(
        keep_last=KEEP_LAST if keep_last is None else keep_last,
        strategy=strategy,
        hard_limit_tokens=target,
        hard_limit_strategy=strategy,
        summarize=summarizer(vm, options),
        prompt=None if prompt is None else prompt_from(vm, display(prompt)),
    )
