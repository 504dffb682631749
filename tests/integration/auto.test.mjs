// The default engine where there is neither docker nor podman: all is as with --engine native. With them: tests/engines/images.test.mjs.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { answer, assertRefused, jerboa, limit, nothingAhead, run, start, tempDir } from './jerboa.mjs';
import { connectFor, printed, refused, variants } from './tools.mjs';

nothingAhead();

/** A PATH with what the tests themselves need, and no engine. */
function without(t, engine) {
  const dir = tempDir(t);
  for (const name of ['sh', 'unshare']) {
    const found = process.env.PATH.split(':').map((d) => path.join(d, name)).find((file) => fs.existsSync(file));
    if (found) fs.symlinkSync(found, path.join(dir, name));
  }
  return { JERBOA_ENGINE: engine, PATH: dir };
}

describe('auto without container engines', limit, () => {
  test('it is the default, and says nothing', async (t) => {
    const help = await start(['help', 'run'], { input: '' }).ended;
    assert.match(help.stdout, /--engine ENGINE\s[^-]*\(auto\)/);
    assert.equal(answer(await run(['-e', 'console.log(1)'], { env: without(t, 'auto') })), 1);
    const s = await connectFor(t, variants['stdio, modern'], [], without(t, 'auto'));
    printed(await s.once('console.log(2)'), '2\n');
    assert.doesNotMatch(s.log(), / engine /);
  });

  test('other images are refused as ever, and nothing is looked for', async (t) => {
    const [plain, chosen] = await Promise.all(['native', 'auto'].map((engine) => run(['--image', 'python:3', '-e', '1'], { env: without(t, engine) })));
    assertRefused(plain, /^jerboa: image "python:3" is not known: use node:lts-slim.* without -slim$/m);
    assertRefused(chosen, /^jerboa: image "python:3" is not known: use node:lts-slim.*: any other image needs docker or podman, and neither is on PATH/);
    const s = await connectFor(t, variants['stdio, modern'], [], without(t, 'auto'));
    refused(await s.once('1', { image: 'python:3' }), /^Image 'python:3' is not a version of Node\.js/);
  });

  test('where native cannot work, it says why as ever', async (t) => {
    const forbid = ['-Ur', 'sh', '-ec', 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"', 'sh', jerboa, 'run', '-e', '1'];
    const [plain, chosen] = await Promise.all(['native', 'auto'].map((engine) => start(forbid, { program: 'unshare', input: '', env: without(t, engine) }).ended));
    assertRefused(chosen, /^jerboa: step 'clone': .*max_user_namespaces/);
    assert.deepEqual(chosen, plain);
  });

  test('a choice that is none', async () => {
    assertRefused(await run(['-e', '1'], { env: { JERBOA_ENGINE: 'lxc' } }), /--engine 'lxc' is unknown: there are native, docker/);
    const r = await start(['serve', '--pull', 'all'], { input: '' }).ended;
    assert.match(r.stderr, /^jerboa: --pull is node or any, not 'all'\n$/);
    assert.equal(r.status, 2);
  });
});
