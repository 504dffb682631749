// What the tests of MCP share: the conformance server as a child, and messages.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { registerHooks } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const top = path.resolve(import.meta.dirname, '../..');
const build = path.resolve(process.env.JERBOA_BUILD ?? 'build');
export const program = path.join(build, 'tests/conformance-server');
export const modern = '2026-07-28';
export const legacy = '2025-11-25';
export const limit = { timeout: 180_000 };

/** Of a server that stops, and waits so long for a call that runs. Here it does not: `stop` stops one and tells the milliseconds. */
export const patiently = ['--stop-time', '30s'];
export async function assertNotWaitedFor(stop) {
  const ms = await stop();
  assert.ok(ms < 20_000, `${ms} ms`);
}
const ns = 'io.modelcontextprotocol/';
export const tasksExtension = { extensions: { [`${ns}tasks`]: {} } };

let packages;

/** Where the packages of package.json are; the first call may have to install them. */
export function packagesDirectory() {
  packages ??= path.resolve(top, execFileSync(path.join(top, 'tools/npm-ci'),
    [path.relative(top, build), 'tests/integration'], { encoding: 'utf8' }).trim());
  return packages;
}

/** Imports a package from there. */
export async function load(name) {
  const parentURL = pathToFileURL(path.join(packagesDirectory(), 'package.json')).href;
  const hooks = registerHooks({
    resolve: (specifier, context, next) =>
      next(specifier, specifier === name ? { ...context, parentURL } : context),
  });
  try {
    return await import(name);
  } finally {
    hooks.deregister();
  }
}

/** A server on HTTP that goes with the test, and must have ended well by then. */
export const startHttp = (t, ...options) => startHttpAfter(t, ':', ...options);

/** The same, after commands of a shell have set its limits. */
export async function startHttpAfter(t, commands, ...options) {
  const address = options[0]?.startsWith('unix:') ? options.shift() : '127.0.0.1:0';
  const child = spawn('/bin/sh', ['-c', `${commands}; exec "$0" "$@"`, program, '--http', address, ...options],
    { stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = once(child, 'close'); // its last words, too
  let log = '';
  child.stderr.setEncoding('utf8');
  const listening = new Promise((resolve, reject) => {
    child.stderr.on('data', (text) => {
      log += text;
      const match = log.match(/listening on (\S+)\n/);
      if (match) resolve(match[1]);
    });
    exited.then(([status]) => reject(new Error(`the server ended with ${status}: ${log}`)));
  });
  const stop = async (signal = 'SIGTERM') => {
    child.kill(signal);
    return exited;
  };
  t.after(async () => {
    const [status, signal] = await stop();
    if (status !== 0) t.diagnostic(log); // not lost when the test has failed already
    assert.equal(status ?? signal, 0, log);
  });
  const url = await listening;
  return { url, port: Number(new URL(url).port), pid: child.pid, stop, log: () => log };
}

/** A server on stdio: `send` a message or a text, `next` the next message that fits. */
export function startStdio(t, ...options) {
  const child = spawn(program, ['--stdio', ...options], { stdio: ['pipe', 'pipe', 'pipe'] });
  const exited = once(child, 'close');
  const seen = [];
  let log = '';
  let wake = () => {};
  child.stderr.setEncoding('utf8').on('data', (text) => { log += text; });
  child.stdin.on('error', () => {});
  let rest = '';
  child.stdout.setEncoding('utf8').on('data', (text) => { // node:readline would split at U+2028 too
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    seen.push(...lines.map((line) => JSON.parse(line)));
    wake();
  });
  const server = {
    pid: child.pid,
    kill: (signal) => child.kill(signal),
    log: () => log,
    exited,
    stdin: child.stdin,
    stdout: child.stdout,
    seen,
    send: (message) => child.stdin.write(typeof message === 'string' || Buffer.isBuffer(message)
      ? message : `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`),
    async next(fits) {
      for (;;) {
        const at = seen.findIndex(fits);
        if (at >= 0) return seen.splice(at, 1)[0];
        await new Promise((resolve) => { wake = resolve; });
      }
    },
    async request(message) {
      server.send(message);
      return server.next((m) => m.id === message.id);
    },
  };
  t.after(async () => {
    child.stdin.end();
    child.stdout.resume();
    const [status, signal] = await exited;
    if (status !== 0) t.diagnostic(log);
    assert.equal(status ?? signal, 0, log);
  });
  return server;
}

/** What every modern request carries. */
export const metadata = (capabilities = {}) => ({
  [`${ns}protocolVersion`]: modern,
  [`${ns}clientInfo`]: { name: 'test', version: '1' },
  [`${ns}clientCapabilities`]: capabilities,
});

/** A modern request and the headers that repeat it. */
export function request(id, method, params = {}, capabilities = {}) {
  const name = params.name ?? params.uri ?? params.taskId;
  return {
    body: { jsonrpc: '2.0', id, method, params: { ...params, _meta: { ...params._meta, ...metadata(capabilities) } } },
    headers: { 'Mcp-Protocol-Version': modern, 'Mcp-Method': method, ...(name && { 'Mcp-Name': name }) },
  };
}

/** POSTs a message; the response is as `fetch` gives it. */
export const post = (url, body, headers = {}, options = {}) => fetch(url, {
  method: 'POST',
  headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...headers },
  body: typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body),
  ...options,
});

/** The messages of an answer, whether plain JSON or an event stream, whose first event may be empty. */
export async function messages(response) {
  const text = await response.text();
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) return text ? [JSON.parse(text)] : [];
  return [...text.matchAll(/^data: ?(\S.*)$/gm)].map((m) => JSON.parse(m[1]));
}

/** One modern request and its answer: {status, …message}. */
export async function call(url, method, params, { capabilities, headers, id = 1 } = {}) {
  const r = request(id, method, params, capabilities);
  const response = await post(url, r.body, { ...r.headers, ...headers });
  const answer = (await messages(response)).find((m) => m.id === id || m.error);
  return { status: response.status, ...answer };
}

/** Opens a legacy session: the headers of its further requests. */
export async function openSession(url, { capabilities = {}, headers = {}, version = legacy } = {}) {
  const response = await post(url, { jsonrpc: '2.0', id: 0, method: 'initialize',
    params: { protocolVersion: version, capabilities, clientInfo: { name: 'test', version: '1' } } }, headers);
  const session = { ...headers, 'Mcp-Session-Id': response.headers.get('mcp-session-id'), 'Mcp-Protocol-Version': version };
  await response.text();
  await (await post(url, { jsonrpc: '2.0', method: 'notifications/initialized' }, session)).text();
  return session;
}
