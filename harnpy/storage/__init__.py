"""Durable append-only streams. The room knows no sessions, no models, no language, and imports none of them.

`contract` says what every store promises, `errors` how it fails; each store is one module or folder, and
`opening` finds it by its URL. Spec: 10 §C6.
"""

from harnpy.storage.contract import Apart, Codec, Encoded, Head, HeadQuery, Hit, Page, Row, Store, Stream
from harnpy.storage.errors import StorageError
from harnpy.storage.opening import open_store, register_store

#: The former name.
Backend = Store

__all__ = [
    "Apart",
    "Backend",
    "Codec",
    "Encoded",
    "Head",
    "HeadQuery",
    "Hit",
    "Page",
    "Row",
    "StorageError",
    "Store",
    "Stream",
    "open_store",
    "register_store",
]
