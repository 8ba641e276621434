// The tests of a workspace in VS Code's test explorer.

const { spawn } = require("node:child_process");
const { isAbsolute, join } = require("node:path");
const vscode = require("vscode");
const { findTests, readFailure, readResults } = require("./harnpy");

/** @typedef {(folder: vscode.WorkspaceFolder | undefined) => string[] | undefined} Harnpy */

/** @typedef {(uri: vscode.Uri, name: string) => Promise<boolean>} RunTests `false` if there is no such test */

/**
 * Offer the tests, and return what runs one of a file, or with `""` all of them.
 *
 * @param {vscode.ExtensionContext} context
 * @param {Harnpy} harnpy
 * @returns {RunTests}
 */
function offerTests(context, harnpy) {
  const controller = vscode.tests.createTestController("harn", "Harn");
  context.subscriptions.push(controller);
  const watcher = vscode.workspace.createFileSystemWatcher("**/*.harn");
  context.subscriptions.push(
    watcher,
    watcher.onDidCreate((uri) => readFile(controller, uri)),
    watcher.onDidChange((uri) => readFile(controller, uri)),
    watcher.onDidDelete((uri) => controller.items.delete(uri.toString())),
    vscode.workspace.onDidOpenTextDocument((document) => showOpen(controller, document)),
    vscode.workspace.onDidChangeTextDocument(({ document }) => showOpen(controller, document)),
  );
  controller.resolveHandler = async (item) => {
    if (item !== undefined) return;
    const files = await vscode.workspace.findFiles("**/*.harn", "**/{node_modules,.venv,venv}/**");
    await Promise.all(files.map((uri) => readFile(controller, uri)));
  };
  controller.createRunProfile("Run", vscode.TestRunProfileKind.Run, (request, token) => run(controller, harnpy, request, token), true);
  return async (uri, name) => {
    await readFile(controller, uri);
    const file = controller.items.get(uri.toString());
    const item = name ? file?.children.get(`${uri}#${name}`) : file;
    if (item === undefined) return false;
    const source = new vscode.CancellationTokenSource();
    await run(controller, harnpy, new vscode.TestRunRequest([item]), source.token);
    return true;
  };
}

/**
 * @param {vscode.TestController} controller
 * @param {vscode.Uri} uri
 */
async function readFile(controller, uri) {
  const open = vscode.workspace.textDocuments.find((document) => document.uri.toString() === uri.toString());
  const read = async () => new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
  show(controller, uri, open ? open.getText() : await read());
}

/**
 * @param {vscode.TestController} controller
 * @param {vscode.TextDocument} document
 */
function showOpen(controller, document) {
  if (document.languageId === "harn" && document.uri.scheme === "file") show(controller, document.uri, document.getText());
}

/**
 * Show the tests of a program's text.
 *
 * @param {vscode.TestController} controller
 * @param {vscode.Uri} uri
 * @param {string} source
 */
function show(controller, uri, source) {
  const tests = findTests(source);
  if (tests.length === 0) {
    controller.items.delete(uri.toString());
    return;
  }
  const file =
    controller.items.get(uri.toString()) ??
    controller.createTestItem(uri.toString(), vscode.workspace.asRelativePath(uri), uri);
  controller.items.add(file);
  file.children.replace(
    tests.map(({ name, line }) => {
      const item = controller.createTestItem(`${uri}#${name}`, name, uri);
      item.range = new vscode.Range(line, 0, line, 0);
      return item;
    }),
  );
}

/**
 * @param {vscode.TestController} controller
 * @param {Harnpy} harnpy
 * @param {vscode.TestRunRequest} request
 * @param {vscode.CancellationToken} token
 */
async function run(controller, harnpy, request, token) {
  const started = controller.createTestRun(request);
  const asked = request.include ?? [...controller.items].map(([, item]) => item);
  for (const item of asked) {
    if (token.isCancellationRequested) break;
    await runItem(started, harnpy, item, new Set(request.exclude ?? []), token);
  }
  started.end();
}

/**
 * Run a file's tests, or one of them.
 *
 * @param {vscode.TestRun} started
 * @param {Harnpy} harnpy
 * @param {vscode.TestItem} item
 * @param {Set<vscode.TestItem>} excluded
 * @param {vscode.CancellationToken} token
 */
async function runItem(started, harnpy, item, excluded, token) {
  const uri = item.uri;
  if (uri === undefined || excluded.has(item)) return;
  const folder = vscode.workspace.getWorkspaceFolder(uri);
  const command = harnpy(folder);
  const single = item.children.size === 0;
  const waiting = new Map((single ? [item] : [...item.children].map(([, child]) => child)).filter((test) => !excluded.has(test)).map((test) => [test.label, test]));
  waiting.forEach((test) => started.started(test));
  /** @param {string} why */
  const fail = (why) => waiting.forEach((test) => started.errored(test, new vscode.TestMessage(why)));
  if (command === undefined) return fail("harnpy wasn't found: install it, or set harn.command.");
  if (!vscode.workspace.isTrusted) return fail("Tests of a workspace run once it is trusted.");

  const cwd = folder?.uri.fsPath ?? join(uri.fsPath, "..");
  const args = ["test", "--json", uri.fsPath, ...(single ? ["--filter", item.label] : [])];
  const child = spawn(command[0], [...command.slice(1), ...args], { cwd });
  const cancelled = token.onCancellationRequested(() => child.kill());
  let unread = "";
  let complaint = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    const { results, rest } = readResults(unread + text);
    unread = rest;
    for (const result of results) {
      const test = waiting.get(result.name);
      // The filter is a part of a name: what wasn't asked for has run, too.
      if (test === undefined) continue;
      waiting.delete(result.name);
      const said = result.error === undefined ? "" : `${result.error}\n`;
      started.appendOutput(`${result.status}  ${result.name}\n${said}`.replace(/\n/g, "\r\n"), undefined, test);
      if (result.status === "pass") started.passed(test, result.ms);
      else if (result.status === "skip") started.skipped(test);
      else started.failed(test, message(result.error ?? result.status, cwd, test), result.ms);
    }
  });
  child.stderr.setEncoding("utf8").on("data", (text) => {
    complaint += text;
    started.appendOutput(text.replace(/\n/g, "\r\n"));
  });
  await new Promise((done) => {
    child.on("error", (error) => {
      complaint += error.message;
      done(undefined);
    });
    child.on("close", done);
  });
  cancelled.dispose();
  if (!token.isCancellationRequested) fail(complaint.trim() || "harnpy didn't run this test.");
}

/**
 * @param {string} error
 * @param {string} cwd
 * @param {vscode.TestItem} test
 */
function message(error, cwd, test) {
  const { message: text, place, expected, actual } = readFailure(error);
  const said =
    expected !== undefined && actual !== undefined
      ? vscode.TestMessage.diff(text, expected, actual)
      : new vscode.TestMessage(error);
  if (place !== undefined) {
    const path = isAbsolute(place.file) ? place.file : join(cwd, place.file);
    said.location = new vscode.Location(vscode.Uri.file(path), new vscode.Position(place.line - 1, place.column - 1));
  } else if (test.uri !== undefined && test.range !== undefined) {
    said.location = new vscode.Location(test.uri, test.range);
  }
  return said;
}

module.exports = { offerTests };
