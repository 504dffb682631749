// To whom sandboxes belong, and how they end with him: with a session, with a client that leaves, with the server, however that ends.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { describe, test } from 'node:test';
import { assertGone, descriptors, engine, inits, keepers, limit, nativeOnly, nothingAhead, roomFor, sanitized, tempDir, until } from './jerboa.mjs';
import { modern, openSession, post, request } from './mcp.mjs';
import { answers, connectTo, inside, programs, rssKiB, serveHttp, serveStdio, text, tokenOf, tokensFile } from './serving.mjs';

nothingAhead();

const inner = 20_000 + process.pid % 10_000;
const web = `import http from 'node:http'; http.createServer((q, s) => s.end('here')).listen(${inner})`;
const forever = `import { spawn } from 'node:child_process'; spawn('sh', ['-c', 'setsid sleep 1000 & sleep 1000'], { detached: true }).unref(); setInterval(() => {}, 1e6)`;
const sleeping = (pid) => inside(pid).filter((name) => name === 'sleep').length;
const jails = () => inits(programs).length;

/** A sandbox that serves: {id, url}. */
async function settle(c) {
  const id = text(await c.call('sandbox_initialize', {}));
  const r = await c.call('run_js', { container_id: id, code: web, listenOnPort: inner });
  assert.ok(!r.isError, JSON.stringify(r.content));
  return { id, url: r.structuredContent.server.url, log: `sandbox://${id}/output.log` };
}

/** What the others know of it: nothing at all. */
async function assertStranger(c, { id, log }) {
  for (const [tool, args] of [['run_js', { code: '1' }], ['sandbox_exec', { commands: ['true'] }], ['sandbox_stop', {}]]) {
    const r = await c.call(tool, { container_id: id, ...args });
    assert.ok(r.isError, `${tool} of somebody else's sandbox: ${JSON.stringify(r)}`);
    assert.match(text(r), /unknown/);
  }
  await assert.rejects(c.read(log), /no such resource/);
  await assertUnlisted(c, { id });
}

async function assertUnlisted(c, { id }) {
  assert.ok(!(await c.client.listResources()).resources.some((r) => r.uri.includes(id)));
  assert.deepEqual(await completeIds(c), []);
}

async function completeIds(c) {
  const ref = { type: 'ref/resource', uri: 'sandbox://{id}/{+path}' };
  return (await c.client.complete({ ref, argument: { name: 'id', value: 'js-' } })).completion.values;
}

async function assertMine(c, { id, log }) {
  assert.equal(text(await c.call('sandbox_exec', { container_id: id, commands: ['echo mine'] })), 'mine\n');
  assert.equal((await c.read(log)).text, '');
}

describe('owners', limit, () => {
  test('a session has its own, until it ends', async (t) => {
    const { url } = await serveHttp(t);
    const [a, b] = [await connectTo(url), await connectTo(url, { sdk: 1 })];
    const box = await settle(a);
    await assertMine(a, box);
    assert.deepEqual(await completeIds(a), [box.id]);
    assert.ok((await a.client.listResources()).resources.some((r) => r.uri === box.log));
    await assertStranger(b, box);
    const other = await settle(b);
    await a.transport.terminateSession();
    await until(async () => jails() === 1 && !(await answers(+new URL(box.url).port)), 'the sandbox outlived its session');
    await assertMine(b, other);
    await a.client.close();
    await b.client.close();
  });

  test('nobody in particular: who has the id has the sandbox, and it is listed nowhere', async (t) => {
    const { url } = await serveHttp(t);
    const [a, b] = [await connectTo(url, { mode: { pin: modern } }), await connectTo(url, { mode: { pin: modern } })];
    const box = await settle(a);
    for (const c of [a, b]) {
      await assertMine(c, box);
      await assertUnlisted(c, box);
    }
    await a.client.close();
    await assertMine(b, box);
    await b.call('sandbox_stop', { container_id: box.id });
    await assert.rejects(b.read(box.log), /no such resource/);
    await b.client.close();
  });

  test('a name has its own in all its sessions and both eras, and no other name has them', async (t) => {
    const { url } = await serveHttp(t, ['--tokens', tokensFile(t, ['ada', 'bob']), '--files', tempDir(t)]);
    const ada = await connectTo(url, { token: tokenOf('ada') });
    const box = await settle(ada);
    await ada.transport.terminateSession();
    await ada.client.close();
    for (const mode of ['legacy', { pin: modern }]) {
      const again = await connectTo(url, { mode, token: tokenOf('ada') }), bob = await connectTo(url, { mode, token: tokenOf('bob') });
      await assertMine(again, box);
      assert.deepEqual(await completeIds(again), [box.id]);
      await assertStranger(bob, box);
      await again.client.close();
      await bob.client.close();
    }
  });
});

