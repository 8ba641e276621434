"""What a tool of a server answers: a value for programs, and content blocks for models. Spec: 07 §15.1."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from harnpy.formats.dicts import as_dict, as_dicts
from harnpy.formats.display import display
from harnpy.formats.json import JsonError, compact_json, parse_json
from harnpy.formats.media import left_out
from harnpy.mcp.server_spec import ToolError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.formats.dicts import Dict

STRUCTURED = "structuredContent"
#: Where SDKs put a result that is no object, since structured content must be one.
_WRAPPED = "result"
#: How an output schema says so: FastMCP's by this key, the official SDK's by nothing but the title.
_MARK, _TITLE = "x-fastmcp-wrap-result", "Output"


class ToolAnswer(NamedTuple):
    """``value`` is what programs get. ``blocks`` are what a model reads: texts, and images as
    ``{type: "image", base64, media_type}``; what no model takes is a text that says what it was."""

    value: Any
    blocks: list[Dict]


def read_answer(result: Dict, schema: Any) -> ToolAnswer:
    """Return what the result of `tools/call` says. ``schema`` is the tool's output schema, if it has one.

    Raises `ToolError` for one that says that the tool has failed.
    """
    content = as_dicts(result.get("content"))
    if result.get("isError") is True:
        raise ToolError(_failure(result, content))
    if result.get(STRUCTURED) is None:
        return ToolAnswer(_value(content), [block for item in content for block in _blocks(item)])
    value = result[STRUCTURED]
    if may_be_wrapped(result) and _is_wrapped(value, content, as_dict(schema)):
        value = value[_WRAPPED]
    said = [] if value is None else [_text(value if isinstance(value, str) else compact_json(value))]
    # Its texts are the same once more, for clients that read no structured content.
    others = [block for item in content if item.get("type") != "text" for block in _blocks(item)]
    return ToolAnswer(value, said + others)


def may_be_wrapped(result: Dict) -> bool:
    """Return whether the tool's output schema must be known to read a result."""
    structured = result.get(STRUCTURED)
    return isinstance(structured, dict) and structured.keys() == {_WRAPPED} and not result.get("isError")


def _is_wrapped(structured: Dict, content: list[Dict], schema: Dict) -> bool:
    """Return whether the SDK has put a value under `result`, and not the tool."""
    if schema.get(_MARK) is True:
        return True
    is_alone = as_dict(schema.get("properties")).keys() == {_WRAPPED}
    if not is_alone or not str(schema.get("title", "")).endswith(_TITLE):
        return False
    # An object of the tool's own with that one field is shown as a whole.
    return all(_read(item.get("text")) != structured for item in content)


def _read(text: Any) -> Any:
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return None
    try:
        return parse_json(text)
    except JsonError:
        return None


def _value(content: list[Dict]) -> Any:
    """Return the texts, joined, nil without content; with anything else in it the content as it was sent."""
    if not content:
        return None
    texts = [item.get("text") for item in content if item.get("type") == "text"]
    known = [text for text in texts if isinstance(text, str)]
    return "\n".join(known) if len(known) == len(content) else content


def _failure(result: Dict, content: list[Dict]) -> str:
    said = [str(block.get("text", "")) for item in content for block in _blocks(item, images=False)]
    if not said and result.get(STRUCTURED) is not None:
        said = [compact_json(result[STRUCTURED])]
    return "\n".join(said) if said else display(result)


# Content, as models read it.


def _text(text: str) -> Dict:
    return {"type": "text", "text": text}


def _blocks(item: Dict, images: bool = True) -> Iterator[Dict]:
    """Return an item of a result's content as blocks; without ``images`` they are texts alone."""
    kind = item.get("type")
    if kind == "text":
        yield _text(str(item.get("text", "")))
    elif kind == "image":
        yield _image(item, "data", images)
    elif kind == "resource":
        yield from _resource(as_dict(item.get("resource")), images)
    elif kind == "resource_link":
        known = (item.get(key) for key in ("title", "name", "uri", "mimeType", "description"))
        yield _text(
            f"[resource: {', '.join(dict.fromkeys(text for text in known if isinstance(text, str)))}]"
        )
    else:
        yield _text(left_out(str(kind), item.get("mimeType"), item.get("data")))


def _image(item: Dict, key: str, images: bool = True, where: Any = None) -> Dict:
    data, media_type = item.get(key), item.get("mimeType")
    if images and isinstance(data, str) and data and isinstance(media_type, str):
        return {"type": "image", "base64": data, "media_type": media_type}
    return _text(left_out("image", media_type, data, where))


def _resource(resource: Dict, images: bool) -> Iterator[Dict]:
    uri, media_type = resource.get("uri"), resource.get("mimeType")
    if isinstance(resource.get("text"), str):
        yield _text(f"[resource: {uri}]\n{resource['text']}")
    elif str(media_type).startswith("image/"):
        yield _image(resource, "blob", images, uri)
    else:
        yield _text(left_out("resource", media_type, resource.get("blob"), uri))
