"""Compaction: of a session, of a transcript, of a message list, of a long text. Spec: 08 §4."""

from __future__ import annotations

from harnpy.builtins.agents.sessions.summarizing import prompt_from, session_summarizer, summarizer
from harnpy.builtins.bridge.callables import with_callables
from harnpy.builtins.bridge.live_sessions import sessions_of
from harnpy.builtins.bridge.option_tables import check_options
from harnpy.reading.lenient import Options
from harnpy.session.errors import ResizeError
from harnpy.session.resize import engine
from harnpy.session.resize.compaction import KEEP_LAST, CompactPolicy
from harnpy.session.resize.microcompact import microcompact as shortened
from harnpy.session.resize.notes import compacted_event
from harnpy.session.transcripts import Transcripts, is_transcript
from harnpy.text.json.writer import pretty_json
from harnpy.vm.declare.builtin import builtin
from harnpy.vm.errors import RuntimeFault
from harnpy.vm.values.objects import display

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm


@builtin("agent_session_compact(id: string, opts?: any) -> int", family="agent_sessions", strict=True)
def agent_session_compact(vm: Vm, id: str, opts: Value) -> int:
    """Replace a session's older messages with a summary, and return how many messages there are then.

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
    """A transcript with its older messages replaced by a summary; unchanged when there is nothing to do.

    `opts`: `strategy`, `keep_last` (12), `target_tokens`, `summarize_prompt`, `summary`, and what
    `llm_call` takes. The result keeps the whole old transcript as an asset. Spec: 08 §4.7.

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
    """A message list with its older messages replaced by a summary.

    `opts`: `keep_last` (12), `compact_strategy`, `compact_callback`, and what `llm_call` takes.
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
    """About how many tokens a message list has: a quarter of the bytes of its text contents.

    Example:
        estimate_tokens([{role: "user", content: "a".repeat(400)}])  // 100
    """
    return engine.estimate_tokens(messages) if type(messages) is list else 0


@builtin("microcompact(text: string, max_chars: int = 20000) -> string", family="workflows")
def microcompact(vm: Vm, text: str, max_chars: int) -> str:
    r"""A long text's beginning, its end, and the lines that look like errors. Spec: 08 §4.10.

    Example:
        len(microcompact("x\n".repeat(5000), 200)) < 1000  // true
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
