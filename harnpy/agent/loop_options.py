"""The options of loops, sub-agents, workers, daemons, hooks and questions, as programs may write them.

Every builtin with options loads these tables, so they stand apart from `loop_settings`, which reads them.
Spec: 07 §4.8, §6.1, §8.4, §10.2, §11.2, §12, §14.
"""

from __future__ import annotations

from harnpy.formats.options import OptionTable
from harnpy.llm.call_options import CALL

SKILL_MATCH = OptionTable("""
    strategy: string = metadata — metadata, host or embedding
    top_n: int = 1 — how many skills are active at most
    sticky: bool = true — a resumed session keeps its active skills
""")

_TURN_POLICY = OptionTable("""
    require_action_or_yield: bool = false — a turn must call a tool or yield
    allow_done_sentinel: bool = true — the sentinel may end the loop
    max_prose_chars: int — how much of a turn's prose users see
""")

COMPACTION = OptionTable("""
    type, kind, strategy: string = hybrid — none, truncate, summarize_middle, summarize_all or hybrid
    keep_first_n, keep_first: int = 0 — messages at the beginning that stay
    keep_last_n, keep_last: int = 10 — messages at the end that stay
""")

DELIVERABLE = OptionTable("""
    id: string — by default deliverable-1 and so on
    text: string — what is to be delivered
    status: string = open — open, done, blocked or dropped
    note: string — why
""")

_SERVER = OptionTable("""
    name: string — what its tools' names begin with
    transport: string = stdio — stdio or http
    command: string | list — its program, or a list with the arguments
    args: list — arguments of the program
    env: dict — variables of the program, besides ours
    cwd: string — the directory that the program runs in
    quiet: bool = false — don't show what the program writes to stderr
    url: string — where a server over HTTP is
    auth_token: string — what it is sent as bearer token
    protocol_version: string — the version of the protocol; the newest that the server speaks by default
    proxy_server_name: string — what a proxy in between knows the server by
""")

#: A table `[[mcp]]` of harn.toml.
DECLARED_SERVER = _SERVER + OptionTable("""
    lazy: bool = false — start it when it is used
    card: string — the file or URL of its card
    keep_alive_ms: int = 0 — how long it stays when nobody uses it
""")

LEDGER = OptionTable(
    """
    root_task: string — what all is about
    deliverables: list — what must be done before the loop may end
    rationale: string — why so
    observations: list — what was noticed
    """,
    {"deliverables": DELIVERABLE},
)

LOOP = CALL + OptionTable(
    """
    profile: string = tool_using — tool_using, researcher, verifier or completer
    max_iterations: int — model turns; by default the profile's
    max_nudges: int — turns without a tool call, one after another; by default the profile's
    tool_retries: int — by default the profile's
    tool_backoff_ms: int = 1000 — the first pause between them
    overflow_retries: int = 1 — how often a request that is too long is made again, compacted
    on_cut: string = fail — when a limit of tokens cuts a reply off: fail, continue or accept
    persistent: bool = false — go on after turns without a tool call until the work is done
    done_sentinel: string = "##DONE##" — the text that ends a loop
    nudge: string — what to say after a turn without a tool call
    break_unless_phase: string — stop when the next_phase line names another one
    exit_when_verified: bool = false — the work is only done when the last `run` succeeded
    turn_policy: dict — what a turn must be
    native_tool_fallback: string = allow — allow, allow_once or reject calls in text
    tool_examples: string — examples for the text contract
    stop_after_successful_tools: list — stop when one of them succeeded
    require_successful_tools: list — the loop has failed unless one of them succeeded
    loop_detect_warn: int = 2 — warn at this many identical calls; 0: never
    loop_detect_block: int = 3 — refuse them
    loop_detect_skip: int = 4 — end the turn
    post_turn_callback: closure — called after each turn with tool calls
    on_chunk: closure — called with each piece of the model's answers: {text, start}
    session_id: string — the session that the loop continues; by default none
    policy: dict — what the loop may do at most
    approval_policy: dict — which tools somebody must approve
    permissions: dict — which calls are granted: {allow, deny, on_escalation}
    command_policy: dict — which commands may run
    token_budget: int — tokens that all calls may use together
    compaction: bool | string | dict = hybrid — how older messages are summarized
    auto_compact: bool — false: not at all
    compact_strategy: string — llm, truncate, custom or observation_mask
    compact_threshold: int — tokens from which on the loop compacts
    compact_keep_first, compact_keep_last: int — messages that stay
    compact_callback: closure — the strategy custom
    hard_limit_tokens: int — tokens that a request must not exceed
    hard_limit_strategy: string — how it is kept
    tool_output_max_chars: int — how much of a tool's result stays, in bytes
    summarize_prompt: string — the template of the prompt that asks for a summary
    mask_callback, compress_callback: closure — shorten results of tools
    task_ledger: dict — the open deliverables
    root_task: string — as in task_ledger
    deliverables: list — as in task_ledger
    skills: registry | list — the skills to choose from
    skill_match: dict — how they are chosen
    working_files: list | string — the files that skills are matched against
    mcp_servers: list — servers whose tools the loop may call
    daemon: bool = false — wait for events instead of ending
    persist_path, resume_path: string — where a daemon keeps and finds its state
    wake_interval_ms: int — wake a daemon after so long
    watch_paths: list — wake a daemon when one of the files changes
    consolidate_on_idle: bool = false — compact when idle
    idle_watchdog_attempts: int = 0 — give up after so many waits for nothing; 0: never
    context_callback, context_filter: closure — no effect in a loop
    """,
    {
        "turn_policy": _TURN_POLICY,
        "compaction": COMPACTION,
        "task_ledger": LEDGER,
        "deliverables": DELIVERABLE,
        "skill_match": SKILL_MATCH,
        "mcp_servers": _SERVER,
    },
)

