// The AI SDK: `streamText` with up to three steps. The chat dialect's provider is @ai-sdk/openai-compatible.
// Speaks the lines of child.py by itself.

const { createInterface } = require("node:readline");
const { createRequire } = require("node:module");
const from = createRequire(`${process.env.NODE_PATH}/`);
const { streamText, stepCountIs, tool } = from("ai");
const { createAnthropic } = from("@ai-sdk/anthropic");
const { createGoogleGenerativeAI } = from("@ai-sdk/google");
const { createOpenAICompatible } = from("@ai-sdk/openai-compatible");
const { z } = from("zod");

globalThis.AI_SDK_LOG_WARNINGS = false;
const MODELS = {
  chat: (url, model) =>
    createOpenAICompatible({ name: "local", baseURL: `${url}/v1`, apiKey: "k", includeUsage: true })(model),
  anthropic: (url, model) => createAnthropic({ baseURL: `${url}/v1`, apiKey: "k" })(model),
  gemini: (url, model) => createGoogleGenerativeAI({ baseURL: `${url}/v1beta`, apiKey: "k" })(model),
};

async function ask({ dialect, url, model, messages }, ran) {
  const look = tool({
    description: "Look at something.",
    inputSchema: z.object({ what: z.string().default("everything") }),
    execute: async ({ what }) => {
      ran.push(what);
      return "seen";
    },
  });
  let failure = null;
  const run = streamText({
    model: MODELS[dialect](url, model),
    messages: messages.map(message),
    tools: { look },
    stopWhen: stepCountIs(3),
    maxRetries: 0,
    allowSystemInMessages: true,
    onError: ({ error }) => {
      failure = failure ?? error;
    },
  });
  await run.consumeStream();
  if (failure) throw failure instanceof Error ? failure : new Error(JSON.stringify(failure));
  const [first] = await run.steps;
  return {
    text: first.text,
    thinking: first.reasoningText,
    finish: ["stop", "other"].includes(first.finishReason) ? first.rawFinishReason : first.finishReason,
    input: first.usage.inputTokens,
    output: first.usage.outputTokens,
  };
}

function message(each) {
  if (each.role === "system" || each.role === "user") return { role: each.role, content: each.text };
  if (each.role === "tool") {
    let output = { type: each.failed ? "error-text" : "text", value: each.text };
    if (each.image) {
      const image = { type: "image-data", data: each.image, mediaType: "image/png" };
      output = { type: "content", value: [{ type: "text", text: each.text }, image] };
    }
    return { role: "tool", content: [{ type: "tool-result", toolCallId: each.id, toolName: each.name, output }] };
  }
  const content = each.thinking ? [{ type: "reasoning", text: each.thinking }] : [];
  if (each.text || !each.calls.length) content.push({ type: "text", text: each.text });
  for (const { id, name, arguments: given } of each.calls) {
    let input = given;
    try {
      input = JSON.parse(given);
    } catch {
      // As the SDK itself keeps what the model wrote: as text.
    }
    content.push({ type: "tool-call", toolCallId: id, toolName: name, input });
  }
  return { role: "assistant", content };
}

(async () => {
  for await (const line of createInterface({ input: process.stdin })) {
    const ran = [];
    let answer;
    try {
      answer = { said: await ask(JSON.parse(line), ran) };
    } catch (error) {
      answer = { said: {}, error: error.name ?? "Error", why: String(error.message).slice(0, 500) };
    }
    answer.said.ran = ran;
    process.stdout.write(`${JSON.stringify(answer)}\n`);
  }
})();
