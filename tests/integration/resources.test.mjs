// What clients can read without running anything: files of the user, files of sandboxes, whole outputs; and how they learn of changes.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { limit, tempDir, until, writeFiles } from './jerboa.mjs';
import { modern } from './mcp.mjs';
import { connectTo, serveHttp, text, tokenOf, tokensFile } from './serving.mjs';

const eras = { legacy: { mode: 'legacy' }, modern: { mode: { pin: modern } } };
const uriOf = (dir, file) => `file://${dir}/${file}`;
const PART = 4 << 20;

/** One server for two names, each with a client. */
async function two(t, era, args = []) {
  const files = tempDir(t);
  const { url } = await serveHttp(t, ['--files', files, '--tokens', tokensFile(t, ['ada', 'bob']), ...args]);
  const [ada, bob] = await Promise.all(['ada', 'bob'].map((name) => connectTo(url, { ...eras[era], token: tokenOf(name) })));
  t.after(() => Promise.all([ada.client.close(), bob.client.close()]));
  for (const name of ['ada', 'bob']) fs.mkdirSync(path.join(files, name), { recursive: true });
  return { ada, bob, dir: path.join(files, 'ada'), files };
}

const gone = (c, uri) => assert.rejects(c.read(uri), /no such resource/, uri);
const list = async (c) => {
  const pages = [];
  for (let cursor; ;) {
    const { resources, nextCursor } = await c.client.listResources(cursor ? { cursor } : {});
    pages.push(resources);
    if (!(cursor = nextCursor)) return pages;
  }
};

/** Notes of one kind that this client gets, as they come. */
async function collect(c, era, uris) {
  const updated = [], listed = [];
  c.client.setNotificationHandler('notifications/resources/updated', (n) => { updated.push(n.params.uri); });
  c.client.setNotificationHandler('notifications/resources/list_changed', () => { listed.push(true); });
  if (era === 'modern') await c.client.listen({ resourcesListChanged: true, resourceSubscriptions: uris });
  else for (const uri of uris) await c.client.subscribeResource({ uri });
  return { updated, listed };
}

