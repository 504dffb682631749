// The programs that read foreign bytes outside of sandboxes, taken over: a jerboa-fetch that is built for this (taken_over.c) tries
// one way as each of its three processes (src/fetch/roles.h), once their walls stand. With the walls of a row left out the way must
// be open, or the row would show nothing; with all of them, and with each of them alone, it must be closed.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { before, test } from 'node:test';
import { build, isRoot, limit, root, tempDir, until } from '../integration/jerboa.mjs';
import { deferred, runProgram, serve, soundPackages, storeEnv } from '../integration/registry.mjs';
import { bytesOf, symbolsOf } from './host.mjs';

const programs = { installed: path.join(build, 'jerboa-fetch'), taken: path.join(build, 'tests/escape-fetch') };

// ---- what is there to be reached ----

const file = (name) => (at) => { const place = path.join(at.dir, name); fs.mkdirSync(path.dirname(place), { recursive: true }); fs.writeFileSync(place, at.word); return place; };
const absent = (name) => (at) => { const place = path.join(at.dir, name); fs.mkdirSync(path.dirname(place), { recursive: true }); return place; };
const listening = (where) => async (at) => {
  const address = where(at);
  const server = createServer((socket) => socket.on('error', () => {}).end(at.word)).listen(address);
  at.after(() => server.close());
  await once(server, 'listening');
  return typeof address === 'string' ? address.replace('\0', '@') : server.address().port;
};
const port = listening(() => ({ host: '127.0.0.1', port: 0 }));
const victim = async (at) => {
  const child = spawn('/bin/sleep', ['60'], { stdio: 'ignore', env: { SECRET: at.word } });
  at.after(() => child.kill('SIGKILL'));
  await once(child, 'spawn');
  return child.pid;
};
/** One that keeps the signal it got, where the host can see it. */
const patient = async (at) => {
  const child = spawn('/usr/bin/env', ['--block-signal=USR1', 'sleep', '60'], { stdio: 'ignore' });
  at.after(() => child.kill('SIGKILL'));
  await once(child, 'spawn');
  await until(() => maskOf(child.pid, 'SigBlk') & usr1, 'it blocks nothing', 10);
  return child.pid;
};
const usr1 = 1n << 9n, maskOf = (pid, name) => BigInt(`0x${new RegExp(`^${name}:\\s*(\\w+)`, 'm').exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1]}`);
const signalled = (at) => Boolean((maskOf(at.where, 'ShdPnd') | maskOf(at.where, 'SigPnd')) & usr1);
const openToAll = (at) => (fs.statSync(at.where).mode & 0o777) === 0o666;
const nothing = () => '-';
/** Its environment is its own only once it has become the other program. */
const victimEnvironment = async (at) => {
  const place = `/proc/${await victim(at)}/environ`;
  for (const end = Date.now() + 10_000; !fs.readFileSync(place, 'utf8').includes(at.word) && Date.now() < end;) await new Promise((done) => setImmediate(done));
  return place;
};

// Who has lost root's rights reaches no process that has them.
const rights = (role) => (isRoot ? [`${role} capabilities`] : []);
const yama = !isRoot && fs.existsSync('/proc/sys/kernel/yama/ptrace_scope') && +fs.readFileSync('/proc/sys/kernel/yama/ptrace_scope', 'utf8') > 0;

