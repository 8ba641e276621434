"""Options that only some models support. Spec: 07 §1.15."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harnpy.faults import OptionError
from harnpy.llm.configuration.known_providers import MOCK
from harnpy.llm.structured.output_format import TEXT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.llm.configuration.capabilities import Capabilities
    from harnpy.llm.request import Request
    from harnpy.reading.lenient import Options

_IMAGES = ("image", "image_url", "input_image")


def check_gates(options: Options, request: Request, can: Capabilities) -> None:
    """Raise `OptionError` for the first option that the model does not support."""
    for option, supported in _gates(options, request, can):
        if not supported:
            raise OptionError(
                f"option `{option}` is not supported by `{request.model}` (provider `{request.provider}`). "
                "See `harn check --provider-matrix` for compatibility."
            )


def _gates(options: Options, request: Request, can: Capabilities) -> Iterator[tuple[str, bool]]:
    """Each option that was given, and whether the model supports it."""
    mode = request.thinking["mode"]
    if mode != "disabled":
        option = "thinking" if options.value("reasoning_effort") is None else "reasoning_effort"
        yield option, mode in can.thinking_modes or (mode == "enabled" and "adaptive" in can.thinking_modes)
    if options.flag("vision") or has_image(request.messages):
        yield "vision", can.vision_supported
    if options.flag("audio"):
        yield "audio", can.audio
    if options.flag("pdf"):
        yield "pdf", can.pdf
    if request.cache:
        yield "cache", can.prompt_caching
    if options.value("tools") and request.tool_format == "native":
        yield "tools", can.native_tools
    if options.value("tool_choice") is not None:
        yield "tool_choice", can.native_tools
    if request.provider != MOCK and request.output.kind != TEXT:
        yield "output_format", can.structured_output
    if options.flag("interleaved_thinking"):
        yield "interleaved_thinking", can.interleaved_thinking_supported


def has_image(messages: list[dict[str, Any]]) -> bool:
    """Whether a message holds an image block."""
    contents = (message["content"] for message in messages)
    return any(
        isinstance(block, dict) and block.get("type") in _IMAGES
        for content in contents
        if isinstance(content, list)
        for block in content
    )
