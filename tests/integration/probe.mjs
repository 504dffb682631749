// probe.mjs UNDICI: tries connections, as JSON on stdin says: {clients: {name: targets}, twice}. Prints {first, again}, each
// {client: {target: {got, ms}}}: what the server signed with, or `error CODE`. Run in a sandbox, and outside to prove that the
// connection can be made. Names of `twice` are tried by every client but npm, and again when their addresses may have changed.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';

const PLAIN = 8080, SECURE = 8443;
const PATIENCE = 40; // seconds, of each client: egress.test.mjs tells by them what is refused from what is silent
const job = JSON.parse(await text(process.stdin));
const undici = await import(process.argv[2]);
const inUrl = (host) => (host.includes(':') ? `[${host}]` : host);
const url = (scheme, host, port) => `${scheme}://${inUrl(host)}:${port}/`;
const signal = () => AbortSignal.timeout(PATIENCE * 1000);

const request = (module, address) => new Promise((resolve, reject) => {
  module.get(address, { agent: false, signal: signal() }, (response) => text(response).then(resolve, reject)).on('error', reject);
});

async function connect(host) {
  const socket = net.connect({ host, port: PLAIN, signal: signal() });
  socket.write('GET / HTTP/1.0\r\n\r\n');
  return (await text(socket)).split('\r\n\r\n')[1];
}

const webSocket = (host) => new Promise((resolve, reject) => {
  const socket = new WebSocket(url('ws', host, PLAIN));
  const timer = setTimeout(() => reject(new Error('timeout')), PATIENCE * 1000);
  socket.onmessage = (event) => { clearTimeout(timer); resolve(event.data); };
  socket.onerror = () => { clearTimeout(timer); reject(new Error('websocket')); };
});

async function command(file, args) {
  const child = spawn(file, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  const [out, code] = await Promise.all([text(child.stdout), new Promise((resolve) => { child.on('close', resolve).on('error', () => resolve(-1)); })]);
  if (code !== 0) throw new Error(`exit ${code}`);
  return out;
}

const python = `import socket, sys
s = socket.create_connection((sys.argv[1], ${PLAIN}), ${PATIENCE})
s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
b = b''
while True:
    p = s.recv(4096)
    if not p: break
    b += p
print(b.decode().split('\\r\\n\\r\\n')[1], end='')`;

/** Who is checked must be a name or an address: other spellings are those of an address. */
const pythonSecure = `import socket, ssl, sys
s = socket.create_connection((sys.argv[1], ${SECURE}), ${PATIENCE})
name = sys.argv[1] if sys.argv[1][0].isalpha() else s.getpeername()[0]
t = ssl.create_default_context().wrap_socket(s, server_hostname=name)
t.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n')
b = b''
while True:
    p = t.recv(4096)
    if not p: break
    b += p
print(b.decode().split('\\r\\n\\r\\n')[1], end='')`;

const curl = (address) => command('curl', ['-gsf', '--max-time', `${PATIENCE}`, '--noproxy', '*', address]);

/** Installs a package whose only file is the signature. */
async function npmInstall(host) {
  const dir = fs.mkdtempSync(path.join(tmpdir(), 'probe-'));
  try {
    fs.writeFileSync(path.join(dir, 'package.json'), '{}');
    await command(path.join(path.dirname(process.execPath), 'npm'), ['install', '--prefix', dir, '--cache', path.join(dir, 'cache'), '--no-audit', '--no-fund',
      '--fetch-retries=0', '--registry', url('http', host, PLAIN), 'probe']);
    return fs.readFileSync(path.join(dir, 'node_modules/probe/signed'), 'utf8');
  } finally {
    fs.rmSync(dir, { recursive: true, force: true });
  }
}

const clients = {
  fetch: async (host) => (await fetch(url('http', host, PLAIN), { signal: signal() })).text(),
  http: (host) => request(http, url('http', host, PLAIN)),
  https: (host) => request(https, url('https', host, SECURE)),
  undici: async (host) => (await undici.request(url('http', host, PLAIN), { signal: signal() })).body.text(),
  net: connect,
  WebSocket: webSocket,
  curl: (host) => curl(url('http', host, PLAIN)),
  'curl-https': (host) => curl(url('https', host, SECURE)),
  python: (host) => command('/usr/bin/python3', ['-c', python, host]),
  'python-https': (host) => command('/usr/bin/python3', ['-c', pythonSecure, host]),
  npm: npmInstall,
};

async function attempt(client, host) {
  const began = performance.now();
  const got = await clients[client](host).catch((e) => `error ${e.cause?.code ?? e.code ?? e.message}`);
  return { got, ms: Math.round(performance.now() - began) };
}

/** One after the other, slower than the limit of connects a second; few processes at once, so that their time is their own. */
async function tryAll() {
  const found = {}, running = [], processes = new Set();
  for (const [name, targets] of Object.entries(job.clients)) {
    found[name] = {};
    for (const target of [...targets, ...(name === 'npm' ? [] : job.twice.map((host) => `${name.toLowerCase()}.${host}`))]) {
      const trying = attempt(name, target).then((got) => { found[name][target] = got; processes.delete(trying); });
      running.push(trying);
      if (/^(curl|python|npm)/.test(name)) processes.add(trying);
      if (processes.size >= 3) await Promise.race(processes);
      await pause(7);
    }
  }
  await Promise.all(running);
  return found;
}

// Who says 127.0.0.1 must meet this one. On the host's own network the port is taken.
const own = http.createServer((_, response) => response.writeHead(200, { connection: 'close' }).end('own'));
own.on('upgrade', (_, socket) => socket.destroy());
await new Promise((resolve) => { own.once('error', resolve).listen(PLAIN, '::', resolve); });
const first = await tryAll();
await pause(1200); // a second is the least that an answer is kept
const again = {};
for (const name of Object.keys(job.clients).filter((client) => client !== 'npm'))
  for (const host of job.twice) (again[name] ??= {})[host] = await attempt(name, `${name.toLowerCase()}.${host}`);
console.log(JSON.stringify({ first, again }));
process.exit();
