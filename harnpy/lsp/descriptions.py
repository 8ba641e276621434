"""What is said of a name: how it is declared, and what its documentation says first. Spec: 12 §3.2.

For hovers, completion and signature help alike.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from harnpy.builtins import catalog
from harnpy.builtins.documentation import documentation, first_sentence, without_citation
from harnpy.syntax import ast
from harnpy.syntax.lexer import shebang_end
from harnpy.vm.run import methods

if TYPE_CHECKING:
    from harnpy.formats.options import Option
    from harnpy.lsp.document import Document
    from harnpy.lsp.names import Meaning
    from harnpy.lsp.workspace import Workspace
    from harnpy.vm.declare import Declaration

_CITATION = re.compile(r"Spec: ([^\"`]*?)\.?\s*$")
_SPACES = re.compile(r"\s+")
#: What isn't text in a block comment: its line breaks with the stars behind them, and those at its beginning.
_BESIDE = re.compile(r"\s*\n\s*\*? ?|^\*+")
_FIRST_BLOCK = re.compile(r"/\*+(.*?)\*+/", re.DOTALL)
_COMMENT = re.compile(r"^\s*//[/!]? ?(.*)$")


class Description(NamedTuple):
    """``declaration`` is Harn code, ``text`` prose; ``section`` is of the specification (``08 §1.4``)."""

    declaration: str
    text: str = ""
    section: str = ""

    @property
    def sentence(self) -> str:
        """The first sentence of the prose."""
        return first_sentence(self.text)

    def markdown(self) -> str:
        """Return it as a hover shows it."""
        parts = [f"```harn\n{self.declaration}\n```", self.sentence]
        parts += [f"Specification: {self.section}"] if self.section else []
        return "\n\n".join(filter(None, parts))


def of_builtin(name: str) -> Description | None:
    """Return what is said of a builtin function; None where there is none of that name."""
    declaration = catalog.find(name)
    return None if declaration is None else _of_declaration(declaration, declaration.signature_text)


def of_method(kind: str, name: str) -> Description | None:
    """Return what is said of a method of a kind of value, such as ``list``."""
    declaration = methods.declared_methods(kind).get(name) if methods.has_methods(kind) else None
    if declaration is None:
        return None
    return _of_declaration(declaration, f"{kind}.{declaration.signature_text}")


def _of_declaration(declaration: Declaration, text: str) -> Description:
    prose, _ = documentation(declaration)
    cited = _CITATION.search(prose)
    return Description(text, without_citation(prose), _SPACES.sub(" ", cited[1]) if cited else "")


def of_meaning(workspace: Workspace, meaning: Meaning) -> Description | None:
    """Return what is said of a name; None where nothing declares it."""
    if meaning.kind == "builtin":
        return of_builtin(meaning.name)
    home = None if meaning.uri is None else workspace.at(meaning.uri)
    if home is None:
        return None
    if meaning.kind == "module":
        return Description(f'import "{meaning.name}"', comment_at_top(home.source))
    spot = home.spot(meaning.start)
    nodes = () if spot is None else spot.nodes
    declaring = next((node for node in reversed(nodes) if _declares(node, meaning.name)), None)
    if declaring is None:
        return Description(meaning.name)
    start = home.place(declaring.start)
    text = header(home, declaring)
    if meaning.owner and not isinstance(declaring, ast.FnDecl):
        text = f"{meaning.owner}.{text}"
    return Description(text, comment_above(home.source, start))


def _declares(node: ast.Node, name: str) -> bool:
    return getattr(node, "name", None) == name or isinstance(node, ast.Let)


def header(document: Document, node: ast.Node) -> str:
    """Return a declaration as it is written, without the statements in it."""
    start, end = document.span(node)
    body = getattr(node, "body", None)
    if isinstance(body, ast.Block):
        end = document.place(body.start)
    if isinstance(node, ast.Let):
        end = document.place(node.value.start)
    text = document.source[start:end].rstrip(" \t\r\n{=")
    return _SPACES.sub(" ", text) if isinstance(node, ast.FnDecl | ast.ToolDecl | ast.Pipeline) else text


def of_option(row: Option) -> Description:
    """Return what is said of a key of a dict that a builtin takes."""
    default = f" = {row.default}" if row.default else ""
    meaning = row.meaning[:1].upper() + row.meaning[1:]
    return Description(f"{row.name}: {row.type}{default}", f"{meaning}." if meaning else "")


def comment_above(source: str, start: int) -> str:
    """Return the text of the comment that ends on the line above an offset, of lines or a block."""
    before = source[: source.rfind("\n", 0, start) + 1]
    if before.endswith("*/\n"):
        return _BESIDE.sub(" ", before[before.rfind("/*") + 2 : -3]).strip()
    lines = before.split("\n")[:-1]
    found = []
    while lines and (comment := _COMMENT.match(lines.pop())):
        found.append(comment[1])
    return " ".join(reversed(found)).strip()


def comment_at_top(source: str) -> str:
    """Return the text of the comment that a file begins with."""
    rest = source[shebang_end(source) :].lstrip()
    block = _FIRST_BLOCK.match(rest)
    if block is not None:
        return _BESIDE.sub(" ", block[1]).strip()
    found = []
    for line in rest.split("\n"):
        comment = _COMMENT.match(line)
        if comment is None:
            break
        found.append(comment[1])
    return " ".join(found).strip()
