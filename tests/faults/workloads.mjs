// What is done while a call fails, and what must have come of it.
import fs from 'node:fs';
import path from 'node:path';
import { startRegistry } from '../chaos/registry.mjs';
import { descendants, descriptors, list, tempDir, until } from '../integration/jerboa.mjs';
import { call as post } from '../integration/mcp.mjs';
import { arch, serve as serveRegistry, soundPackages } from '../integration/registry.mjs';
import { storeFiles } from '../integration/serving.mjs';

const place = tempDir();

/** Lines of a log, and at most one sentence that ends it. */
const loader = '[^\\n]*error while loading shared libraries: [^\\n]+\\n'; // not ours: it fails before main
const log = '(?:(?:warn|info|jerboa: warning:|jerboa: installing|fetching|listening on) [^\\n]+\\n)*';
const sentence = new RegExp(`^${log}(?:${loader})?(?:jerboa:|error loop) [^\\n]+\\n$`); // libevent's end is in its own words
const quiet = new RegExp(`^${log}$`);
const unlinked = new RegExp(`^${loader}$`);

export const workloads = [{
  name: 'run',
  run: (begin) => toItsEnd(begin, ['run', '-e', 'console.log("hello")'], 'hello\n'),
}, {
  name: 'serve',
  sampled: /^jerboa/, // in a sample the others' calls are those of `run`
  run: (begin, fired) => session(begin, fired, { use: aSandbox('console.log("hello")') }),
}, {
  name: 'files', // FILES_DIR: what a run writes there is looked at
  sampled: /^jerboa/,
  async run(begin, fired) {
    const dir = fs.mkdtempSync(path.join(place, 'files-'));
    const r = await session(begin, fired, { args: ['--files', dir], use: aSandbox('await (await import("node:fs/promises")).writeFile("files/a.txt", "a"); console.log("hello")') });
    const names = fs.readdirSync(dir).filter((name) => name !== 'a.txt');
    if (names.length) r.wrong.push(`left in FILES_DIR: ${names}`);
    fs.rmSync(dir, { recursive: true });
    return r;
  },
}, {
  name: 'http', // a connection may break; who comes next is served
  sampled: /^jerboa (socket|connect|send|read|write|events|poll)/, // the others are those of `serve`
  run: (begin, fired) => session(begin, fired, { args: ['--http', '127.0.0.1:0'], talk: talkHttp }),
}, {
  name: 'layer', // a package of a registry, made anew each time
  sampled: /^layer (open|read|write|look|names|remove|lock|events)/, // what it does to the store; it starts sandboxes as `run` does
  async run(begin, fired, home) {
    const env = { npm_config_registry: (await packages()).url, no_proxy: '127.0.0.1' };
    const run = (more) => toItsEnd(begin, ['run', '--dep', 'pkg-a', '-e', 'console.log((await import("pkg-a")).default)'], 'pkg-a\n', { env, ...more });
    const r = await leavingNoHalf(run, () => list(path.join(home, 'layers')).filter((name) => !/^[0-9a-f]{64}$/.test(name)));
    for (const name of ['layers', 'cache']) fs.rmSync(path.join(home, name), { recursive: true, force: true });
    return r;
  },
}, {
  name: 'fetch', // a runtime into a store that has none
  sampled: /^fetch/,
  async run(begin, fired) {
    const home = fs.mkdtempSync(path.join(place, 'store-')), runtime = `node-24.1.0-${arch}`;
    const env = { JERBOA_HOME: home, npm_config_registry: (await runtimes()).url, no_proxy: '127.0.0.1' };
    const pull = (more) => toItsEnd(begin, ['pull', 'node:24'], `${path.join(home, 'runtimes', runtime)}\n`, { env, failure: 1, ...more });
    const kept = ['runtimes', 'downloads', path.join('runtimes', runtime)], part = /^downloads\/\..*\.part$/; // such a one stays for a day
    const r = await leavingNoHalf(pull, () => storeFiles(home).filter((name) => !kept.includes(name) && !(fired() && part.test(name))));
    fs.rmSync(home, { recursive: true });
    return r;
  },
}];

const once = (make) => { let made; return () => made ??= make(); };
const packages = once(startRegistry);
const runtimes = once(() => serveRegistry({ after() {} }, soundPackages()));

/** A verb that prints `answer`, or nothing and why. */
async function toItsEnd(begin, args, answer, { failure = 125, ...more } = {}) {
  const r = await begin(args, { input: '', ...more }).ended;
  const isWell = r.status === 0 && r.stdout === answer && quiet.test(r.stderr);
  const isRefused = r.status === failure && (r.stdout === '' || r.stdout === answer) && sentence.test(r.stderr);
  const isUnheard = r.status === 141 && r.stdout === '' && r.stderr === ''; // as if SIGPIPE had ended it
  const isUnlinked = r.status === 127 && unlinked.test(r.stderr);
  return { ...r, wrong: isWell || isRefused || isUnheard || isUnlinked ? [] : [`it is neither well nor refused: ${JSON.stringify(r.stdout)}`] };
}

