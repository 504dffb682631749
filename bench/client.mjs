// client.mjs: the least that can ask `jerboa serve`: a line of JSON out, a line in; no library, so what is measured is the server.
import { once } from 'node:events';

import { begin } from './programs.mjs';

const info = { name: 'bench', version: '0' };

/** What a tool answered, or an error that says what went wrong. */
export function succeeded(name, { result, error }) {
  if (error || result.isError) throw new Error(`${name}: ${error?.message ?? result.content[0].text}`);
  return result;
}

/** A server on stdio of its own. */
export function start(program, args, env) {
  const child = begin(program, ['serve', ...args], { env: { ...process.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
  const exited = once(child, 'exit');
  const waiting = new Map();
  let id = 0, rest = '', log = '', ended = null;
  child.stderr.setEncoding('utf8').on('data', (text) => { log = (log + text).slice(-4096); });
  child.stdout.setEncoding('utf8').on('data', (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    for (const message of lines.map((line) => JSON.parse(line))) waiting.get(message.id)?.resolve(message); // others are notes
  });
  child.stdin.on('error', () => {}); // then it has ended, which is told below
  exited.then(([status]) => {
    ended = new Error(`the server ended with ${status}: ${log}`);
    for (const { reject } of waiting.values()) reject(ended);
  });

  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  async function ask(method, params) {
    if (ended) throw ended;
    const answer = Promise.withResolvers(), mine = ++id;
    waiting.set(mine, answer);
    send({ id: mine, method, params });
    try {
      return await answer.promise;
    } finally {
      waiting.delete(mine);
    }
  }

  return {
    pid: child.pid,
    async open() {
      succeeded('initialize', await ask('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: info }));
      send({ method: 'notifications/initialized' });
    },
    call: async (name, args) => succeeded(name, await ask('tools/call', { name, arguments: args })),
    kill: () => child.kill('SIGKILL'),
    /** Its input ends, so it does. */
    async close() {
      child.stdin.end();
      const [status] = await exited;
      if (status !== 0) throw new Error(`the server ended with ${status}: ${log}`);
    },
  };
}

/** A server on HTTP, for several clients at once. It has no input that ends with us: so the kernel ends it. */
export async function startHttp(program, args, env) {
  const child = begin('setpriv', ['--pdeathsig', 'TERM', program, 'serve', '--http', '127.0.0.1:0', ...args], { env: { ...process.env, ...env }, stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = once(child, 'exit'), listening = Promise.withResolvers();
  let log = '';
  child.stderr.setEncoding('utf8').on('data', (text) => {
    log = (log + text).slice(-4096);
    const match = /listening on (\S+)\n/.exec(log);
    if (match) listening.resolve(match[1]);
  });
  exited.then(([status]) => listening.reject(new Error(`the server ended with ${status}: ${log}`)));
  const url = await listening.promise;

  return {
    pid: child.pid,
    /** A client of the revision without sessions: each call is one request. */
    async call(name, args) {
      const ns = 'io.modelcontextprotocol/', version = '2026-07-28';
      const _meta = { [`${ns}protocolVersion`]: version, [`${ns}clientInfo`]: info, [`${ns}clientCapabilities`]: {} };
      const answer = await fetch(url, {
        method: 'POST',
        headers: { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream',
          'MCP-Protocol-Version': version, 'Mcp-Method': 'tools/call', 'Mcp-Name': name },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args, _meta } }),
      });
      const text = await answer.text(), events = [...text.matchAll(/^data: ?(.+)$/gm)];
      return succeeded(name, JSON.parse(answer.headers.get('content-type')?.startsWith('text/event-stream') ? events.at(-1)[1] : text));
    },
    async close() {
      child.kill('SIGTERM');
      const [status] = await exited;
      if (status !== 0) throw new Error(`the server ended with ${status}: ${log}`);
    },
  };
}
