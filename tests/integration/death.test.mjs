// Whoever dies, and whenever: nothing stays behind.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { Random } from '../chaos/random.mjs';
import { assertGone, copyPrograms, deadCgroups, printed, processes, run, start, sweep, tempDir, until } from './jerboa.mjs';

const limit = { timeout: 180_000 };
const busy = `import { spawn } from "node:child_process";
  spawn("sh", ["-c", "setsid sleep 1000 & sleep 1000"], { detached: true, stdio: "inherit" }).unref();
  console.log("ready"); setInterval(() => {}, 1e6)`;

/** Programs of its own, and places that must stay empty. */
function prepare(t) {
  const programs = tempDir(t), temp = tempDir(t), cwd = tempDir(t);
  const program = copyPrograms(programs);
  return {
    programs, program,
    start: (args = ['-e', busy]) => start(['run', ...args], { program, env: { TMPDIR: temp }, cwd }),
    assertGone: () => assertGone(programs, temp, cwd),
    find: (name) => processes(programs).find((p) => p.name === name),
  };
}

const signal = (p, name) => process.kill(p.pid, name);

/** The script runs, with its children: {jail, init, node} among them. */
async function ready(world, child) {
  await printed(child, 'ready');
  await until(() => processes(world.programs).filter((p) => p.name === 'sleep').length === 2, 'the grandchildren never came');
  return { jail: world.find('jerboa-jail'), init: world.find('jerboa-init'), node: world.find('node') ?? world.find('MainThread') };
}

