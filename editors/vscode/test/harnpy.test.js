const assert = require("node:assert/strict");
const { mkdtempSync, mkdirSync, writeFileSync, rmSync } = require("node:fs");
const { tmpdir } = require("node:os");
const { delimiter, join } = require("node:path");
const { test } = require("node:test");
const { findHarnpy, findTests, readFailure, readResults } = require("../src/harnpy");
const { indentationRules, onEnterRules, wordPattern } = require("../language-configuration.json");

test("harnpy is what is set, else the folder's, else the first on the PATH", (t) => {
  const home = mkdtempSync(join(tmpdir(), "harn-"));
  t.after(() => rmSync(home, { recursive: true }));
  const install = (...parts) => {
    mkdirSync(join(home, ...parts), { recursive: true });
    writeFileSync(join(home, ...parts, "harnpy"), "");
    return join(home, ...parts);
  };
  const onPath = { PATH: ["", ".", join(home, "empty"), install("usr", "bin")].join(delimiter) };
  assert.deepEqual(findHarnpy(["uv", "run", "harnpy"], [home], onPath, "linux"), ["uv", "run", "harnpy"]);
  assert.deepEqual(findHarnpy([], [home], onPath, "linux"), [join(home, "usr", "bin", "harnpy")]);
  const own = install("project", "venv", "bin");
  assert.deepEqual(findHarnpy([], [join(home, "project")], onPath, "linux"), [join(own, "harnpy")]);
  assert.equal(findHarnpy([], [home], {}, "linux"), undefined);
});

test("results come line by line, in whatever parts", () => {
  const first = readResults('{"name": "test_a", "file": "a.harn", "status": "pass", "ms": 1.5}\nnoise\n{"name": "te');
  assert.deepEqual(first.results.map(({ name, status }) => [name, status]), [["test_a", "pass"]]);
  const second = readResults(`${first.rest}st_b", "file": "a.harn", "status": "fail", "ms": 2, "error": "x"}\n{"passed": 1, "failed": 1}\n`);
  assert.deepEqual(second.results.map(({ name }) => name), ["test_b"]);
  assert.equal(second.rest, "");
});

test("a failure has its place and both values", () => {
  const error = "error: Thrown: Assertion failed: expected 2, got 1\n  --> tests/a.harn:2:3\n   |\nexpected: 2\nactual:   1";
  assert.deepEqual(readFailure(error), {
    message: "Thrown: Assertion failed: expected 2, got 1",
    place: { file: "tests/a.harn", line: 2, column: 3 },
    expected: "2",
    actual: "1",
  });
  assert.deepEqual(readFailure("error: no"), { message: "no" });
});

test("tests are pipelines by name or mark", () => {
  const source = "pipeline test_a(task) {\n}\n@test\n// why\npub pipeline b(task) {}\npipeline c(task) {}\n@test pipeline d(t) {}\n@test\nfn e() {}\npipeline f(task) {}";
  assert.deepEqual(findTests(source), [
    { name: "test_a", line: 0 },
    { name: "b", line: 4 },
    { name: "d", line: 6 },
  ]);
});

test("lines are indented behind what is open", () => {
  const increases = new RegExp(indentationRules.increaseIndentPattern.pattern);
  const decreases = new RegExp(indentationRules.decreaseIndentPattern.pattern);
  for (const line of ["fn f() {", "  let xs = [ // all", "xs.map({ x ->", "} else {", 'f("{", {', "call("]) assert.match(line, increases);
  for (const line of ["f({a: 1})", "// {", 'let a = "{', "let b = 1 / 2", "xs.map({ x -> x })"]) assert.doesNotMatch(line, increases);
  for (const line of ["}", "  ])", "} else {"]) assert.match(line, decreases);
  assert.doesNotMatch("let a = {}", decreases);
});

test("documentation goes on at the next line", () => {
  const goesOn = (line) => onEnterRules.some(({ beforeText, action }) => action.appendText && new RegExp(beforeText.pattern).test(line));
  for (const line of ["/** What it does", "  /**", " * more", "/// doc"]) assert.ok(goesOn(line), line);
  for (const line of ["/** whole */", "let a = 1", "//// bar"]) assert.ok(!goesOn(line), line);
});

test("a word is a name", () => {
  assert.deepEqual("é_1 = a.b2".match(new RegExp(wordPattern.pattern, `${wordPattern.flags}g`)), ["é_1", "a", "b2"]);
});
