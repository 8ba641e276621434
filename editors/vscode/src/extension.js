// Harn in VS Code: the language server, the debugger, tests, tasks and commands of harnpy.

const { spawn } = require("node:child_process");
const vscode = require("vscode");
const { CloseAction, ErrorAction, LanguageClient } = require("vscode-languageclient/node");
const { findHarnpy } = require("./harnpy");
const { offerTests } = require("./testing");

/** @type {LanguageClient | undefined} */
let client;

/** @param {vscode.ExtensionContext} context */
async function activate(context) {
  const output = vscode.window.createOutputChannel("Harn", { log: true });
  const runTests = offerTests(context, commandOf);
  context.subscriptions.push(
    output,
    vscode.commands.registerCommand("harn.run", runProgram),
    vscode.commands.registerCommand("harn.debug", debugProgram),
    vscode.commands.registerCommand("harn.test", (target) => testProgram(runTests, target)),
    vscode.commands.registerCommand("harn.restart", () => restart(output)),
    vscode.commands.registerCommand("harn.showOutput", () => output.show()),
    vscode.debug.registerDebugAdapterDescriptorFactory("harn", { createDebugAdapterDescriptor: adapter }),
    vscode.debug.registerDebugConfigurationProvider("harn", { resolveDebugConfiguration: completed }),
    vscode.tasks.registerTaskProvider("harn", { provideTasks: tasks, resolveTask: resolved }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => restart(output)),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (["harn.command", "harn.languageServer"].some((key) => change.affectsConfiguration(key))) restart(output);
    }),
  );
  await restart(output);
}

async function deactivate() {
  await client?.stop();
}

/**
 * The command line of harnpy for a folder. In a workspace that isn't trusted, nothing of its own is started.
 *
 * @param {vscode.WorkspaceFolder | undefined} folder
 */
function commandOf(folder) {
  const configured = vscode.workspace.getConfiguration("harn", folder).get("command", /** @type {string[]} */ ([]));
  const folders = folder === undefined ? (vscode.workspace.workspaceFolders ?? []) : [folder];
  return findHarnpy(configured, vscode.workspace.isTrusted ? folders.map(({ uri }) => uri.fsPath) : [], process.env);
}

async function sayMissing() {
  const settings = "Open Settings";
  const chosen = await vscode.window.showErrorMessage(
    "harnpy wasn't found in .venv, venv or the PATH. Install it, in a checkout of harnpy with pip install '.[lsp]', or set harn.command.",
    settings,
  );
  if (chosen === settings) await vscode.commands.executeCommand("workbench.action.openSettings", "harn.command");
}

/** @param {vscode.WorkspaceFolder | undefined} folder */
function commandOrSay(folder) {
  const command = commandOf(folder);
  if (command === undefined) sayMissing();
  return command;
}

// The language server

/** @param {vscode.LogOutputChannel} output */
async function restart(output) {
  const old = client;
  client = undefined;
  // One that hasn't come up, or has gone, can't be stopped.
  await old?.dispose().catch(() => undefined);
  if (!vscode.workspace.getConfiguration("harn").get("languageServer.enabled", true)) return;
  const command = commandOrSay(vscode.workspace.workspaceFolders?.[0]);
  if (command === undefined) return;

  let complaint = "";
  let isUp = false;
  /** @type {import("node:child_process").ChildProcess | undefined} */
  let child;
  const started = new Client(
    "harn",
    "Harn",
    async () => {
      const cwd = vscode.workspace.workspaceFolders?.[0]?.uri.fsPath;
      const server = spawn(command[0], [...command.slice(1), "lsp"], { cwd });
      server.stderr.setEncoding("utf8").on("data", (text) => (complaint = (complaint + text).slice(-2000)));
      await new Promise((done, failed) => server.once("spawn", done).once("error", failed));
      child = server;
      return server;
    },
    {
      documentSelector: [{ language: "harn" }],
      outputChannel: output,
      synchronize: { fileEvents: vscode.workspace.createFileSystemWatcher("**/{*.harn,harn.toml}") },
      initializationFailedHandler: () => false,
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => ({ action: isUp ? CloseAction.Restart : CloseAction.DoNotRestart, handled: true }),
      },
    },
  );
  client = started;
  try {
    await started.start();
    isUp = true;
  } catch (error) {
    const why = (await lastWords(child, () => complaint)) || String(error);
    vscode.window.showErrorMessage(`The language server didn't start. ${why}`);
  }
}

/** A client that says in the log what goes wrong; `restart` tells the person. */
class Client extends LanguageClient {
  /**
   * @param {string} message
   * @param {any} [data]
   */
  error(message, data) {
    super.error(message, data, false);
  }
}

/**
 * The first line that a server has complained with, once all of it is there.
 *
 * @param {import("node:child_process").ChildProcess | undefined} child
 * @param {() => string} complaint
 */
