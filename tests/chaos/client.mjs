// One client, a process of its own, so that it can be killed: asks what its plan says, over and over, until it is told to finish, and tells every
// call and every answer on its stdout, a line of JSON each. `node client.mjs` reads {kind, url | command, plan} from the first line of its
// stdin; the second line says that it should finish. Its answers are counted, so that one that comes twice is seen.
import { spawn } from 'node:child_process';
import readline from 'node:readline';
import { legacy, messages, openSession, post, request } from '../integration/mcp.mjs';

const tell = (fact) => process.stdout.write(`${JSON.stringify({ at: Date.now(), ...fact })}\n`);
const lines = readline.createInterface({ input: process.stdin });
let isFinishing = false, serverIsGone = false, lastId = 0;
const setup = await new Promise((resolve) => {
  lines.once('line', (line) => {
    resolve(JSON.parse(line));
    lines.once('line', () => { isFinishing = true; });
  });
});

// ---- how messages travel ----

/** Each gives `ask(id, method, params)`, a promise of all answers to that id that came so far, and `end`. */
const transports = {
  async stdio({ command: [program, ...args] }) {
    const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
    const waiting = new Map(), seen = new Map();
    child.stdin.on('error', () => {});
    let rest = '';
    child.stdout.setEncoding('utf8').on('data', (piece) => {
      const got = (rest + piece).split('\n');
      rest = got.pop();
      for (const message of got.map((line) => JSON.parse(line)).filter((m) => m.id !== undefined)) {
        seen.set(message.id, (seen.get(message.id) ?? 0) + 1);
        if (seen.get(message.id) > 1) tell({ again: message.id });
        waiting.get(message.id)?.([message]);
        waiting.delete(message.id);
      }
    });
    const ended = new Promise((resolve) => {
      child.on('close', (status, signal) => {
        serverIsGone = true;
        for (const [, answer] of waiting) answer(new Error('the server has ended'));
        resolve({ status, signal });
      });
    });
    const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    const exchange = (id, method, params) => new Promise((resolve) => {
      if (serverIsGone) return resolve(new Error('the server has ended'));
      waiting.set(id, resolve);
      send({ id, method, params });
    });
    tell({ serverPid: child.pid });
    await exchange(0, 'initialize', { protocolVersion: legacy, capabilities: {}, clientInfo: { name: 'chaos', version: '1' } });
    send({ method: 'notifications/initialized' });
    return {
      ask: exchange,
      end: async () => { child.stdin.end(); return ended; },
    };
  },

  async legacy({ url }) {
    const session = await openSession(url);
    return {
      ask: async (id, method, params) => messages(await post(url, { jsonrpc: '2.0', id, method, params }, session)),
      end: async () => { await fetch(url, { method: 'DELETE', headers: session }).catch(() => {}); },
    };
  },

  async modern({ url }) {
    return {
      ask: async (id, method, params) => { const r = request(id, method, params); return messages(await post(url, r.body, r.headers)); },
      end: async () => {},
    };
  },
};

// ---- calls ----

let server;

/** What a visitor of the server in the sandbox sees. */
async function visit(result) {
  try {
    return await (await fetch(result.structuredContent.server.url, { signal: AbortSignal.timeout(40_000) })).text();
  } catch (e) {
    return `no page: ${e.cause?.code ?? e.cause?.message ?? e.message}`;
  }
}

/** Asks, and tells so. Resolves with the answers to it; null: it is lost. */
async function ask(id, tool, method, params, file) {
  tell({ sent: id, tool, file });
  let answers;
  try { answers = await server.ask(id, method, params); } catch (e) { answers = e; }
  if (!(answers instanceof Error)) return answers.filter((m) => m.id === id);
  tell({ lost: id, why: `${answers.message} ${answers.cause?.code ?? ''}` });
  serverIsGone ||= !(await isThere());
  return null;
}

async function call({ tool, args, expect, visit: word, file, kept }) {
  const id = ++lastId, own = await ask(id, tool, 'tools/call', { name: tool, arguments: args }, file);
  if (!own) return null;
  const { result, error } = own[0] ?? {};
  const text = (result?.content ?? []).map((c) => c.text ?? '').join('\n');
  let ok = Boolean(result) && !result.isError && text.includes(expect) && (tool !== 'get_dependency_types' || result.structuredContent.packages.every((p) => p.hasTypes));
  const page = ok && word ? await visit(result) : undefined;
  if (page !== undefined && page !== word) ok = false;
  // The rest of what it said is an error's text, or, where it is none, wrong.
  const isError = Boolean(error) || result?.isError === true || (tool === 'get_dependency_types' && text.includes('"reason"')) || Boolean(page?.startsWith('no page'));
  if (kept && !result?.structuredContent?.truncated?.uri) ok = false;
  tell({ answered: id, times: own.length, ok, isError, tool, text: error ? JSON.stringify(error) : page ?? (ok ? '' : text.slice(0, 3000)) });
  if (ok && kept) await readWhole(result.structuredContent.truncated.uri, kept);
  return ok ? result : null;
}

/** What was too long to be shown is all there. */
async function readWhole(uri, [piece, times]) {
  const id = ++lastId, tool = 'resources/read', own = await ask(id, tool, tool, { uri });
  if (!own) return;
  const { result, error } = own[0] ?? {}, text = result?.contents?.[0].text;
  const ok = text === piece.repeat(times);
  tell({ answered: id, times: own.length, ok, isError: Boolean(error), tool, text: error ? JSON.stringify(error) : ok ? '' : `${text?.length} characters` });
}

/** Whether anybody listens at all: who does not answer within a while is asked again. */
async function isThere() {
  if (setup.kind === 'stdio') return !serverIsGone;
  try { await fetch(setup.url, { method: 'GET', signal: AbortSignal.timeout(30_000) }); return true; } catch { return false; }
}

const filled = (value, turn, box) => JSON.parse(JSON.stringify(value).replaceAll('$n', `${turn}`).replaceAll('$box', box));

async function follow(line, turn) {
  let box = '';
  for (const step of line) {
    const result = await call(filled(step, turn, box));
    if (!result) return; // the rest would be about a sandbox that is lost, or about nobody
    if (step.opens) box = result.content[0].text;
    if (isFinishing && !step.opens && line.at(-1) !== step && box) { // it is left to the end of the session, or of the server
      if (setup.kind === 'modern') await call(filled(line.at(-1), turn, box));
      return;
    }
  }
}

/** Two at a time. */
let turn = 0;
async function work() {
  while (!isFinishing && !serverIsGone) {
    const now = turn++;
    await follow(setup.plan[now % setup.plan.length], now);
  }
}

try {
  server = await transports[setup.kind](setup);
  tell({ ready: true });
  await Promise.all([work(), work()]);
  const wasGone = serverIsGone;
  tell({ end: await server.end() ?? {}, serverIsGone: wasGone });
} catch (e) {
  tell({ end: {}, serverIsGone: true, why: e.message });
}
process.exit(0);
