// Files of runs: FILES_DIR set and unset, every kind of name and content, what older clients get.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { tempDir } from './jerboa.mjs';
import { connectFor, kinds, limit, printed, refused, text, texts, variants } from './tools.mjs';

const names = ['a b/c d.txt', 'deep/er/ést.txt', 'line\nbreak.txt', 'semi;$(touch x)`y`\'".txt', '日本/語 %41?#.txt', '-rf', '..two', ' '];
const write = `import fs from 'node:fs'; import path from 'node:path';
  const write = (name, content) => { fs.mkdirSync(path.dirname('files/' + name), { recursive: true }); fs.writeFileSync('files/' + name, content); };\n`;

/** Bytewise, as they are listed. */
const sorted = (list) => list.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));

for (const isSet of [true, false])
  describe(isSet ? 'FILES_DIR is set' : 'FILES_DIR is unset', limit, () => {
    const start = async (t, variant = variants['stdio, modern']) => {
      const dir = tempDir(t);
      const s = await connectFor(t, variant, [], isSet ? { FILES_DIR: dir } : {});
      const made = await s.call('sandbox_initialize');
      const container_id = text(made);
      if (!variant.version) assert.equal(made.structuredContent.filesPersist, isSet);
      const uri = (name) => (isSet ? pathToFileURL(dir).href : `sandbox://${container_id}/files`) +
        `/${name.split('/').map((part) => encodeURIComponent(part).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)).join('/')}`;
      return { s, dir, container_id, uri };
    };

    test('says so once', async (t) => {
      const { s } = await start(t);
      const said = s.log().match(/FILES_DIR is not set/g) ?? [];
      assert.equal(said.length, isSet ? 0 : 1, s.log());
    });

    test('names of every kind', async (t) => {
      const { s, dir, container_id, uri } = await start(t);
      const r = printed(await s.run(container_id, `${write}for (const name of ${JSON.stringify(names)}) write(name, 'of ' + name)`), '');
      const listed = r.structuredContent.files;
      assert.deepEqual(sorted(listed.map((f) => f.path)), sorted(names));
      assert.deepEqual(new Set(texts(r)[1].split(/\n(?=- )/).slice(1)), new Set(names.map((name) => `- ${name} was created`)));
      for (const name of names) {
        const row = listed.find((f) => f.path === name);
        const size = Buffer.byteLength(`of ${name}`);
        assert.deepEqual([row.change, row.size, row.uri], ['created', size, uri(name)]);
        assert.equal((await s.read(row.uri)).text, `of ${name}`, row.uri);
        if (isSet) assert.equal(fs.readFileSync(path.join(dir, name), 'utf8'), `of ${name}`);
      }
      const embedded = r.content.filter((c) => c.type === 'resource').map((c) => c.resource);
      assert.deepEqual(sorted(embedded.map((e) => e.text)), sorted(names.map((name) => `of ${name}`)));
    });

    test('a name that is not UTF-8', async (t) => {
      const { s, container_id } = await start(t);
      const r = await s.run(container_id, `import fs from 'node:fs'; fs.writeFileSync(Buffer.from('files/\\xff.txt', 'latin1'), 'odd')`);
      assert.ok(!r.isError, JSON.stringify(r));
      assert.equal(texts(r)[1], 'List of changed files:\n- \uFFFD.txt was created');
      const [row] = r.structuredContent.files;
      assert.ok(row.uri.endsWith('/%FF.txt'), row.uri);
      assert.equal(r.content.find((c) => c.type === 'resource').resource.text, 'odd');
    });

    test('updated and deleted ones; a run that touches nothing', async (t) => {
      const { s, container_id } = await start(t);
      await s.run(container_id, `${write}write('keep', '1'); write('change', '1'); write('sub/remove', '1')`);
      const r = await s.run(container_id, `import fs from 'node:fs'; fs.writeFileSync('files/change', '22'); fs.rmSync('files/sub', { recursive: true }); fs.writeFileSync('files/passing', ''); fs.rmSync('files/passing')`);
      assert.equal(texts(r)[1], 'List of changed files:\n- change was updated\n- sub/remove was deleted');
      assert.deepEqual(r.structuredContent.files.map((f) => [f.path, f.change, f.size]), [['change', 'updated', 2], ['sub/remove', 'deleted', null]]);
      assert.deepEqual(kinds(await s.run(container_id, 'import fs from "node:fs"; fs.readFileSync("files/keep")')), ['text', 'text']);
    });

    test('what is shown, and what is linked', async (t) => {
      const { s, container_id, uri } = await start(t);
      const r = await s.run(container_id, `${write}
        write('1-small.txt', 'x'.repeat(16 << 10)); write('2-large.txt', 'x'.repeat((16 << 10) + 1));
        write('3-table.csv', 'a,b\\n'); write('4.bin', Buffer.from([0, 1, 2, 255]));
        const png = Buffer.concat([Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex'), Buffer.alloc(64)]);
        write('5.png', png); write('6-large.png', Buffer.concat([png, Buffer.alloc(5 << 20)]));
        write('7-false.png', 'no picture'); write('8-empty.txt', '');`);
      const about = (name) => r.content.filter((c) => (c.uri ?? c.resource?.uri) === uri(name));
      assert.equal(about('1-small.txt')[0].resource.text.length, 16 << 10);
      assert.deepEqual(about('2-large.txt'), [{ type: 'resource_link', uri: uri('2-large.txt'), name: '2-large.txt', mimeType: 'text/plain', size: (16 << 10) + 1 }]);
      assert.deepEqual(about('3-table.csv')[0].resource, { uri: uri('3-table.csv'), mimeType: 'text/csv', text: 'a,b\n' });
      assert.deepEqual(about('4.bin'), [{ type: 'resource_link', uri: uri('4.bin'), name: '4.bin', mimeType: 'application/octet-stream', size: 4 }]);
      assert.equal(about('8-empty.txt')[0].resource.text, '');
      const at = r.content.findIndex((c) => c.type === 'image');
      assert.deepEqual([r.content[at].mimeType, r.content[at + 1].uri], ['image/png', uri('5.png')]);
      assert.equal(r.content.filter((c) => c.type === 'image').length, 1);
      assert.equal(about('6-large.png')[0].type, 'resource_link');
      assert.equal(about('7-false.png').length, 1);
      for (const f of r.structuredContent.files) {
        const { text: read, blob } = await s.read(f.uri);
        assert.equal(read === undefined ? Buffer.from(blob, 'base64').length : Buffer.byteLength(read), f.size, f.path);
      }
    });

    test('links lead nowhere', async (t) => {
      const { s, container_id, uri } = await start(t);
      const r = await s.run(container_id, `import fs from 'node:fs'; fs.symlinkSync('/etc/passwd', 'files/out'); fs.symlinkSync('../../../../../../etc/passwd', 'files/up');`);
      assert.deepEqual(r.structuredContent.files.map((f) => f.path), ['out', 'up']);
      assert.doesNotMatch(JSON.stringify(r), /root:/);
      const host = fs.readFileSync('/etc/passwd', 'utf8');
      for (const address of [uri('out'), uri('up'), 'file:///etc/passwd', `${uri('')}../../../../etc/passwd`, `${uri('')}..%2F..%2F..%2Fetc/passwd`,
        `sandbox://${container_id}/../../etc/passwd`, `sandbox://${container_id}/%2Fetc%2Fpasswd`, `sandbox://${container_id}/files/%00`])
        await s.read(address).then((c) => assert.notEqual(c.text, host, address), (e) => assert.equal(e.code, -32602, `${address}: ${e}`));
      assert.deepEqual((await s.run(container_id, '')).structuredContent.files, []);
    });

    for (const version of ['2025-03-26', '2024-11-05'])
      test(`a client of ${version} gets no links`, async (t) => {
        const { s, container_id, uri } = await start(t, { version });
        const r = await s.run(container_id, `${write}write('a.txt', 'text'); write('b.bin', Buffer.from([0, 1])); console.log('done')`);
        assert.deepEqual(r.content.slice(0, -1), [
          { type: 'text', text: 'Node.js process output:\ndone\n' },
          { type: 'text', text: 'List of changed files:\n- a.txt was created\n- b.bin was created' },
          { type: 'resource', resource: { uri: uri('a.txt'), mimeType: 'text/plain', text: 'text' } },
          { type: 'resource', resource: { uri: uri('b.bin'), mimeType: 'text/plain', text: 'b.bin' } },
        ]);
        assert.ok(s.tools.every((tool) => !tool.outputSchema));
      });
  });