describe('a client that leaves', limit, () => {
  const once = { name: 'run_js_ephemeral', arguments: { code: forever, timeoutMs: 30_000 } };

  test('modern: what it asked for ends with its connection', async (t) => {
    const { url, pid } = await serveHttp(t), gone = new AbortController();
    const r = request(1, 'tools/call', once);
    const asked = post(url, r.body, r.headers, { signal: gone.signal }).then((response) => response.text());
    await until(() => sleeping(pid) === 2, 'the script never came');
    gone.abort();
    await assert.rejects(asked);
    await until(() => jails() === 0, 'it goes on for nobody');
  });

  test('legacy: what it asked for goes on until the session ends', async (t) => {
    const { url, pid } = await serveHttp(t), gone = new AbortController(), session = await openSession(url);
    const asked = post(url, { jsonrpc: '2.0', id: 1, method: 'tools/call', params: once }, session, { signal: gone.signal }).then((response) => response.text());
    await until(() => sleeping(pid) === 2, 'the script never came');
    gone.abort();
    await assert.rejects(asked);
    await (await post(url, { jsonrpc: '2.0', id: 2, method: 'ping' }, session)).text();
    assert.equal(sleeping(pid), 2);
    assert.equal((await fetch(url, { method: 'DELETE', headers: session })).status, 204);
    await until(() => jails() === 0, 'it goes on for nobody');
  });
});

/** All that a server can be at: a sandbox with a server, a run in another one, one for a single call, an install that gets no answer. */
async function occupy(t) {
  const registry = createServer(() => {}).listen(0, '127.0.0.1');
  await once(registry, 'listening');
  t.after(() => { registry.closeAllConnections(); registry.close(); });
  const s = serveStdio(t, ['--files', tempDir(t), '--fresh', '0'], { env: { npm_config_registry: `http://127.0.0.1:${registry.address().port}/` } });
  await s.open();
  const box = await settle(s);
  const asked = once(registry, 'connection');
  s.call('run_js', { container_id: box.id, code: forever });
  s.call('run_js_ephemeral', { code: forever });
  s.call('run_js_ephemeral', { code: '1', dependencies: [{ name: 'nothing-answers', version: '1.0.0' }] });
  s.call('run_js', { container_id: box.id, code: 'console.log("waits in line")' });
  await asked;
  await until(() => sleeping(s.child.pid) === 4, 'the scripts never came');
  return { ...s, port: +new URL(box.url).port };
}

