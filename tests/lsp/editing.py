"""Texts that are edited at random: a law of the server is that its state depends on the texts alone (12 §2).

    python -m tests.lsp.editing --sequences 1000 --seed 0

prints each sequence after which a server that has seen the edits differs from one that sees the texts.
"""

from __future__ import annotations

import argparse
import re
import sys
import traceback
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from harnpy.lsp.text import Text
from harnpy.lsp.uris import uri_of
from harnpy.lsp.workspace import Workspace
from tests.lsp.features import answers, published

_ROOT = Path(__file__).parent.parent.parent
#: No folder: what counts is open.
FOLDER = "/project/of/no-files"
_LONGEST = 3_000
_WORD = re.compile(r"[^\W\d]\w*")

_LIBRARY = """\
/** Points in a plane. */
pub struct Point { x: int, y: int }
pub enum Shape { Circle(radius: int), Square }
pub fn area(shape: Shape, scale: int = 1) -> int {
  return match shape {
    Shape.Circle(radius) -> { radius * radius * scale }
    Shape.Square -> { scale }
  }
}
impl Point {
  fn moved(self, by: int) -> Point { return Point({x: self.x + by, y: self.y}) }
}
let limit = 3
pub fn origin() -> Point { return Point({x: 0, y: 0}) }
"""
_MAIN = """\
import { area, origin, Shape, Point } from "library"
import "other"

type Sizes = list<int>

/** Sums what it is given. */
fn total(sizes: Sizes, first: int | nil = nil) -> int {
  var sum = first ?? 0
  for size in sizes {
    sum = sum + size
  }
  return sum
}

tool measure(name: string) -> string {
  description "Measures."
  return "${name}: ${to_string(area(Shape.Circle(2)))}"
}

pipeline main(task) {
  let point = origin().moved(2)
  let shown = { label -> "${label} ${to_string(point.x)}" }
  println(shown("x"), total([1, 2]), helped(point, {by: 1}))
  llm_call("hello", nil, {provider: "mock", model: "m"})
}
"""
_OTHER = """\
import { Point, area } from "library"
import "std/json"

@deprecated(since: "1.0", use: "helped")
pub fn old(point: Point) { return helped(point, {}) }

pub fn helped(point: Point, options: dict = {}) -> int {
  let by: int = options.by ?? 1
  try {
    guard by > 0 else { throw "no" }
  } catch (error) {
    println(error)
  }
  return point.x + by
}
"""
_INSERTED = [
    piece.replace("\\n", "\n")
    for piece in r"""
\n
{
}
(
)
"
"\n
/*
*/
//
let y = 1\n
let limit = "a"\n
fn f(a: int) -> string { return a }\n
fn total() { return 1 }\n
struct Point { z: string }\n
struct Other { x: Point, n: int = 1 }\n
impl Point { fn moved(self) { return 1 } }\n
enum Shape { Circle, Line(a: int) }\n
type Sizes = string\n
import "std/text"\n
import { nothing } from "library"\n
import "main"\n
pipeline other(task) extends main { return 1 }\n
pub fn
: int
 = nil
.
.x
area(
origin().
helped(point, {b
yield 1\n
return\n
@test\n
"${
register_provider("x")\n
let host = 1\nlet host = 2\n
é😀
""".splitlines()
    if piece
]


class Change(NamedTuple):
    """``name`` gets ``text``; a None closes it, which opens it again with the text that is there."""

    name: str
    text: str | None


@cache
def pool() -> tuple[Path, ...]:
    """The programs of this repository."""
    return tuple(
        path
        for folder in ("conformance", "examples", "stdlib")
        for path in sorted((_ROOT / folder).rglob("*.harn"))
    )


def program(random: Random, longest: int = _LONGEST) -> str:
    """Return the text of one of them."""
    while True:
        try:
            text = random.choice(pool()).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if len(text) <= longest:
            return text


def beginning(random: Random) -> dict[str, str]:
    """Return some texts to begin with, by name; they import each other."""
    texts = {"main.harn": _MAIN, "library.harn": _LIBRARY, "other.harn": _OTHER}
    if random.random() < 0.5:
        texts["any.harn"] = program(random)
    return texts


def edits(random: Random, texts: dict[str, str], count: int) -> Iterator[Change]:
    """Yield edits of ``texts``, which change as they do."""
    before = [dict(texts)]
    while count > 0:
        name = random.choice(list(texts))
        for text in _edited(random, texts, name, before):
            count -= 1
            if text is not None:
                texts[name] = text
            yield Change(name, text)
        before.append(dict(texts))


