// Colours programs with the TextMate grammar, as VS Code does.
//
// Reads `{"source": …}` a line from stdin and writes `[[start, end, scopes], …]` a line, offsets in characters.
// Needs vscode-textmate and vscode-oniguruma (`npm ci` in editors/vscode).
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createInterface } from "node:readline";

const require = createRequire(new URL("vscode/package.json", import.meta.url));
const oniguruma = require("vscode-oniguruma");
const { Registry, INITIAL, parseRawGrammar } = require("vscode-textmate");

const grammarPath = new URL("vscode/syntaxes/harn.tmLanguage.json", import.meta.url);
const wasm = readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm"));
await oniguruma.loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength));
const registry = new Registry({
  onigLib: Promise.resolve({
    createOnigScanner: (patterns) => new oniguruma.OnigScanner(patterns),
    createOnigString: (text) => new oniguruma.OnigString(text),
  }),
  loadGrammar: async () => parseRawGrammar(readFileSync(grammarPath, "utf8"), "harn.tmLanguage.json"),
});
const grammar = await registry.loadGrammar("source.harn");

/** @param {string} source */
function coloured(source) {
  const spans = [];
  let state = INITIAL;
  let lineStart = 0;
  for (const line of source.split("\n")) {
    const { tokens, ruleStack } = grammar.tokenizeLine(line, state);
    let at = lineStart;
    for (const token of tokens) {
      const length = [...line.slice(token.startIndex, token.endIndex)].length;
      spans.push([at, at + length, token.scopes.slice(1).join(" ")]);
      at += length;
    }
    state = ruleStack;
    spans.push([at, at + 1, ruleStack.contentNameScopesList.getScopeNames().slice(1).join(" ")]);
    lineStart += [...line].length + 1;
  }
  return spans;
}

for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(coloured(JSON.parse(line).source)));
}
