"""Which provider and which model answer a call. Spec: 07 §1.14.

Only `mock` exists so far, so the rules that choose among real providers aren't here yet.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from harnpy.llm.options import Options

DEFAULT_PROVIDER = "anthropic"
DEFAULT_MODEL = "claude-sonnet-4-20250514"


def resolve(options: Options, env: Callable[[str], str | None]) -> tuple[str, str]:
    """(provider, model) of a call."""
    provider = options.string("provider") or "auto"
    if provider.lower() == "auto":
        provider = env("HARN_LLM_PROVIDER") or env("HARN_DEFAULT_PROVIDER") or DEFAULT_PROVIDER
    return provider, options.string("model") or DEFAULT_MODEL


def no_such_provider(provider: str) -> str:
    """The error text for a provider that can't be called."""
    return (
        f"provider '{provider}' is not available: this release has only the built-in 'mock'; "
        'pass provider: "mock" or set HARN_LLM_PROVIDER=mock'
    )
