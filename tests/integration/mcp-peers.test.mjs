// Peers that misbehave, and what must hold for the others meanwhile. Raw sockets and raw lines.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { request as httpRequest } from 'node:http';
import { connect as connectTo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { sanitized } from './jerboa.mjs';
import {
  assertNotWaitedFor, call, legacy, limit, messages, metadata, modern, openSession, patiently, post, program, request, startHttp, startHttpAfter,
  startStdio, tasksExtension,
} from './mcp.mjs';

const MiB = 1 << 20;

/** Fails when a process has ever held so much more than `before`. */
async function assertFlat(pid, before, mostMiB = 32) {
  const grown = (await peak(pid)) - before;
  if (!sanitized) assert.ok(grown < mostMiB * MiB, `grew by ${(grown / MiB).toFixed(1)} MiB`);
}

async function peak(pid) {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(status.match(/VmHWM:\s+(\d+)/)[1]) * 1024;
}

/** A raw connection; `received` grows with what came. */
async function connect(t, port) {
  const socket = connectTo(port, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.on('error', () => {});
  socket.received = '';
  await once(socket, 'connect');
  socket.over = new Promise((resolve) => { socket.on('close', () => resolve(null)); });
  return socket;
}

/** Reads from now on, until the text fits or the connection is closed. */
function receive(socket, fits = /(?!)/) {
  return new Promise((resolve) => {
    const look = () => { if (fits.test(socket.received)) resolve(socket.received); };
    socket.on('data', (data) => {
      socket.received += data;
      look();
    });
    socket.on('close', () => resolve(socket.received));
    look();
  });
}

/** True when it takes more, null when it was closed, or nothing happened for a second. */
const drains = (socket, closed) => Promise.race([
  new Promise((resolve) => { socket.once('drain', () => resolve(true)); }), closed, sleep(1000, null)]);

/** An HTTP request as text. */
function head(method, headers, body = '') {
  const lines = Object.entries({ Host: '127.0.0.1', ...headers }).map(([name, value]) => `${name}: ${value}`);
  return `${method} /mcp HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`;
}

function rawRequest(id, method, params, capabilities) {
  const r = request(id, method, params, capabilities);
  const body = JSON.stringify(r.body);
  return head('POST', { 'Content-Type': 'application/json', ...r.headers, 'Content-Length': Buffer.byteLength(body) }, body);
}

/** The whole answer to what is refused: ours, in JSON, and the last on its connection. */
const refusal = (status) => new RegExp(`^HTTP/1.1 ${status} [^]*Content-Type: application/json\r\n[^]*\r\n\r\n\\{"jsonrpc":"2.0","error":\\{[^\n]*\\}\\}$`);

const isServed = async (url) => assert.equal((await call(url, 'tools/call', { name: 'greet' })).status, 200);

/** Status of a POST with these headers, which fetch would not send. */
function statusWith(url, headers) {
  const r = request(1, 'server/discover');
  return new Promise((resolve, reject) => {
    const req = httpRequest(url, { method: 'POST', headers: { 'Content-Type': 'application/json', ...r.headers, ...headers } },
      (response) => {
        response.resume();
        resolve(response.statusCode);
      });
    req.on('error', reject);
    req.end(JSON.stringify(r.body));
  });
}

async function startWithTokens(t) {
  const directory = await mkdtemp(path.join(tmpdir(), 'tokens-'));
  const file = path.join(directory, 'tokens');
  t.after(() => rm(directory, { recursive: true, force: true }));
  await writeFile(file, 'alice aaaaaaaaaaaaaaaa\nbob bbbbbbbbbbbbbbbb\n');
  await chmod(file, 0o600);
  const server = await startHttp(t, '--tokens', file);
  const as = (token) => ({ headers: { Authorization: `Bearer ${token}` } });
  return { ...server, alice: as('aaaaaaaaaaaaaaaa'), bob: as('bbbbbbbbbbbbbbbb'), nobody: as('cccccccccccccccc') };
}

describe('HTTP', { concurrency: 3, timeout: 300_000 }, () => {
  test('half a request, then silence: closed after its time (tests/unit/connection_test.c: a minute), others are served', limit, async (t) => {
    const { url, port } = await startHttp(t, '--request-time', '3');
    const whole = rawRequest(1, 'tools/list');
    const began = Date.now();
    const halves = await Promise.all([10, whole.indexOf('\r\n\r\n') - 5, whole.length - 10].map(async (length) => {
      const socket = await connect(t, port);
      socket.write(whole.slice(0, length));
      return socket;
    }));
    await isServed(url);
    await Promise.all(halves.map((socket) => {
      socket.resume();
      return socket.over;
    }));
    assert.ok(Date.now() - began > 2_900, 'a slow client needs some time');
    await isServed(url);
  });

  test('a client that never reads its answers', limit, async (t) => {
    const { url, port, pid } = await startHttp(t);
    await isServed(url);
    const before = await peak(pid);
    const socket = await connect(t, port);
    const some = Array.from({ length: 100 }, (_, i) => rawRequest(i + 1, 'tools/list')).join('');
    let sent = 0;
    for (let stuck = false; !stuck && sent < 64 * MiB; sent += some.length)
      if (!socket.write(some)) stuck = !(await drains(socket, socket.over));
    assert.ok(sent < 64 * MiB, 'the server took everything');
    await isServed(url);
    await assertFlat(pid, before);
  });

  test('a client that listens and never reads', limit, async (t) => {
    const { url, port, pid } = await startHttp(t);
    await isServed(url);
    const before = await peak(pid);
    const socket = await connect(t, port); // every notification repeats this id
    socket.write(rawRequest('x'.repeat(30_000), 'subscriptions/listen', { notifications: { toolsListChanged: true } }));
    const trigger = await connect(t, port);
    const answered = receive(trigger, /"id":3000\b/);
    for (let id = 1; id <= 3000; id++) trigger.write(rawRequest(id, 'tools/call', { name: 'test_trigger_tool_change' }));
    assert.match(await answered, /"id":3000\b/);
    await assertFlat(pid, before);
  });

  test('a session that never reads', limit, async (t) => {
    const { url, port, pid } = await startHttp(t);
    const session = await openSession(url);
    const before = await peak(pid);
    const socket = await connect(t, port);
    socket.write(head('GET', { Accept: 'text/event-stream', ...session }));
    const trigger = await connect(t, port);
    const answered = receive(trigger, /"id":20000\b/);
    for (let id = 1; id <= 20_000; id++) trigger.write(rawRequest(id, 'tools/call', { name: 'test_trigger_tool_change' }));
    assert.match(await answered, /"id":20000\b/);
    await assertFlat(pid, before);
  });

  test('two thousand connections', limit, async (t) => {
    const { url, port, pid } = await startHttp(t);
    const before = await peak(pid);
    const sockets = await Promise.all(Array.from({ length: 2000 }, () => connect(t, port)));
    const answers = await Promise.all(sockets.map((socket, i) => {
      socket.write(rawRequest(i + 1, 'subscriptions/listen', { notifications: { toolsListChanged: true } }));
      return receive(socket, /acknowledged/);
    }));
    for (const answer of answers) assert.match(answer, /^HTTP\/1.1 200 OK\r\n/);
    await assertFlat(pid, before, 48);
    const told = Promise.all(sockets.map((socket) => receive(socket, /list_changed/)));
    await call(url, 'tools/call', { name: 'test_trigger_tool_change' });
    for (const text of await told) assert.match(text, /list_changed/);
  });

  test('a body of 1 GB, announced or in chunks', limit, async (t) => {
    const { url, port, pid } = await startHttp(t);
    await isServed(url);
    const before = await peak(pid);
    const announced = await connect(t, port);
    announced.write(head('POST', { 'Content-Type': 'application/json', 'Content-Length': 1 << 30 }));
    assert.match(await receive(announced), refusal(413));
    const chunked = await connect(t, port);
    const chunk = `100000\r\n${' '.repeat(MiB)}\r\n`;
    const refused = receive(chunked);
    chunked.write(head('POST', { 'Content-Type': 'application/json', 'Transfer-Encoding': 'chunked' }));
    let sent = 0;
    for (; sent < 1024 && !chunked.destroyed; sent++)
      if (!chunked.write(chunk)) await drains(chunked, chunked.over);
    assert.ok(sent < 100, `${sent} MiB were taken`);
    assert.match(await refused, refusal(413));
    await isServed(url);
    await assertFlat(pid, before, 40);
  });

  test('a head without end', limit, async (t) => {
    const { url, port, pid } = await startHttp(t);
    const before = await peak(pid);
    const socket = await connect(t, port);
    const refused = receive(socket);
    socket.write('POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n');
    for (let i = 0; i < 10_000 && !socket.destroyed; i++)
      if (!socket.write(`X-${i}: ${'y'.repeat(1000)}\r\n`)) await drains(socket, socket.over);
    assert.match(await refused, refusal(431));
    await isServed(url);
    await assertFlat(pid, before);
  });

  test('heads that two readers could read differently', limit, async (t) => {
    const { url, port } = await startHttp(t);
    const body = JSON.stringify(request(1, 'tools/list').body);
    const good = rawRequest(1, 'tools/list');
    const length = `Content-Length: ${body.length}`;
    const smuggled = ['Content-Length: +2', 'Content-Length: -2', 'Content-Length: 2,2', 'Content-Length: 2 2', 'Content-Length: 0x2',
      'Content-Length:', `${length}\r\n${length}`, `${length}\r\nTransfer-Encoding: chunked`, `Transfer-Encoding: chunked\r\n${length}`,
      `Content-Length : ${body.length}`, ` ${length}`, `X: y\r\n ${length}`, `X: y\r${length}`];
    for (const line of smuggled) {
      const socket = await connect(t, port);
      const answer = receive(socket);
      socket.write(good.replace(length, line) + good);
      assert.match(await answer, refusal(400), line);
      assert.equal(socket.received.match(/HTTP\/1.1 /g).length, 1, `${line}: and nothing after it`);
    }
    for (const [from, to, status] of [['Host:', 'Host :', 400], ['Host: 127.0.0.1\r\n', '', 400], ['HTTP/1.1', 'HTTP/2.0', 505], ['POST /mcp', '/mcp', 400],
      ['POST', 'PO\x01T', 400], [length, 'Transfer-Encoding: gzip', 501], [`${length}\r\n\r\n`, 'Transfer-Encoding: chunked\r\n\r\nxyz\r\n', 400]]) {
      const socket = await connect(t, port);
      const answer = receive(socket);
      socket.write(good.replace(from, to));
      assert.match(await answer, refusal(status), to);
    }
    await isServed(url);
  });

  test('what HTTP/1.1 allows', limit, async (t) => {
    const { port } = await startHttp(t);
    const text = JSON.stringify(request(1, 'tools/call', { name: 'greet' }).body);
    const headers = { 'Content-Type': 'application/json', ...request(1, 'tools/call', { name: 'greet' }).headers };
    const ask = async (bytes, fits) => {
      const socket = await connect(t, port);
      const answer = receive(socket, fits);
      for (const piece of [bytes].flat()) {
        socket.write(piece);
        await sleep(piece.length > 1 ? 5 : 1);
      }
      return answer;
    };
    const sized = head('POST', { ...headers, 'Content-Length': text.length }, text);
    const done = /"id":1,"result"/;
    assert.match(await ask(sized, done), /^HTTP\/1.1 200 OK\r\n[^]*Date: [^]*Content-Length: /);
    assert.match(await ask([...sized], done), done); // byte by byte
    assert.match(await ask([sized.slice(0, 40), sized.slice(40, 150), sized.slice(150)], done), done);
    assert.match(await ask(`\r\n\r\n${sized}`, done), done);
    const chunked = `${head('POST', { ...headers, 'Transfer-Encoding': 'chunked' })}5;a=b\r\n${text.slice(0, 5)}\r\n${(text.length - 5).toString(16).toUpperCase()}\r\n${text.slice(5)}\r\n0\r\nTrailer: x\r\n\r\n`;
    assert.match(await ask(chunked, done), done);
    assert.match(await ask([...chunked], done), done);
    const twice = await ask(chunked + sized.replace('"id":1', '"id":2') + chunked.replace('"id":1', '"id":3'), /"id":3,"result"/);
    assert.deepEqual([...twice.matchAll(/"id":(\d),"result"/g)].map((m) => m[1]), ['1', '2', '3']);
    const waits = head('POST', { ...headers, 'Content-Length': text.length, Expect: '100-continue' });
    const waiter = await connect(t, port), goOn = receive(waiter, /100 Continue\r\n\r\n/);
    waiter.write(waits);
    await goOn; // a body that came with the head would need none
    waiter.write(text);
    assert.match(await receive(waiter, done), /^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK/);
    const closes = await ask(head('POST', { ...headers, 'Content-Length': text.length, Connection: 'close' }, text));
    assert.match(closes, /Connection: close\r\n[^]*"id":1,"result"/);
    const old = sized.replace('HTTP/1.1', 'HTTP/1.0');
    assert.match(await ask(old), /Connection: close\r\n[^]*"id":1,"result"/);
    assert.match(await ask(old.replace('Content-Type', 'Connection: keep-alive\r\nContent-Type'), done), /Connection: keep-alive\r\n/);
    const listen = rawRequest(1, 'tools/call', { name: 'test_tool_with_progress', _meta: { progressToken: 1 } }).replace('HTTP/1.1', 'HTTP/1.0');
    assert.match(await ask(listen), /event-stream[^]*\r\n\r\ndata: [^]*"progress":100[^]*"id":1,"result"[^\r]*\n\n$/);
    assert.match(await ask('HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'), /^HTTP\/1.1 200 OK\r\n[^]*\r\n\r\n$/);
    assert.match(await ask('GET http://localhost/healthz?x HTTP/1.1\r\nHost: localhost\r\n\r\n', /ok\n/), /200 OK/);
    assert.match(await ask('GET http://evil.example.com/healthz HTTP/1.1\r\nHost: localhost\r\n\r\n', /\}/), refusal(403));
    assert.match(await ask(sized.replace('POST', 'PATCH'), /\}/), /^HTTP\/1.1 405 [^]*Allow: GET, POST, DELETE/);
  });

  test('a trickle is no request: head and body have a time in all', limit, async (t) => {
    const { url, port, stop, log } = await startHttp(t, '--request-time', '1');
    const whole = rawRequest(1, 'tools/list');
    const body = whole.indexOf('\r\n\r\n') + 4;
    const began = Date.now();
    const answers = await Promise.all([[0, 1], [body - 2, 0], [body, 1]].map(async ([start, each]) => {
      const socket = await connect(t, port);
      const answer = receive(socket);
      socket.write(whole.slice(0, start));
      for (let at = start; at < whole.length && Date.now() - began < 20_000 && !socket.destroyed; at += each) {
        socket.write(each ? whole.slice(at, at + 1) : '');
        await sleep(100);
      }
      return answer;
    }));
    for (const answer of answers) assert.match(answer, refusal(408));
    assert.ok(Date.now() - began < 20_000);
    await isServed(url);
    await stop();
    assert.match(log(), /refused: 0 connections, 0 for their bytes, 3 for their time/);
  });

  test('strangers with large bodies: refused at the head', limit, async (t) => {
    const { url, port, pid, alice } = await startWithTokens(t);
    await call(url, 'tools/list', {}, alice);
    const before = await peak(pid);
    const chunk = Buffer.alloc(64 * 1024, ' ');
    const answers = await Promise.all(Array.from({ length: 200 }, async () => {
      const socket = await connect(t, port);
      const answer = receive(socket);
      socket.write(head('POST', { 'Content-Type': 'application/json', 'Content-Length': 8 * MiB }));
      for (let sent = 0; sent < 8 * MiB && !socket.destroyed; sent += chunk.length)
        if (!socket.write(chunk)) await drains(socket, socket.over);
      return answer;
    }));
    for (const answer of answers) assert.match(answer, refusal(401));
    assert.equal((await call(url, 'tools/list', {}, alice)).status, 200);
    await assertFlat(pid, before, 16);
  });

  test('two hundred large bodies at once: bounded together', limit, async (t) => {
    const { url, port, pid, stop, log } = await startHttp(t);
    await isServed(url);
    const before = await peak(pid);
    const chunk = Buffer.alloc(256 * 1024, ' ');
    const sockets = await Promise.all(Array.from({ length: 200 }, () => connect(t, port)));
    const whole = await Promise.all(sockets.map(async (socket) => { // all but the last byte
      receive(socket);
      socket.write(head('POST', { 'Content-Type': 'application/json', 'Content-Length': 8 * MiB + 0 }));
      for (let left = 8 * MiB - 1; left > 0 && !socket.destroyed && !socket.received; left -= chunk.length)
        if (!socket.write(chunk.subarray(0, Math.min(left, chunk.length)))) await drains(socket, socket.over);
      return !socket.received;
    }));
    await assertFlat(pid, before, 300);
    await isServed(url);
    const refused = sockets.filter((socket) => socket.received);
    assert.ok(refused.length > 150, `${refused.length} were refused`);
    for (const socket of refused) assert.match(socket.received, refusal(503));
    assert.ok(whole.filter(Boolean).length > 10, 'some were taken');
    for (const socket of sockets) socket.destroy();
    await stop();
    assert.match(log(), /refused: 0 connections, 1\d\d for their bytes/);
  });

  test('more connections than there may be', limit, async (t) => {
    const { url, port, stop, log } = await startHttpAfter(t, 'ulimit -n 64');
    const sockets = await Promise.all(Array.from({ length: 60 }, () => connect(t, port)));
    const answers = sockets.map((socket) => receive(socket));
    while (sockets.filter((socket) => socket.received).length < 60 - 48) await sleep(5);
    const crowded = await Promise.all(answers.filter((_, i) => sockets[i].received));
    assert.equal(crowded.length, 60 - 48);
    for (const answer of crowded) assert.match(answer, /^HTTP\/1.1 503 /);
    for (const socket of sockets) socket.destroy();
    await isServed(url);
    await stop();
    assert.match(log(), /refused: 12 connections/);
  });

  test('one principal cannot take the sessions and requests of others', limit, async (t) => {
    const { url, port, alice, bob } = await startWithTokens(t);
    const initialize = { jsonrpc: '2.0', id: 0, method: 'initialize',
      params: { protocolVersion: legacy, capabilities: {}, clientInfo: { name: 'test', version: '1' } } };
    const statusOf = async (who) => {
      const response = await post(url, initialize, who.headers);
      await response.text();
      return response.status;
    };
    for (let i = 0; i < 10; i++)
      assert.deepEqual(new Set(await Promise.all(Array.from({ length: 100 }, () => statusOf(alice)))), new Set([200]));
    assert.equal(await statusOf(alice), 429);
    assert.equal(await statusOf(bob), 200);

    const listen = (who) => rawRequest(1, 'subscriptions/listen', { notifications: { toolsListChanged: true } })
      .replace('\r\n', `\r\nAuthorization: ${who.headers.Authorization}\r\n`);
    const streams = await Promise.all(Array.from({ length: 1000 }, async () => {
      const socket = await connect(t, port);
      socket.write(listen(alice));
      await receive(socket, /acknowledged/);
      return socket;
    }));
    const more = await call(url, 'tools/list', {}, alice);
    assert.equal(more.status, 429);
    assert.equal(more.error.code, -32603);
    assert.equal((await call(url, 'tools/list', {}, bob)).status, 200);
    streams[0].destroy();
    while ((await call(url, 'tools/list', {}, alice)).status !== 200) await sleep(5); // until the server has seen it go
  });

  test('nor the memory: open requests have a size together', limit, async (t) => {
    const { url, alice, bob } = await startWithTokens(t);
    const controller = new AbortController();
    const slow = () => { // 7 MiB that are kept while it runs
      const r = request(1, 'tools/call', { name: 'slow_compute', arguments: { seconds: 50 }, _meta: { 'example.com/x': 'x'.repeat(7 * MiB) } });
      return post(url, r.body, { ...r.headers, ...alice.headers }, { signal: controller.signal });
    };
    const responses = await Promise.all(Array.from({ length: 12 }, slow)); // all held: one that is forgotten is closed
    controller.abort();
    assert.deepEqual(responses.map((response) => response.status).sort(), [...Array(9).fill(200), ...Array(3).fill(429)]);
    assert.equal((await call(url, 'tools/list', {}, bob)).status, 200);
    assert.equal((await call(url, 'tools/list', {}, alice)).status, 200);
  });

  test('what ended streams keep is bounded, and the oldest go first', limit, async (t) => {
    const { url, pid } = await startHttp(t);
    const session = await openSession(url);
    const before = await peak(pid);
    const large = async (id) => { // three events that repeat the token
      const body = { jsonrpc: '2.0', id, method: 'tools/call',
        params: { name: 'test_tool_with_progress', _meta: { progressToken: 'x'.repeat(300_000) } } };
      return (await (await post(url, body, session)).text()).match(/^id: (.*)$/m)[1];
    };
    const ids = [];
    for (let i = 0; i < 10; i++) ids.push(...await Promise.all([large(3 * i), large(3 * i + 1), large(3 * i + 2)]));
    const resume = async (id) => {
      const response = await fetch(url, { headers: { ...session, Accept: 'text/event-stream', 'Last-Event-ID': id } });
      await response.text();
      return response.status;
    };
    const kept = await Promise.all(ids.map(resume));
    assert.equal(kept[0], 400);
    assert.equal(kept.at(-1), 200);
    const whole = kept.filter((status) => status === 200).length;
    assert.ok(whole >= 2 && whole <= 4, `${whole} streams of 0.9 MiB are kept`);
    await assertFlat(pid, before, 32);
  });

  test('events that were forgotten are not skipped in silence', limit, async (t) => {
    const { url, port } = await startHttp(t);
    const session = await openSession(url);
    const socket = await connect(t, port);
    const primed = receive(socket, /^id: /m);
    socket.write(head('GET', { ...session, Accept: 'text/event-stream' }));
    const id = (await primed).match(/^id: (.*)$/m)[1];
    const change = () => call(url, 'tools/call', { name: 'test_trigger_tool_change' });
    await change();
    const first = (await receive(socket, /list_changed/)).match(/^id: (.*)\ndata: \{/m)[1];
    socket.destroy();
    await sleep(50);
    for (let n = 0; n < 256; n++) await change();
    const statusOf = async (last) => {
      const controller = new AbortController();
      const response = await fetch(url, { headers: { ...session, Accept: 'text/event-stream', 'Last-Event-ID': last }, signal: controller.signal });
      controller.abort();
      return response.status;
    };
    assert.equal(await statusOf(id), 400);
    assert.equal(await statusOf(first), 200); // the 256 after it are there
    await change();
    assert.equal(await statusOf(first), 400);
    assert.equal(await statusOf('0-100000'), 400); // never given
  });

  test('2024-11-05 is not for HTTP', limit, async (t) => {
    const { url } = await startHttp(t);
    const initialize = { jsonrpc: '2.0', id: 0, method: 'initialize',
      params: { protocolVersion: '2024-11-05', capabilities: {}, clientInfo: { name: 'test', version: '1' } } };
    const response = await post(url, initialize);
    assert.equal((await messages(response))[0].result.protocolVersion, legacy);
    const session = { 'Mcp-Session-Id': response.headers.get('mcp-session-id') };
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    assert.equal((await post(url, list, { ...session, 'Mcp-Protocol-Version': legacy })).status, 200);
    const older = { ...session, 'Mcp-Protocol-Version': '2024-11-05' };
    assert.equal((await post(url, list, older)).status, 400);
    assert.equal((await fetch(url, { headers: { ...older, Accept: 'text/event-stream' } })).status, 400);
    assert.equal((await fetch(url, { method: 'DELETE', headers: older })).status, 400);
  });

  test('a second signal ends the waiting', limit, async (t) => {
    await assertNotWaitedFor(async () => {
      const { port, stop } = await startHttp(t, ...patiently);
      const socket = await connect(t, port);
      const began = receive(socket, /text\/event-stream/);
      socket.write(rawRequest(1, 'tools/call', { name: 'slow_compute', arguments: { seconds: 50 } }));
      await began;
      const stopping = Date.now();
      const stopped = stop();
      await sleep(100);
      stop();
      await stopped;
      return Date.now() - stopping;
    });
  });

  test('wrong Host or Origin', limit, async (t) => {
    const { url, port } = await startHttp(t);
    assert.equal(await statusWith(url, { Host: 'evil.example.com' }), 403);
    assert.equal(await statusWith(url, { Host: `127.0.0.1.example.com:${port}` }), 403);
    for (const origin of ['http://evil.example.com', 'null', 'http://localhost.example.com', 'file://localhost'])
      assert.equal(await statusWith(url, { Origin: origin }), 403, origin);
    for (const origin of ['http://localhost:3000', `http://127.0.0.1:${port}`, 'http://[::1]'])
      assert.equal(await statusWith(url, { Origin: origin }), 200, origin);
    const socket = await connect(t, port);
    socket.write(rawRequest(1, 'tools/list').replace('Host: 127.0.0.1', 'Host: 127.0.0.1\r\nHost: evil.example.com'));
    assert.match(await receive(socket, /\r\n\r\n/), /^HTTP\/1.1 (400|403) /);
    const none = await connect(t, port);
    none.write(rawRequest(1, 'tools/list').replace('Host: 127.0.0.1\r\n', ''));
    assert.match(await receive(none, /\r\n\r\n/), /^HTTP\/1.1 (400|403) /);
  });

  test('an argument in two headers', limit, async (t) => {
    const { port } = await startHttp(t);
    const whole = rawRequest(1, 'tools/call', { name: 'test_x_mcp_header', arguments: { region: 'a' } });
    for (const [more, status] of [['', 400], ['Mcp-Param-Region: a', 200], ['Mcp-Param-Region: b', 400],
      ['Mcp-Param-Region: a\r\nmcp-param-region: b', 400], ['Mcp-Param-Region: a\r\nMcp-Param-Region: a', 400],
      ['Mcp-Param-Region: a\r\nMcp-Param-Other: a', 200]]) {
      const socket = await connect(t, port);
      socket.write(whole.replace('Host: 127.0.0.1', `Host: 127.0.0.1${more && '\r\n'}${more}`));
      assert.match(await receive(socket, /\r\n\r\n/), new RegExp(`^HTTP/1.1 ${status} `), more);
    }
  });

  test('a unix socket, from its making to its end', limit, async (t) => {
    const directory = await mkdtemp(path.join(tmpdir(), 'socket-'));
    t.after(() => rm(directory, { recursive: true, force: true }));
    const socketPath = path.join(directory, 's');
    const ask = (method, headers, body) => new Promise((resolve, reject) => {
      const req = httpRequest({ socketPath, path: '/mcp', method, headers: { Host: 'localhost', ...headers } }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (data) => { text += data; }).on('end', () => resolve({ response, text }));
      });
      req.on('error', reject);
      req.end(body && JSON.stringify(body));
    });
    const first = await startHttp(t, `unix:${socketPath}`);
    assert.equal(first.url, `unix:${socketPath}`);
    assert.equal((await stat(socketPath)).mode, 0o140600);
    const greet = request(1, 'tools/call', { name: 'greet' });
    assert.match((await ask('POST', greet.headers, greet.body)).text, /"id":1,"result"/);
    const progress = request(2, 'tools/call', { name: 'test_tool_with_progress', _meta: { progressToken: 1 } });
    const streamed = await ask('POST', progress.headers, progress.body);
    assert.equal(streamed.response.headers['content-type'], 'text/event-stream');
    assert.match(streamed.text, /"progress":100[^]*"id":2,"result"/);
    assert.equal((await ask('POST', { ...greet.headers, Host: 'evil.example.com' }, greet.body)).response.statusCode, 403);
    await first.stop();
    await assert.rejects(stat(socketPath), { code: 'ENOENT' });

    const killed = spawnSync('/bin/sh', ['-c', '"$0" --http "$1" 2>"$2" & until grep -q listening "$2"; do sleep 0.01; done; kill -9 $!',
      program, `unix:${socketPath}`, path.join(directory, 'log')], { timeout: 10_000 });
    assert.equal(killed.status, 0);
    assert.ok((await stat(socketPath)).isSocket()); // nobody was there to remove it
    await startHttp(t, `unix:${socketPath}`);
    assert.match((await ask('POST', greet.headers, greet.body)).text, /"id":1,"result"/);
  });

  test('who may not ask is told how', limit, async (t) => {
    const { url, alice, nobody } = await startWithTokens(t);
    const challenge = async (headers) => {
      const response = await post(url, request(1, 'tools/list').body, { ...request(1, 'tools/list').headers, ...headers });
      return [response.status, response.headers.get('www-authenticate')];
    };
    assert.deepEqual(await challenge({}), [401, 'Bearer realm="mcp"']);
    assert.deepEqual(await challenge({ Authorization: 'Basic YTpi' }), [401, 'Bearer realm="mcp"']);
    assert.deepEqual(await challenge(nobody.headers), [401, 'Bearer realm="mcp", error="invalid_token"']);
    assert.deepEqual(await challenge(alice.headers), [200, null]);
  });

  test('an open stream is heard of while nothing happens', limit, async (t) => {
    const { port } = await startHttp(t);
    const socket = await connect(t, port);
    socket.write(rawRequest(1, 'subscriptions/listen', { notifications: { toolsListChanged: true } }));
    assert.match(await Promise.race([receive(socket, /\n:\n\n/), sleep(20_000, 'nothing')]), /acknowledged[^]*\r\n3\r\n:\n\n\r\n/);
  });

  test('unknown sessions', limit, async (t) => {
    const { url } = await startHttp(t);
    const session = await openSession(url);
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const statusOf = async (method, headers) => (await fetch(url, {
      method, headers: { Accept: 'application/json, text/event-stream', 'Content-Type': 'application/json', ...headers },
      ...(method === 'POST' && { body: JSON.stringify(list) }) })).status;
    const unknown = { ...session, 'Mcp-Session-Id': '0'.repeat(32) };
    for (const method of ['POST', 'GET', 'DELETE']) assert.equal(await statusOf(method, unknown), 404, method);
    assert.equal(await statusOf('POST', { 'Mcp-Protocol-Version': legacy }), 400);
    assert.equal(await statusOf('GET', {}), 405);
    assert.equal(await statusOf('POST', session), 200);
    assert.equal(await statusOf('DELETE', session), 204);
    assert.equal(await statusOf('POST', session), 404);
    assert.equal((await post(url, list, { ...session, 'Mcp-Session-Id': 'x'.repeat(50_000) })).status, 404);
  });

  test('requestState: replayed, tampered with, or of another call', limit, async (t) => {
    const { url } = await startHttp(t);
    const capabilities = { elicitation: {}, sampling: {}, roots: {} };
    const name = 'test_input_required_result_request_state';
    const inputResponses = { confirm: { action: 'accept', content: { ok: true } } };
    const ask = async () => (await call(url, 'tools/call', { name }, { capabilities })).result.requestState;
    const answer = (requestState, other = {}) =>
      call(url, 'tools/call', { name, inputResponses, requestState, ...other }, { capabilities });
    const isRefused = async (requestState, other) => {
      const { error, result } = await answer(requestState, other);
      assert.equal(error?.code, -32602, JSON.stringify(result));
    };

    const first = await ask();
    assert.equal((await answer(first)).result.content[0].text, 'state-ok');
    await isRefused(first);
    for (let i = 0; i < 42; i++) // so many others come between that a short memory forgets
      await Promise.all(Array.from({ length: 100 }, async () => answer(await ask())));
    await isRefused(first);

    const state = await ask();
    const [payload, mac] = state.split('.');
    const forged = Buffer.from(Buffer.from(payload, 'base64').toString().replace('state-ok', 'state-no')).toString('base64');
    for (const bad of [`${state}-TAMPERED`, `${forged}.${mac}`, `${payload}.${'A'.repeat(43)}=`, payload, '.', '', 'x'.repeat(100_000)])
      await isRefused(bad);
    await isRefused(state, { name: 'test_input_required_result_tampered_state' });
    assert.equal((await answer(state)).result.content[0].text, 'state-ok');
    assert.equal((await call(url, 'tools/call', { name, inputResponses, requestState: 7 }, { capabilities })).error?.code, -32602);
  });

  test('another principal: tasks, sessions, states', limit, async (t) => {
    const { url, alice, bob, nobody } = await startWithTokens(t);
    const refused = await post(url, request(1, 'tools/list').body);
    assert.equal(refused.status, 401);
    assert.match(refused.headers.get('www-authenticate'), /^Bearer /);
    assert.equal((await call(url, 'tools/list', {}, nobody)).status, 401);
    assert.equal((await call(url, 'tools/list', {}, alice)).status, 200);

    const capabilities = { ...tasksExtension, elicitation: {} };
    const task = (await call(url, 'tools/call', { name: 'slow_compute', arguments: { seconds: 50 } }, { ...alice, capabilities })).result;
    assert.equal(task.resultType, 'task');
    const { taskId } = task;
    const inputResponses = {};
    for (const method of ['tasks/get', 'tasks/update', 'tasks/cancel'])
      assert.equal((await call(url, method, { taskId, inputResponses }, { ...bob, capabilities })).error.code, -32602, method);
    assert.equal((await call(url, 'tasks/get', { taskId }, { ...alice, capabilities })).result.status, 'working');
    const listen = request(9, 'subscriptions/listen', { notifications: { taskIds: [taskId] } }, capabilities);
    const controller = new AbortController();
    const stream = await post(url, listen.body, { ...listen.headers, ...bob.headers }, { signal: controller.signal });
    const chunk = Buffer.from((await stream.body.getReader().read()).value).toString();
    assert.match(chunk, /"taskIds":\[\]/);
    controller.abort();

    const session = await openSession(url, alice);
    const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    assert.equal((await post(url, list, session)).status, 200);
    assert.equal((await post(url, list, { ...session, ...bob.headers })).status, 404);

    const name = 'test_input_required_result_request_state';
    const { requestState } = (await call(url, 'tools/call', { name }, { ...alice, capabilities })).result;
    const retry = { name, requestState, inputResponses: { confirm: { action: 'accept', content: { ok: true } } } };
    assert.equal((await call(url, 'tools/call', retry, { ...bob, capabilities })).error.code, -32602);
    assert.equal((await call(url, 'tools/call', retry, { ...alice, capabilities })).result.content[0].text, 'state-ok');
  });

  test('garbage for ten seconds', limit, async (t) => {
    const { url, port, pid } = await startHttp(t);
    await isServed(url);
    const before = await peak(pid);
    const end = Date.now() + 10_000;
    const beginnings = ['', 'POST ', 'POST /mcp HTTP/1.1\r\n', 'POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000\r\n\r\n'];
    await Promise.all(beginnings.map(async (beginning) => {
      while (Date.now() < end) {
        const socket = await connect(t, port);
        socket.resume();
        socket.write(beginning);
        for (let i = 0; i < 20 && !socket.destroyed; i++) {
          socket.write(randomBytes(1000));
          await sleep(1);
        }
        socket.destroy();
      }
    }));
    await isServed(url);
    await assertFlat(pid, before);
  });

  test('a connection reset in mid-stream cancels a modern call', limit, async (t) => {
    await assertNotWaitedFor(async () => {
      const { port, stop } = await startHttp(t, ...patiently);
      const socket = await connect(t, port);
      const began = receive(socket, /text\/event-stream/);
      socket.write(rawRequest(1, 'tools/call', { name: 'slow_compute', arguments: { seconds: 50 } }));
      await began;
      socket.resetAndDestroy();
      const stopping = Date.now();
      await stop();
      return Date.now() - stopping;
    });
  });

  test('a call that runs holds the stop, and is told at its deadline', limit, async (t) => {
    const { port, stop } = await startHttp(t);
    const [slow, quick, listener] = await Promise.all([1, 2, 3].map(() => connect(t, port)));
    const began = [slow, quick, listener].map((socket) => receive(socket, /text\/event-stream/));
    slow.write(rawRequest(1, 'tools/call', { name: 'slow_compute', arguments: { seconds: 50 } }));
    quick.write(rawRequest(2, 'tools/call', { name: 'slow_compute', arguments: { seconds: 1 } }));
    listener.write(rawRequest(3, 'subscriptions/listen', { notifications: { toolsListChanged: true } }));
    await Promise.all(began);
    await sleep(400); // of its second; a stop waits for one
    const stopping = Date.now();
    const stopped = stop();
    assert.match(await receive(listener, /"result"/), /"resultType":"complete"/);
    assert.match(await receive(quick, /"result"/), /done after 1 s/);
    await stopped;
    assert.ok(Date.now() - stopping > 900);
    assert.ok(Date.now() - stopping < 20_000);
    assert.match(slow.received, /the server is stopping/);
  });

  test('one client cannot cancel the requests of another by their ids', limit, async (t) => {
    const { url } = await startHttp(t);
    const slow = call(url, 'tools/call', { name: 'slow_compute', arguments: { seconds: 1 } }, { id: 1 });
    await sleep(200);
    const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1, _meta: metadata() } };
    assert.equal((await post(url, cancel, { 'Mcp-Protocol-Version': modern })).status, 202);
    const session = await openSession(url);
    assert.equal((await post(url, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } }, session)).status, 202);
    assert.match((await slow).result.content[0].text, /done after 1 s/);
  });

  test('resumption by Last-Event-ID after a cut connection', limit, async (t) => {
    const { url, port } = await startHttp(t);
    const session = await openSession(url);
    const socket = await connect(t, port);
    const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'tools/call',
      params: { name: 'test_tool_with_progress', _meta: { progressToken: 'p' } } });
    const first = receive(socket, /"progress":0.*\n\n/);
    socket.write(head('POST', { ...session, 'Content-Type': 'application/json', Accept: 'text/event-stream',
      'Content-Length': body.length }, body));
    const begun = (await first).match(/^id: (.*)\n(?:event: .*\n)?data: .*"progress":0[,}]/m)[1]; // more may have come with it
    const ids = [...socket.received.matchAll(/^id: (.*)$/gm)].map((m) => m[1]);
    socket.resetAndDestroy();
    await sleep(120); // while nobody is connected
    const resume = async (id) => (await fetch(url, { headers: { ...session, Accept: 'text/event-stream', 'Last-Event-ID': id } })).text();
    const rest = await resume(begun);
    assert.doesNotMatch(rest, /"progress":0\b[^.]|"progress":0\.0/);
    assert.match(rest, /"progress":50[^]*"progress":100[^]*"id":7,"result"/);
    const again = await resume(ids[0]); // a second time, from the beginning
    assert.match(again, /"progress":0[^]*"progress":50[^]*"progress":100[^]*"id":7,"result"/);
    const strange = await fetch(url, { headers: { ...session, Accept: 'text/event-stream', 'Last-Event-ID': '999-1' } });
    assert.equal(strange.status, 400);
    const other = await openSession(url);
    assert.equal((await fetch(url, { headers: { ...other, Accept: 'text/event-stream', 'Last-Event-ID': ids[0] } })).status, 400);
  });

  test('bad JSON, and what is no message', limit, async (t) => {
    const { url } = await startHttp(t);
    const session = await openSession(url);
    const codeOf = async (body, headers = session) => {
      const response = await post(url, body, headers);
      const [message] = await messages(response);
      return [response.status, message?.error?.code];
    };
    const texts = badTexts();
    for (const [name, text] of Object.entries(texts)) assert.deepEqual(await codeOf(text), [400, -32700], name);
    for (const [name, [text, id]] of Object.entries(unfitTexts())) {
      const [message] = await messages(await post(url, text, session));
      assert.deepEqual([message.error.code, message.id], [-32600, id], name);
    }
    for (const text of ['7', '"x"', 'null', '{}', '{"jsonrpc":"1.0","id":1,"method":"ping"}', '{"jsonrpc":"2.0","id":null,"method":"ping"}'])
      assert.deepEqual(await codeOf(text), [400, -32600], text);
    assert.deepEqual(await codeOf('[{"jsonrpc":"2.0","id":1,"method":"ping"}]'), [400, -32600]);
    await isServed(url);
  });

  test('error texts that would be cut within a character', limit, async (t) => {
    const { url } = await startHttp(t);
    for (let n = 50; n < 64; n++) {
      const name = `${'x'.repeat(n)}\u{1f400}\u{1f400}\u{1f400}`;
      const tool = await call(url, 'tools/call', { name: 'greet', arguments: { [name]: 1 } });
      assert.match(tool.result.content[0].text, /^arguments has no member 'xxx/);
      const answer = await call(url, 'tools/call', { name: 'greet', inputResponses: { [name]: 1 } });
      assert.equal(answer.error.code, -32602);
      const prompt = await call(url, 'prompts/get', { name: 'test_simple_prompt', arguments: { [name]: 1 } });
      assert.equal(prompt.error.code, -32602);
    }
  });

  test('batches where they exist', limit, async (t) => {
    const { url } = await startHttp(t);
    const session = await openSession(url, { version: '2025-03-26' });
    const batch = [{ jsonrpc: '2.0', id: 1, method: 'ping' }, { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 5 } },
      { jsonrpc: '2.0', id: 'two', method: 'tools/call', params: { name: 'test_tool_with_logging' } }];
    const received = (await messages(await post(url, batch, session))).flat();
    assert.deepEqual(received.filter((m) => 'id' in m).map((m) => m.id).sort(), [1, 'two']);
    assert.equal((await post(url, [], session)).status, 400);
  });

  test('other machines need tokens', limit, async (t) => {
    await assert.rejects(startHttp({ after() {} }, '--http', '0.0.0.0:0'), /can be reached from other machines/);
    await startHttp(t, '--http', '0.0.0.0:0', '--insecure');
  });
});