def _edited(
    random: Random, texts: Mapping[str, str], name: str, before: list[dict[str, str]]
) -> Iterator[str | None]:
    source = texts[name]
    at = random.randint(0, len(source))
    words = list(_WORD.finditer(source))
    what = random.randrange(10)
    if what == 0:
        yield None
    elif what == 1:
        yield random.choice(before)[name]
    elif what == 2:
        yield source[:at] + source[at + random.choice([1, 3, 20, 200]) :]
    elif what in (3, 4) and words:
        word = random.choice(words)
        others = [*words, *_WORD.finditer(random.choice(list(texts.values())))]
        yield source[: word.start()] + random.choice(others)[0] + source[word.end() :]
    elif what == 5:
        lines = source.splitlines(keepends=True)
        random.shuffle(lines[: random.randint(0, 4)])
        if lines:
            line = lines.pop(random.randrange(len(lines)))
            lines.insert(random.randint(0, len(lines)), line)
        yield "".join(lines)
    elif what == 6:
        # As one types.
        typed = random.choice(_INSERTED)
        for end in range(1, len(typed) + 1):
            yield source[:at] + typed[:end] + source[at:]
    else:
        starts = [0, *(match.end() for match in re.finditer("\n", source))]
        at = random.choice(starts) if what > 7 else at
        yield source[:at] + random.choice(_INSERTED) + source[at:]


def difference(before: str, after: str) -> tuple[int, int, str]:
    """Return the one splice between two texts: where it begins and ends, and what is put in."""
    room = min(len(before), len(after))
    start = next((i for i in range(room) if before[i] != after[i]), room)
    left = room - start
    same = next((i for i in range(left) if before[-1 - i] != after[-1 - i]), left)
    return start, len(before) - same, after[start : len(after) - same]


def opened(texts: Mapping[str, str]) -> Workspace:
    """Return a server's workspace with these texts open."""
    workspace = Workspace([FOLDER])
    for name, text in texts.items():
        workspace.open(uri_of(f"{FOLDER}/{name}"), text, 1)
    return workspace


def changed(workspace: Workspace, change: Change) -> None:
    """Do to a workspace what a client's messages do."""
    uri = uri_of(f"{FOLDER}/{change.name}")
    document = workspace.documents[uri]
    if change.text is None:
        source = document.source
        workspace.close(uri)
        workspace.open(uri, source, 1)
        return
    start, end, new = difference(document.source, change.text)
    text = document.text.changed([(document.text.range(start, end), new)])
    # Two halves of a character, or of a line's end, are no places of the protocol.
    workspace.edit(document, text if text.source == change.text else Text(change.text), 1)


def state(workspace: Workspace, seed: int, places: int) -> dict[str, Any]:
    """Return all that a server says of its documents, at some places of each."""
    found: dict[str, Any] = {}
    for uri in sorted(workspace.documents):
        document = workspace.at(uri)
        assert document is not None
        random = Random(f"{seed} {uri}")
        found[f"{uri} diagnostics"] = published(workspace, document)
        for _ in range(places):
            start = random.randint(0, len(document.source))
            end = min(len(document.source), start + random.choice([0, 0, 5, 300]))
            for method, answer in answers(workspace, document, start, end, random):
                found.setdefault(f"{uri}:{start}-{end} {method}", []).append(answer)
    return found


def differences(seed: int, count: int, places: int = 3) -> list[str]:
    """Return what differs between a server that has seen some edits and a fresh one, or how one fails."""
    random = Random(seed)
    texts = beginning(random)
    workspace = opened(texts)
    try:
        for number, change in enumerate(edits(random, texts, count)):
            changed(workspace, change)
            if number % 4 == 0:
                # Whatever is looked up between edits must not matter.
                state(workspace, seed + number, 1)
        seen, fresh = state(workspace, seed, places), state(opened(texts), seed, places)
    except Exception:
        return [traceback.format_exc()]
    return [
        f"{key}\n  {seen.get(key)}\n  {fresh.get(key)}"
        for key in seen | fresh
        if seen.get(key) != fresh.get(key)
    ]


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--sequences", type=int, default=1_000)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--edits", type=int, default=12)
    given = options.parse_args()
    wrong = 0
    for seed in range(given.seed, given.seed + given.sequences):
        found = differences(seed, given.edits)
        wrong += bool(found)
        if found:
            print(f"seed {seed}: {len(found)}\n{found[0][-1500:]}", flush=True)
    print(f"{given.sequences} sequences from seed {given.seed}: {wrong} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
