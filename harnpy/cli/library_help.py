"""The functions of the modules `std/*`, and the search through all that programs may call. Spec: 09 §4.5.

Read from the modules' text, as the library is written in Harn; runs no program.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from harnpy import shipped
from harnpy.builtins import catalog
from harnpy.builtins.documentation import documentation, first_sentence, without_citation
from harnpy.syntax import ast
from harnpy.syntax.comments import doc_comment
from harnpy.syntax.parser import parse_cached
from harnpy.vm.modules import BUNDLED, EXTENSION, bundled_names
from harnpy.vm.run import methods as receivers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harnpy.vm.declare import Declaration

_SPACES = re.compile(r"\s+")


class LibraryFunction(NamedTuple):
    """A function that a program has after `import "MODULE"`; ``builtin`` does its work, if one does."""

    module: str
    name: str
    signature: str
    doc: str
    builtin: Declaration | None


class Hit(NamedTuple):
    """What a search found: its signature, the first sentence about it, and how well it fits, 0 the best."""

    signature: str
    sentence: str
    rank: int


def library_functions() -> Iterator[LibraryFunction]:
    """Yield the public functions of all modules of the library."""
    for module in bundled_names():
        file = os.path.join(shipped.library(), module.removeprefix(BUNDLED) + EXTENSION)
        with open(file, encoding="utf-8") as opened:
            source = opened.read()
        for node in parse_cached(source, file).items:
            if isinstance(node, ast.FnDecl) and node.pub:
                head = source[node.start : node.body.start].strip()
                signature = _SPACES.sub(" ", head).partition("fn ")[2]
                doc = without_citation(doc_comment(source, node.start))
                builtin = catalog.find(f"__{node.name}")
                yield LibraryFunction(module, node.name, signature, doc, builtin)


def search(text: str) -> list[Hit]:
    """Return what has all words of a text in its name, else in its first sentence or its documentation."""
    words = text.lower().split()
    found = [(hit, name) for name, hit in _hits(words)] if words else []
    return [hit for hit, _ in sorted(found, key=lambda each: (each[0].rank, each[1]))]


def _hits(words: list[str]) -> Iterator[tuple[str, Hit]]:
    for name, signature, doc in _documented():
        sentence = first_sentence(doc)
        texts = (name.lower(), f"{name} {sentence}".lower(), f"{name} {doc}".lower())
        rank = next((rank for rank, text in enumerate(texts) if all(word in text for word in words)), None)
        if rank is not None:
            yield name, Hit(signature, sentence, rank)


def _documented() -> Iterator[tuple[str, str, str]]:
    """Yield the name, the signature and the documentation of all that a program may call."""
    for declaration in catalog.all_declarations():
        if not declaration.name.startswith("__"):
            yield declaration.name, declaration.signature_text, _prose(declaration)
    for receiver in receivers.LISTED:
        for method in receivers.declared_methods(receiver).values():
            yield f"{receiver}.{method.name}", f"{receiver}.{method.signature_text}", _prose(method)
    for function in library_functions():
        yield function.name, f'{function.signature}  [import "{function.module}"]', function.doc


def _prose(declaration: Declaration) -> str:
    return without_citation(documentation(declaration).prose)
