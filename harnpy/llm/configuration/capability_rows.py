"""The built-in matrix of capabilities: data. Spec: 07 §1.15."""

from __future__ import annotations

from dataclasses import replace

from harnpy.llm.configuration.capabilities import Rule, Rules


def _named(rule: Rule, *globs: str) -> tuple[Rule, ...]:
    return tuple(replace(rule, model_match=glob) for glob in globs)


def _prefixed(rules: tuple[Rule, ...], prefix: str) -> tuple[Rule, ...]:
    return tuple(replace(rule, model_match=prefix + rule.model_match) for rule in rules)


_CLAUDE = Rule(
    model_match="claude-*",
    native_tools=True,
    prompt_caching=True,
    thinking_modes=("enabled",),
    vision_supported=True,
    structured_output=True,
)
_CLAUDE_4 = replace(_CLAUDE, defer_loading=True, tool_search=("bm25", "regex"), max_tools=10000)
_CLAUDE_47 = replace(_CLAUDE_4, version_min=(4, 7), thinking_modes=("adaptive",))

_CLAUDE_ROWS = (
    replace(_CLAUDE_47, model_match="claude-opus-*", interleaved_thinking_supported=True),
    *_named(_CLAUDE_47, "claude-haiku-*", "claude-sonnet-*"),
    replace(
        _CLAUDE_4,
        model_match="claude-opus-*",
        version_min=(4, 6),
        interleaved_thinking_supported=True,
    ),
    replace(_CLAUDE_4, model_match="claude-haiku-*", version_min=(4, 5)),
    replace(_CLAUDE_4, model_match="claude-opus-*", version_min=(4, 0)),
    replace(_CLAUDE_4, model_match="claude-sonnet-*", version_min=(4, 0)),
    _CLAUDE,
)

_GPT = Rule(model_match="gpt-*", native_tools=True, structured_output=True)
_GPT_SEES = replace(_GPT, vision_supported=True)
_REASONING = replace(
    _GPT,
    thinking_modes=("effort",),
    requires_completion_tokens=True,
    reasoning_effort_supported=True,
)

_GPT_ROWS = (
    replace(_GPT_SEES, model_match="gpt-4o*", audio=True),
    replace(_GPT_SEES, model_match="gpt-4.1*"),
    replace(_GPT_SEES, version_min=(5, 4), defer_loading=True, tool_search=("hosted", "client")),
    _GPT,
    *_named(_REASONING, "o1*", "o3*"),
    replace(_REASONING, model_match="o4*", vision_supported=True),
)

_THINKS = Rule(model_match="*", native_tools=True, thinking_modes=("enabled",), structured_output=True)
_SEES = Rule(model_match="*", vision_supported=True, structured_output=True)
_CLOUD = Rule(model_match="*", native_tools=True)

#: Models of others on a cloud: what their own services search and defer is not there.
_CLOUD_CLAUDE = tuple(
    replace(rule, defer_loading=False, tool_search=(), max_tools=None) for rule in _CLAUDE_ROWS
)
_CLOUD_GPT = tuple(replace(rule, defer_loading=False, tool_search=()) for rule in _GPT_ROWS)
_GEMINI = replace(_CLOUD, model_match="gemini-*", vision_supported=True, structured_output=True)

_HOSTED = _named(_THINKS, "*qwen*", "*deepseek*")
#: Servers that can return JSON for any model; nothing else is known of their models.
_ANY_MODEL = (Rule(model_match="*", structured_output=True),)

BUILT_IN = Rules(
    rows={
        "anthropic": _CLAUDE_ROWS + _prefixed(_CLAUDE_ROWS, "anthropic/"),
        "openai": _GPT_ROWS + _prefixed(_GPT_ROWS, "openai/") + _ANY_MODEL,
        "openrouter": _prefixed(_CLAUDE_ROWS, "anthropic/") + _HOSTED,
        **dict.fromkeys(("together", "groq", "deepseek", "fireworks", "huggingface", "dashscope"), _HOSTED),
        "ollama": (
            *_named(_SEES, "llava*", "bakllava*", "llama3.2-vision*", "gemma3*"),
            replace(_THINKS, model_match="qwen3*"),
            *_ANY_MODEL,
        ),
        "gemini": (replace(_SEES, model_match="gemini-*"),),
        "bedrock": (*_prefixed(_CLOUD_CLAUDE, "*anthropic."), _CLOUD),
        "azure_openai": _CLOUD_GPT,
        "vertex": (*_CLOUD_CLAUDE, _GEMINI),
        "vllm": _ANY_MODEL,
        "tgi": _ANY_MODEL,
    },
    families=dict.fromkeys(
        (
            "openrouter",
            "together",
            "groq",
            "deepseek",
            "fireworks",
            "huggingface",
            "local",
            "dashscope",
            "llamacpp",
            "mlx",
        ),
        "openai",
    ),
)