test('a FILES_DIR that is removed, and made anew', limit, async (t) => {
  const dir = path.join(tempDir(t), 'out'), code = `${write}write('x.txt', 'new')`;
  fs.mkdirSync(dir);
  const s = await connectFor(t, variants['stdio, modern'], ['--files-quota', '1m'], { FILES_DIR: dir });
  printed(await s.once(code), '');
  fs.rmSync(dir, { recursive: true });
  refused(await s.once(code), /^The files directory cannot be used: .*No such file or directory/);
  fs.mkdirSync(dir);
  const r = printed(await s.once(code), '');
  assert.deepEqual(r.structuredContent.files.map((f) => [f.path, f.change]), [['x.txt', 'created']]);
  assert.equal((await s.read(r.structuredContent.files[0].uri)).text, 'new');
  const full = await s.once(`${write}write('large', Buffer.alloc(8 << 20)); setInterval(() => {}, 1000)`);
  assert.deepEqual([full.isError, full.structuredContent.verdict], [true, 'disk']); // what is new has a quota, too
});

test('without FILES_DIR files go with their sandbox', limit, async (t) => {
  const s = await connectFor(t, variants['HTTP, modern']);
  const [one, two] = [await s.sandbox(), await s.sandbox()];
  const r = await s.run(one, `${write}write('mine', 'of one')`);
  const [{ uri }] = r.structuredContent.files;
  assert.equal(text(await s.exec(two, 'ls files')), '');
  assert.equal((await s.read(uri)).text, 'of one');
  await s.call('sandbox_stop', { container_id: one });
  await assert.rejects(s.read(uri), { code: -32602 });
});