test('SIGKILL of jerboa at 50 moments', { timeout: 300_000 }, async (t) => {
  const world = prepare(t);
  const seed = +(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
  const random = new Random(seed);
  const took = [];
  t.diagnostic(`SEED=${seed}`);
  for (let i = 0; i < 50; i++) {
    const child = world.start(), ms = random.next() * 150;
    const end = performance.now() + ms;
    await until(() => performance.now() >= end, '');
    child.kill('SIGKILL');
    await child.ended;
    const killed = performance.now();
    await world.assertGone().catch((e) => assert.fail(`SEED=${seed}, round ${i}, killed after ${ms.toFixed(1)} ms: ${e.message}`));
    took.push(performance.now() - killed);
  }
  took.sort((a, b) => a - b);
  assert.ok(took[25] < 1000, `half of them left something for more than a second: ${took.map(Math.round)}`);
});

test('SIGKILL of a jerboa whose script runs: the whole tree goes', limit, async (t) => {
  const world = prepare(t), child = world.start();
  await ready(world, child);
  child.kill('SIGKILL');
  await child.ended;
  await world.assertGone();
});

/** jerboa tells that the sandbox is lost. */
async function assertLost(child) {
  const r = await child.ended;
  assert.deepEqual([r.status, r.signal, r.stdout], [125, null, 'ready\n']);
  assert.match(r.stderr, /^jerboa: [^\n]+\nverdict sandbox_lost,[^\n]*\n$/);
}

test('SIGKILL of the jail alone: sandbox_lost; its jerboa sweeps before it ends', limit, async (t) => {
  const world = prepare(t), child = world.start(['--stats', '-e', busy]);
  signal((await ready(world, child)).jail, 'SIGKILL');
  await assertLost(child);
  assert.deepEqual(deadCgroups(), []);
  await world.assertGone();
});

test('SIGKILL of init alone: sandbox_lost', limit, async (t) => {
  const world = prepare(t), child = world.start(['--stats', '-e', busy]);
  signal((await ready(world, child)).init, 'SIGKILL');
  await assertLost(child);
  await world.assertGone();
});

test('SIGKILL of the script alone is its own end', limit, async (t) => {
  const world = prepare(t), child = world.start();
  signal((await ready(world, child)).node, 'SIGKILL');
  const r = await child.ended;
  assert.deepEqual([r.status, r.stderr], [137, '']);
  await world.assertGone();
});

test('SIGKILL of jerboa and jail together: the next start sweeps', limit, async (t) => {
  const world = prepare(t), child = world.start();
  const { jail } = await ready(world, child);
  child.kill('SIGSTOP'); // so that neither sees the other go
  signal(jail, 'SIGKILL');
  child.kill('SIGKILL');
  await child.ended;
  await until(() => processes(world.programs).length === 0, 'processes outlived the jail');
  await sweep();
  await world.assertGone();
});

test('SIGKILL of a jerboa and its jail together: a jail of another dead one sweeps, too', limit, async (t) => {
  const world = prepare(t), other = world.start(['-e', 'console.log("ready"); setInterval(() => {}, 1e6)']);
  await printed(other, 'ready');
  const before = new Set(processes(world.programs).map((p) => p.pid)), child = world.start();
  await printed(child, 'ready');
  const jail = processes(world.programs).find((p) => p.name === 'jerboa-jail' && !before.has(p.pid));
  child.kill('SIGSTOP');
  signal(jail, 'SIGKILL');
  child.kill('SIGKILL');
  await child.ended;
  assert.notDeepEqual(deadCgroups(), []); // nobody has looked yet
  other.kill('SIGKILL');
  await other.ended;
  await world.assertGone();
});

/** What is seen first, looked for without a pause; undefined: nothing for too long. */
function catchFirst(look) {
  for (const end = performance.now() + 10_000; performance.now() < end;) {
    const seen = look();
    if (seen) return seen;
  }
}
const children = (pid) => fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ').filter(Boolean);
/** A process that leads a session: its name. */
const leader = (pid) => { try { return new RegExp(`^${pid} \\((.*)\\) . \\d+ \\d+ ${pid} `).exec(fs.readFileSync(`/proc/${pid}/stat`, 'latin1'))?.[1]; } catch { return undefined; } };

test('SIGKILL of a jail whose child still builds: that does not wait for its cgroup for ever', limit, async (t) => {
  const world = prepare(t);
  let tries = 0;
  for (let met = 0; met < 10; tries++) {
    const child = world.start(), jail = +catchFirst(() => children(child.pid)[0]);
    const name = catchFirst(() => children(jail).map(leader).find(Boolean)); // it was let go
    process.kill(jail, 'SIGKILL');
    if (name === 'jerboa-jail') met++; // later it is init
    await until(() => processes(world.programs).length === 0, () => `left: ${JSON.stringify(processes(world.programs))}`);
    await child.ended;
  }
  t.diagnostic(`${tries} tries`);
  await sweep();
  await world.assertGone();
});

test('two sweeps at once do not disturb each other or a live sandbox', limit, async (t) => {
  const world = prepare(t), alive = world.start();
  t.after(() => alive.kill('SIGKILL')); // else the tests that follow count its processes, too
  await ready(world, alive);
  const victim = start(['run', '-e', 'console.log("ready"); setInterval(() => {}, 1e6)'], { program: copyPrograms(tempDir(t)) });
  await printed(victim, 'ready');
  const jail = fs.readFileSync(`/proc/${victim.pid}/task/${victim.pid}/children`, 'utf8').trim();
  process.kill(+jail, 'SIGKILL');
  await victim.ended;
  const results = await Promise.all([1, 2, 3].map(() => run(['-e', 'console.log("fine")'])));
  for (const r of results) assert.deepEqual([r.stdout, r.stderr, r.status], ['fine\n', '', 0]);
  await sweep();
  assert.ok(world.find('jerboa-init'), 'the live sandbox was swept');
  alive.kill('SIGKILL');
  await alive.ended;
  await world.assertGone();
});

for (const who of ['jail', 'init', 'node'])
  test(`${who} stopped, then jerboa killed`, limit, async (t) => {
    const world = prepare(t), child = world.start();
    signal((await ready(world, child))[who], 'SIGSTOP');
    child.kill('SIGKILL');
    await child.ended;
    await world.assertGone();
  });

test('the jail stopped, then jerboa told to end: it is woken, and cleans up', limit, async (t) => {
  const world = prepare(t), child = world.start();
  signal((await ready(world, child)).jail, 'SIGSTOP');
  child.kill('SIGTERM');
  await child.ended;
  await world.assertGone();
});

test('a stopped script still ends at its timeout', limit, async (t) => {
  const world = prepare(t), child = world.start(['--timeout', '2s', '-e', busy]);
  signal((await ready(world, child)).node, 'SIGSTOP');
  assert.equal((await child.ended).status, 124);
  await world.assertGone();
});

test('8 at once: all run, each under a host uid of its own, nothing left', limit, async (t) => {
  const world = prepare(t);
  const children = Array.from({ length: 8 }, () => world.start(['-e', 'console.log("ready"); process.stdin.once("data", (d) => { process.stdout.write(d); process.exit(); })']));
  await Promise.all(children.map((child) => printed(child, 'ready')));
  const inits = processes(world.programs).filter((p) => p.name === 'jerboa-init');
  assert.equal(inits.length, 8);
  if (process.getuid() === 0) {
    assert.equal(new Set(inits.map((p) => p.uid)).size, 8, `uids ${inits.map((p) => p.uid)}`);
    for (const p of inits) assert.ok(p.uid >= 0x70000000, `uid ${p.uid}`);
  }
  children.forEach((child, i) => child.stdin.write(`word ${i}`));
  const results = await Promise.all(children.map((child) => child.ended));
  results.forEach((r, i) => assert.deepEqual([r.stdout, r.status], [`ready\nword ${i}`, 0]));
  await world.assertGone();
});

test('40 short ones, four at a time', limit, async (t) => {
  const world = prepare(t);
  let left = 40;
  const worker = async () => {
    while (left-- > 0) {
      const r = await world.start(['-e', 'console.log("x")']).ended;
      assert.deepEqual([r.stdout, r.stderr, r.status], ['x\n', '', 0]);
    }
  };
  await Promise.all([worker(), worker(), worker(), worker()]);
  await world.assertGone();
});

test('jerboa killed while it fetches: the fetching ends too', limit, async (t) => {
  const bin = tempDir(t);
  const program = copyPrograms(bin);
  const registry = createServer(() => {}).listen(0, '127.0.0.1'); // accepts and says nothing
  await once(registry, 'listening');
  t.after(() => registry.close());
  const child = start(['run', '-e', '0'], { program, env: { JERBOA_HOME: tempDir(t), npm_config_registry: `http://127.0.0.1:${registry.address().port}/` } });
  await once(registry, 'connection');
  assert.ok(processes(bin).some((p) => p.name === 'jerboa-fetch'));
  child.kill('SIGKILL');
  await child.ended;
  await until(() => processes(bin).length === 0, 'jerboa-fetch lives on');
});