const ping1 = '{"jsonrpc":"2.0","id":1,"method":"ping"';

/** What is not JSON. */
function badTexts() {
  return {
    'bad UTF-8': Buffer.concat([Buffer.from(`${ping1},"params":{"a":"`), Buffer.from([0xc3, 0x28]), Buffer.from('"}}')]),
    'overlong UTF-8': Buffer.concat([Buffer.from(`${ping1},"params":{"a":"`), Buffer.from([0xc0, 0xaf]), Buffer.from('"}}')]),
    'half a surrogate': `${ping1},"params":{"a":"\\ud800"}}`,
    'deep lists': '['.repeat(100_000),
    'deep objects': '{"a":'.repeat(100_000),
    'nothing': ' ',
    'half': ping1,
    'two': `${ping1}}${ping1}}`,
  };
}

/** What is JSON, and is refused: text and the id of the answer. */
function unfitTexts() {
  return {
    'duplicate ids': [`${ping1},"id":2}`, undefined],
    'duplicate keys inside': [`${ping1},"params":{"a":{"b":1,"b":2}}}`, 1],
    'deep and closed': [`${ping1},"params":{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`, 1],
    'a huge id': [`${ping1.replace('1', '9'.repeat(40))}}`, undefined],
    'a huge integer': [`${ping1},"params":{"a":${'9'.repeat(40)}}}`, 1],
    'a huge real': [`${ping1},"params":{"a":1e999}}`, 1],
    'a number of a million digits': [`${ping1},"params":{"a":${'9'.repeat(MiB)}}}`, 1],
    'a NUL': [`{"method":"ping","params":{"a":"\\u0000"},"id":"x\\"","jsonrpc":"2.0"}`, 'x"'],
  };
}

