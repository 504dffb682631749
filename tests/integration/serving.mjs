// `jerboa serve` for tests in which several clients, or nobody, look after one server: how it is started, who asks it, what it leaves.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { assertGone, copyPrograms, inside as processesInside, start, tempDir, until } from './jerboa.mjs';
import { legacy, load } from './mcp.mjs';

const one = await load('@modelcontextprotocol/sdk/client/index.js');
const oneHttp = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const two = await load('@modelcontextprotocol/client');
const info = { name: 'jerboa-tests', version: '1.0.0' };

/** Programs in a directory of their own, so that their processes are told from everybody else's. */
export const programs = tempDir();
export const program = copyPrograms(programs);

/** A store of its own that has already what the machine's has: nothing else of it changes while we look. */
export function ownStore(t) {
  const home = tempDir(t), from = process.env.JERBOA_HOME ?? path.join(process.env.XDG_CACHE_HOME ?? path.join(process.env.HOME, '.cache'), 'jerboa');
  for (const name of ['runtimes', 'tools'])
    if (fs.existsSync(path.join(from, name))) execFileSync('sh', ['-c', 'cp -al "$0" "$1" 2>/dev/null || cp -a "$0" "$1"', path.join(from, name), home]);
  return home;
}

/** Each daemon has a directory of its runs, which stays. */
const runsOf = (home) => { try { return fs.readdirSync(path.join(home, 'runs')).map((name) => path.join('runs', name)); } catch { return []; } };

/** Files below a directory, without what is an entry's own. */
export const storeFiles = (home) => ['', 'runtimes', 'layers', 'downloads', ...runsOf(home), 'tools', 'tmp']
  .flatMap((dir) => { try { return fs.readdirSync(path.join(home, dir)).map((name) => path.join(dir, name)); } catch { return []; } });

/** NAME TOKEN lines in a file as the server wants it. */
export function tokensFile(t, names) {
  const file = path.join(tempDir(t), 'tokens');
  fs.writeFileSync(file, names.map((name) => `${name} ${tokenOf(name)}\n`).join(''), { mode: 0o600 });
  return file;
}
export const tokenOf = (name) => `secret-${Buffer.from(name).toString('hex')}-0123456789abcdef`;

/** A server on HTTP. It must have ended well, and left nothing, when the test is over. */
export async function serveHttp(t, args = [], { env, seconds = 120, wrap = [] } = {}) {
  const [command, ...before] = [...wrap, program];
  const child = start([...before, 'serve', '--http', '127.0.0.1:0', ...args], { program: command, env, seconds, stdio: ['ignore', 'ignore', 'pipe'] });
  const stop = async (signal = 'SIGTERM') => {
    child.kill(signal);
    return child.ended;
  };
  t.after(async () => {
    const { status, signal } = await stop();
    assert.equal(status ?? signal, 0, child.text('stderr'));
    await assertGone(programs);
  });
  const url = await until(() => /listening on (\S+)\n/.exec(child.text('stderr'))?.[1], () => `not listening: ${child.text('stderr')}`);
  return { url, child, pid: child.pid, stop, log: () => child.text('stderr') };
}

/** An official client of that server: SDK 1.x (sdk: 1) or 2.x, there in an era. `notes` collects what it is told. */
export async function connectTo(url, { sdk = 2, mode = 'legacy', token } = {}) {
  const client = sdk === 1 ? new one.Client(info, {}) : new two.Client(info, { versionNegotiation: { mode } });
  const Transport = sdk === 1 ? oneHttp.StreamableHTTPClientTransport : two.StreamableHTTPClientTransport;
  const transport = new Transport(new URL(url), token ? { requestInit: { headers: { Authorization: `Bearer ${token}` } } } : {});
  client.onerror = () => {};
  await client.connect(transport);
  return {
    client, transport,
    call: (name, args = {}, options) => sdk === 1 ? client.callTool({ name, arguments: args }, undefined, options) : client.callTool({ name, arguments: args }, options),
    read: async (uri) => (await client.readResource({ uri })).contents[0],
  };
}

export const text = (r) => r.content[0].text;

/** Something listens there. */
export const answers = (port) => new Promise((resolve) => {
  const socket = net.connect(port, '127.0.0.1', () => { socket.destroy(); resolve(true); });
  socket.on('error', () => resolve(false));
});

/** What runs in the sandboxes of a server: names of programs. */
export const inside = (pid) => processesInside(pid).map((p) => p.name);

export const rssKiB = (pid) => +/^VmRSS:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1];

/** A server on stdio without a client's library in front of it: `ask` gives the answer, whatever else comes meanwhile is in `seen`. */
export function serveStdio(t, args = [], { env, seconds = 60, program: file = program } = {}) {
  const child = start(['serve', ...args], { program: file, env, seconds });
  t.after(async () => {
    child.kill('SIGKILL');
    await child.ended;
  });
  const waiting = new Map(), seen = [];
  let id = 0, rest = '';
  const decoder = new TextDecoder();
  child.stdout.on('data', (piece) => {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = lines.pop();
    for (const message of lines.map((line) => JSON.parse(line)))
      if (waiting.has(message.id)) waiting.get(message.id)(message);
      else seen.push(message);
  });
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const ask = (method, params = {}) => new Promise((resolve) => {
    waiting.set(++id, resolve);
    send({ id, method, params });
  });
  return {
    child, seen, ask, send,
    open: async () => {
      await ask('initialize', { protocolVersion: legacy, capabilities: {}, clientInfo: info });
      send({ method: 'notifications/initialized' });
    },
    call: async (name, args, _meta) => {
      const { result, error } = await ask('tools/call', { name, arguments: args, _meta });
      return result ?? assert.fail(JSON.stringify(error));
    },
  };
}
