"""Forms with files. Spec: 04 §16.5."""

from __future__ import annotations

from functools import partial

from harnpy.builtins.language.codecs.arguments import data_of, expected, options
from harnpy.crypto.encodings import utf8_fault
from harnpy.net.multipart import boundaries
from harnpy.net.multipart.boundaries import FormError
from harnpy.net.multipart.reading import Limits, read
from harnpy.net.multipart.writing import Part, encoded
from harnpy.vm.declare.builtin import ABSENT, require
from harnpy.vm.declare.builtin import builtin as declare
from harnpy.vm.values.objects import display, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from harnpy.net.multipart.reading import Field
    from harnpy.vm.values.objects import Value
    from harnpy.vm.vm import Vm

builtin = partial(declare, family="web", counted=True)

_KEYS = ("name", "content", "value", "filename", "content_type", "headers")


@builtin("multipart_form_data(fields: list, opts?: dict) -> dict")
def multipart_form_data(vm: Vm, fields: Value = ABSENT, opts: Value = ABSENT) -> dict[str, Value]:
    """The body of a form with files: `{content_type, boundary, body: bytes}`.

    `fields`: `{name, content, filename?, content_type?, headers?}` dicts; `content` (or `value`) is bytes or
    a string. `opts.boundary`: what separates the fields; else one is made from them, always the same.

    Example:
        let form = multipart_form_data([{name: "a", value: "1"}], {boundary: "b"})
        form.content_type  // "multipart/form-data; boundary=b"
    """
    require("multipart_form_data: requires 1 argument", fields)
    boundary = options("multipart_form_data", opts, ("boundary",)).get("boundary")
    parts = _parts(fields)
    if boundary is None:
        boundary = boundaries.chosen(map(display, fields), [part.content for part in parts])
    body = encoded(parts, _text("boundary", boundary))
    vm.sizes.check_bytes(len(body))
    return {"content_type": boundaries.content_type(boundary), "boundary": boundary, "body": body}


@builtin("multipart_parse(body: any, content_type: string, limits?: dict) -> dict")
def multipart_parse(
    vm: Vm, body: Value = ABSENT, content_type: Value = ABSENT, limits: Value = ABSENT
) -> dict[str, Value]:
    """The fields of a form: `{boundary, fields, field_count, total_bytes}`.

    A field is `{name, filename, content_type, headers, bytes, text}`; `text` is nil when the bytes are no
    UTF-8. `content_type`: the request's header. `limits`: `max_total_bytes` (8388608), `max_field_bytes`
    (8388608), `max_fields` (128). `total_bytes` is the body's length.

    Example:
        let form = multipart_form_data([{name: "a", value: "1"}])
        multipart_parse(form.body, form.content_type).fields[0].text  // "1"
    """
    require("multipart_parse: requires 2 arguments", body, content_type)
    if type(body) not in (bytes, str):
        raise FormError(f"body must be bytes or string, got {type_name(body)}")
    if type(content_type) is not str:
        raise FormError(f"expected multipart/form-data content type, got {display(content_type)}")
    data = data_of(body)
    form = read(data, content_type, _limits(limits))
    return {
        "boundary": form.boundary,
        "fields": [_field(field) for field in form.fields],
        "field_count": len(form.fields),
        "total_bytes": len(data),
    }


@builtin("multipart_field_bytes(field: dict) -> bytes")
def multipart_field_bytes(vm: Vm, field: Value = ABSENT) -> bytes:
    """The content of a field of `multipart_parse`.

    Example:
        let form = multipart_form_data([{name: "a", value: "1"}])
        bytes_to_hex(multipart_field_bytes(multipart_parse(form.body, form.content_type).fields[0]))  // "31"
    """
    require("multipart_field_bytes: requires 1 argument", field)
    return _content(field)


@builtin("multipart_field_text(field: dict) -> string")
def multipart_field_text(vm: Vm, field: Value = ABSENT) -> str:
    """The content of a field of `multipart_parse` as a text; bytes that are no UTF-8 are an error.

    Example:
        let form = multipart_form_data([{name: "a", value: "ä"}])
        multipart_field_text(multipart_parse(form.body, form.content_type).fields[0])  // "ä"
    """
    require("multipart_field_text: requires 1 argument", field)
    try:
        return _content(field).decode("utf-8")
    except UnicodeDecodeError as error:
        raise FormError(f"the field is no text: {utf8_fault(error)}") from None


def _parts(fields: Value) -> list[Part]:
    if type(fields) is not list:
        raise FormError(f"fields must be a list, got {type_name(fields)}")
    return [_part(number, field) for number, field in enumerate(fields)]


def _part(number: int, field: Value) -> Part:
    if type(field) is not dict:
        raise FormError(f"field {number} must be a dict, got {type_name(field)}")
    for key in field:
        if key not in _KEYS:
            raise FormError(f"field {number} has an unknown key `{key}` ({expected(key, _KEYS)})")
    content = field.get("value") if field.get("content") is None else field["content"]
    name, filename, kind = field.get("name"), field.get("filename"), field.get("content_type")
    if name is None:
        raise FormError("field is missing name")
    if content is None:
        raise FormError("field is missing content")
    if type(content) not in (bytes, str):
        raise FormError(f"content must be bytes or string, got {type_name(content)}")
    return Part(
        _text("name", name),
        data_of(content),
        None if filename is None else _text("filename", filename),
        None if kind is None else _text("content_type", kind),
        _headers(field.get("headers")),
    )


def _headers(given: Value) -> dict[str, str]:
    if given is None:
        return {}
    if type(given) is not dict:
        raise FormError(f"headers must be a dict, got {type_name(given)}")
    return {name: display(value) for name, value in given.items() if value is not None}


def _limits(given: Value) -> Limits:
    found = options("multipart_parse", given, Limits._fields)
    for name, value in found.items():
        if type(value) is not int:
            raise FormError(f"{name} must be an int, got {type_name(value)}")
        if value < 0:
            raise FormError(f"{name} must be non-negative, got {value}")
    return Limits(**found)


def _field(field: Field) -> dict[str, Value]:
    return {
        "name": field.name,
        "filename": field.filename,
        "content_type": field.content_type,
        "headers": field.headers,
        "bytes": field.content,
        "text": _text_or_nil(field.content),
    }


def _text_or_nil(content: bytes) -> str | None:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _content(field: Value) -> bytes:
    if type(field) is not dict:
        raise FormError(f"expected a field of multipart_parse, got {type_name(field)}")
    content = field.get("bytes")
    if type(content) is not bytes:
        raise FormError(f"expected a field with bytes, as of multipart_parse, got {type_name(content)}")
    return content


def _text(what: str, value: Value) -> str:
    if type(value) is not str:
        raise FormError(f"{what} must be a string, got {type_name(value)}")
    return value
