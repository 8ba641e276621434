"""The messages that harnpy prints are its own: no text of another library is in them, whatever it says.

Where another's words matter (a server's, the system's, a user's own function's) they are quoted as a detail
after ours, and no test depends on them.
"""

from __future__ import annotations

import ast
import re
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import httpx2
import msgspec
import pytest
import regex
import yaml

from harnpy.formats import archives, compression
from harnpy.formats.crypto import jwt
from harnpy.formats.regex import compiled
from harnpy.formats.yaml import parse_yaml
from harnpy.llm.configuration.model_settings import Settings
from harnpy.session.transfer.agently import JSON, read_text
from harnpy.world.files import plain_reason
from harnpy.world.http_client import failure
from tests.support import ROOT

#: Where a library's words are quoted: file, and why.
QUOTED = {
    "harnpy/isolation/child.py": "our own words, by way of msgspec: what can't leave a process",
    "harnpy/serve/mcp_server.py": "the client's own words",
    "harnpy/storage/postgres/database.py": "libpq's for what is wrong with a URL of its own form",
    "harnpy/storage/sqlite/search.py": "SQLite's for a search in its own language",
}

#: Exceptions of Python itself whose texts differ between its releases.
PYTHONS = frozenset(
    "ArithmeticError AttributeError EOFError IndexError KeyError MemoryError NameError OverflowError"
    " RecursionError RuntimeError SyntaxError TypeError UnicodeDecodeError UnicodeEncodeError"
    " UnicodeError".split()
)


def test_no_message_holds_the_text_of_another_librarys_exception() -> None:
    found = {}
    for path in sorted((ROOT / "harnpy").rglob("*.py")):
        name, source = str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
        lines = list(leaks(ast.parse(source))) if re.search("except .* as ", source) else []
        if lines:
            found[name] = lines
    assert {name: lines for name, lines in found.items() if name not in QUOTED} == {}
    assert {*QUOTED} <= {*found}, "nothing is quoted there any more"


def leaks(module: ast.Module) -> Iterator[str]:
    """Yield the lines of the handlers that put the text of another's exception into one of their own."""
    foreign = {*PYTHONS, *_imported(module)}
    for node in ast.walk(module):
        if isinstance(node, ast.ExceptHandler) and node.name and node.type:
            kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            names = [ast.unparse(kind) for kind in kinds]
            if any(name in foreign or name.partition(".")[0] in foreign for name in names):
                yield from (
                    f"{each.lineno}: {', '.join(names)}"
                    for statement in node.body
                    for each in ast.walk(statement)
                    if _shows(each, node.name)
                )


def _imported(module: ast.Module) -> Iterator[str]:
    """Yield what a module calls what it has from other libraries."""
    for node in ast.walk(module):
        if isinstance(node, ast.Import):
            yield from (
                (each.asname or each.name).partition(".")[0]
                for each in node.names
                if not each.name.startswith("harnpy")
            )
        elif isinstance(node, ast.ImportFrom) and not (node.module or "").startswith("harnpy"):
            yield from (each.asname or each.name for each in node.names)


def _shows(node: ast.AST, error: str) -> bool:
    """Whether a node makes a text of an exception."""
    if isinstance(node, ast.FormattedValue):
        return isinstance(node.value, ast.Name) and node.value.id == error
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("str", "repr"):
        return any(isinstance(each, ast.Name) and each.id == error for each in node.args)
    return isinstance(node, ast.Attribute) and node.attr == "args" and ast.unparse(node.value) == error


FOREIGN = "the words of another library"


def refused(kind: Callable[[str], Exception]) -> Callable[..., Any]:
    """Return a function that raises an exception in another library's words."""

    def refuse(*_: Any, **__: Any) -> Any:
        raise kind(FOREIGN)

    return refuse


def unpacker(kind: Callable[[str], Exception]) -> Callable[..., Any]:
    """Return a class whose objects unpack nothing."""
    return lambda *_: type("Unpacker", (), {"decompress": refused(kind), "eof": False})()


def marked(words: str) -> Exception:
    return yaml.MarkedYAMLError(words, None, words, yaml.Mark("", 0, 0, 0, None, None))


ZSTD = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
KEYS = "cryptography.hazmat.primitives.serialization"
PEM = "-----BEGIN KEY-----"

#: What is replaced, by what, and the call of ours that then fails.
REFUSALS: list[tuple[str, Callable[..., Any], Callable[[], object]]] = [
    ("yaml.parse", refused(marked), lambda: parse_yaml("a")),
    ("yaml.parse", refused(yaml.YAMLError), lambda: parse_yaml("a")),
    ("regex.compile", refused(regex.error), lambda: compiled("a")),
    ("zlib.decompressobj", unpacker(zlib.error), lambda: [*compression.gzip_decompressed([b"a"])]),
    (
        f"{ZSTD}.ZstdDecompressor",
        unpacker(import_module(ZSTD).ZstdError),
        lambda: [*compression.zstd_decompressed([b"a"])],
    ),
    ("zipfile.ZipFile", refused(zipfile.BadZipFile), lambda: [*archives.zip_unpacked(b"a", 9, True)]),
    ("json5.loads", refused(ValueError), lambda: read_text("{a", JSON)),
    (f"{KEYS}.load_pem_private_key", refused(ValueError), lambda: jwt.signed("ES256", "{}", PEM)),
    ("msgspec.convert", refused(msgspec.ValidationError), lambda: Settings().overlaid({"providers": 3}, "f")),
]


@pytest.mark.parametrize(("name", "instead", "call"), REFUSALS, ids=[name for name, _, _ in REFUSALS])
def test_a_refusal_is_in_our_own_words(
    name: str, instead: Callable[..., Any], call: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name, instead)
    with pytest.raises(Exception, match=r"\A[^\n]+") as caught:
        call()
    assert type(caught.value).__module__.startswith(("harnpy.", "builtins"))
    assert FOREIGN not in str(caught.value)


@pytest.mark.parametrize(
    "error",
    [
        httpx2.ConnectTimeout(FOREIGN),
        httpx2.PoolTimeout(FOREIGN),
        httpx2.ReadTimeout(FOREIGN),
        httpx2.ConnectError(FOREIGN),
        httpx2.ReadError(FOREIGN),
        httpx2.RemoteProtocolError(FOREIGN),
        httpx2.LocalProtocolError(FOREIGN),
        httpx2.DecodingError(FOREIGN),
        httpx2.UnsupportedProtocol(FOREIGN),
        httpx2.InvalidURL(FOREIGN),
        httpx2.StreamError(FOREIGN),
        httpx2.TooManyRedirects(FOREIGN),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_failed_request_is_in_our_own_words(error: Exception) -> None:
    assert FOREIGN not in failure(error).text


def test_what_no_file_can_be_is_in_our_own_words() -> None:
    assert plain_reason(ValueError(FOREIGN)) == "embedded null byte"
    assert (
        plain_reason(UnicodeDecodeError("utf-8", b"", 0, 1, FOREIGN)) == "stream did not contain valid UTF-8"
    )
    assert plain_reason(FileNotFoundError(2, "No such file or directory", "x")) == "No such file or directory"
