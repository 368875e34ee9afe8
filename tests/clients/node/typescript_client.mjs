// Holds a conversation with an agent through the TypeScript SDK, and tells in one JSON line what arrived.
//
// `node typescript_client.mjs SPEC`, where SPEC is JSON: command (list), cwd, prompts (list).

import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { Readable, Writable } from "node:stream";
import { PROTOCOL_VERSION, client, methods, ndJsonStream } from "@agentclientprotocol/sdk";

const TWIN = "wholeturn/history_trimmed";
const spec = JSON.parse(process.argv[2]);
const kinds = {};
const asked = {};
const twins = [];
const turns = [];
let text = "";

function count(table, name) {
  table[name] = (table[name] ?? 0) + 1;
}

function take(update) {
  count(kinds, update.sessionUpdate);
  if (update.sessionUpdate === "agent_message_chunk") text += update.content.text;
  if (update._meta?.[TWIN]) twins.push(update._meta[TWIN]);
}

async function lend({ path, line, limit }) {
  count(asked, "fs/read_text_file");
  const lines = (await readFile(path, "utf8")).split(/(?<=\n)/);
  const first = (line ?? 1) - 1;
  return { content: lines.slice(first, limit ? first + limit : undefined).join("") };
}

async function converse(context) {
  await context.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: false } },
  });
  const { sessionId } = await context.request(methods.agent.session.new, { cwd: spec.cwd, mcpServers: [] });
  for (const prompt of spec.prompts) {
    text = "";
    const request = { sessionId, prompt: [{ type: "text", text: prompt }] };
    const { stopReason } = await context.request(methods.agent.session.prompt, request);
    turns.push({ text, stop: stopReason });
  }
}

const [command, ...args] = spec.command;
const agent = spawn(command, args, { cwd: spec.cwd, stdio: ["pipe", "pipe", "inherit"] });
const exited = new Promise((resolve) => agent.on("exit", resolve));
const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
await client({ name: "rig" })
  .onNotification(methods.client.session.update, ({ params }) => take(params.update))
  .onRequest(methods.client.fs.readTextFile, ({ params }) => lend(params))
  .connectWith(stream, converse);
agent.stdin.end();
const exit = await exited;
console.log(JSON.stringify({ client: "typescript", turns, kinds, twins, asked, exit }));
