"""Every Harn program of the repository, and a few with what those may lack."""

from __future__ import annotations

from tests.support import ROOT

_RARE = """
@a @b(1, -2, x: [true, nil, name], "s", r"r")
pub gen fn f<in T, out U, V>(a, b: list<T> = [1], ...c: any) -> T | nil where T: Show, U: Eq { emit a }
pub import { a, b } from "std/x"
import "y"
tool t(q: string) -> {a: int, b?: [string]} { description "does it"
  1 }
skill s { when "x"; limit 3 }
eval_pack "My Pack" { model: "m"; f(); summarize { 1 } }
enum E<T> { A B(x: int, y) }
struct S { a: int, b?: string
  c }
interface I { type Item = int
  fn next(self) -> Item
  fn size() }
impl S { pub fn go(self) { 1 }
  fn stop() {} }
type F = fn(int, -1, "x") -> A | B
pipeline base(task) -> int { 1 }
pipeline child(task) extends base { override step(x) { 1 } }
fn g() {
  let {a, b: c = 1, ...d} = e; var [h, i = 2, ...j] = k
  for (l, m) in n { continue }
  while a not in b || !c && -d ** 2 ?? 3 { break }
  guard x else { return }
  if a { 1.5 } else { 2 }
  require y, "z"
  defer { 1 }
  mutex { 2 }
  select { o from p { 1 }
    timeout 5s { 2 } }
  parallel each q with { max_concurrent: 2 } { r -> r } as stream
  let s = parallel settle q { 1 }
  retry 3 { throw "x" }
  let u = try { v } catch (w: Err) { 1 } finally { 2 }
  deadline 1m { yield 1 }
  let x = match y { 1 | 2 if z -> { 1 } _ -> { 2 } }
  a.b[0].c += 1
  return try* a?.b?[1]?.c(...d)? |> { e -> e }
  let t = f<int, list<string>>(1) to 2 exclusive
  log("a${b ? "c" : d[1:]}", S {a: 1, ...x}, {["k"]: 1, ...m}, fn(x) { x }, (f)(1), spawn { 1 })
}
"""


def programs() -> list[str]:
    found = [
        path.read_text(encoding="utf-8", errors="replace")
        for folder in ("conformance", "examples", "stdlib")
        for path in sorted((ROOT / folder).rglob("*.harn"))
    ]
    return [_RARE, *found]
