"""The documentation as a site: it builds without a warning, needs no other host, and no page is forgotten.

One test, as building takes several seconds.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

from tests.support import PATIENCE, ROOT

DOCS = ROOT / "docs"
CONFIG = "docs/site/mkdocs.yml"
GROUPS = ["Home", "Tutorials", "How-to guides", "Reference", "Explanation"]


@dataclass
class Block:
    """A code block: its text, and how many of its spans have a colour."""

    language: str
    text: str = ""
    colours: int = 0


@dataclass
class SitePage:
    """What the tests ask of a page."""

    ids: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    #: What a browser loads with the page.
    resources: list[str] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    title: str = ""
    tabs: list[str] = field(default_factory=list)


_LOADED = {"stylesheet", "icon", "preload", "preconnect", "dns-prefetch", "modulepreload", "manifest"}
_LANGUAGE = re.compile(r"language-(\S+) highlight")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = SitePage()
        self._open = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        names = given.get("class", "")
        if "id" in given:
            self.page.ids.add(given["id"])
        if tag == "a" and "href" in given:
            self.page.links.append(given["href"])
            self._open = "tab" if names == "md-tabs__link" else self._open
        elif tag == "link" and _LOADED & set(given.get("rel", "").split()):
            self.page.resources.append(given["href"])
        elif "src" in given:
            self.page.resources.append(given["src"])
        if tag == "title" and not self.page.title:
            self._open = "title"
        elif language := _LANGUAGE.search(names):
            self.page.blocks.append(Block(language[1]))
            self._open = "block"
        elif tag == "span" and self._open == "block" and names not in ("", "w"):
            self.page.blocks[-1].colours += 1

    def handle_data(self, data: str) -> None:
        if self._open == "title":
            self.page.title += data.strip()
        elif self._open == "tab" and data.strip():
            self.page.tabs.append(data.strip())
        elif self._open == "block":
            self.page.blocks[-1].text += data

    def handle_endtag(self, tag: str) -> None:
        if (self._open, tag) in (("title", "title"), ("tab", "a"), ("block", "pre")):
            self._open = ""


def read(file: Path) -> SitePage:
    reader = _Reader()
    reader.feed(file.read_text(encoding="utf-8"))
    return reader.page


@pytest.mark.long
@pytest.mark.skipif(find_spec("material") is None, reason="needs harnpy[docs]")
def test_the_site(tmp_path: Path) -> None:
    build(tmp_path)
    pages = {file: read(file) for file in sorted(tmp_path.rglob("*.html"))}
    assert pages[tmp_path / "index.html"].tabs == GROUPS
    assert_every_page_is_there(tmp_path, pages)
    assert_links_lead_somewhere(tmp_path, pages)
    assert_nothing_comes_from_elsewhere(tmp_path, pages)
    assert_harn_has_colours(tmp_path, pages)


def build(target: Path) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mkdocs",
            "build",
            "--strict",
            "-f",
            "docs/site/mkdocs.yml",
            "-d",
            str(target),
        ],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr


def page_of(source: Path, site: Path) -> Path:
    page = site / source.relative_to(DOCS).with_suffix(".html")
    return page.with_name("index.html") if source.name == "README.md" else page


def assert_every_page_is_there(site: Path, pages: dict[Path, SitePage]) -> None:
    """Each page of docs/ has a title, and the navigation leads to it (which a strict build demands)."""
    for source in DOCS.rglob("*.md"):
        assert page_of(source, site) in pages, source
    assert [str(file) for file, page in pages.items() if not page.title] == []


def assert_links_lead_somewhere(site: Path, pages: dict[Path, SitePage]) -> None:
    dead = []
    for file, page in pages.items():
        for link in page.links:
            path, anchor = urldefrag(unquote(link))
            # 404.html is shown in whatever directory a page is missing, so its links begin at the top.
            if urlsplit(link).scheme or file.name == "404.html":
                continue
            target = (file.parent / path).resolve() if path else file
            if not target.is_file() or (anchor and target in pages and anchor not in pages[target].ids):
                dead.append(f"{file.relative_to(site)}: {link}")
    assert dead == []


def assert_nothing_comes_from_elsewhere(site: Path, pages: dict[Path, SitePage]) -> None:
    loaded = [url for page in pages.values() for url in page.resources]
    for sheet in site.rglob("*.css"):
        text = sheet.read_text(encoding="utf-8")
        loaded += re.findall(r"""(?:url\(|@import\s+)["']?([^"')]+)""", text)
    assert [url for url in loaded if urlsplit(url).netloc] == []
    # The theme's script would fetch what draws these.
    assert not any(block.language == "mermaid" for page in pages.values() for block in page.blocks)


def assert_harn_has_colours(site: Path, pages: dict[Path, SitePage]) -> None:
    for source in DOCS.rglob("*.md"):
        written = len(re.findall(r"^ *```harn$", source.read_text(encoding="utf-8"), re.MULTILINE))
        blocks = [block for block in pages[page_of(source, site)].blocks if block.language == "harn"]
        assert len(blocks) == written, source
        assert [block.text for block in blocks if block.text.strip() and not block.colours] == [], source