/** Half an entry of the store may be left: then the next one takes it over, and goes well. */
async function leavingNoHalf(run, halves) {
  const r = await run();
  if (!halves().length) return r;
  const again = await run({ isAgain: true });
  if (again.wrong.length || again.status) r.wrong.push(`again ${again.wrong}: ${JSON.stringify(again.stderr)}`);
  if (halves().length) r.wrong.push(`left in the store: ${halves()}`);
  return r;
}

/** What every tool that makes a sandbox does, once. */
const aSandbox = (code) => async (call, wrong) => {
  const id = (await call('sandbox_initialize', {}))?.structuredContent?.container_id;
  if (!id) return;
  const r = await call('run_js', { container_id: id, code });
  if (r && !r.isError && r.structuredContent?.stdout !== 'hello\n') wrong.push(`run_js says ${JSON.stringify(r)}`);
  await call('sandbox_stop', { container_id: id });
};

/** A session: what it is used for; then, when the fault has happened, a call that has to go well. */
async function session(begin, fired, { args = [], talk = talkStdio, use = async () => {} }) {
  const wrong = [], missing = [], child = begin(['serve', '--pool', '0', '--hold', '0', ...args], {});
  const server = () => descendants(child.pid)[0]?.pid, peer = await talk(child, server);
  const call = async (name, args) => {
    const r = await peer.ask('tools/call', { name, arguments: args });
    if (r && !r.result) wrong.push(`${name} has no result: ${JSON.stringify(r)}`);
    if (r?.result?.isError && !oneSentence.test(r.result.content[0].text)) wrong.push(`${name} says: ${JSON.stringify(r.result.content[0].text)}`);
    missing.push(...r?.result?.structuredContent?.walls?.missing ?? []); // of each sandbox: the log has the first one's
    return r?.result;
  };
  await use(call, wrong);
  for (let i = 0, wasFired = fired(); i < 2; i++, wasFired = fired()) {
    const r = await call('run_js_ephemeral', { code: 'console.log("again")' });
    if (r && wasFired && (r.isError || r.structuredContent?.stdout !== 'again\n')) wrong.push(`the next call fails: ${JSON.stringify(r.content)}`);
    if (!r && (wasFired || !fired())) await until(peer.hasEnded, '').catch(() => wrong.push('the next call has no answer'));
    if (wasFired) break;
  }
  const most = atRest.get(args[0]) ?? Infinity, isAtRest = () => descendants(child.pid).length <= 1 && descriptors(server()) <= most;
  await until(() => peer.hasEnded() || isAtRest(), '').catch(() => wrong.push(`at rest it has ${descriptors(server())} descriptors instead of ${most}`));
  if (most === Infinity) atRest.set(args[0], descriptors(server()));
  peer.end();
  const r = await child.ended;
  const isWell = r.status === 0 && quiet.test(r.stderr), isRefused = r.status > 0 && r.status < 126 && sentence.test(r.stderr);
  const isUnlinked = r.status === 127 && unlinked.test(r.stderr);
  if (!isWell && !isRefused && !isUnlinked) wrong.push('it does not end well');
  return { ...r, wrong, missing };
}

const atRest = new Map(); // descriptors of a server to which nothing happened, by its first option
const oneSentence = /^(?!.*[.!?] +[A-Z])[^\n]+\.$/;

/** A session with a child; whoever waits when it ends gets nothing. */
async function talkStdio(child) {
  const waiting = new Map();
  let id = 0, rest = '', ended = false;
  child.stdout.on('data', (piece) => {
    const lines = (rest + piece).split('\n');
    rest = lines.pop();
    for (const message of lines.map((line) => JSON.parse(line))) waiting.get(message.id)?.(message);
  });
  child.ended.then(() => { ended = true; for (const resolve of waiting.values()) resolve(); });
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const ask = (method, params) => new Promise((resolve) => {
    if (ended) return resolve();
    waiting.set(++id, resolve);
    send({ id, method, params });
  });
  await ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'faults', version: '1' } });
  send({ method: 'notifications/initialized' });
  return { hasEnded: () => ended, ask, end: () => child.stdin.end() };
}

/** The same on HTTP, each request on a connection of its own, which may break. */
async function talkHttp(child, server) {
  let ended = false;
  child.ended.then(() => { ended = true; });
  const url = await until(() => ended || /^listening on (\S+)\n/m.exec(child.text('stderr'))?.[1], 'it does not listen');
  return {
    hasEnded: () => ended,
    ask: async (method, params) => ended ? undefined : post(url, method, params, { headers: { Connection: 'close' } }).catch(() => {}),
    end: () => { if (server()) process.kill(server(), 'SIGTERM'); },
  };
}
