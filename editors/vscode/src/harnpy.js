// Where harnpy is, and what its commands answer. Knows nothing of VS Code, so that tests need none.

const { existsSync } = require("node:fs");
const { delimiter, join } = require("node:path");

/** @typedef {{ name: string, file: string, status: string, ms: number, error?: string }} Result */
/** @typedef {{ file: string, line: number, column: number }} Place lines and columns from 1 */

/**
 * The command line that starts harnpy: what the person has set, the virtual environment of a folder, the PATH.
 *
 * @param {string[]} configured
 * @param {string[]} folders whose environments may be used: none of a workspace that isn't trusted
 * @param {Record<string, string | undefined>} environment
 * @param {string} platform
 * @returns {string[] | undefined}
 */
function findHarnpy(configured, folders, environment, platform = process.platform) {
  if (configured.length > 0) return configured;
  const windows = platform === "win32";
  const program = windows ? "harnpy.exe" : "harnpy";
  const environments = folders.flatMap((folder) => [".venv", "venv"].map((name) => join(folder, name, windows ? "Scripts" : "bin")));
  // An empty part of the PATH, or a relative one, is the folder that is open.
  const onPath = (environment.PATH ?? environment.Path ?? "").split(delimiter).filter((part) => /^(\/|[A-Za-z]:[\\/])/.test(part));
  const found = [...environments, ...onPath].map((folder) => join(folder, program)).find((path) => existsSync(path));
  return found === undefined ? undefined : [found];
}

/**
 * The results in a part of the output of `harnpy test --json`, and the line that isn't whole yet.
 *
 * @param {string} text
 * @returns {{ results: Result[], rest: string }}
 */
function readResults(text) {
  const lines = text.split("\n");
  const rest = lines.pop() ?? "";
  const results = [];
  for (const line of lines) {
    if (!line.startsWith("{")) continue;
    const found = JSON.parse(line);
    if (typeof found.name === "string" && typeof found.status === "string") results.push(found);
  }
  return { results, rest };
}

/**
 * Where a failure is, and the two values that should have been equal.
 *
 * @param {string} error
 * @returns {{ message: string, place?: Place, expected?: string, actual?: string }}
 */
function readFailure(error) {
  const place = /^\s*--> (.+):(\d+):(\d+)$/m.exec(error);
  const values = /^expected: ([^]*?)\nactual: {3}([^]*)$/m.exec(error);
  return {
    message: error.split("\n", 1)[0].replace(/^error: /, ""),
    ...(place && { place: { file: place[1], line: Number(place[2]), column: Number(place[3]) } }),
    ...(values && { expected: values[1], actual: values[2] }),
  };
}

/**
 * The tests of a program: pipelines called `test_…` or marked `@test`; `line` from 0.
 *
 * @param {string} source
 * @returns {{ name: string, line: number }[]}
 */
function findTests(source) {
  const tests = [];
  let marked = false;
  for (const [line, text] of source.split("\n").entries()) {
    if (/^@test\b/.test(text)) marked = true;
    const pipeline = /^(?:@.*\s)?(?:pub\s+)?pipeline\s+([\p{L}_][\p{L}\p{N}_]*)/u.exec(text);
    if (pipeline && (marked || pipeline[1].startsWith("test_"))) tests.push({ name: pipeline[1], line });
    // Attributes, comments and blank lines may stand between.
    if (!/^\s*(?:@|\/\/|$)/.test(text) || pipeline) marked = false;
  }
  return tests;
}

module.exports = { findHarnpy, readResults, readFailure, findTests };