describe('the end of the server', { timeout: 300_000 }, () => {
  const ends = {
    'its input ends': (child) => child.stdin.end(),
    SIGINT: (child) => child.kill('SIGINT'),
    SIGTERM: (child) => child.kill('SIGTERM'),
    SIGUSR2: (child) => child.kill('SIGUSR2'),
    SIGKILL: (child) => child.kill('SIGKILL'),
  };
  for (const [name, end] of Object.entries(ends))
    test(`${name}: all of it ends, soon, and nothing is left`, limit, async (t) => {
      const { child, port } = await occupy(t);
      const began = performance.now();
      end(child);
      const { status, signal, stderr } = await child.ended;
      const ms = performance.now() - began;
      assert.deepEqual([status, signal], name === 'SIGKILL' ? [null, 'SIGKILL'] : [0, null], stderr);
      assert.doesNotMatch(stderr, /did not end/);
      await assertGone(programs);
      assert.equal(await answers(port), false);
      t.diagnostic(`${ms.toFixed(0)} ms`);
    });

  test('a second signal does not wait for what runs', limit, async (t) => {
    const stop = async (...signals) => {
      const { child } = await occupy(t), began = performance.now();
      for (const name of signals) child.kill(name);
      const { status, signal } = await child.ended;
      const ms = performance.now() - began;
      assert.deepEqual([status, signal], [0, null]);
      await assertGone(programs);
      return ms;
    };
    // A second less than with one signal; by which half may be lost on a busy machine, but not four times.
    let saved = 0;
    for (let i = 0; i < 4 && saved < 500; i++) saved = await stop('SIGTERM') - await stop('SIGTERM', 'SIGINT');
    assert.ok(saved >= 500, `${saved} ms`);
  });
});

test('a Node that has to be fetched: others are answered meanwhile, who waits is told, and the end does not wait', { ...limit, ...nativeOnly('images have their Node') }, async (t) => {
  let asked;
  const registry = createServer(() => { asked = true; }).listen(0, '127.0.0.1'); // accepts and says nothing
  await once(registry, 'listening');
  t.after(() => { registry.closeAllConnections(); registry.close(); });
  const s = serveStdio(t, [], { env: { JERBOA_HOME: tempDir(t), npm_config_registry: `http://127.0.0.1:${registry.address().port}/` } });
  await s.open();
  s.call('sandbox_initialize', {}, { progressToken: 'first' });
  s.call('run_js_ephemeral', { code: '1' }, { progressToken: 'second' });
  const told = (token) => s.seen.filter((m) => m.method === 'notifications/progress' && m.params.progressToken === token).map((m) => m.params);
  await until(() => asked && told('first').length >= 2 && told('second').length >= 2, () => JSON.stringify(s.seen));
  for (const token of ['first', 'second']) {
    assert.match(told(token)[0].message, /^fetching Node\.js for node:lts-slim, 0 s$/);
    assert.ok(told(token)[1].progress > told(token)[0].progress);
  }
  assert.deepEqual((await s.ask('ping')).result, {}); // the registry never answers
  s.child.stdin.end();
  assert.equal((await s.child.ended).status, 0, s.child.text('stderr'));
  await assertGone(programs);
});

const isSlow = sanitized || engine;
test(`${isSlow ? 60 : 300} runs, one after the other: the server grows by nothing`, { timeout: 300_000 }, async (t) => {
  const s = serveStdio(t, ['--pool', '2', '--pool-memory', roomFor(2), '--hold', '5m'], { seconds: 290 });
  await s.open();
  const fds = () => descriptors(s.child.pid);
  const many = async (n) => {
    for (let i = 0; i < n; i++) assert.equal(text(await s.call('run_js_ephemeral', { code: `console.log(${i})` })), `Node.js process output:\n${i}\n`);
    let open = 0, same = 0;
    const rests = () => { same = fds() === open ? same + 1 : 0; open = fds(); return same > 40; }; // the last one is made, or gone, for good
    const clients = () => (engine ? keepers(s.child.pid).length : 2); // podman's goes some time after its container
    await until(() => jails() === 2 && clients() === 2 && rests(), () => `other sandboxes are left than those made ahead: ${jails()}, with ${fds()} descriptors`, engine ? 90 : 30);
    return { kib: rssKiB(s.child.pid), fds: open };
  };
  const [before, after] = [await many(isSlow ? 20 : 100), await many(isSlow ? 40 : 200)]; // descriptors tell after a few
  t.diagnostic(`${before.kib} KiB, then ${after.kib} KiB`);
  assert.ok(sanitized || after.kib - before.kib < 400, `${before.kib} KiB, then ${after.kib} KiB`); // 2 KiB a run
  assert.equal(after.fds, before.fds);
  s.child.stdin.end();
  assert.equal((await s.child.ended).status, 0);
  await assertGone(programs);
});