async function lastWords(child, complaint) {
  if (child !== undefined && !child.stderr?.closed) {
    const closed = new Promise((done) => child.stderr?.once("close", done));
    child.kill();
    await closed;
  }
  return complaint().trim().split("\n", 1)[0].replace(/^error: /, "");
}

// Commands: of code lenses, which say what they stand at, and of the palette

/**
 * @param {{ uri: string } | vscode.Uri | undefined} target
 * @returns {Promise<vscode.Uri | undefined>} of a file that is saved
 */
async function fileOf(target) {
  if (!vscode.workspace.isTrusted) {
    vscode.window.showErrorMessage("Programs of a workspace run once it is trusted.");
    return undefined;
  }
  const uri =
    target instanceof vscode.Uri
      ? target
      : target === undefined
        ? vscode.window.activeTextEditor?.document.uri
        : vscode.Uri.parse(target.uri);
  if (uri === undefined) return undefined;
  const document = await vscode.workspace.openTextDocument(uri);
  if (document.isUntitled) {
    vscode.window.showErrorMessage("Save the program first.");
    return undefined;
  }
  return !document.isDirty || (await document.save()) ? uri : undefined;
}

/** @param {{ uri: string, name: string } | vscode.Uri | undefined} target */
async function runProgram(target) {
  const uri = await fileOf(target);
  const task = uri && taskOf(vscode.workspace.getWorkspaceFolder(uri), "run", [uri.fsPath]);
  if (task) await vscode.tasks.executeTask(task);
}

/** @param {{ uri: string, name: string } | vscode.Uri | undefined} target */
async function debugProgram(target) {
  const uri = await fileOf(target);
  if (uri === undefined) return;
  await vscode.debug.startDebugging(vscode.workspace.getWorkspaceFolder(uri), launchOf(uri.fsPath));
}

/**
 * @param {import("./testing").RunTests} runTests
 * @param {{ uri: string, name: string } | vscode.Uri | undefined} target
 */
async function testProgram(runTests, target) {
  const uri = await fileOf(target);
  if (uri === undefined) return;
  if (!(await runTests(uri, target !== undefined && "name" in target ? target.name : ""))) {
    vscode.window.showErrorMessage("There is no such test: tests are pipelines called test_… or marked @test.");
  }
}

// The debugger

/** @param {string} program */
function launchOf(program) {
  return { type: "harn", request: "launch", name: "Debug this program", program };
}

/**
 * Without a launch.json, the program that is open.
 *
 * @param {vscode.WorkspaceFolder | undefined} folder
 * @param {vscode.DebugConfiguration} configuration
 */
function completed(folder, configuration) {
  const document = vscode.window.activeTextEditor?.document;
  if (!configuration.type && document?.languageId === "harn") Object.assign(configuration, launchOf(document.uri.fsPath));
  if (configuration.program === undefined && configuration.tape === undefined) {
    vscode.window.showErrorMessage("There is no program to debug: open one, or name it in launch.json.");
    return undefined;
  }
  configuration.cwd ??= folder?.uri.fsPath;
  return configuration;
}

/** @param {vscode.DebugSession} session */
function adapter(session) {
  const command = commandOrSay(session.workspaceFolder);
  return command && new vscode.DebugAdapterExecutable(command[0], [...command.slice(1), "dap"]);
}

// Tasks

/**
 * @param {vscode.WorkspaceFolder | undefined} folder
 * @param {string} name
 * @param {string[]} args
 * @param {vscode.TaskDefinition} [definition]
 */
function taskOf(folder, name, args, definition = { type: "harn", command: name, args }) {
  const command = commandOrSay(folder);
  if (command === undefined) return undefined;
  const [program, ...first] = command;
  const execution = new vscode.ProcessExecution(program, [...first, name, ...args], { cwd: folder?.uri.fsPath });
  const task = new vscode.Task(definition, folder ?? vscode.TaskScope.Workspace, name, "harn", execution, ["$harn"]);
  if (name === "check") task.group = vscode.TaskGroup.Build;
  if (name === "test") task.group = vscode.TaskGroup.Test;
  return task;
}

function tasks() {
  return (vscode.workspace.workspaceFolders ?? []).flatMap((folder) => {
    if (commandOf(folder) === undefined) return [];
    const offered = [taskOf(folder, "check", ["."]), taskOf(folder, "fmt", ["."]), taskOf(folder, "test", []), taskOf(folder, "run", ["${file}"])];
    return offered.filter((task) => task !== undefined);
  });
}

/** @param {vscode.Task} task of a tasks.json */
function resolved(task) {
  const { command, args } = task.definition;
  const folder = typeof task.scope === "object" ? task.scope : vscode.workspace.workspaceFolders?.[0];
  return taskOf(folder, command, args ?? [], task.definition);
}

module.exports = { activate, deactivate };
