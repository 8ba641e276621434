"""What the site does beyond MkDocs: it shows pages as GitHub does, and has the files that they link to.

The pages are written for GitHub, and read there as well. MkDocs reads another dialect of Markdown: lists
nest by four columns, tables show the backslash of an escaped bar, headings have other anchors. So a parser of
GitHub's dialect makes the tree, and MkDocs goes on from there. A link that leaves docs/ leads to a page that
shows the file or lists the directory: there is one for each, and for what it links to.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from xml.etree.ElementTree import XML, Element, ElementTree

from markdown import Markdown
from markdown.blockparser import BlockParser
from markdown.extensions import Extension
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererProtocol
from markdown_it.token import Token
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name

ROOT = Path(__file__).parents[2]
DOCS = "docs/"
#: Where the site has what is outside docs/.
OUTSIDE = "repository/"

#: A link to a file, or code, in which nothing is a link.
_LINK = re.compile(
    r"^ *(?P<fence>```+)[\s\S]*?^ *(?P=fence)$|(?P<mark>`+)[^`]+(?P=mark)|\]\((?!\w+:|#)([^)#\s]+)",
    re.MULTILINE,
)
#: The files of a directory that have a page because it is listed.
_PROGRAMS = (".harn", ".py")
_LANGUAGES = {".harn": "harn", ".json": "json", ".py": "python", ".sh": "sh", ".sql": "sql", ".toml": "toml"}


def on_config(config: MkDocsConfig) -> None:
    config.markdown_extensions.append(_GitHub())  # type: ignore[arg-type]
    config.mdx_configs["toc"]["slugify"] = anchor


def on_files(files: Files, config: MkDocsConfig) -> None:
    """Add a page for each file outside docs/ to which a page or another such file links."""
    waiting = [
        target
        for file in files.documentation_pages()
        for target in _targets(file.content_string, DOCS + file.src_uri)
    ]
    seen = set()
    while waiting:
        path = waiting.pop()
        if path in seen or path.startswith(DOCS) or not (ROOT / path).exists():
            continue
        seen.add(path)
        shown = _shown(path)
        uri = _uri(path)
        waiting += _targets(shown, uri.removeprefix(OUTSIDE))
        files.append(File.generated(config, uri, content=shown, inclusion=InclusionLevel.NOT_IN_NAV))


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    return _linked(markdown, page.file.src_uri)


def anchor(heading: str, separator: str = "-") -> str:
    """Return what GitHub calls a heading in links."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", separator)


class _GitHub(Extension):
    """Pages are read as GitHub reads them."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.preprocessors.deregister("html_block")
        md.preprocessors.deregister("fenced_code_block")
        md.treeprocessors.deregister("inline")
        md.parser = _Parser(md)


class _Parser(BlockParser):
    def __init__(self, md: Markdown) -> None:
        super().__init__(md)
        self._github = MarkdownIt("commonmark", {"highlight": self._coloured})
        self._github.enable(["table", "strikethrough"])
        self._github.add_render_rule("html_block", _html)
        self._github.add_render_rule("html_inline", _html)

    def parseDocument(self, lines: Sequence[str]) -> ElementTree:  # noqa: N802
        tree = XML(f"<div>{self._github.render(chr(10).join(lines))}</div>")
        for element in tree.iter():
            _keep_entities(element)
            if "stored" in element.attrib:
                element.tag = "p"
                element.text = self.md.htmlStash.get_placeholder(int(element.attrib.pop("stored")))
        self.root = tree
        return ElementTree(tree)

    def _coloured(self, code: str, language: str, _attributes: str) -> str:
        """A code block in colours; it replaces what stands for it when the page is finished."""
        language = language or "text"
        formatter = HtmlFormatter(wrapcode=True, cssclass=f"language-{language} highlight")
        self.md.htmlStash.store(highlight(code, get_lexer_by_name(language, stripnl=False), formatter))
        return f'<pre stored="{self.md.htmlStash.html_counter - 1}"/>'


def _html(_renderer: RendererProtocol, tokens: Sequence[Token], at: int, *_: object) -> str:
    """The text of what looks like HTML; comments are for those who write the page."""
    text = tokens[at].content
    return "" if text.lstrip().startswith("<!--") else escape(text)


def _keep_entities(element: Element) -> None:
    """Let a text that looks like an entity stay text: the serialiser takes `&lt;` for a `<`."""
    element.text = element.text and element.text.replace("&", "&amp;")
    element.tail = element.tail and element.tail.replace("&", "&amp;")


def _links(markdown: str) -> Iterator[re.Match[str]]:
    return (match for match in _LINK.finditer(markdown) if match[3])


def _targets(markdown: str, path: str) -> list[str]:
    """The files to which the page at ``path`` links; paths are those of the repository."""
    return [posixpath.normpath(posixpath.join(posixpath.dirname(path), link[3])) for link in _links(markdown)]


def _linked(markdown: str, uri: str) -> str:
    """``markdown`` with its links to files of the repository turned into links to pages of the site."""
    path = uri.removeprefix(OUTSIDE) if uri.startswith(OUTSIDE) else DOCS + uri
    parts, at = [], 0
    for link, target in zip(_links(markdown), _targets(markdown, path), strict=True):
        relative = posixpath.relpath(_uri(target), posixpath.dirname(uri) or ".")
        parts += [markdown[at : link.start(3)], relative]
        at = link.end(3)
    return "".join([*parts, markdown[at:]])


def _uri(path: str) -> str:
    """The page of the site that shows a file or a directory of the repository."""
    if path.startswith(DOCS):
        return path.removeprefix(DOCS)
    if (ROOT / path).is_dir():
        readme = f"{path}/README.md"
        return OUTSIDE + (readme if (ROOT / readme).exists() else f"{path}/index.md")
    return OUTSIDE + (path if path.endswith(".md") else f"{path}.md")


def _shown(path: str) -> str:
    """The text of the page that shows a file or a directory."""
    file = ROOT / path
    if file.is_dir():
        readme = file / "README.md"
        if readme.exists():
            return readme.read_text(encoding="utf-8")
        names = sorted(each.name for each in file.iterdir() if each.is_file())
        shown = (f"[{name}]({name})" if name.endswith(_PROGRAMS) else name for name in names)
        return f"# {path}/\n\n" + "".join(f"* {each}\n" for each in shown)
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".md":
        return text
    return f"# {path}\n\n`````{_LANGUAGES.get(file.suffix, 'text')}\n{text.rstrip()}\n`````\n"