for (const era of Object.keys(eras))
  describe(`${era} era`, limit, () => {
    test('files of the user: contents, kinds, nobody else\'s, nothing from outside', async (t) => {
      const { ada, bob, dir, files } = await two(t, era);
      const secret = writeFiles(tempDir(t), { secret: 'the secret' });
      writeFiles(dir, { 'a b/ü.txt': 'text', 'x.json': '{"a":1}', 'data.bin': Buffer.from([0, 255, 1]), empty: '' });
      writeFiles(files, { 'bob/his.txt': 'his', outside: 'the secret' });
      fs.symlinkSync(path.join(secret, 'secret'), path.join(dir, 'link'));
      fs.symlinkSync('../outside', path.join(dir, 'up'));
      fs.symlinkSync(secret, path.join(dir, 'folder'));
      fs.symlinkSync('x.json', path.join(dir, 'within'));
      execFileSync('mkfifo', [path.join(dir, 'fifo')]);

      assert.deepEqual(await ada.read(uriOf(dir, 'a%20b/%C3%BC.txt')), { uri: uriOf(dir, 'a%20b/%C3%BC.txt'), mimeType: 'text/plain', text: 'text' });
      assert.deepEqual(await ada.read(uriOf(dir, 'x.json')), { uri: uriOf(dir, 'x.json'), mimeType: 'application/json', text: '{"a":1}' });
      assert.equal((await ada.read(uriOf(dir, 'data.bin'))).blob, 'AP8B');
      assert.equal((await ada.read(uriOf(dir, 'empty'))).text, '');
      assert.equal((await ada.read(uriOf(dir, 'within'))).text, '{"a":1}');
      for (const name of ['link', 'up', 'folder/secret', 'fifo', 'none', 'a%20b', '', '../outside', '%2e%2e/outside', '%2E%2E%2Foutside', 'a%20b/../../outside',
        'x.json%00', 'x.json%', 'x.json%zz', './x.json', '/x.json', 'x.json/', '../bob/his.txt'])
        await gone(ada, uriOf(dir, name));
      await gone(ada, uriOf(files, 'bob/his.txt'));
      await gone(ada, uriOf(files, 'outside'));
      await gone(ada, 'file:///etc/passwd');
      await gone(ada, 'file://etc/passwd');
      await gone(bob, uriOf(dir, 'x.json'));
      assert.equal((await bob.read(uriOf(files, 'bob/his.txt'))).text, 'his');

      const names = (await until(async () => { const all = (await list(ada)).flat(); return all.length >= 4 && all; }, 'files are not listed')).map((r) => r.name).sort();
      assert.ok(!names.includes('fifo'), names.join());
      for (const name of ['a b/ü.txt', 'data.bin', 'empty', 'x.json']) assert.ok(names.includes(name), names.join());
      assert.deepEqual((await list(bob)).flat().map((r) => [r.name, r.size]), [['his.txt', 3]]);
      const ref = { type: 'ref/resource', uri: 'file:///{+path}' };
      const value = `${dir.slice(1)}/x`;
      assert.deepEqual((await ada.client.complete({ ref, argument: { name: 'path', value } })).completion.values, [`${value}.json`]);
      assert.deepEqual((await bob.client.complete({ ref, argument: { name: 'path', value } })).completion.values, []);
    });

    test('pages: each file once, in order, also when files come between', async (t) => {
      const { ada, dir } = await two(t, era);
      const names = Array.from({ length: 250 }, (_, i) => `f${String(i).padStart(3, '0')}`);
      writeFiles(dir, Object.fromEntries(names.map((name) => [name, name])));
      const pages = await list(ada);
      assert.deepEqual(pages.map((p) => p.length), [100, 100, 50]);
      assert.deepEqual(pages.flat().map((r) => r.name), names);
      await assert.rejects(ada.client.listResources({ cursor: 'none of ours' }), /no such cursor/);
    });

    test('files of a sandbox: contents, completion, nothing from outside, nobody else', async (t) => {
      const { ada, bob } = await two(t, era);
      const id = text(await ada.call('sandbox_initialize', {}));
      const made = await ada.call('sandbox_exec', { container_id: id, commands: ['mkdir "a b"; echo hi > "a b/ü"; ln -s /etc/passwd link; ln -s / root; mkfifo fifo; head -c 20000000 /dev/zero > big'] });
      assert.ok(!made.isError, text(made));
      const at = (file) => `sandbox://${id}/${file}`;
      assert.equal((await ada.read(at('a%20b/%C3%BC'))).text, 'hi\n');
      for (const name of ['link', 'root/etc/passwd', 'fifo', 'none', 'a%20b', '../etc/passwd', '%2e%2e/etc/passwd', 'a%20b/%C3%BC%00', '/etc/passwd'])
        await gone(ada, at(name));
      await gone(bob, at('a%20b/%C3%BC'));
      await gone(ada, `sandbox://js-sbx-00000000-0000-4000-8000-000000000000/package.json`);
      await assert.rejects(ada.read(at('big')), /20000000 bytes.*16 MiB/);
      const ref = { type: 'ref/resource', uri: 'sandbox://{id}/{+path}' };
      const paths = async (c, value) => (await c.client.complete({ ref, argument: { name: 'path', value }, context: { arguments: { id } } })).completion.values;
      assert.deepEqual(await paths(ada, 'a b'), ['a b/ü']);
      assert.deepEqual(await paths(bob, ''), []);
      await ada.call('sandbox_stop', { container_id: id });
      await gone(ada, at('package.json'));
    });

    test('whole outputs: part by part they are every byte; reading one makes nobody wait; nobody else\'s', { timeout: 120_000 }, async (t) => {
      const { ada, bob } = await two(t, era);
      // Characters of three bytes, so that no part ends where one does; a byte that is none in the last part.
      const code = `const line = '€'.repeat(333) + '\\n'; for (let i = 0; i < 12_000; i++) process.stdout.write(line); process.stdout.write(Buffer.from([0xff]))`;
      const r = await ada.call('run_js_ephemeral', { code });
      assert.ok(!r.isError, JSON.stringify(r.content).slice(-1000));
      const { uri, stdoutBytes } = r.structuredContent.truncated, whole = 12_000 * 1000 + 1;
      assert.equal(stdoutBytes, whole);
      assert.ok(text(r).includes(`${uri}, 4 MiB a read, then ${uri}/${PART}`), text(r).slice(40_000, 60_000).match(/\[….*/)?.[0]);
      const pieces = [], kinds = [];
      let slowest = 0, on = true;
      const pings = (async () => {
        while (on) {
          const began = performance.now();
          await bob.client.listPrompts();
          slowest = Math.max(slowest, performance.now() - began);
        }
      })();
      for (let next = uri; next;) {
        const c = await ada.read(next);
        kinds.push(c.text === undefined ? 'blob' : 'text');
        pieces.push(c.text === undefined ? Buffer.from(c.blob, 'base64') : Buffer.from(c.text));
        next = c._meta?.next;
        assert.equal(c._meta?.bytes, next && whole);
      }
      on = false;
      await pings;
      t.diagnostic(`the slowest other answer: ${slowest.toFixed(0)} ms`);
      assert.deepEqual(kinds, ['text', 'text', 'blob']);
      const all = Buffer.concat(pieces);
      assert.equal(all.length, whole);
      assert.ok(all.equals(Buffer.concat([Buffer.from(`${'€'.repeat(333)}\n`.repeat(12_000)), Buffer.from([0xff])])));
      assert.equal(Buffer.from((await ada.read(`${uri}/${whole - 4}`)).blob, 'base64').toString('latin1'), '\x82\xac\n\xff'.slice(2));
      for (const from of [whole, -1, 'x', '1x', '99999999999999999999', '']) await gone(ada, `${uri}/${from}`);
      await gone(bob, uri);
      assert.ok((await list(ada)).flat().some((row) => row.uri === uri && row.size === whole));
      assert.ok(!(await list(bob)).flat().some((row) => row.uri === uri));
    });

    test('changes are told to who asked, and to nobody else', async (t) => {
      const { ada, bob, dir } = await two(t, era);
      writeFiles(dir, { watched: 'one', other: 'one' });
      await list(ada); // his folder is followed from its first use on
      const id = text(await ada.call('sandbox_initialize', {}));
      await ada.call('run_js', { container_id: id, listenOnPort: 20_000 + process.pid % 10_000,
        code: `import http from 'node:http'; http.createServer((q, s) => { console.log('asked'); s.end(); }).listen(${20_000 + process.pid % 10_000})` })
        .then((r) => { assert.ok(!r.isError, text(r)); t.url = r.structuredContent.server.url; });
      const log = `sandbox://${id}/output.log`, file = uriOf(dir, 'watched');
      const hers = await collect(ada, era, [file, log]), his = await collect(bob, era, [file, log]);

      fs.writeFileSync(path.join(dir, 'other'), 'two');
      fs.writeFileSync(path.join(dir, 'watched'), 'two');
      await until(() => hers.updated.includes(file), 'nothing was told of the file');
      await until(async () => { await (await fetch(t.url)).text(); return hers.updated.includes(log); }, 'nothing was told of the log');
      assert.equal((await ada.read(log)).text.split('\n')[0], 'asked');
      const before = hers.listed.length;
      await ada.call('run_js', { container_id: id, code: `import fs from 'node:fs'; for (let i = 0; i < 300; i++) fs.writeFileSync('files/many' + i, 'x')` });
      await until(() => hers.listed.length > before, 'nothing was told of new files');
      assert.equal((await ada.read(uriOf(dir, 'many299'))).text, 'x');
      fs.rmSync(path.join(dir, 'watched'));
      hers.updated.length = 0;
      await until(() => hers.updated.includes(file), 'nothing was told of its end');
      assert.ok(hers.listed.length - before < 60, `${hers.listed.length} notes for 300 files`);
      assert.deepEqual([...new Set(hers.updated)].filter((uri) => uri !== file && uri !== log), []);
      assert.deepEqual(his, { updated: [], listed: [] });
    });
  });
