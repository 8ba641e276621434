"""The options of model calls, as programs may write them. Spec: 07 §1.2, §1.9, §1.13, §2.2."""

from __future__ import annotations

from harnpy.reading.option_tables import OptionTable

TRANSCRIPT_REMOVED = (
    "llm_call / agent_loop: the `transcript` option was removed. Open or open-and-resume a session with "
    "agent_session_open(id) and pass `session_id: id` instead."
)

THINKING = OptionTable("""
    mode: string = enabled — enabled, adaptive, effort, or disabled
    budget_tokens: int — how many tokens the model may think for
    level: string — low, medium or high, of the mode effort
    enabled: bool — false disables
""")

BUDGET = OptionTable("""
    max_cost_usd: float — what this call may cost
    total_budget_usd: float — what all calls of the program may cost together
    max_input_tokens: int — how many tokens the request may have
    max_output_tokens: int — how many tokens the reply may have
""")

OUTPUT_FORMAT = OptionTable("""
    kind: string = text — text, json or json_schema
    schema, json_schema: dict — the JSON Schema of the reply
    strict: bool = true — whether the provider is to enforce it
""")

ROUTE_POLICY = OptionTable("""
    mode: string = manual — manual, always, cheapest_over_quality or fastest_over_quality
    target, quality, id: string — the model, or the tier that it must reach
""")

TOOL_SEARCH = OptionTable("""
    variant: string = bm25 — bm25 or regex
    mode: string = auto — auto, native or client
    strategy: string — bm25, regex, semantic or host; by default the variant
    always_loaded: list — names of tools that are never deferred
    budget_tokens: int — how many tokens the schemas of promoted tools may have
    name: string — what the tool that searches is called
    include_stub_listing: bool = false — list the deferred tools in the prompt
""")

EXPERIMENT = OptionTable("""
    label: string — what reports call it
    name, experiment: string — a built-in experiment
    args: dict — the experiment's own arguments
    transform, handler: closure — rewrites {messages, system}
""")

CALL = OptionTable(
    """
    provider: string — by default inferred from the model and the configuration, as with "auto"
    model: string — an id or an alias; by default the provider's
    model_tier: string — small, mid or frontier
    route_policy: string | dict = manual — how provider and model are chosen
    fallback_chain: list | string — providers to try, in order, when the call fails
    max_tokens: int = 16384 — how long the reply may be
    temperature, top_p, frequency_penalty, presence_penalty: float — sampling; by default the model's
    top_k, seed: int — sampling
    stop: list — sequences that end the reply
    timeout, idle_timeout: int — seconds
    stream: bool = true — how the reply is transported; the result is the same
    cache: bool = false — ask the provider to cache the prompt
    messages: list — sent instead of the prompt
    response_format: string = text — text, json or json_object
    json_schema, schema: dict — the JSON Schema that is requested
    output_schema: dict — the schema that the reply is checked against; by default the requested one
    output_format: string | dict — text, json, json_schema, or a dict with the schema
    output_validation: string = off — off, warn or error: what to do when no retry helped
    schema_retries: int = 1 — how often to ask again after invalid output (structured calls: 3)
    schema_retry_nudge: bool | string — what to say then; false: nothing
    llm_retries: int = 0 — retries of errors that may pass (agent_loop: by its profile)
    llm_backoff_ms: int = 250 — the first pause between them (agent_loop: 2000)
    thinking: bool | string | dict = false — whether and how the model thinks first
    reasoning_effort: string — low, medium or high: short for thinking
    interleaved_thinking: bool = false — think between tool calls
    anthropic_beta_features: string | list — beta features to request
    vision, audio, pdf: bool — what the model must be able to read
    tools: registry | list — the tools that the model may call
    tool_choice: string | dict — passed on to the provider
    tool_format: string — text or native
    tool_search: bool | string | dict — how deferred tools are found
    budget: dict — limits of tokens and money
    max_cost_usd, total_budget_usd: float — as in budget
    max_input_tokens, max_output_tokens: int — as in budget
    prefill: string — what the reply begins with
    structural_experiment: string | dict | closure — rewrites the request
    """,
    {
        "thinking": THINKING,
        "budget": BUDGET,
        "output_format": OUTPUT_FORMAT,
        "route_policy": ROUTE_POLICY,
        "tool_search": TOOL_SEARCH,
        "structural_experiment": EXPERIMENT,
    },
    removed={"transcript": TRANSCRIPT_REMOVED},
    providers=True,
)

STRUCTURED = CALL + OptionTable("""
    system: string — the system prompt
    retries: int — another name of schema_retries
""")

STRUCTURED_RESULT = STRUCTURED + OptionTable(
    "repair: bool | dict = false — one more call that corrects invalid output; a dict has options for it",
    {"repair": CALL + OptionTable("enabled: bool = true — false: no repair")},
)

RATE_LIMIT = OptionTable("rpm: int — requests per minute; 0 or less: no limit")

WITH_RATE_LIMIT = OptionTable("""
    max_retries: int = 5 — how often to call again after an error that may pass
    backoff_ms: int = 1000 — the first pause; each is twice as long as the one before, up to 30 s
""")

PICK = OptionTable("provider: string — where the model should run: aliases of its own are tried as well")

HEALTH = OptionTable("""
    provider: string — which one
    api_key: string — by default that of the environment
    model: string — which of its models
    warm: bool = false — have ollama load the model
    timeout: int — seconds
""")

MOCK = OptionTable(
    """
    text: any = "" — the reply
    tool_calls: list — {name, arguments} each
    match: string — reply only to messages that match; * is any text
    consume_match: bool = false — use a reply with match only once
    input_tokens: int — by default the bytes of what was asked
    output_tokens: int = 30 — usage
    cache_read_tokens, cache_write_tokens, cache_creation_input_tokens: int = 0 — usage
    thinking, thinking_summary, stop_reason: string — parts of the reply
    model: string = mock — the model that the result names
    provider: string — the provider of a fixture
    blocks: list — the blocks of a fixture
    error: dict — the call fails instead
    """,
    {
        "tool_calls": OptionTable("""
            name: string = unknown — the tool
            arguments: dict — what it is called with
            id: string — ignored
        """),
        "error": OptionTable("""
            category: string — one of the categories of errors
            message: string — what the error says
            retry_after_ms: int — how long to wait before another call
        """),
    },
)
