// works.mjs: what clients of a server may be at: a table of works, each of which sees that it was answered as it should be.
//
// A work gets a client `c` (call, read, client, era; `told`: resources whose change it was told), `place` (its folder of FILES_DIR, the registry) and a number of its own, `n`. It leaves nothing of its
// own behind but what the server has to end by itself: sandboxes that nobody uses any more.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { fill, until } from '../integration/jerboa.mjs';

const text = (r) => r.content[0].text;
const once = (c, code, more = {}, options) => c.call('run_js_ephemeral', { code, ...more }, options);

function ended(r, verdict) {
  assert.equal(r.structuredContent?.verdict, verdict, JSON.stringify(r.content).slice(0, 500));
  return r.structuredContent;
}

const prints = async (c, code, expected, more) => assert.equal(ended(await once(c, code, more), 'ok').stdout, expected);

async function sandbox(c, work) {
  const r = await c.call('sandbox_initialize', {});
  assert.ok(!r.isError, text(r));
  return work(text(r));
}

const forever = 'import { spawn } from "node:child_process"; spawn("sleep", ["1000"]); setInterval(() => {}, 1e6)';
const web = (port) => `import http from 'node:http'; http.createServer((q, s) => s.end('here')).listen(${port})`;
const packages = ['dune-one', 'dune-two', 'dune-three'];
const importing = (name) => `import x from '${name}'; console.log(x)`;

/** Cancelled by its client after so many milliseconds, wherever it is by then. */
async function cancelled(c, ms, ask) {
  const gone = new AbortController(), asked = ask({ signal: gone.signal });
  setTimeout(() => gone.abort(), ms);
  await assert.rejects(asked);
}

