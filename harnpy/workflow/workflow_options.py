"""The options of runs, evaluations, the assembly of a context and compacting, as programs may write them.

Every builtin with options loads these tables, so they stand apart from what reads them
(`execution.run_options`, `context_assembly`). Spec: 08 §2.4, §4.7, §4.8, §5.5, §7.1, §8.7, §10.
"""

from __future__ import annotations

from harnpy.agent.loop_options import SKILL_MATCH
from harnpy.formats.options import OptionTable
from harnpy.llm.call_options import CALL

_EXECUTION = OptionTable("""
    cwd: string — the directory that commands run in
    source_dir: string — the directory of the program, for the record
    env: dict — variables of commands
    adapter: string — worktree: the run changes a copy of a repository
    repo_path, worktree_path, branch, base_ref: string — that copy
    cleanup: string — keep or remove it afterwards
""")

_AUDIT = OptionTable("""
    session_id, parent_session_id, run_id, worker_id: string — whose changes these are
    execution_kind: string — how they are made
    mutation_scope: string — what may change
    approval_policy: dict — what somebody must approve
""")

RUN = OptionTable(
    """
    max_steps: int — by default four for each node
    persist_path: string — the file of the run's record
    resume_path: string — the record of the run to continue
    resume_run: dict — that record itself
    restart: bool = false — begin again at the entry if that run is completed
    replay_path: string — the record of the run to repeat
    replay_run: dict — that record itself
    replay_mode: string — deterministic: repeat the stages of that record
    replay_of_event_id: string — the event that is repeated
    provider, model, model_tier, tier, mode: string — for nodes that don't say
    temperature: float — for nodes that don't say
    max_tokens: int — for nodes that don't say
    skills: registry | list — the skills of all stages
    skill_match: dict — how they are chosen
    audit: dict — the mutation session
    mutation_scope: string = read_only — what may change
    approval_policy: dict — what somebody must approve
    execution: dict — where the stages work
    transcript: dict — the transcript that the run's begins with
    parent_run_id, root_run_id, parent_worker_id, parent_stage_id: string — what started the run
    delegated: bool — whether something else did
    trigger_event: dict — the event that started the run
    artifacts: list — of task_run and action_graph_run
    """,
    {"skill_match": SKILL_MATCH, "execution": _EXECUTION, "audit": _AUDIT},
)

ASSEMBLE = OptionTable("""
    artifacts: list — what the context is made of
    budget_tokens: int = 8000 — how long it may be
    microcompact_threshold: int = 2000 — artifacts with more tokens are cut into pieces
    dedup: string = chunked — none, chunked or semantic
    strategy: string = relevance — recency, relevance or round_robin
    query: string — what relevance is measured by
    semantic_overlap: float = 0.85 — from where on two pieces are the same, 0 to 1
    ranker_callback: closure — the scores of the strategy relevance
""")

FORK = OptionTable("""
    retain_messages: bool = true — whether the messages stay
    retain_summary: bool = true — whether the summary does
""")

EVALUATE = OptionTable("judge: bool = true — whether rubrics of the kind llm-judge ask a model")

UPDATE = OptionTable("timeout_ms: int = 30000 — how long to wait for the response")

SUMMARIZE = CALL + OptionTable("""
    keep_last: int = 6 — messages at the end that stay
    prompt: string — what the model is asked
""")

COMPACT = CALL + OptionTable("""
    strategy, compact_strategy: string = observation_mask — llm, truncate or observation_mask
    keep_last: int = 12 — messages at the end that stay
    target_tokens: int — how long the transcript may be
    summarize_prompt: string — the template of the prompt, with llm
    summary: string — the text of the summary field
""")

AUTO_COMPACT = CALL + OptionTable("""
    keep_last: int = 12 — messages at the end that stay
    compact_strategy: string = observation_mask — llm, truncate, custom or observation_mask
    compact_callback: closure — the strategy custom
    compact_threshold, tool_output_max_chars: int — no effect here
""")
