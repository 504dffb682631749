// jerboa gc beside sandboxes that live: what they use stays.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { jerboa, limit, printed, start, tempDir, writeFiles } from './jerboa.mjs';

const runtime = execFileSync(jerboa, ['pull'], { encoding: 'utf8' }).trim();

/** A store with this machine's runtime, a newer one that is the default, and a layer. */
function makeStore(t) {
  const home = tempDir(t), name = path.basename(runtime);
  const [, version, arch] = /^node-(.*)-(\w+)$/.exec(name), newer = `node-${version.split('.')[0]}.999.0-${arch}`;
  fs.mkdirSync(path.join(home, 'runtimes'));
  execFileSync('sh', ['-c', 'cp -al "$0" "$1" 2>/dev/null || cp -a "$0" "$1"', runtime, path.join(home, 'runtimes', name)]);
  writeFiles(home, { [`runtimes/${newer}/bin/node`]: 'x', 'layers/aa/node_modules/x': 'x' });
  return { home, name, newer, version, gc: (...args) => start(['gc', ...args], { env: { JERBOA_HOME: home } }).ended };
}

test('a runtime stays while a script runs with it', limit, async (t) => {
  const { home, name, newer, version, gc } = makeStore(t);
  const child = start(['run', '--image', `node:${version}`, '-e', 'console.log("up"); process.stdin.resume(); process.stdin.on("end", () => console.log("down"))'], { env: { JERBOA_HOME: home } });
  await printed(child, 'up');
  const during = await gc('--max-size', '0');
  assert.equal(during.status, 0);
  assert.match(during.stdout, /^removed layers\/aa, 0\.0 MB\nfreed 0\.0 MB; the store takes \d+\.\d MB\n$/);
  assert.match(during.stderr, /^jerboa: the store takes more than --max-size: 1 of its entries are in use, and the default runtime stays\n$/);
  assert.deepEqual(fs.readdirSync(path.join(home, 'runtimes')).sort(), [name, newer].sort());
  child.stdin.end();
  const ended = await child.ended;
  assert.deepEqual([ended.status, ended.stdout], [0, 'up\ndown\n']);
  const after = await gc('--max-size', '1k');
  assert.match(after.stdout, new RegExp(`^removed runtimes/${name}, \\d+\\.\\d MB\\nfreed \\d\\d+\\.\\d MB; the store takes 0\\.0 MB\\n$`));
  assert.deepEqual(fs.readdirSync(path.join(home, 'runtimes')), [newer]);
});

test('what was used lately stays, and bad usage is told', limit, async (t) => {
  const { home, name, gc } = makeStore(t), long = new Date(Date.now() - 31 * 86400e3);
  fs.utimesSync(path.join(home, 'runtimes', name), long, long);
  assert.match((await gc()).stdout, new RegExp(`^removed runtimes/${name}, .*\\nfreed `));
  assert.deepEqual(fs.readdirSync(path.join(home, 'layers')), ['aa']);
  for (const [args, sentence] of [[['x'], /gc takes no 'x'/], [['--max-size', 'much'], /max-size/]]) {
    const r = await gc(...args);
    assert.deepEqual([r.status, r.stdout], [2, '']);
    assert.match(r.stderr, sentence);
  }
});