// name, role, way (taken_over.c), where it leads, walls; `landlock`: the version that the wall 'landlock' of the row takes;
// `root`: rights that only root has; `not`: why it cannot be tried here; `seen`: how else the host sees it
const rows = [
  ['a secret, by the line', 'line', 'read', file('home/secret'), ['line landlock']],
  ['the store, by the line', 'line', 'write', absent('store/runtimes/planted'), ['line landlock'], { seen: (at) => fs.existsSync(at.where) }],
  ['another process\'s environment, by the line', 'line', 'read', victimEnvironment, ['line landlock', ...rights('line')]],
  ['a program, by the line', 'line', 'execute', () => '/bin/sh', ['line landlock', 'line filter']],
  ['a unix socket, by the line', 'line', 'unix', listening((at) => path.join(at.dir, 'socket')), ['line filter']],
  ['an abstract socket, by the line', 'line', 'unix', listening((at) => `\0${at.word}-name`), ['line landlock', 'line filter'], { landlock: 6 }],
  ['a port of its own, by the line', 'line', 'listen', nothing, ['line landlock', 'line filter'], { landlock: 4 }],
  ['tracing a process, by the line', 'line', 'trace', victim, ['line landlock', 'line filter', ...rights('line')], { not: yama && 'Yama forbids it to everybody' }],
  ['a signal, by the line', 'line', 'signal', victim, ['line landlock', 'line filter'], { landlock: 6 }],
  ['a signal by a pipe, by the line', 'line', 'signal-by-pipe', patient, ['line landlock', 'line filter'], { landlock: 6, seen: signalled }],
  ['a user namespace, by the line', 'line', 'namespace', nothing, ['line filter']],
  ['a secret, by the keeper', 'keeper', 'read', file('home/secret'), ['keeper landlock']],
  ['another part of the store, by the keeper', 'keeper', 'write', absent('store/tools/planted'), ['keeper landlock'], { seen: (at) => fs.existsSync(at.where) }],
  ['a connection, by the keeper', 'keeper', 'connect', port, ['keeper landlock', 'keeper filter'], { landlock: 4 }],
  ['a program, by the keeper', 'keeper', 'execute', () => '/bin/sh', ['keeper landlock', 'keeper filter']],
  ['tracing a process, by the keeper', 'keeper', 'trace', victim, ['keeper landlock', 'keeper filter', ...rights('keeper')], { not: yama && 'Yama forbids it to everybody' }],
  ['a signal, by the keeper', 'keeper', 'signal', victim, ['keeper filter']],
  ['a signal by a pipe, by the keeper', 'keeper', 'signal-by-pipe', patient, ['keeper filter'], { seen: signalled }],
  ['a user namespace, by the keeper', 'keeper', 'namespace', nothing, ['keeper filter']],
  ['a token of the environment, in the keeper', 'keeper', 'environment', nothing, ['keeper environment']],
  ['giving a file away, by the keeper', 'keeper', 'give-away', file('store/runtimes/mine'), ['keeper capabilities', 'keeper filter'], { root: true }],
  ['the mode of a file, by the keeper', 'keeper', 'change-mode', file('home/secret'), ['keeper filter'], { seen: openToAll }],
  ['a mode of the store that lets everybody write, by the keeper', 'keeper', 'change-mode', file('store/runtimes/mine'), ['keeper filter'], { seen: openToAll }],
  ['a file without end, by the keeper', 'keeper', 'lengthen', absent('store/runtimes/long'), ['keeper resources']],
  ['another entry of the store, by the untar', 'untar', 'write', absent('store/runtimes/planted'), ['untar landlock'], { seen: (at) => fs.existsSync(at.where) }],
  ['a file of the store, by the untar', 'untar', 'read', file('store/downloads/secret'), ['untar landlock']],
  ['removing a file, by the untar', 'untar', 'remove', file('store/runtimes/there'), ['untar landlock', 'untar filter'], { seen: (at) => !fs.existsSync(at.where) }],
  ['a secret, by the untar', 'untar', 'read', file('home/secret'), ['untar landlock', 'keeper landlock']],
  ['a connection, by the untar', 'untar', 'connect', port, ['untar landlock', 'untar filter', 'keeper landlock', 'keeper filter'], { landlock: 4 }],
  ['a program, by the untar', 'untar', 'execute', () => '/bin/sh', ['untar landlock', 'untar filter', 'keeper landlock', 'keeper filter']],
].map(([name, role, way, where, walls, more = {}]) => ({ name, role, way, where, walls, ...more }));

// ---- one try ----

/** Whether the way was open, and what was said. */
async function attempt(t, { role, way, where, seen, through = [] }, leftOut) {
  const undo = [], dir = tempDir(t);
  const at = { dir, word: randomBytes(12).toString('hex'), after: (deed) => undo.push(deed) };
  const program = path.join(dir, 'bin/jerboa-fetch'), store = path.join(dir, 'store');
  for (const place of ['bin', 'store']) fs.mkdirSync(path.join(dir, place));
  fs.copyFileSync(programs.taken, program);
  try {
    at.where = await where(at);
    fs.writeFileSync(path.join(dir, 'bin/taken-over'), [...leftOut.map((wall) => `leave ${wall}`), `try ${role} ${way} ${at.where} ${at.word}`].join('\n'));
    const registry = await serve(t, soundPackages());
    const [first, ...rest] = [...through, program, 'runtime', 'node:lts-slim'];
    const r = await runProgram(first, rest, { ...storeEnv(store, registry.url), npm_config_token: at.word });
    const said = `${r.stdout}${r.stderr}`;
    return { arrived: said.includes(at.word) || Boolean(seen?.(at)), came: said.includes(at.word) || said.includes('taken over, in vain'), said };
  } finally {
    for (const deed of undo.reverse()) await deed();
  }
}

let version, sanitized; // of Landlock; whether these programs have the walls at all
before(async () => {
  sanitized = (await symbolsOf(programs.taken)).includes('__asan_init');
  const dir = [], t = { after: (deed) => dir.push(deed) };
  const { said } = await attempt(t, { role: 'keeper', way: 'version', where: nothing }, []);
  for (const deed of dir) await deed();
  version = Number(/landlock (-?\d+)/.exec(said)?.[1]);
});

