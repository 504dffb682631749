// What is done while a call fails, and what must have come of it.
import fs from 'node:fs';
import path from 'node:path';
import { descendants, descriptors, tempDir, until } from '../integration/jerboa.mjs';

const place = tempDir();

/** Lines of a log, and at most one sentence that ends it. */
const sentence = /^(?:(?:warn|info|jerboa: warning:) [^\n]+\n)*(?:jerboa: [^\n]+\n)$/;
const quiet = /^(?:(?:warn|info|jerboa: warning:) [^\n]+\n)*$/;
const loader = /^[^\n]*error while loading shared libraries: [^\n]+\n$/; // not ours: it fails before main

export const workloads = [{
  name: 'run',
  async run(begin) {
    const r = await begin(['run', '-e', 'console.log("hello")'], { input: '' }).ended;
    const isWell = r.status === 0 && r.stdout === 'hello\n' && quiet.test(r.stderr);
    const isRefused = r.status === 125 && (r.stdout === '' || r.stdout === 'hello\n') && sentence.test(r.stderr);
    const isUnheard = r.status === 141 && r.stdout === '' && r.stderr === ''; // as if SIGPIPE had ended it
    const isUnlinked = r.status === 127 && loader.test(r.stderr);
    return { ...r, wrong: isWell || isRefused || isUnheard || isUnlinked ? [] : [`it is neither well nor refused: ${JSON.stringify(r.stdout)}`] };
  },
}, {
  name: 'serve',
  sampled: /^jerboa/, // in a sample the others' calls are those of `run`
  run: (begin, fired) => session(begin, fired, [], 'console.log("hello")'),
}, {
  name: 'files', // FILES_DIR: what a run writes there is looked at
  sampled: /^jerboa/,
  async run(begin, fired) {
    const dir = fs.mkdtempSync(path.join(place, 'files-'));
    const r = await session(begin, fired, ['--files', dir], 'await (await import("node:fs/promises")).writeFile("files/a.txt", "a"); console.log("hello")');
    const names = fs.readdirSync(dir).filter((name) => name !== 'a.txt');
    if (names.length) r.wrong.push(`left in FILES_DIR: ${names}`);
    fs.rmSync(dir, { recursive: true });
    return r;
  },
}];

/** A session: what every tool that makes a sandbox does, once; then, when the fault has happened, a call that has to go well. */
async function session(begin, fired, args, code) {
  const wrong = [], missing = [], child = begin(['serve', '--pool', '0', '--hold', '0', ...args], {});
  const peer = talk(child), server = () => descendants(child.pid)[0]?.pid;
  const call = async (name, args) => {
    const r = await peer.ask('tools/call', { name, arguments: args });
    if (r && !r.result) wrong.push(`${name} has no result: ${JSON.stringify(r)}`);
    if (r?.result?.isError && !oneSentence.test(r.result.content[0].text)) wrong.push(`${name} says: ${JSON.stringify(r.result.content[0].text)}`);
    missing.push(...r?.result?.structuredContent?.walls?.missing ?? []); // of each sandbox: the log has the first one's
    return r?.result;
  };
  await peer.ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'faults', version: '1' } });
  peer.tell('notifications/initialized');
  const id = (await call('sandbox_initialize', {}))?.structuredContent?.container_id;
  if (id) {
    const r = await call('run_js', { container_id: id, code });
    if (r && !r.isError && r.structuredContent?.stdout !== 'hello\n') wrong.push(`run_js says ${JSON.stringify(r)}`);
    await call('sandbox_stop', { container_id: id });
  }
  for (let i = 0, wasFired = fired(); i < 2; i++, wasFired = fired()) {
    const r = await call('run_js_ephemeral', { code: 'console.log("again")' });
    if (r && wasFired && (r.isError || r.structuredContent?.stdout !== 'again\n')) wrong.push(`the next call fails: ${JSON.stringify(r.content)}`);
    if (wasFired) break;
  }
  const most = atRest.get(args[0]) ?? Infinity, isAtRest = () => descendants(child.pid).length <= 1 && descriptors(server()) <= most;
  await until(() => peer.hasEnded() || isAtRest(), '').catch(() => wrong.push(`at rest it has ${descriptors(server())} descriptors instead of ${most}`));
  if (most === Infinity) atRest.set(args[0], descriptors(server()));
  child.stdin.end();
  const r = await child.ended;
  const isWell = r.status === 0 && quiet.test(r.stderr), isRefused = r.status > 0 && r.status < 126 && sentence.test(r.stderr);
  const isUnlinked = r.status === 127 && loader.test(r.stderr);
  if (!isWell && !isRefused && !isUnlinked) wrong.push('it does not end well');
  return { ...r, wrong, missing };
}

const atRest = new Map(); // descriptors of a server to which nothing happened, by its first option
const oneSentence = /^[^\n]+\.(?:\n|$)/;

/** JSON-RPC with a child; whoever waits when it ends gets nothing. */
function talk(child) {
  const waiting = new Map();
  let id = 0, rest = '', ended = false;
  child.stdout.on('data', (piece) => {
    const lines = (rest + piece).split('\n');
    rest = lines.pop();
    for (const message of lines.map((line) => JSON.parse(line))) waiting.get(message.id)?.(message);
  });
  child.ended.then(() => { ended = true; for (const resolve of waiting.values()) resolve(); });
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  return {
    hasEnded: () => ended,
    tell: (method, params = {}) => send({ method, params }),
    ask: (method, params) => new Promise((resolve) => {
      if (ended) return resolve();
      waiting.set(++id, resolve);
      send({ id, method, params });
    }),
  };
}
