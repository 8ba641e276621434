"""``/openapi.json``: what the API takes and returns, as OpenAPI 3.1. Spec: 11 §1.3.

Made of the table of operations and the very types that requests are read by.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from harnpy.client import types as t
from harnpy.serve.operations import Nothing, Operation, table
from harnpy.version import __version__

_REF: Final = "#/components/schemas/{name}"
_PLACE: Final = re.compile(r"\{(\w+)\}")
_FAILURES: Final = {
    400: "a request that can't be read",
    401: "nobody knows who calls",
    402: "more than may be spent today",
    403: "too little scope",
    404: "there is none, or it is somebody else's",
    409: "not as things stand",
    413: "a body of more than 4 MiB",
    415: "a body that isn't JSON",
    422: "JSON of a wrong shape",
    429: "too many requests",
    503: "the server is about to stop, or its store is away",
}


def document() -> dict[str, Any]:
    """Return the document."""
    operations = table()
    kinds = _kinds(operations)
    schemas, components = msgspec.json.schema_components(kinds, ref_template=_REF)
    schema_of = dict(zip(kinds, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {
        "/healthz": {"get": _health()},
        "/metrics": {"get": _metrics()},
    }
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation, schema_of)
    return {
        "openapi": "3.1.0",
        "info": {"title": "harnpy serve", "version": __version__},
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": dict(sorted(components.items())),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _kinds(operations: list[Operation]) -> list[Any]:
    found: dict[Any, None] = {t.Failure: None, t.Turn: None}
    for operation in operations:
        for kind in (operation.reply, operation.body):
            if kind is not None:
                found[kind] = None
    return list(found)


def _described(operation: Operation, schema_of: dict[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": operation.run.__name__,
        "summary": operation.summary,
        "x-scope": operation.scope,
        "parameters": [*_ids(operation), *_query(operation), *_headers(operation)],
        "responses": _responses(operation, schema_of),
    }
    if operation.body is not None:
        required = any(field.required for field in msgspec.structs.fields(operation.body))
        content = {"application/json": {"schema": schema_of[operation.body]}}
        found["requestBody"] = {"required": required, "content": content}
    return found


def _ids(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in _PLACE.findall(operation.path)
    ]


def _query(operation: Operation) -> list[dict[str, Any]]:
    if operation.query is Nothing:
        return []
    (_,), components = msgspec.json.schema_components([operation.query], ref_template=_REF)
    schema = components[operation.query.__name__]
    return [
        {"name": name, "in": "query", "required": name in schema.get("required", ()), "schema": _plain(kind)}
        for name, kind in schema["properties"].items()
    ]


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter, which is left out where it would be null."""
    if "anyOf" not in schema:
        return schema
    (kind,) = [each for each in schema["anyOf"] if each != {"type": "null"}]
    return dict(kind)


def _headers(operation: Operation) -> list[dict[str, Any]]:
    found = []
    if operation.path.endswith("/send"):
        key = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[!-~]+$"}
        found.append({"name": "Idempotency-Key", "in": "header", "required": False, "schema": key})
    if operation.stream is not None:
        last = {"type": "string", "pattern": "^[0-9]{1,15}$"}
        found.append({"name": "Last-Event-ID", "in": "header", "required": False, "schema": last})
    return found


def _responses(operation: Operation, schema_of: dict[Any, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if operation.reply is None:
        found[str(operation.status)] = {"description": "done"}
    else:
        content: dict[str, Any] = {"application/json": {"schema": schema_of[operation.reply]}}
        if operation.stream is not None and operation.status == 200:
            content["text/event-stream"] = {"schema": {"type": "string"}}
        found[str(operation.status)] = {"description": operation.summary, "content": content}
    if operation.status == 202:  # a send, whose end was waited for
        turn = {
            "application/json": {"schema": schema_of[t.Turn]},
            "text/event-stream": {"schema": {"type": "string"}},
        }
        found["200"] = {"description": "The turn, once it has ended", "content": turn}
    failure = {"application/json": {"schema": schema_of[t.Failure]}}
    for status, text in _FAILURES.items():
        found[str(status)] = {"description": text, "content": failure}
    return found


def _health() -> dict[str, Any]:
    schema = {"type": "object", "properties": {"status": {"type": "string"}}, "required": ["status"]}
    content = {"application/json": {"schema": schema}}
    return {
        "operationId": "healthz",
        "summary": "Whether the server is there",
        "security": [],
        "responses": {
            "200": {"description": "it is", "content": content},
            "503": {"description": "it is about to stop", "content": content},
        },
    }


def _metrics() -> dict[str, Any]:
    failure = {"application/json": {"schema": {"$ref": _REF.format(name="Failure")}}}
    return {
        "operationId": "metrics",
        "summary": "Numbers for Prometheus",
        "x-scope": "admin",
        "responses": {
            "200": {"description": "them", "content": {"text/plain": {"schema": {"type": "string"}}}},
            **{
                str(status): {"description": _FAILURES[status], "content": failure}
                for status in (401, 403, 429)
            },
        },
    }
