// Holds a conversation through the TypeScript SDK's client for the draft of ACP v2, and tells in one JSON line
// what arrived.
//
// `node typescript_client_v2.mjs SPEC`, where SPEC is JSON: command (list), cwd, prompts (list).

import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { PROTOCOL_VERSION, client, methods, ndJsonStream } from "@agentclientprotocol/sdk/experimental/v2";

const TRIM = "_wholeturn_history_trimmed";
const spec = JSON.parse(process.argv[2]);
const kinds = {};
const trims = [];
const turns = [];
const asked = [];
let turn = { text: "", messages: [] };
let ended = () => {};

function take(update) {
  kinds[update.sessionUpdate] = (kinds[update.sessionUpdate] ?? 0) + 1;
  if (update.sessionUpdate === "agent_message_chunk") turn.text += update.content.text;
  if (update.sessionUpdate === "user_message") turn.messages.push(update.messageId);
  if (update.sessionUpdate === TRIM) trims.push(update);
  if (update.sessionUpdate === "state_update" && update.state === "idle") ended(update.stopReason);
}

function allow({ title, subject, options }) {
  asked.push({ title, subject: subject.type });
  const { optionId } = options.find((option) => option.kind === "allow_once");
  return { outcome: { outcome: "selected", optionId } };
}

async function converse(context) {
  await context.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    info: { name: "rig", version: "1" },
    capabilities: {},
  });
  const { sessionId } = await context.request(methods.agent.session.new, { cwd: spec.cwd });
  for (const prompt of spec.prompts) {
    turn = { text: "", messages: [] };
    const idle = new Promise((resolve) => (ended = resolve));
    const request = { sessionId, prompt: [{ type: "text", text: prompt }] };
    const { messageId } = await context.request(methods.agent.session.prompt, request);
    const stop = await idle;
    turns.push({ text: turn.text, stop, shown: turn.messages.includes(messageId) });
  }
  ended = () => {};
  const resume = { sessionId, cwd: spec.cwd, replayFrom: { type: "start" } };
  await context.request(methods.agent.session.resume, resume);
}

const [command, ...args] = spec.command;
const agent = spawn(command, args, { cwd: spec.cwd, stdio: ["pipe", "pipe", "inherit"] });
const exited = new Promise((resolve) => agent.on("exit", resolve));
const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
await client({ name: "rig" })
  .onNotification(methods.client.session.update, ({ params }) => take(params.update))
  .onRequest(methods.client.session.requestPermission, ({ params }) => allow(params))
  .connectWith(stream, converse);
agent.stdin.end();
const exit = await exited;
console.log(JSON.stringify({ client: "typescript_v2", turns, kinds, trims, asked, exit }));
