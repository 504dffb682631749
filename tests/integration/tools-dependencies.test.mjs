// Dependencies of runs: packages of the registry, a picture made by one, others in the next run, names and ranges that are none.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { engine, tempDir } from './jerboa.mjs';
import { connect, connectFor, descendants, kinds, limit, printed, refused, telemetry, text, variants } from './tools.mjs';

const lodash = [{ name: 'lodash', version: '^4.17.21' }];
const files = tempDir();
let s;
before(async () => { s = await connect(variants['stdio, modern'], ['--files', files]); });
after(() => s.close());

describe('packages', limit, () => {
  test('lodash', async (t) => {
    const code = 'import _ from "lodash"; console.log(JSON.stringify(_.chunk([1, 2, 3], 2)))';
    const seen = [];
    const r = printed(await s.once(code, { dependencies: lodash }, { onprogress: (p) => seen.push(p.message) }), '[[1,2],[3]]\n');
    assert.equal(seen.find((line) => !engine || !/ gets the image /.test(line)), 'installing dependencies'); // a daemon may be asked first
    assert.notEqual(telemetry(r).installOutput, 'Skipped npm install (no dependencies)');
    assert.equal(telemetry(r).installTimeMs, r.structuredContent.timings.installMs);
    const again = printed(await s.once(code, { dependencies: lodash }), '[[1,2],[3]]\n');
    assert.ok(telemetry(again).installTimeMs < 1000, text(again));
    const h = await connectFor(t, variants['HTTP, legacy']);
    printed(await h.once(code, { dependencies: lodash }), '[[1,2],[3]]\n');
  });

  test('a QR code as a picture', async () => {
    const r = printed(await s.once(`import QRCode from 'qrcode'; await QRCode.toFile('./files/code.png', 'https://example.org'); console.log('made')`,
      { dependencies: [{ name: 'qrcode', version: '^1.5.4' }] }), 'made\n');
    assert.deepEqual(kinds(r), ['text', 'text', 'image', 'resource_link', 'text']);
    const bytes = fs.readFileSync(path.join(files, 'code.png'));
    assert.equal(bytes.toString('latin1', 1, 4), 'PNG');
    assert.deepEqual(r.content[2], { type: 'image', mimeType: 'image/png', data: bytes.toString('base64') });
    assert.deepEqual(r.structuredContent.files.map((f) => [f.path, f.change, f.size, f.mimeType]), [['code.png', 'created', bytes.length, 'image/png']]);
  });

  test('persist in a sandbox, can be written to, and are replaced', async () => {
    const container_id = await s.sandbox();
    await s.run(container_id, 'import "lodash"', { dependencies: lodash });
    printed(await s.run(container_id, 'import _ from "lodash"; console.log(_.last([1, 2]))'), '2\n'); // without saying it again
    assert.deepEqual(JSON.parse(text(await s.exec(container_id, 'cat package.json'))), { type: 'module', dependencies: { lodash: '^4.17.21' } });
    const shell = await s.exec(container_id, 'echo "module.exports = 42" > node_modules/lodash/lodash.js', 'mkdir node_modules/own && echo "export default 7" > node_modules/own/index.js && echo \'{"type":"module"}\' > node_modules/own/package.json');
    assert.ok(!shell.isError, JSON.stringify(shell));
    printed(await s.run(container_id, 'import _ from "lodash"; import own from "own"; console.log(_, own)'), '42 7\n');
    const r = printed(await s.run(container_id, `import ms from 'ms'; console.log(ms('1s')); try { await import('lodash'); } catch (e) { console.log(e.code); }`,
      { dependencies: [{ name: 'ms', version: '2' }] }), '1000\nERR_MODULE_NOT_FOUND\n');
    assert.deepEqual(r.structuredContent.files, []);
    printed(await s.once('import _ from "lodash"; console.log(typeof _)', { dependencies: lodash }), 'function\n'); // what is shared is as it was
  });

  test('an alias, a tag, a scope', async () => {
    printed(await s.once('import a from "short"; console.log(a("1s"))', { dependencies: [{ name: 'short', version: 'npm:ms@^2' }] }), '1000\n');
    printed(await s.once('import ms from "ms"; import is from "@sindresorhus/is"; console.log(ms("1s"), is.string("x"))',
      { dependencies: [{ name: 'ms', version: 'latest' }, { name: '@sindresorhus/is', version: '^7' }] }), '1000 true\n');
  });
});

describe('what is none', limit, () => {
  const marker = path.join(tempDir(), 'marker');
  const names = ['', ' ', '../up', '/abs', '.hidden', '_under', 'node_modules', 'a b', 'a;touch b', `$(touch ${marker})`, '--flag', '-g', 'a\nb', 'a\u0000b', '@/x', '@scope', '@a/../b', 'ü', 'x'.repeat(215), 'name@1', '%s%n', 'file:x'];
  const versions = ['', 'file:../x', 'file:///etc', 'link:x', 'workspace:*', 'git+ssh://git@localhost/x', 'git://localhost/x', 'github:a/b', 'a/b', 'http://127.0.0.1/x.tgz',
    'https://127.0.0.1/x.tgz', './x.tgz', '/x', '~/x', 'npm:', 'npm:../x@1', 'npm:ms@file:x', `1; touch ${marker}`, `$(touch ${marker})`, '`id`', '--flag', '1\n2', '1\u0000', 'x'.repeat(300), '%s', 'catalog:', 'patch:ms@1'];

  test('names and versions are refused before anything is started', async (t) => {
    const s = await connectFor(t, variants['stdio, modern'], ['--pool', '0', '--hold', '0']); // what runs is counted
    const container_id = await s.sandbox();
    const before = descendants(s.pid).map((p) => p.pid);
    const dependencies = [...names.map((name) => [{ name, version: '1' }]), ...versions.map((version) => [{ name: 'ms', version }]), [{ name: 'ms', version: '1' }, { name: 'ms', version: '2' }],
      [{ name: 'ms' }], [{ version: '1' }], ['ms'], [null], [{ name: 'ms', version: '1', extra: 1 }], [{ name: 1, version: 2 }]];
    for (const deps of dependencies)
      for (const [tool, args] of [['run_js', { container_id }], ['run_js_ephemeral', {}]]) {
        const r = await s.call(tool, { ...args, code: 'console.log("ran")', dependencies: deps }).catch((e) => ({ isError: true, content: [{ type: 'text', text: `${e.message}.` }] }));
        assert.ok(r.isError, JSON.stringify([deps, r]));
        refused(r, /^The dependencies are not valid: |^arguments\.dependencies|^JSON that is refused/);
      }
    assert.deepEqual(descendants(s.pid).map((p) => p.pid), before);
    assert.ok(!fs.existsSync(marker));
  });

  test('a package that does not exist, a range that nothing fits', async () => {
    const container_id = await s.sandbox();
    for (const [dep, reason] of [[{ name: 'jerboa-has-no-such-package-x', version: '1' }, /jerboa-has-no-such-package-x/], [{ name: 'ms', version: '^999' }, /ms/]]) {
      const r = await s.run(container_id, 'import fs from "node:fs"; fs.writeFileSync("ran", "")', { dependencies: [dep] });
      refused(r, /^The dependencies could not be installed: [^\n]+: the code was not run/);
      assert.match(text(r), reason);
    }
    assert.equal(text(await s.exec(container_id, 'ls ran 2>/dev/null || echo none')), 'none\n');
    printed(await s.run(container_id, 'console.log(1)'), '1\n');
  });
});
