// What the tests of the tools share: `jerboa serve` as a child, the official client in front of it, and a look at every result.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { childEnv, copyPrograms, descendants, inside, processes, until } from './jerboa.mjs';
import { load, modern } from './mcp.mjs';

export { descendants, inside };

const one = await load('@modelcontextprotocol/sdk/client/index.js');
const oneStdio = await load('@modelcontextprotocol/sdk/client/stdio.js');
const two = await load('@modelcontextprotocol/client');
const twoStdio = await load('@modelcontextprotocol/client/stdio');
const { default: { default: Ajv = undefined, Ajv2020 = Ajv } } = await load('ajv/dist/2020.js');

const names = ['jerboa', 'jerboa-jail', 'jerboa-init', 'jerboa-fetch', 'jerboa-layer', 'jerboa-remote'];
const info = { name: 'jerboa-tests', version: '1.0.0' };
export const limit = { timeout: 180_000 };

/** How a client may come. */
export const variants = {
  'stdio, legacy': { mode: 'legacy' },
  'stdio, modern': { mode: { pin: modern } },
  'HTTP, legacy': { http: true, mode: 'legacy' },
  'HTTP, modern': { http: true, mode: { pin: modern } },
};

/** A schema that allows no field it does not name. */
function closed(schema) {
  if (Array.isArray(schema)) return schema.map(closed);
  if (typeof schema !== 'object' || schema === null) return schema;
  const copy = Object.fromEntries(Object.entries(schema).map(([name, value]) => [name, closed(value)]));
  return schema.properties && typeof schema.properties === 'object' && schema.type ? { ...copy, additionalProperties: false } : copy;
}