describe('stdio', { concurrency: 3, timeout: 300_000 }, () => {
  const ping = (id) => ({ id, method: 'ping' });
  const initialize = (version = legacy, capabilities = {}) => ({ id: 'init', method: 'initialize',
    params: { protocolVersion: version, capabilities, clientInfo: { name: 'test', version: '1' } } });

  test('a client that never reads', limit, async (t) => {
    const server = startStdio(t);
    assert.ok((await server.request(initialize())).result);
    server.stdout.pause();
    const before = await peak(server.pid);
    let sent = 0;
    for (let stuck = false; !stuck && sent < 5000; sent++)
      if (!server.send({ id: sent, method: 'tools/list', params: { padding: 'x'.repeat(20_000) } }))
        stuck = !(await drains(server.stdin, server.exited.then(() => null)));
    assert.ok(sent < 5000, 'the server took everything');
    await assertFlat(server.pid, before);
    server.stdout.resume(); // and now it reads: nothing was lost
    for (let id = 0; id < sent; id++) await server.next((m) => m.id === id);
  });

  test('garbage for ten seconds', limit, async (t) => {
    const server = startStdio(t);
    const before = await peak(server.pid);
    for (const end = Date.now() + 10_000; Date.now() < end;) {
      if (!server.send(randomBytes(10_000))) await once(server.stdin, 'drain');
      await sleep(1);
    }
    server.send('\n');
    assert.deepEqual((await server.request(ping(1))).result, {});
    await assertFlat(server.pid, before);
  });

  const listen = { id: 'l', method: 'subscriptions/listen', params: { notifications: { toolsListChanged: true }, _meta: metadata() } };

  test('SIGTERM ends listeners properly', limit, async (t) => {
    const server = startStdio(t);
    server.send(listen);
    await server.next((m) => m.method === 'notifications/subscriptions/acknowledged');
    server.kill('SIGTERM');
    assert.equal((await server.next((m) => m.id === 'l')).result.resultType, 'complete');
    assert.deepEqual(await server.exited, [0, null]);
  });

  test('SIGTERM waits for a call, a second one does not', limit, async (t) => {
    const slow = (seconds) => ({ id: 1, method: 'tools/call', params: { name: 'slow_compute', arguments: { seconds }, _meta: metadata() } });
    const patient = startStdio(t, ...patiently);
    patient.send(slow(2)); // longer than a server waits that was not told how long
    assert.deepEqual((await patient.request({ ...listen, id: 2, method: 'server/discover' })).id, 2); // the call has begun
    patient.kill('SIGTERM');
    assert.match((await patient.next((m) => m.id === 1)).result.content[0].text, /done after 2 s/);
    assert.deepEqual(await patient.exited, [0, null]);
    await assertNotWaitedFor(async () => {
      const urgent = startStdio(t, ...patiently);
      urgent.send(slow(50));
      assert.deepEqual((await urgent.request({ ...listen, id: 2, method: 'server/discover' })).id, 2);
      const stopping = Date.now();
      urgent.kill('SIGTERM');
      await sleep(100);
      urgent.kill('SIGTERM');
      await urgent.exited;
      return Date.now() - stopping;
    });
  });

  test('both served: a signal stops both, and so does the end of input', limit, async (t) => {
    for (const end of [(server) => server.kill('SIGTERM'), (server) => server.stdin.end()]) {
      const server = startStdio(t, '--http', '127.0.0.1:0');
      server.send(listen);
      await server.next((m) => m.method === 'notifications/subscriptions/acknowledged');
      while (!server.log().includes('/mcp')) await sleep(5); // its stderr is another pipe
      const port = Number(server.log().match(/:(\d+)\/mcp/)[1]);
      const socket = await connect(t, port);
      const began = receive(socket, /acknowledged/);
      socket.write(rawRequest(7, 'subscriptions/listen', { notifications: { toolsListChanged: true } }));
      await began;
      end(server);
      assert.match(await receive(socket, /"id":7,"result"/), /"resultType":"complete"/);
      assert.deepEqual(await server.exited, [0, null]);
    }
  });

  test('closed descriptors at the start', limit, () => {
    for (const closed of ['<&-', '>&-', '<&- >&-', '<&- >&- --http 127.0.0.1:0']) {
      const { status, stderr } = spawnSync('/bin/sh', ['-c', `exec "$0" --stdio ${closed}`, program], { encoding: 'utf8', timeout: 10_000 });
      assert.equal(status, 1, closed);
      assert.equal(stderr, 'conformance-server: serving stdio needs an open standard input and output\n');
    }
  });

  test('a line over 8 MiB, then a good one', limit, async (t) => {
    const server = startStdio(t);
    const before = await peak(server.pid);
    const long = { ...ping(1), params: { a: 'x'.repeat(9 * MiB) } };
    server.send(long);
    const refused = await server.next((m) => m.error);
    assert.equal(refused.error.code, -32600);
    assert.ok(!('id' in refused));
    for (let i = 0; i < 20; i++) if (!server.send('x'.repeat(MiB))) await once(server.stdin, 'drain'); // no newline for a while
    server.send('\n');
    assert.deepEqual((await server.request(ping(2))).result, {});
    assert.deepEqual((await server.request({ ...ping(3), params: { a: 'x'.repeat(7 * MiB) } })).result, {});
    await assertFlat(server.pid, before, 64);
  });

  test('bad JSON is refused without an id, JSON that we cannot hold with it', limit, async (t) => {
    const server = startStdio(t);
    for (const [name, text] of Object.entries(badTexts())) {
      if (name === 'nothing') continue; // an empty line is not even wrong
      server.send(Buffer.concat([Buffer.from(text), Buffer.from('\n')]));
      const answer = await server.next((m) => m.error);
      assert.deepEqual([answer.error.code, 'id' in answer], [-32700, false], name);
    }
    for (const [name, [text, id]] of Object.entries(unfitTexts())) {
      server.send(Buffer.from(`${text}\n`));
      const answer = await server.next((m) => m.error);
      assert.deepEqual([answer.error.code, answer.id], [-32600, id], name);
    }
    assert.deepEqual((await server.request(ping(1))).result, {});
  });

  test('batches: refused, and answered where they exist', limit, async (t) => {
    const newer = startStdio(t);
    await newer.request(initialize());
    newer.send(`${JSON.stringify([{ jsonrpc: '2.0', ...ping(1) }])}\n`);
    assert.equal((await newer.next((m) => m.error)).error.code, -32600);
    const older = startStdio(t);
    await older.request(initialize('2025-03-26'));
    older.send(`${JSON.stringify([{ jsonrpc: '2.0', ...ping(1) }, { jsonrpc: '2.0', ...ping(2) }])}\n`);
    assert.deepEqual((await older.next(Array.isArray)).map((m) => m.id), [1, 2]);
  });

  test('cancelling: an unknown id, a known one, in both eras', limit, async (t) => {
    const server = startStdio(t);
    await server.request(initialize());
    const cancel = (requestId) => server.send({ method: 'notifications/cancelled', params: { requestId } });
    for (const id of [99, 'x', null, {}, undefined]) cancel(id);
    const slow = { name: 'slow_compute', arguments: { seconds: 1 } };
    server.send({ id: 1, method: 'tools/call', params: slow });
    server.send({ id: '1', method: 'tools/call', params: slow });
    server.send({ id: 2, method: 'tools/call', params: { ...slow, _meta: metadata() } });
    cancel(1);
    server.send({ method: 'notifications/cancelled', params: { requestId: 2, _meta: metadata() } });
    assert.match((await server.next((m) => m.id === '1')).result.content[0].text, /done/);
    assert.deepEqual((await server.request(ping(3))).result, {});
    assert.deepEqual(server.seen, []);
  });

  test('the end of input in mid-call: the server does not wait for them', limit, async (t) => {
    const server = startStdio(t);
    await server.request(initialize(legacy, { elicitation: {} }));
    for (const [i, name] of ['slow_compute', 'test_elicitation', 'test_tool_with_progress'].entries())
      server.send({ id: i, method: 'tools/call',
        params: { name, arguments: { slow_compute: { seconds: 50 }, test_elicitation: { message: '?' } }[name] ?? {} } });
    server.send({ id: 8, method: 'tools/call', params: { name: 'slow_compute', arguments: { seconds: 50 }, _meta: metadata() } });
    server.send({ id: 9, method: 'tools/call', params: { name: 'slow_compute', arguments: { seconds: 50 }, _meta: metadata(tasksExtension) } });
    server.send({ id: 'l', method: 'subscriptions/listen', params: { notifications: { toolsListChanged: true }, _meta: metadata() } });
    await server.next((m) => m.method === 'elicitation/create');
    await server.next((m) => m.result?.resultType === 'task');
    const began = Date.now();
    server.stdin.end();
    assert.deepEqual(await server.exited, [0, null]);
    assert.ok(Date.now() - began < 20_000); // the calls want 50 s
  });

  test('ids come back as they went', limit, async (t) => {
    const server = startStdio(t);
    const lines = [];
    server.stdout.on('data', (data) => lines.push(data.toString()));
    const ids = ['9007199254740993', '-9223372036854775808', '0', '""', '"\\u00e9\\n"', `"${'i'.repeat(1000)}"`];
    for (const id of ids) server.send(`{"jsonrpc":"2.0","id":${id},"method":"ping"}\n`);
    await server.request(ping('last'));
    const seen = lines.join('').split('\n').map((line) => line.match(/"id":(.*),"result"/)?.[1]);
    assert.deepEqual(seen.slice(0, ids.length), ids.map((id) => id.replace('\\u00e9', 'é')));
  });

  test('answers that nobody asked for, and before the beginning', limit, async (t) => {
    const server = startStdio(t);
    for (const id of ['srv-1', 'srv-4294967297', 7]) server.send({ id, result: {} });
    server.send({ id: 'srv-1', error: { code: 1, message: 'no' } });
    assert.equal((await server.request({ id: 1, method: 'tools/list' })).error.code, -32602);
    await server.request(initialize(legacy, { elicitation: {} }));
    assert.equal((await server.request(initialize())).error.code, -32602);
    server.send({ id: 2, method: 'tools/call', params: { name: 'test_elicitation', arguments: { message: '?' } } });
    const { id } = await server.next((m) => m.method === 'elicitation/create');
    server.send({ id, error: { code: -1, message: 'no' } });
    server.send({ id, result: { action: 'accept' } }); // too late
    assert.match((await server.next((m) => m.id === 2)).result.content[0].text, /cancel/);
  });
});
