// Background servers: reached through the pipe by HTTP, WebSocket and plain TCP; several, replaced, dead, silent; ports that others hold.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import { nothingAhead, until } from './jerboa.mjs';
import { connect, connectFor, failed, freePort, inside, limit, refused, text, texts, variants } from './tools.mjs';

nothingAhead();

const answering = (port, words) => `import http from 'node:http'; console.log('up: ${words}');
  http.createServer((request, response) => response.end('${words} ' + request.url)).listen(${port})`;
const get = async (port, place = '/') => (await fetch(`http://127.0.0.1:${port}${place}`)).text();

/** It was started; where it is. */
function started(r, port, log = 'output.log') {
  assert.ok(!r.isError, JSON.stringify(r));
  assert.equal(text(r), `Node.js process output:\nServer started in background; logs at /workspace/${log}`);
  assert.deepEqual([r.structuredContent.verdict, r.structuredContent.server.url], ['ok', `http://127.0.0.1:${port}`]);
  return r.structuredContent.server;
}

let s, container_id, port;
before(async () => { s = await connect(variants['stdio, modern']); });
after(() => s.close());

describe('servers', limit, () => {
  test('express with two endpoints, and a WebSocket', async () => {
    container_id = await s.sandbox();
    port = await freePort();
    const { log } = started(await s.run(container_id, `import express from 'express'; import { WebSocketServer } from 'ws';
      const app = express();
      app.get('/', (request, response) => response.send('home'));
      app.get('/json/:name', (request, response) => { console.log('asked for', request.params.name); response.json({ name: request.params.name }); });
      const server = app.listen(${port}, () => console.log('listening'));
      new WebSocketServer({ server }).on('connection', (socket) => socket.on('message', (data) => socket.send('echo ' + data)));`,
    { listenOnPort: port, dependencies: [{ name: 'express', version: '^5' }, { name: 'ws', version: '^8' }] }), port);
    assert.equal(await get(port), 'home');
    assert.equal(await get(port, '/json/ada'), '{"name":"ada"}');
    const socket = new WebSocket(`ws://127.0.0.1:${port}`);
    await once(socket, 'open');
    socket.send('hello');
    const [{ data }] = await once(socket, 'message');
    assert.equal(data, 'echo hello');
    socket.close();
    assert.equal(text(await s.exec(container_id, 'cat output.log')), 'listening\nasked for ada\n');
    assert.equal(log, `sandbox://${container_id}/output.log`);
    assert.equal((await s.read(log)).text, 'listening\nasked for ada\n');
  });

  test('goes on beside runs, beyond their limit', async () => {
    assert.equal((await s.run(container_id, `const r = await fetch('http://127.0.0.1:${port}/json/inside'); console.log(await r.text())`)).structuredContent.stdout, '{"name":"inside"}\n');
    await s.run(container_id, 'for (;;);', { timeoutMs: 200 });
    assert.equal(await get(port), 'home');
  });

  test('on a port below 1024', async () => {
    const r = await s.run(container_id, `import net from 'node:net';
      const server = net.createServer().listen(80, () => { console.log(server.address().port); server.close(); })`);
    assert.equal(r.structuredContent.stdout, '80\n', JSON.stringify(r));
  });

  test('several in one sandbox', async () => {
    const second = await freePort();
    const { log } = started(await s.run(container_id, answering(second, 'second'), { listenOnPort: second }), second, `output-${second}.log`);
    assert.deepEqual([await get(port), await get(second, '/x')], ['home', 'second /x']);
    assert.equal((await s.read(log)).text, 'up: second\n');
  });

  test('a second one on the same port replaces the first', async () => {
    const before = inside(s.pid).filter((p) => p.name !== 'sh').length;
    started(await s.run(container_id, answering(port, 'newer'), { listenOnPort: port }), port);
    assert.equal(await get(port, '/y'), 'newer /y');
    assert.equal(inside(s.pid).filter((p) => p.name !== 'sh').length, before);
  });

  test('all of them end with the sandbox', async () => {
    await s.call('sandbox_stop', { container_id });
    await until(() => inside(s.pid).length === 0, 'they still run');
    await assert.rejects(get(port));
  });
});

describe('TCP', limit, () => {
  test('megabytes both ways, half closes, many at once', async () => {
    container_id = await s.sandbox();
    port = await freePort();
    started(await s.run(container_id, `import net from 'node:net';
      net.createServer({ allowHalfOpen: true }, (c) => { const all = []; c.on('data', (d) => all.push(d)); c.on('end', () => c.end(Buffer.concat(all).reverse())); }).listen(${port}, '127.0.0.1')`,
    { listenOnPort: port }), port);
    const bytes = Buffer.from(Array.from({ length: 2_000_000 }, (_, i) => i * 7919 % 251));
    await Promise.all(Array.from({ length: 5 }, async () => {
      const c = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
      const got = [];
      c.on('data', (d) => got.push(d)).end(bytes);
      await once(c, 'end');
      assert.ok(Buffer.concat(got).equals(Buffer.from(bytes).reverse()));
    }));
    await s.call('sandbox_stop', { container_id });
  });
});

