"""The types of what builtins return. Spec: 03 §8.3, §13.

A builtin that is in neither table has no static type. Calls on a namespace (`workflow.signal(…)`) are method
calls, and have none either.
"""

from __future__ import annotations

from functools import cache

from harnpy.check.types.type_nodes import named, union
from harnpy.syntax import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.check.types.type_nodes import Type

#: The type, and the builtins that return one; a name by itself goes before `prefix_*`. A test holds it equal
#: to the list of the specification.
RESULTS = """
string | nil: env http_header llm_qc_default_model path_workspace_normalize prompt_user read_line read_stdin
string | nil: regex_match trace_id transcript_summary uuid_parse agent_session_current_id
bytes | nil: http_stream_read
never: unreachable
string: addr_of arch artifact_context asset_root base32_encode base64_encode base64url_encode basename blake3
string: bold bytes_to_base64 bytes_to_hex bytes_to_string bytes_to_string_lossy camel_to_kebab
string: camel_to_pascal camel_to_snake capture_stderr_take circuit_breaker circuit_check color
string: compute_content_hash cookie_serialize cookie_sign csv_stringify cwd date_format date_iso date_now_iso
string: date_to_zone dim dirname duration_to_human error_category execution_root extname format
string: handoff_context hex_encode hmac_sha256 hmac_sha256_base64 home_dir hostname join json_stringify
string: jwt_sign kebab_to_camel kebab_to_snake llm_infer_provider llm_model_tier load_skill lowercase
string: lowercase_first md5 microcompact month_name pascal_to_camel pascal_to_snake path_basename
string: path_extension path_join path_normalize path_parent path_stem path_to_native path_to_posix
string: path_with_extension path_with_stem platform project_root query_stringify read_file regex_replace
string: regex_replace_all render render_always_on_catalog render_prompt render_string replace sha224 sha256
string: sha384 sha3_256 sha3_512 sha512 sha512_256 shared_scope_id signed_url skill_describe skill_render
string: snake_to_camel snake_to_kebab snake_to_pascal source_dir str_pad substring temp_dir title_case
string: to_string toml_stringify tool_describe tool_format_result tool_prompt tool_ref trace_summary
string: transcript_export transcript_id transcript_render_full transcript_render_visible trim type_of
string: unicode_normalize uppercase uppercase_first url_build url_encode username uuid uuid_nil uuid_v5
string: uuid_v7 weekday_name yaml_stringify agent_session_fork agent_session_fork_at agent_session_open
string: cookie_delete ed25519_sign flow_invariant_kind http_session http_stream_open multipart_field_text
string: session_cookie session_sign sse_connect sse_event trust_graph_record websocket_connect x25519_agree
int: advance_time agent_session_compact agent_session_length agent_session_trim bytes_len duration_to_seconds
int: elapsed estimate_tokens hash_value monotonic_ms now_ms pid prompt_mark_rendered sign skill_count
int: timer_end to_int tool_count
float: acos asin atan atan2 cos e exp flow_invariant_confidence ln llm_cost log10 log2 mean median percentile
float: pi random sin stddev tan timestamp to_float variance
bool: agent_session_exists atomic_cas bytes_eq circuit_record_failure constant_time_eq ed25519_verify
bool: file_exists host_has is_err is_infinite is_nan is_ok is_rate_limited is_same is_stderr_tty is_stdin_tty
bool: is_stdout_tty is_timeout is_type json_validate mailbox_close mailbox_send path_is_absolute
bool: path_is_relative schema_is set_contains set_is_disjoint set_is_subset set_is_superset shared_cas
bool: shared_map_cas sync_release flow_invariant_is_blocking http_server_ready http_server_set_ready
bool: http_server_shutdown http_session_close http_stream_close pg_close provider_capabilities_clear
bool: provider_capabilities_install provider_register sse_close sse_server_cancel sse_server_cancelled
bool: sse_server_close sse_server_disconnected sse_server_flush sse_server_heartbeat
bool: sse_server_mock_disconnect sse_server_send websocket_close websocket_route websocket_send
bool: websocket_server_close
list: agent_trace artifact_select chunk context_pack_suggestions conversation csv_parse dedup_by entries
list: eval_metrics flat_map friction_events glob host_mock_calls host_tool_list keys list_agents list_dir
list: llm_available_providers llm_known_models llm_mock_calls llm_providers mcp_list_prompts
list: mcp_list_resources mcp_list_tools mcp_registry_status metadata_entries path_segments plan_entries
list: query_parse random_shuffle range read_lines regex_captures regex_split secret_scan skill_list
list: supervisor_events to_list tool_list trace_spans transcript_assets transcript_events
list: transcript_events_by_kind transcript_messages unicode_graphemes values walk_dir window http_mock_calls
list: jq list_providers_native parse_junit_xml pg_mock_calls pg_query skills_catalog_entries tar_extract
list: tool_synthesis_cache transport_mock_calls trigger_inspect_action_graph trigger_inspect_dlq
list: trigger_inspect_lifecycle trigger_list trust_query zip_extract
nil: agent_inject_feedback agent_session_close agent_session_inject agent_session_reset agent_subscribe
nil: append_file assert assert_eq assert_ne cancel capture_stderr_start circuit_record_success circuit_reset
nil: close_channel copy_file delete_file enable_tracing eprint eprintln eval_metric exit friction_clear
nil: host_mock host_mock_clear host_mock_pop_scope host_mock_push_scope http_mock http_mock_clear
nil: invalidate_facts llm_budget llm_mock llm_mock_clear llm_mock_pop_scope llm_mock_push_scope log log_debug
nil: log_error log_info log_json log_set_level log_warn mcp_disconnect metadata_save metadata_set mkdir
nil: mock_stdin mock_time mock_tty move_file print println progress register_tool_hook set_color_mode sleep
nil: sleep_ms trace_end unmock_stdin unmock_time unmock_tty write_file write_file_bytes clear_tool_hooks
nil: command_policy_pop command_policy_push mcp_prompt mcp_release mcp_resource mcp_resource_template
nil: metadata_refresh_hashes sse_mock tool_synthesis_clear transport_mock_clear websocket_mock
bytes: bytes_concat bytes_from_base64 bytes_from_hex bytes_from_string bytes_slice gzip_decode gzip_encode
bytes: zstd_decode zstd_encode brotli_decode brotli_encode read_file_bytes tar_create zip_create
bytes: multipart_field_bytes
duration: date_diff duration_days duration_hours duration_minutes duration_ms duration_seconds
iter: iter
pair: pair
stream: sse_events websocket_messages
dict: agent agent_config agent_loop agent_trace_summary artifact artifact_* assemble_context command_policy
dict: date_in_zone date_now daemon_* escalate_to exec exec_at eval_* group_by handoff host_capabilities
dict: http_* llm_call llm_call_safe llm_call_structured_safe llm_completion llm_healthcheck llm_info
dict: llm_model_info llm_pick_model llm_provider_catalog llm_resolve_model llm_session_cost llm_usage
dict: load_run_tree mailbox_open metadata_get metadata_resolve metadata_status partition path_parts
dict: path_workspace_info plan_artifact provider_capabilities render_with_provenance request_approval
dict: resume_agent run_record run_record_* runtime_context runtime_context_values runtime_paths schema_extend
dict: schema_from_json_schema schema_from_openapi_schema schema_of schema_omit schema_partial schema_pick
dict: schema_to_json_schema schema_to_openapi_schema self_review shared_cell shared_map shared_snapshot shell
dict: shell_at skill_define skill_registry skill_remove skill_select stat sub_agent_run supervisor_start
dict: supervisor_state supervisor_stop task_current timer_start tool_def tool_define tool_registry
dict: tool_remove tool_schema tool_select tool_surface_validate trace_start transcript transcript_abandon
dict: transcript_add_asset transcript_archive transcript_compact transcript_from_messages transcript_reset
dict: transcript_resume transcript_stats transcript_summarize trigger_fire trigger_register trigger_replay
dict: trust_record url_parse vision_ocr waitpoint_* worker_trigger workflow_clone workflow_commit
dict: workflow_diff workflow_execute workflow_graph workflow_insert_node workflow_inspect
dict: workflow_policy_report workflow_replace_node workflow_rewire workflow_set_* workflow_validate
dict: command_llm_risk_scan command_result_scan command_risk_scan context_pack_manifest
dict: context_pack_manifest_parse continue_as_new cookie_parse cookie_round_trip cookie_verify
dict: ed25519_keypair egress_policy flow_evidence_* flow_invariant_allow flow_invariant_block
dict: flow_invariant_require_approval flow_invariant_warn flow_remediation flow_with_* friction_eval_fixture
dict: friction_event friction_record handler_context jwt_verify mailbox_metrics mcp_get_prompt
dict: mcp_server_card mcp_server_info multipart_form_data multipart_parse pg_connect pg_execute pg_mock_pool
dict: pg_pool session_from_cookies session_verify shared_map_entries shared_map_snapshot sse_server_response
dict: sse_server_status supervisor_metrics trigger_test_harness trust_graph_policy_for trust_graph_query
dict: trust_graph_verify_chain verify_signed_url websocket_server x25519_keypair
"""