_REQUEST = OptionTable("""
    request: any — what a worker's handle says it was asked for
    research_questions, questions: list — a part of it
    action_items, actions: list — a part of it
    workflow_stages, stages: list — a part of it
    verification_steps, verification: list — a part of it
""")

_CARRY = OptionTable("""
    transcript_mode: string = inherit — inherit, fork, reset or compact
    transcript: string | dict — another name of transcript_mode, or {mode}
    artifact_mode: string = inherit — inherit or none
    artifacts: string | dict — another name of artifact_mode, or a context policy
    context_policy: dict — which artifacts go on
    resume_workflow: bool = true — a workflow goes on where it stopped
    persist_state: bool = true — write snapshots
    retriggerable: bool = false — rest between tasks until worker_trigger
    policy: dict — what the worker may do at most
    tools: list — names of the tools that it may use
""")

_EXECUTION = OptionTable(
    """
    cwd: string — the directory that the work is done in
    env: dict — variables of its commands
    worktree: dict — a copy of a repository of its own
    """,
    {
        "worktree": OptionTable("""
            repo: string — the repository
            path: string — where the copy is; by default named after the worker
            branch: string — its branch; by default named after the worker
            base_ref: string — where the branch begins
            cleanup: string = keep — keep or remove it when the worker rests
        """)
    },
)

_PLACE = OptionTable(
    """
    carry: dict — what a restarted worker goes on with
    execution: dict — where it works
    """,
    {"carry": _CARRY, "execution": _EXECUTION},
)

SUB_AGENT = (
    LOOP
    + _REQUEST
    + _PLACE
    + OptionTable(
        """
        name: string = sub-agent — what handles and reports call it
        system: string — its system prompt
        allowed_tools: list — names of the tools that it may use
        returns: dict — {schema}: what its JSON must satisfy
        background: bool = false — return a worker's handle at once
        """,
        {"returns": OptionTable("schema: dict — a JSON Schema")},
    )
)

DAEMON = LOOP + OptionTable("""
    task, prompt: string — what it is to do
    persist_path, state_dir: string — the directory of its state
    name: string — what handles call it
    system: string — its system prompt
    event_queue_capacity: int = 1024 — events that may wait
""")

_NO_BODIES = (
    "tool_synthesize: executable handlers must be supplied with tool_define; synthesized tools are dry-run, "
    "host_bridge, or mcp_server only"
)

SYNTHESIS = OptionTable(
    """
    description: string — what the tool is for
    name: string — by default made of the description
    parameters, params: dict — what it takes
    return_type, returns: any — what it returns
    capabilities: list | dict — what it needs
    side_effect_level: string — none, read_only, workspace_write, process_exec or network
    executor: string = dry_run — dry_run, host_bridge or mcp_server
    host_tool: string — the host's tool, by default of the same name
    mcp_tool: string — the server's tool, by default of the same name
    mcp_client: any — the connection to the server
    mcp_server: string — the server
    """,
    removed={"handler": _NO_BODIES, "body": _NO_BODIES},
)

HOOK = OptionTable("""
    pattern: string = * — the names of tools
    deny: string — why agents may not call them
    max_output: int — how long their results may be
""")

QUESTION = OptionTable("""
    schema: dict — what the answer must satisfy
    timeout: duration | int = 24h — how long to wait
    default: any — the answer after the timeout, whose type every answer gets
""")

APPROVAL = OptionTable("""
    detail, args: any — what is shown beside the action
    quorum: int = 1 — how many must approve
    reviewers: list — who may
    deadline: duration | int — how long to wait
    principal: any — for whom the action is done
    evidence_refs, undo_metadata: any — what is shown beside the action
    capabilities_requested: list — what the action needs
""")


def worker_table(run: OptionTable) -> OptionTable:
    """Return the table of `spawn_agent`; ``run`` is that of a workflow's run."""
    return (
        _REQUEST
        + _PLACE
        + OptionTable(
            """
            task: string — what the worker is to do
            name: string = worker — what handles call it
            wait: bool = false — return when it is done
            graph: dict — the workflow that it runs
            node: dict — the stage that it runs
            artifacts: list — what it starts from
            transcript: dict — the conversation that it goes on with
            options: dict — those of the workflow's run
            policy: dict — what it may do at most
            tools: list — names of the tools that it may use
            permissions: dict — which calls are granted
            command_policy: dict — which commands may run
            audit: dict — its mutation session
            """,
            {"options": run},
        )
    )