describe('ports', limit, () => {
  test('published when the sandbox is made', async () => {
    port = await freePort();
    const made = await s.call('sandbox_initialize', { port });
    assert.equal(made.content.length, 1);
    container_id = text(made);
    assert.equal(made.structuredContent.url, `http://127.0.0.1:${port}`);
    started(await s.run(container_id, answering(port, 'mine'), { listenOnPort: port }), port);
    assert.equal(await get(port), 'mine /');
  });

  test('held by another sandbox: the next free one, named', async () => {
    const other = await s.sandbox();
    const r = await s.run(other, answering(port, 'other'), { listenOnPort: port });
    const { url } = r.structuredContent.server;
    const next = Number(new URL(url).port);
    assert.ok(next > port && next < port + 1000, url);
    assert.equal(text(r), 'Node.js process output:\nServer started in background; logs at /workspace/output.log');
    assert.equal(texts(r)[1], `Port ${port} of the sandbox is ${url}: another sandbox has ${port}.`);
    assert.deepEqual([await get(port), await get(next)], ['mine /', 'other /']);
    const third = await s.call('sandbox_initialize', { port });
    assert.match(texts(third)[1], new RegExp(`^Port ${port} is published as 127\\.0\\.0\\.1:\\d+: another sandbox has ${port}\\.$`));
    await s.call('sandbox_stop', { container_id });
    await until(() => get(port).then(() => false, () => true), 'it still answers');
    const fourth = await s.call('sandbox_initialize', { port }); // free again
    assert.equal(fourth.structuredContent.url, `http://127.0.0.1:${port}`);
  });

  test('held by a foreign program: one sentence', async (t) => {
    const foreign = net.createServer().listen(0, '127.0.0.1');
    t.after(() => foreign.close());
    await once(foreign, 'listening');
    const held = foreign.address().port;
    container_id = await s.sandbox();
    const sentence = new RegExp(`port ${held} of this machine is in use by another program`);
    refused(await s.run(container_id, answering(held, 'x'), { listenOnPort: held }), sentence);
    refused(await s.call('sandbox_initialize', { port: held }), sentence);
    assert.deepEqual((await s.run(container_id, 'console.log(1)')).structuredContent.stdout, '1\n');
  });
});

describe('servers that fail', limit, () => {
  test('one that dies: its output, cut like any other', async () => {
    container_id = await s.sandbox();
    port = await freePort();
    const r = failed(await s.run(container_id, `console.log('first line'); console.log('x'.repeat(200_000)); process.stdout.write(Buffer.from([255, 0, 10]));
      throw new Error('no server today')`, { listenOnPort: port }), 'error', new RegExp(`the server ended with exit code 1 before port ${port} answered`));
    const { stdout, exitCode, server, truncated } = r.structuredContent;
    assert.deepEqual([exitCode, server], [1, null]);
    assert.ok(stdout.startsWith('first line\nxxx') && stdout.includes('\uFFFD\u2400\n') && /Error: no server today\n {4}at file:\/\/\/workspace\/index\.js:2:/.test(stdout), stdout.slice(-1000));
    assert.ok(stdout.length < 60_000, `${stdout.length}`);
    assert.ok((await s.read(truncated.uri)).blob.length > 200_000);
    assert.equal(texts(r)[1], `Node.js process output:\n${stdout}`);
    started(await s.run(container_id, answering(port, 'mended'), { listenOnPort: port }), port);
    assert.equal(await get(port), 'mended /');
  });

  test('one that exits with 0 before its port answers', async () => {
    const other = await freePort();
    const r = await s.run(container_id, 'console.log("bye")', { listenOnPort: other });
    assert.equal(r.isError, true);
    assert.match(text(r), new RegExp(`^Error during execution: error: the server ended with exit code 0 before port ${other} answered`));
    assert.deepEqual([r.structuredContent.verdict, r.structuredContent.exitCode, r.structuredContent.stdout], ['error', 0, 'bye\n']);
  });

  test('one that dies later is started again', async () => {
    await fetch(`http://127.0.0.1:${port}/`);
    await s.exec(container_id, `pkill -f index.js || kill $(grep -l index.js /proc/[0-9]*/cmdline | cut -d/ -f3)`);
    await until(() => get(port).then(() => false, () => true), 'it still answers');
    started(await s.run(container_id, answering(port, 'again'), { listenOnPort: port }), port);
    assert.equal(await get(port), 'again /');
  });

  test('one that never answers goes on, and its log is named', async () => {
    const other = await freePort();
    const began = performance.now();
    const r = failed(await s.run(container_id, 'console.log("thinking"); setInterval(() => {}, 1000)', { listenOnPort: other, timeoutMs: 700 }), 'timeout',
      new RegExp(`port ${other} did not answer within 700 ms; the server goes on in the background: .*read its log, /workspace/output-${other}\\.log`));
    assert.ok(performance.now() - began > 650); // clocks differ by some
    assert.equal(r.structuredContent.server.url, `http://127.0.0.1:${other}`);
    assert.equal(text(await s.exec(container_id, `until [ -s output-${other}.log ]; do sleep 0.05; done; cat output-${other}.log`)), 'thinking\n');
  });

  test('a cancel while it is waited for ends it', async () => {
    const other = await freePort();
    const controller = new AbortController();
    const count = () => inside(s.pid).length;
    const earlier = count();
    const call = s.run(container_id, 'setInterval(() => {}, 1000)', { listenOnPort: other }, { signal: controller.signal });
    await until(() => count() > earlier, 'it did not start');
    controller.abort();
    await assert.rejects(call);
    await until(() => count() === earlier, 'it still runs');
    started(await s.run(container_id, answering(other, 'then'), { listenOnPort: other }), other, `output-${other}.log`);
  });
});

test('over HTTP, in a legacy session', limit, async (t) => {
  const h = await connectFor(t, variants['HTTP, legacy']);
  const id = await h.sandbox(), free = await freePort();
  started(await h.run(id, answering(free, 'legacy'), { listenOnPort: free }), free);
  assert.equal(await get(free), 'legacy /');
});