#: Builtins whose result depends on a schema or a function that they are given.
GENERICS = """
fn schema_parse<T>(value: unknown, schema: Schema<T>) -> Result<T, string> {}
fn schema_check<T>(value: unknown, schema: Schema<T>) -> Result<T, string> {}
fn schema_expect<T>(value: unknown, schema: Schema<T>) -> T {}
fn llm_call<T>(prompt: any, system: any, options: {output_schema?: Schema<T>}) -> {
  text: string, model: string, provider: string, input_tokens: int, output_tokens: int, data: T,
  visible_text?: string, tool_calls?: list, thinking?: string, stop_reason?: string
} {}
fn llm_completion<T>(prefix: any, suffix: any, system: any, options: {output_schema?: Schema<T>}) -> {
  text: string, model: string, provider: string, input_tokens: int, output_tokens: int, data: T,
  visible_text?: string, tool_calls?: list, thinking?: string, stop_reason?: string
} {}
fn llm_call_structured<T>(prompt: string, schema: Schema<T>, options: dict | nil) -> T {}
fn llm_call_structured_result<T>(prompt: string, schema: Schema<T>, options: dict | nil) -> {
  ok: bool, data: T | nil, raw_text: string, error: string, error_category: string | nil, attempts: int,
  repaired: bool, extracted_json: bool,
  usage: {input_tokens: int, output_tokens: int, cache_read_tokens: int, cache_write_tokens: int},
  model: string, provider: string
} {}
fn ask_user<T>(prompt: string, options: {schema?: Schema<T>, timeout?: duration, default?: T}) -> T {}
fn dual_control<T>(needed: int, of: int, action: fn() -> T, reviewers: list<string> | nil) -> T {}
fn request_approval<>() -> {
  approved: bool, reviewers: list<string>, approved_at: string, reason: string | nil,
  signatures: list<{reviewer: string, signed_at: string, signature: string}>
} {}
"""