async function startHttp([command, ...before], args, env, token) {
  const child = spawn(command, [...before, 'serve', '--http', '127.0.0.1:0', ...args], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = once(child, 'exit');
  let log = '';
  const url = await new Promise((resolve, reject) => {
    child.stderr.setEncoding('utf8').on('data', (text) => {
      log += text;
      const match = log.match(/listening on (\S+)\n/);
      if (match) resolve(match[1]);
    });
    exited.then(([status]) => reject(new Error(`the server ended with ${status}: ${log}`)));
  });
  return {
    pid: child.pid,
    log: () => log,
    transport: new two.StreamableHTTPClientTransport(new URL(url), token ? { requestInit: { headers: { Authorization: `Bearer ${token}` } } } : {}),
    async stop() {
      child.kill('SIGTERM');
      const [status, signal] = await exited;
      assert.equal(status ?? signal, 0, log);
    },
  };
}

/** The SDK starts it and ends its input. */
function startStdio(kind, [command, ...before], args, env) {
  const transport = new kind.StdioClientTransport({ command, args: [...before, 'serve', ...args], env, stderr: 'pipe' });
  let log = '';
  transport.stderr.setEncoding('utf8').on('data', (text) => { log += text; });
  return { get pid() { return transport.pid; }, log: () => log, transport, stop: () => {} };
}

/** The client asks for this revision of the protocol, whatever it would have asked for by itself. */
function askFor(transport, version) {
  const send = transport.send.bind(transport);
  transport.send = (message, ...more) => send(message.method === 'initialize'
    ? { ...message, params: { ...message.params, protocolVersion: version } } : message, ...more);
}

/**
 * A client with its own server, whose programs stand in a directory of their own: so what is left of them can be told from everybody
 * else's. `version` is for a client that is older than the SDK; `token` is what
 * it says over HTTP; `wrap` is a command that starts the server; `lacks` is a program that
 * is not there.
 */
export async function connect({ http, mode = 'legacy', version, token, wrap = [], lacks } = {}, args = [], more = {}) {
  const programs = fs.mkdtempSync(path.join(tmpdir(), 'jerboa-tools-'));
  const env = childEnv(more), command = [...wrap, copyPrograms(programs, names)];
  if (lacks) fs.rmSync(path.join(programs, lacks));
  const server = http ? await startHttp(command, args, env, token) : startStdio(version ? oneStdio : twoStdio, command, args, env);
  if (version) askFor(server.transport, version);
  const client = version ? new one.Client(info, {}) : new two.Client(info, { versionNegotiation: { mode } });
  const errors = [];
  client.onerror = (error) => errors.push(error);
  await client.connect(server.transport);
  const { pid } = server; // the transport forgets it
  const { tools } = await client.listTools();
  const ajv = new Ajv2020({ strict: true, allErrors: true, allowUnionTypes: true });
  const checks = new Map(tools.map((tool) => [tool.name, tool.outputSchema && ajv.compile(closed(tool.outputSchema))]));

  const s = {
    client, tools, errors, pid, log: server.log,
    allows: (name, fields) => checks.get(name)(fields),
    /** One call. What it answers has the form that the tool's definition promises, always. */
    async call(name, args = {}, options = {}) {
      const r = await (version ? client.callTool({ name, arguments: args }, undefined, options) : client.callTool({ name, arguments: args }, options));
      const check = checks.get(name);
      if (r.structuredContent !== undefined)
        assert.ok(check(r.structuredContent), `${name}: ${ajv.errorsText(check.errors)} in ${JSON.stringify(r.structuredContent)}`);
      else if (check) assert.ok(r.isError, `${name} answers without its fields: ${JSON.stringify(r)}`);
      return r;
    },
    /** The id of a new sandbox. */
    async sandbox(args) {
      const r = await s.call('sandbox_initialize', args);
      assert.ok(!r.isError, text(r));
      return text(r);
    },
    run: (container_id, code, more = {}, options) => s.call('run_js', { container_id, code, ...more }, options),
    once: (code, more = {}, options) => s.call('run_js_ephemeral', { code, ...more }, options),
    exec: (container_id, ...commands) => s.call('sandbox_exec', { container_id, commands }),
    read: async (uri) => (await client.readResource({ uri })).contents[0],
    /** Ends the client and the server; nothing of either is left. */
    async close() {
      await client.close();
      await server.stop();
      await until(() => processes(programs).length === 0, () => `left behind: ${JSON.stringify(processes(programs))}\n${server.log()}`);
      fs.rmSync(programs, { recursive: true });
      assert.doesNotMatch(server.log(), /Sanitizer|runtime error|Assertion/); // on stdio nobody sees how it exited
    },
  };
  return s;
}

/** The same, for one test. */
export async function connectFor(t, ...rest) {
  const s = await connect(...rest);
  t.after(() => s.close());
  return s;
}

export const text = (r) => r.content[0].text;
export const texts = (r) => r.content.filter((c) => c.type === 'text').map((c) => c.text);
export const kinds = (r) => r.content.map((c) => c.type);
export const telemetry = (r) => JSON.parse(r.content.at(-1).text.replace(/^Telemetry:\n/, ''));

/** It went well, and printed this. */
export function printed(r, output) {
  assert.ok(!r.isError, JSON.stringify(r.content));
  assert.equal(text(r), `Node.js process output:\n${output}`);
  assert.equal(r.structuredContent.verdict, 'ok');
  return r;
}

/** It failed: the sentence in front, the verdict among the fields. */
export function failed(r, verdict, sentence) {
  assert.equal(r.isError, true, JSON.stringify(r.content));
  assert.match(text(r), new RegExp(`^Error during execution: ${verdict}: [^\\n]+\\.$`));
  assert.match(text(r), sentence);
  assert.equal(r.structuredContent.verdict, verdict);
  return r;
}

/** It was refused: one sentence with what to do, nothing else. */
export function refused(r, sentence) {
  assert.equal(r.isError, true, JSON.stringify(r));
  assert.deepEqual(kinds(r), ['text']);
  assert.match(text(r), /^[^\n]+\.$/);
  assert.match(text(r), sentence);
  assert.equal(r.structuredContent, undefined);
}

/** A port that was free a moment ago. */
export async function freePort() {
  const listener = net.createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address();
  listener.close();
  await once(listener, 'close');
  return port;
}
