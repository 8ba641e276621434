"""The format of session bundles: type, version and mode, and the digests that seal one.

Spec: 08 §17.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from harnpy.text.json.compact import compact_json
from harnpy.workflow.bundle.redaction_manifest import digest

if TYPE_CHECKING:
    from harnpy.reading.dicts import Dict


TYPE = "harn_session_bundle"
VERSION = 1
SANITIZED, LOCAL, REPLAY_ONLY = MODES = ("sanitized", "local", "replay_only")
#: Where an imported run remembers the bundle it came from, in its metadata.
ORIGIN = "session_bundle"

#: Keys about who made a document and when, not about the run.
_IDENTITY = ("bundle_id", "created_at", "producer")


def is_supported(document: Dict) -> bool:
    version = document.get("schema_version")
    return document.get("_type") == TYPE and type(version) is int and version == VERSION


def unsupported(document: Dict) -> str:
    """Return why a document is not a bundle that this version reads."""
    key = "schema_version" if document.get("_type") == TYPE else "_type"
    value = document.get(key)
    return f"unsupported session bundle version: {'nil' if value is None else value}"


def sealed(document: Dict) -> Dict:
    """Return the document with its integrity digest, keys sorted."""
    ordered: Dict = json.loads(compact_json({**document, "integrity": _integrity(document)}))
    return ordered


def has_integrity(document: Dict) -> bool:
    """Return whether a document is unchanged since it was sealed."""
    return bool(document.get("integrity") == _integrity(document))


def content_digest(document: Dict) -> str:
    """Return the SHA-256 of a bundle's content about its run: equal content, equal digest."""
    return _digest_without(document, (*_IDENTITY, "integrity"))


def _integrity(document: Dict) -> Dict:
    return {"algorithm": "sha256", "digest": _digest_without(document, ("integrity",))}


def _digest_without(document: Dict, keys: tuple[str, ...]) -> str:
    return digest({key: value for key, value in document.items() if key not in keys})
