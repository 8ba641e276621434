// Makes `ai_sdk.json`, and checks what harnpy writes (npm install ai@6.0.326, node 20):
//   node make_ai_sdk.mjs > ai_sdk.json
//   harnpy sessions export ID --format ai-sdk -o out.json && node make_ai_sdk.mjs out.json
import { readFileSync } from 'node:fs';
import { convertToModelMessages, jsonSchema, stepCountIs, streamText, tool, validateUIMessages } from 'ai';
import { MockLanguageModelV3, simulateReadableStream } from 'ai/test';

if (process.argv[2]) {
  const messages = await validateUIMessages({ messages: JSON.parse(readFileSync(process.argv[2], 'utf8')) });
  console.log(JSON.stringify(await convertToModelMessages(messages, {}), null, 1));
  process.exit();
}

const usage = { inputTokens: { total: 12, noCache: 8, cacheRead: 4, cacheWrite: 0 }, outputTokens: { total: 7, text: 7, reasoning: 0 } };
let n = 0;
const steps = [
  [ { type: 'reasoning-start', id: 'r' }, { type: 'reasoning-delta', id: 'r', delta: 'Two looks are needed.' }, { type: 'reasoning-end', id: 'r', providerMetadata: { anthropic: { signature: 'c2ln' } } },
    { type: 'text-start', id: 't' }, { type: 'text-delta', id: 't', delta: 'I look at both.' }, { type: 'text-end', id: 't' },
    { type: 'tool-call', toolCallId: 'c1', toolName: 'look', input: '{"at":"red"}' }, { type: 'tool-call', toolCallId: 'c2', toolName: 'look', input: '{"at":"blue"}' },
    { type: 'finish', finishReason: { unified: 'tool-calls', raw: 'tool_use' }, usage } ],
  [ { type: 'text-start', id: 't2' }, { type: 'text-delta', id: 't2', delta: 'Red is warm, blue failed.' }, { type: 'text-end', id: 't2' }, { type: 'source', sourceType: 'url', id: 's1', url: 'https://example.com', title: 'Example' },
    { type: 'finish', finishReason: { unified: 'stop', raw: 'end_turn' }, usage } ],
];
const model = new MockLanguageModelV3({ provider: 'anthropic.messages', modelId: 'claude-opus-4-8', supportedUrls: { '*/*': [/.*/] }, doStream: async () => ({ stream: simulateReadableStream({ chunks: [{ type: 'stream-start', warnings: [] }, ...steps[n++]] }) }) });
const look = tool({ description: 'look', inputSchema: jsonSchema({ type: 'object', properties: { at: { type: 'string' } } }), execute: async ({ at }) => { if (at === 'blue') throw new Error('no such thing'); return { warmth: 3 }; } });
const PNG = 'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z/C/HgAGgwJ/lK3Q6wAAAABJRU5ErkJggg==';
const asked = [
  { id: 'msg-0', role: 'system', parts: [{ type: 'text', text: 'Be short.' }] },
  { id: 'msg-1', role: 'user', parts: [{ type: 'text', text: 'What is in it?' }, { type: 'file', mediaType: 'image/png', url: PNG, filename: 'a.png' }, { type: 'file', mediaType: 'application/pdf', url: 'https://example.com/a.pdf' }] } ];
const result = streamText({ model, messages: await convertToModelMessages(asked, {}), tools: { look }, stopWhen: stepCountIs(5), allowSystemInMessages: true });
let done;
const stream = result.toUIMessageStream({ originalMessages: asked, generateMessageId: () => 'msg-2', sendSources: true, messageMetadata: ({ part }) => part.type === 'finish' ? { model: 'claude-opus-4-8', usage: part.totalUsage } : undefined, onFinish: ({ messages }) => { done = messages; } });
for await (const _ of stream) {}
done.push({ id: 'msg-3', role: 'user', parts: [{ type: 'text', text: 'And green?' }] });
done.push({ id: 'msg-4', role: 'assistant', parts: [{ type: 'step-start' }, { type: 'dynamic-tool', toolName: 'ask', toolCallId: 'c3', state: 'input-available', input: { at: 'green' } }] });
console.log(JSON.stringify(await validateUIMessages({ messages: done }), null, 1));
