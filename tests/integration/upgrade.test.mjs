// An upgrade while a server runs: its programs on disk are of another version now. What it has goes on; nothing is made of two versions.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { copyPrograms, descendants, limit, start, tempDir, until } from './jerboa.mjs';
import { answers, ownStore, serveStdio, text } from './serving.mjs';
import { registryWith } from './verdaccio.mjs';

const names = ['jerboa', 'jerboa-jail', 'jerboa-init', 'jerboa-fetch', 'jerboa-layer', 'jerboa-remote'];
const mixed = /is version \S+, but the jerboa that started it is \S+: it was upgraded meanwhile, restart it/;

/** What `jerboa --version` says there. */
const versionOf = async (program) => /^jerboa (\S+)\n$/.exec((await start(['--version'], { program }).ended).stdout)[1];

/** Another version of these programs, each renamed into place as `make install` does. */
function upgrade(dir, from, to) {
  assert.equal(from.length, to.length);
  for (const name of names) {
    const file = path.join(dir, name), bytes = fs.readFileSync(file);
    let found = 0;
    for (const [old, other] of [[`\0${from}\0`, `\0${to}\0`], [`=${from}\0`, `=${to}\0`]])
      for (let at; (at = bytes.indexOf(old)) >= 0; found++) bytes.write(other, at, 'latin1');
    assert.ok(found > 0 || name === 'jerboa-init', `${name} does not know its version`); // init is asked by the version of its pipe
    fs.writeFileSync(`${file}.new`, bytes, { mode: 0o755 });
    fs.renameSync(`${file}.new`, file);
  }
}

const registry = (t, names) => registryWith(t, Object.fromEntries(names.map((name) => [name, { files: { 'index.js': `module.exports = '${name}'` } }])));
const importing = (name) => ({ code: `import x from '${name}'; console.log(x)`, dependencies: [{ name, version: '1' }] });

test('a server whose files were replaced', limit, async (t) => {
  const dir = tempDir(t), program = copyPrograms(dir), own = await versionOf(program), other = own.replace(/.$/, (c) => (c === '9' ? '8' : '9'));
  const env = { JERBOA_HOME: ownStore(t), npm_config_registry: `${await registry(t, ['first', 'second'])}/` };
  const s = serveStdio(t, ['--pool', '2', '--hold', '5m'], { program, env, seconds: 170 });
  await s.open();
  const id = text(await s.call('sandbox_initialize', {}));
  const web = await s.call('run_js', { container_id: id, code: 'import http from "node:http"; http.createServer((q, s) => s.end("here")).listen(26000)', listenOnPort: 26_000 });
  assert.ok(!web.isError, text(web));
  const runs = async (tool, args, stdout) => assert.equal((await s.call(tool, args)).structuredContent?.stdout, stdout);
  const refuses = async (tool, args) => {
    const r = await s.call(tool, args);
    assert.ok(r.isError, JSON.stringify(r));
    assert.match(text(r), mixed);
    assert.match(text(r), /^[^\n]+$/);
  };
  await runs('run_js_ephemeral', importing('first'), 'first\n');

  upgrade(dir, own, other);
  assert.equal(await versionOf(program), other);

  // What it has goes on: a sandbox with all that is done in it, a layer that is there.
  await runs('run_js', { container_id: id, code: 'console.log(1)' }, '1\n');
  await runs('run_js', { container_id: id, ...importing('first') }, 'first\n');
  assert.equal(text(await s.call('sandbox_exec', { container_id: id, commands: ['echo here'] })), 'here\n');
  assert.equal(await answers(+new URL(web.structuredContent.server.url).port), true);

  // What it would have to start is of another version: one sentence, also where a sandbox was made ahead.
  for (let i = 0; i < 3; i++) await refuses('run_js_ephemeral', { code: '1' });
  await refuses('sandbox_initialize', {});
  await refuses('run_js', { container_id: id, ...importing('second') });
  assert.match(JSON.stringify(await s.call('get_dependency_types', { dependencies: [{ name: 'first' }] })), mixed);
  await runs('run_js', { container_id: id, code: 'console.log(2)' }, '2\n');

  // The new version beside it, with the same store.
  const beside = await start(['run', '--dep', 'second@1', '-e', 'import x from "second"; console.log(x)'], { program, env, input: '' }).ended;
  assert.deepEqual([beside.status, beside.stdout], [0, 'second\n'], beside.stderr);

  upgrade(dir, other, own); // and back: nobody has to restart it
  await runs('run_js_ephemeral', importing('second'), 'second\n');

  const pids = [s.child.pid, ...descendants(s.child.pid).map((p) => p.pid)];
  s.child.kill('SIGTERM');
  assert.equal((await s.child.ended).status, 0, s.child.text('stderr'));
  await until(() => pids.every((pid) => !fs.existsSync(`/proc/${pid}`)), 'something outlived its server');
});