for (const row of rows)
  test(`taken over: ${row.name}`, { ...limit, skip: row.root && !isRoot ? 'its control takes rights that only root has' : row.not || false }, async (t) => {
    if (sanitized) return t.skip('a sanitizer cannot live behind these walls');
    const needs = row.landlock ?? 2, landlock = row.walls.filter((wall) => wall.endsWith(' landlock'));
    if (landlock.length === row.walls.length && version < needs) return t.skip(`this kernel has no Landlock of version ${needs}`);
    const control = await attempt(t, row, row.walls);
    assert.ok(control.arrived, `without ${row.walls.join(', ')} it should arrive: ${control.said}`);
    const real = await attempt(t, row, []);
    assert.ok(!real.arrived, `it got out: ${real.said}`);
    assert.ok(real.came, `it did not even try: ${real.said}`);
    for (const wall of row.walls.length > 1 ? row.walls : []) {
      if (wall.endsWith(' landlock') && version < needs) continue;
      const alone = await attempt(t, row, row.walls.filter((other) => other !== wall));
      assert.ok(!alone.arrived, `'${wall}' alone does not hold it: ${alone.said}`);
      assert.ok(alone.came, `'${wall}' alone: it did not even try: ${alone.said}`);
    }
    t.diagnostic(`${row.name} | each alone holds: ${row.walls.join(', ')} | ${real.said.split('\n').find((line) => line.startsWith('taken over'))}`);
  });

// The one wall that may be missing; what SECURITY.md says of that.
test('on a kernel without Landlock the rest holds, and files are open', limit, async (t) => {
  if (sanitized) return t.skip('a sanitizer cannot live behind these walls');
  const deny = path.join(tempDir(t), 'deny'), create = 444, ENOSYS = 38;
  execFileSync('gcc', ['-D_GNU_SOURCE', '-Wall', '-Werror', '-static', '-O1', '-o', deny, `${root}/tests/programs/deny.c`]);
  const without = [deny, String(create), String(ENOSYS)];
  assert.match((await attempt(t, { role: 'keeper', way: 'version', where: nothing, through: without }, [])).said, /landlock -1/);
  for (const [name, open] of [['a secret, by the line', true], ['a program, by the line', false], ['a connection, by the keeper', false], ['a program, by the untar', false]]) {
    const r = await attempt(t, { ...rows.find((row) => row.name === name), through: without }, []);
    assert.deepEqual([r.came, r.arrived], [true, open], `${name}: ${r.said}`);
  }
  const store = path.join(tempDir(t), 'store'), registry = await serve(t, soundPackages());
  const r = await runProgram(deny, [String(create), String(ENOSYS), programs.installed, 'runtime', 'node:lts-slim'], storeEnv(store, registry.url));
  assert.deepEqual([r.status, r.stdout], [0, `${store}/runtimes/node-24.1.0-${process.arch}\n`]);
});

test('who kills jerboa-fetch kills its line, which would wait for half a minute and hold a lock', limit, async (t) => {
  const asked = deferred();
  const registry = await serve(t, {}, () => { asked.resolve(); return true; }); // says nothing
  const child = spawn(programs.installed, ['runtime', 'node:lts-slim'], { stdio: 'ignore', env: storeEnv(path.join(tempDir(t), 'store'), registry.url) });
  const ended = once(child, 'exit');
  await asked.promise;
  const line = fs.readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim();
  assert.match(fs.readFileSync(`/proc/${line}/comm`, 'utf8'), /^fetch-line/);
  child.kill('SIGKILL');
  await ended;
  const runs = () => { try { return !/\) Z/.test(fs.readFileSync(`/proc/${line}/stat`, 'latin1')); } catch { return false; } };
  await until(() => !runs(), 'the line lives on', 10);
});

test('SECURITY.md names each way', () => {
  const text = fs.readFileSync(`${root}/SECURITY.md`, 'utf8');
  assert.deepEqual(rows.map(({ name }) => name).filter((name) => !text.includes(`*${name}*`)), []);
});

test('the jerboa-fetch that is installed can neither leave a wall out nor be told to try a way', limit, async () => {
  const found = async (program) => {
    const bytes = await bytesOf(program), symbols = await symbolsOf(program);
    return [...['taken-over', 'escape-fetch'].filter((name) => bytes.includes(name)), ...['confine_leaves_out', 'confine_taken_over'].filter((name) => symbols.includes(` ${name}\n`))];
  };
  assert.deepEqual(await found(programs.taken), ['taken-over', 'escape-fetch', 'confine_leaves_out', 'confine_taken_over']); // they can be found
  assert.deepEqual(await found(programs.installed), []);
});