@cache
def _table() -> tuple[dict[str, Type], tuple[tuple[str, Type], ...]]:
    """The results by name, and those of the patterns by what the name begins with."""
    results: dict[str, Type] = {}
    for row in RESULTS.strip().splitlines():
        text, names = row.split(": ")
        type = union(named(name) for name in text.split(" | "))
        results.update(dict.fromkeys(names.split(), type))
    patterns = [(name[:-1], type) for name, type in results.items() if name.endswith("*")]
    return results, tuple(patterns)


def result_of(builtin: str) -> Type | None:
    """The type of what a builtin returns, whatever it is called with."""
    results, patterns = _table()
    type = results.get(builtin)
    if type is not None:
        return type
    return next((type for prefix, type in patterns if builtin.startswith(prefix)), None)


@cache
def _generics() -> dict[str, ast.FnDecl]:
    from harnpy.syntax.parser import parse

    return {item.name: item for item in parse(GENERICS).items if isinstance(item, ast.FnDecl)}


def signature_of(builtin: str) -> ast.FnDecl | None:
    """The declaration of a builtin with type parameters, or with a result of certain shape; it has no body.

    When a type parameter stays unbound, the result is that of `result_of`.
    """
    return _generics()[builtin] if f"fn {builtin}<" in GENERICS else None
