"""OpenTelemetry's span of a model call: what was asked for, and what it took. Spec: 11 §5."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harnpy import telemetry

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from harnpy.llm.reply import Reply
    from harnpy.llm.request import Request

#: Options of a call, and what the conventions call them.
_SAMPLING = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
    "seed": "gen_ai.request.seed",
    "stop": "gen_ai.request.stop_sequences",
}
#: What the conventions call services that have another name here; others keep theirs.
_PROVIDERS = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}
#: The tokens that came from a cache, and those that went into it: by the conventions, and as instrumentations
#: have called them before.
_READ = ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens")
_WRITTEN = ("gen_ai.usage.cache_creation.input_tokens", "gen_ai.usage.cache_creation_input_tokens")


def model_span(request: Request) -> AbstractContextManager[telemetry.Span]:
    """Return the span of a call, for a ``with`` block around it."""
    sampling = {name: request.sampling[key] for key, name in _SAMPLING.items() if key in request.sampling}
    return telemetry.span(
        f"chat {request.model}",
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": _PROVIDERS.get(request.provider, request.provider),
            "gen_ai.request.model": request.model,
            "gen_ai.request.max_tokens": request.max_tokens,
            "gen_ai.request.stream": True if request.shown is not None else None,
            "gen_ai.output.type": "json" if request.output.structured else None,
            **sampling,
        },
        calls=True,
    )


def tell_reply(span: telemetry.Span, reply: Reply) -> None:
    """Tell the span of a call what came of it."""
    span.set(
        {
            "gen_ai.response.model": reply.model,
            "gen_ai.response.finish_reasons": None if reply.stop_reason is None else [reply.stop_reason],
            "gen_ai.usage.input_tokens": reply.prompt_tokens,
            "gen_ai.usage.output_tokens": reply.output_tokens,
            **dict.fromkeys(_READ, reply.cache_read_tokens or None),
            **dict.fromkeys(_WRITTEN, reply.cache_write_tokens or None),
            "harn.cost": reply.cost,
            "harn.refused": True if reply.refused is not None else None,
        }
    )