/** `often`: how many of a hundred, about. */
export const works = {
  hello: { often: 30, do: (c, place, n) => prints(c, `console.log(${n})`, `${n}\n`) },
  'ends with an error': { often: 3, do: async (c, place, n) => ended(await once(c, `process.exit(${n % 100 + 1})`), 'error') },
  crash: { often: 2, do: async (c) => ended(await once(c, 'process.abort()'), 'error') },
  timeout: { often: 3, do: async (c) => ended(await once(c, 'for (;;);', { timeoutMs: 250 }), 'timeout') },
  'out of memory': { often: 2, do: async (c) => ended(await once(c, fill), 'oom') },
  'much output': { often: 4, do: async (c) => {
    const r = await once(c, 'process.stdout.write("x".repeat(300_000))');
    assert.equal((await c.read(ended(r, 'ok').truncated.uri)).text.length, 300_000);
  } },
  cancel: { often: 5, do: (c, place, n) => cancelled(c, n * 37 % 300, (options) => once(c, forever, {}, options)) },
  'cancel in a sandbox': { often: 3, do: (c, place, n) => sandbox(c, async (container_id) => {
    await cancelled(c, n * 37 % 300, (options) => c.call('run_js', { container_id, code: forever }, options));
    await c.call('sandbox_stop', { container_id });
  }) },
  dependencies: { often: 6, do: (c, place, n) => {
    const name = packages[n % packages.length];
    return prints(c, importing(name), `${name}\n`, { dependencies: [{ name, version: '1' }] });
  } },
  'a new layer': { often: 2, do: (c, place, n) => {
    const name = packages[n % packages.length];
    return prints(c, importing(name), `${name}\n`, { dependencies: [{ name, version: `1 || 0.0.${process.pid}-${n}` }] });
  } },
  'no such package': { often: 1, do: async (c, place, n) => assert.match(text(await once(c, '1', { dependencies: [{ name: `none-${n % 7}`, version: '1' }] })), /could not be installed/) },
  types: { often: 2, do: async (c) => assert.match(text(await c.call('get_dependency_types', { dependencies: packages.map((name) => ({ name })) })), /export default/) },
  search: { often: 1, do: async (c) => assert.ok((await c.call('search_npm_packages', { searchTerm: 'dune' })).structuredContent.packages.length > 0) },
  files: { often: 6, do: async (c, place, n) => {
    const dir = `d${n}`;
    const made = ended(await once(c, `import fs from 'node:fs'; fs.mkdirSync('files/${dir}/a/b', { recursive: true }); fs.writeFileSync('files/${dir}/a/b/x.txt', 'x')`), 'ok');
    assert.deepEqual(made.files.filter((f) => f.path.startsWith(`${dir}/`)).map((f) => f.path), [`${dir}/a/b/x.txt`]);
    assert.equal((await c.read(`file://${place.files}/${dir}/a/b/x.txt`)).text, 'x');
    ended(await once(c, `import fs from 'node:fs'; fs.rmSync('files/${dir}', { recursive: true })`), 'ok');
  } },
  subscription: { often: 3, do: async (c, place, n) => {
    const file = path.join(place.files, `s${n}.txt`), uri = `file://${file}`;
    fs.writeFileSync(file, 'one');
    const handle = c.era === 'modern' ? await c.client.listen({ resourceSubscriptions: [uri] }) : await c.client.subscribeResource({ uri });
    let i = 0;
    await until(() => { if (i++ % 40 === 0) fs.writeFileSync(file, `two ${i}`); return c.told.delete(uri); }, 'a change was not told');
    if (c.era === 'modern') await handle.close();
    else await c.client.unsubscribeResource({ uri });
    fs.rmSync(file);
  } },
  'a sandbox for some steps': { often: 10, do: (c, place, n) => sandbox(c, async (container_id) => {
    assert.equal(ended(await c.call('run_js', { container_id, code: `import fs from 'node:fs'; fs.writeFileSync('x', '${n}')` }), 'ok').stdout, '');
    assert.equal(text(await c.call('sandbox_exec', { container_id, commands: ['cat x', 'sleep 1000 & true'] })), `${n}\n`);
    assert.equal((await c.read(`sandbox://${container_id}/x`)).text, `${n}`);
    ended(await c.call('run_js', { container_id, code: importing('dune-one'), dependencies: [{ name: 'dune-one', version: '1' }] }), 'ok');
    await c.call('sandbox_stop', { container_id });
  }) },
  'a server on a port': { often: 6, do: (c, place, n) => sandbox(c, async (container_id) => {
    const r = await c.call('run_js', { container_id, code: web(20_000 + n % 1000), listenOnPort: 20_000 + n % 1000 });
    assert.ok(!r.isError, text(r));
    for (let i = 0; i < 5; i++) assert.equal(await (await fetch(r.structuredContent.server.url, { headers: { Connection: 'close' } })).text(), 'here');
    if (n % 2) await c.call('sandbox_stop', { container_id }); // else the server stops it: nobody uses it any more
  }) },
  'two in one sandbox': { often: 3, do: (c, place, n) => sandbox(c, async (container_id) => {
    const all = await Promise.all([1, 2, 3].map((i) => c.call('run_js', { container_id, code: `console.log(${n + i})` })));
    assert.deepEqual(all.map((r) => ended(r, 'ok').stdout), [1, 2, 3].map((i) => `${n + i}\n`));
    await c.call('sandbox_stop', { container_id });
  }) },
  connections: { often: 3, do: async (c, place) => assert.match(ended(await once(c, `try { await fetch('http://nowhere.invalid/') } catch (e) { console.log(e.cause.code) }
    try { await fetch('http://10.0.0.1/') } catch (e) { console.log('refused') } console.log((await fetch('${place.registry}/dune-one')).status)`), 'ok').stdout, /refused\n200\n$/) },
  'what is wrong': { often: 2, do: async (c) => {
    assert.ok((await c.call('sandbox_exec', { container_id: 'js-sbx-00000000-0000-4000-8000-000000000000', commands: ['true'] })).isError);
    await assert.rejects(c.read('output://none'));
    assert.ok(await c.call('run_js_ephemeral', { code: 1 }).then((r) => r.isError, () => true));
  } },
  lists: { often: 3, do: async (c) => {
    assert.ok((await c.client.listTools()).tools.length >= 7);
    await c.client.listResources();
    await c.client.complete({ ref: { type: 'ref/resource', uri: 'sandbox://{id}/{+path}' }, argument: { name: 'id', value: 'js-' } });
  } },
};

/** A work for each n: all of them in a hundred, the often ones more often; the order is always the same and looks like none. */
const drawn = Object.entries(works).flatMap(([name, { often }]) => Array.from({ length: often }, () => name));
export const drawWork = (n) => drawn[(Math.imul(n + 1, 2654435761) >>> 8) % drawn.length];

export const packagesOfWorks = packages;
