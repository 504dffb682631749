// mcp.mjs BUILD: what MCP costs, as ratios to the least that libevent could do in the same run, by
// clients that cost little: mcp-trips on stdio, wrk on HTTP. Prints the table, exits 1 when a bound
// is missed.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';

import { beginTable, endTable, figure } from './table.mjs';
import { median } from './turns.mjs';

const build = path.resolve(process.argv[2]);
const server = path.join(build, 'tests/conformance-server');
const stdioServer = [server, '--stdio'];
const MiB = 1024; // in KiB

/** Tells two rates, measured in turns, and what part ours is of theirs: the median of the rounds
 *  counts. Told beside it, without a bound: the best round of each, and processor time, which both
 *  notice others on this machine less. A measure gives [requests a second, microseconds of CPU each]. */
function compare(name, other, rounds, measureOther, measureOurs) {
  const pairs = Array.from({ length: rounds }, () => [measureOther(), measureOurs()]);
  const [theirs, ours] = [0, 1].map((who) => pairs.map((pair) => pair[who][0]));
  const [theirCpu, ourCpu] = [0, 1].map((who) => median(pairs.map((pair) => pair[who][1])));
  figure(`${name}: ${other}`, Math.round(median(theirs)), '/s');
  figure(`${name}: ours`, Math.round(median(ours)), '/s');
  figure('  ratio', median(ours.map((rate, i) => rate / theirs[i])), '', { least: 0.5 });
  figure('  ratio of the best rounds', Math.max(...ours) / Math.max(...theirs));
  figure('  ratio of processor time', theirCpu / ourCpu);
}

// ---- messages ----

const NS = 'io.modelcontextprotocol/';
const MODERN = '2026-07-28';
const line = (method, params, id = 1) => JSON.stringify({ jsonrpc: '2.0', id, method, params });
const _meta = { [`${NS}protocolVersion`]: MODERN, [`${NS}clientCapabilities`]: {} };

const initialize = line('initialize', {
  protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '0' },
}, 0);
const ping = line('ping');
const call = line('tools/call', { name: 'test_simple_text', arguments: {} });
const modernCall = line('tools/call', { name: 'test_simple_text', arguments: {}, _meta });
const listen = line('subscriptions/listen', { notifications: { toolsListChanged: true }, _meta });

const modernHeaders = (method, name) => ({
  'MCP-Protocol-Version': MODERN, 'Mcp-Method': method, ...(name && { 'Mcp-Name': name }),
});

// ---- stdio ----

function trips(count, window, each, program) {
  const args = [String(count), String(window), initialize, each, ...program];
  const { status, stdout, stderr, error } = spawnSync(path.join(build, 'mcp-trips'), args, { encoding: 'utf8' });
  if (error || status !== 0) throw error ?? new Error(`mcp-trips ${program[0]}: status ${status}: ${stderr}`);
  return Object.fromEntries(stdout.trim().split('\n').map((l) => l.split(' ')).map(([k, v]) => [k, Number(v)]));
}

function stdio() {
  const echo = [path.join(build, 'mcp-echo')];
  for (const [name, each] of [['ping', ping], ['tools/call', call]])
    for (const [how, count, window] of [['one by one', 10000, 1], ['pipelined', 50000, 200]]) {
      const measure = (program) => () => {
        const { trips_per_s, cpu_us_per_trip } = trips(count, window, each, program);
        return [trips_per_s, cpu_us_per_trip];
      };
      compare(`stdio ${name}, ${how}`, 'libevent echo', 9, measure(echo), measure(stdioServer));
    }
}

// ---- HTTP ----

/** A server that says on stderr where it listens. */
async function serve(program, ...args) {
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const [text] = await once(child.stderr, 'data');
  return { child, url: String(text).match(/http:\S+/)[0] };
}

/** Microseconds of CPU since its start; the kernel counts hundredths of a second. */
const cpu = (pid) => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 1e4;
};

function wrk({ child, url }, body, headers) {
  const script = path.join(import.meta.dirname, 'mcp-post.lua');
  const env = { ...process.env, BODY: body, HEADERS: Object.entries(headers).map((h) => h.join(': ')).join('\n') };
  const before = cpu(child.pid);
  const { status, stdout, stderr, error } = spawnSync('wrk', ['-t2', '-c16', '-d3s', '-s', script, url], { encoding: 'utf8', env });
  if (error || status !== 0) throw error ?? new Error(`wrk: ${stderr}`);
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`wrk ${url}: ${stdout}`);
  const count = Number(stdout.match(/(\d+) requests in/)[1]);
  return [Number(stdout.match(/Requests\/sec:\s+([\d.]+)/)[1]), (cpu(child.pid) - before) / count];
}

async function openSession(url) {
  const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' };
  const answer = await fetch(url, { method: 'POST', headers, body: initialize });
  const id = answer.headers.get('mcp-session-id');
  headers['Mcp-Session-Id'] = id;
  await fetch(url, { method: 'POST', headers, body: JSON.stringify({ jsonrpc: '2.0', method: 'notifications/initialized' }) });
  return id;
}

async function http() {
  const ours = await serve(server, '--http', '127.0.0.1:0');
  const hello = await serve(path.join(build, 'mcp-hello'));
  const session = await openSession(ours.url);
  const requests = [
    ['2026-07-28 tools/call', modernCall, modernHeaders('tools/call', 'test_simple_text')],
    ['2025-11-25 ping', ping, { 'Mcp-Session-Id': session, 'MCP-Protocol-Version': '2025-11-25' }],
  ];
  for (const [name, body, headers] of requests)
    compare(`HTTP ${name}`, 'libevent hello', 5, () => wrk(hello, body, headers), () => wrk(ours, body, headers));
  for (const { child } of [ours, hello]) child.kill('SIGKILL');
}

// ---- many idle streams ----

const resident = (pid) => Number(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8').match(/^Rss:\s+(\d+)/m)[1]);

/** One open subscriptions/listen; resolves when it was acknowledged. */
function openListen(port) {
  const headers = { Host: 'localhost', ...modernHeaders('subscriptions/listen'), 'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream', 'Content-Length': Buffer.byteLength(listen) };
  const head = Object.entries(headers).map((h) => h.join(': ')).join('\r\n');
  const { promise, resolve, reject } = Promise.withResolvers();
  const socket = net.connect(port, '127.0.0.1', () => socket.write(`POST /mcp HTTP/1.1\r\n${head}\r\n\r\n${listen}`));
  let text = '';
  socket.setEncoding('latin1');
  socket.on('data', (more) => {
    text += more;
    if (text.includes('acknowledged')) resolve(socket);
  });
  socket.on('error', reject);
  socket.on('close', () => reject(new Error(`a stream was closed: ${text}`)));
  return promise;
}

async function streams() {
  const { child, url } = await serve(server, '--http', '127.0.0.1:0');
  const before = resident(child.pid);
  const sockets = [];
  while (sockets.length < 5000)
    sockets.push(...await Promise.all(Array.from({ length: 100 }, () => openListen(new URL(url).port))));
  figure('resident, no stream', before / MiB, 'MiB');
  figure('resident, 5,000 idle listen streams', resident(child.pid) / MiB, 'MiB', { most: 60 });
  child.kill('SIGKILL');
  for (const socket of sockets) socket.destroy();
}

beginTable();
stdio();
await http();
await streams();
endTable();
