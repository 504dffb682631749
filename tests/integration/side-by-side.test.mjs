// Two servers with one store: they install the same and other packages at once, while `jerboa gc` removes what it can, and one of them is killed again and again.
// Nobody ever sees half a layer, and none is lost to who uses it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { assertGone, descendants, nothingAhead, printed, start, sweep, until } from './jerboa.mjs';
import { ownStore, program, programs, serveStdio, text } from './serving.mjs';
import { registryWith } from './verdaccio.mjs';

nothingAhead();

const FILES = 200, ROUNDS = 4;
const packages = ['wide-one', 'wide-two'];

/** Packages of many files: half of one would be noticed. */
const files = { 'index.js': `let sum = 0; for (let i = 0; i < ${FILES}; i++) sum += require('./f' + i); module.exports = sum` };
for (let i = 0; i < FILES; i++) files[`f${i}.js`] = `module.exports = ${i} // ${'x'.repeat(2000)}`;

const whole = `${FILES * (FILES - 1) / 2}\n`;
/** A store whose installer is in use, so that gc leaves it: this registry has none. */
async function storeOf(t) {
  const home = ownStore(t);
  for (const name of fs.readdirSync(path.join(home, 'tools'))) {
    const holder = start(['-s', path.join(home, 'tools', name), 'sh', '-c', 'echo held; cat'], { program: 'flock', seconds: 290 });
    t.after(() => holder.stdin.end());
    await printed(holder, 'held');
  }
  return home;
}

/** A range that nobody asked for before: its layer is made anew. */
const run = (name, n) => ({ code: `import sum from '${name}'; console.log(sum)`, dependencies: [{ name, version: `1 || 0.0.${n}` }] });

test('two servers, one store', { timeout: 300_000 }, async (t) => {
  const home = await storeOf(t), env = { JERBOA_HOME: home, npm_config_registry: `${await registryWith(t, Object.fromEntries(packages.map((name) => [name, { files }])))}/` };
  const open = async () => { const s = serveStdio(t, [], { env, seconds: 280 }); await s.open(); return s; };
  const gc = async () => {
    const r = await start(['gc', '--max-size', '0'], { program, env }).ended;
    assert.equal(r.status, 0, r.stderr);
    return r.stdout.match(/^removed layers/gm)?.length ?? 0;
  };
  const ends = async (s, asked) => {
    const r = await s.call('run_js_ephemeral', asked);
    assert.equal(r.structuredContent?.stdout, whole, text(r));
  };

  const steady = await open();
  let victim = await open(), removed = 0, over = false;
  // One that is in use all the time: whatever gc does, it stays.
  const id = text(await steady.call('sandbox_initialize', {}));
  const uses = async () => { const r = await steady.call('run_js', { container_id: id, ...run(packages[0], 99) }); assert.equal(r.structuredContent?.stdout, whole, text(r)); };
  await uses();
  const collecting = (async () => { while (!over) removed += await gc(); })();
  let cut = 0;
  for (let n = 0; n < ROUNDS; n++) {
    const shared = run(packages[n % 2], `1${n}`), other = run(packages[(n + 1) % 2], `2${n}`), third = run(packages[n % 2], `3${n}`);
    const lost = [shared, third].map((asked) => victim.call('run_js_ephemeral', asked));
    const all = [shared, other].map((asked) => ends(steady, asked));
    if (n % 2) { // an install of its own is on its way, at another place each time: it has begun, it is in its sandbox
      const isBelow = n === 1 ? () => true : (layer) => descendants(layer.pid).some((p) => p.name === 'jerboa-jail');
      await until(() => descendants(victim.child.pid).some((p) => p.name === 'jerboa-layer' && isBelow(p)), 'nothing is installed');
      victim.child.kill('SIGKILL');
      await victim.child.ended;
      cut++;
      victim = await open();
      await ends(victim, third); // what was begun is taken over, or made anew
    } else for (const r of await Promise.all(lost)) assert.equal(r.structuredContent?.stdout, whole, text(r));
    await Promise.all(all);
    await uses();
  }
  over = true;
  await collecting;
  await uses();
  t.diagnostic(`${cut} times killed, ${removed} layers removed by gc`);
  assert.ok(removed > 0, 'gc had nothing to do');

  for (const s of [steady, victim]) {
    s.child.stdin.end();
    assert.equal((await s.child.ended).status, 0, s.child.text('stderr'));
  }
  await sweep();
  await assertGone(programs);
  // What is there now is whole, each of it; what was half-written is gone, or nobody takes it for a layer.
  const again = await open();
  for (let n = 0; n < ROUNDS; n++) await ends(again, run(packages[n % 2], `1${n}`));
  again.child.stdin.end();
  await again.child.ended;
  await gc();
  assert.deepEqual(fs.readdirSync(path.join(home, 'layers')), []);
});
