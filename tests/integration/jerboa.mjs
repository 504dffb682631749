// What the tests share: the real programs, a child with a time limit, and a look at what is left on the machine.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

export const root = path.resolve(import.meta.dirname, '../..');
export const build = path.resolve(root, process.env.JERBOA_BUILD ?? 'build');
export const jerboa = path.join(build, 'jerboa');
export const limit = { timeout: 180_000 }; // of what hangs: a busy machine is slow, and a suite has many tests

/** Environment of a child: no option of whoever runs the tests; `mark` finds the sandbox's processes later. */
export const mark = `JERBOA_TEST_MARK=${process.pid}-${randomBytes(6).toString('hex')}`;
const options = /^JERBOA_(?!HOME$)|^(FILES_DIR|SANDBOX_MEMORY_LIMIT|SANDBOX_CPU_LIMIT|RUN_SCRIPT_TIMEOUT|NODE_OPTIONS|NODE_TEST_CONTEXT)$/;
export const engine = process.env.JERBOA_TEST_ENGINE; // tests/engines/run.mjs; else it is native
const always = { JERBOA_ENV: mark, JERBOA_ENGINE: engine ?? 'native' }; // whatever programs this machine has; auto.test.mjs has the default

/** What the store calls the daemon that tests ask, as engine/endpoint.h has it. */
export const daemonName = (program) =>
  `${program}-${createHash('sha256').update(process.env[program === 'podman' ? 'CONTAINER_HOST' : 'DOCKER_HOST'] ?? '').digest('hex').slice(0, 16)}`;

/** For a test that is of the native engine alone, and why; whole files stand in tests/engines/native.mjs. */
export const nativeOnly = (reason) => (engine ? { skip: `of the native engine: ${reason}` } : {});
export function childEnv(more = {}) {
  const own = Object.entries(process.env).filter(([name]) => !options.test(name));
  return { ...Object.fromEntries(own), ...always, ...more };
}

/** A container takes a second of a processor: they are made ahead for the files alone that say so. */
if (engine) always.JERBOA_POOL = '0';
export const someAhead = () => { delete always.JERBOA_POOL; };

/** --pool-memory for so many, as engine/engine.h has it of each. */
export const roomFor = (n) => `${n * ({ docker: 24, podman: 28 }[engine] ?? 16)}m`;

/** For files that count what runs: from now on no sandbox is made ahead and no Node is held. */
export const nothingAhead = () => Object.assign(always, { JERBOA_POOL: '0', JERBOA_HOLD: '0' });

/** A directory that goes with the test (or, without one, with the process). */
export function tempDir(t) {
  const dir = fs.mkdtempSync(path.join(tmpdir(), 'jerboa-test-'));
  const remove = () => fs.rmSync(dir, { recursive: true, force: true });
  if (t) t.after(remove);
  else process.on('exit', remove);
  return dir;
}

export function writeFiles(dir, files) {
  for (const [name, text] of Object.entries(files)) {
    fs.mkdirSync(path.dirname(path.join(dir, name)), { recursive: true });
    fs.writeFileSync(path.join(dir, name), text);
  }
  return dir;
}

/** Walls that are always missing, for an ordinary user or on another engine, and each start says so: that line, and no other, is set aside. */
export const isRoot = process.getuid() === 0;
const notice = engine ? /^warn sandbox missing walls: user-namespace \(.*\), uid-range \(.*\), landlock \([^()\n]*\)\n/m
  : isRoot ? /(?!)/ : /^warn sandbox missing walls: uid-range \(only root [^()\n]*\)\n/m;
export const withoutNotice = (text) => text.replace(notice, '');

/** Starts a program. `ended` is {status, signal, stdout, stderr}; over `seconds` it is killed, and the signal tells. */
export function start(args, { program = jerboa, env, cwd, stdio = ['pipe', 'pipe', 'pipe'], input, seconds = 60, keep = true } = {}) {
  const child = spawn(program, args, { env: childEnv(env), cwd, stdio });
  const out = { stdout: [], stderr: [] };
  for (const name of ['stdout', 'stderr'])
    if (child[name] && keep) child[name].on('data', (piece) => out[name].push(piece));
  child.stdin?.on('error', () => {}); // a script need not read what it is given
  if (input !== undefined) child.stdin?.end(input);
  const timer = setTimeout(() => child.kill('SIGKILL'), seconds * 1000);
  child.text = (name) => Buffer.concat(out[name]).toString();
  child.ended = once(child, 'close').then(([status, signal]) => {
    clearTimeout(timer);
    return { status, signal, bytes: Buffer.concat(out.stdout), stdout: child.text('stdout'), stderr: withoutNotice(child.text('stderr')) };
  });
  return child;
}

/** `jerboa run ARGS` to its end, without input unless some is given. */
export const run = (args, more = {}) => start(['run', ...args], { input: '', ...more }).ended;

/** A script that is a function: its source goes in, with its arguments as JSON. */
export const code = (fn, ...args) => `await (${fn})(${args.map((a) => JSON.stringify(a)).join(', ')})`;
export const runCode = (args, fn, ...more) => run([...args, '-e', code(fn, ...more)]);

/** The script printed JSON, and all went well. */
export function answer(result) {
  assert.deepEqual({ status: result.status, signal: result.signal, stderr: result.stderr }, { status: 0, signal: null, stderr: '' });
  return JSON.parse(result.stdout);
}

/** Jerboa itself refused: one sentence of its own, 125, nothing run. */
export function assertRefused(result, sentence) {
  assert.match(result.stderr, /^jerboa: [^\n]+\n$/);
  assert.match(result.stderr, sentence);
  assert.equal(result.stdout, '');
  assert.deepEqual([result.status, result.signal], [125, null]);
}

/** Stops it. The signal alone is not enough: until it is seen, the process can still take what it waited for. */
export async function freeze(pid) {
  process.kill(pid, 'SIGSTOP');
  const isStill = (thread) => /\) [TZX]/.test(read(`/proc/${pid}/task/${thread}/stat`));
  await until(() => list(`/proc/${pid}/task`).every(isStill), `${pid} does not stop`);
}

/** Polls until `look` returns something true; fails with `what` (and what it last saw) after a while. */
export async function until(look, what, seconds = 30) {
  const end = performance.now() + seconds * 1000;
  for (;;) {
    const seen = await look();
    if (seen) return seen;
    if (performance.now() > end) assert.fail(typeof what === 'function' ? what() : what);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export const printed = (child, text, stream = 'stdout') =>
  until(() => child.text(stream).includes(text), () => `no '${text}' in: ${child.text(stream)}`);

/** The line of JSON at the end of stderr, as --json has it. */
export const judged = (r) => JSON.parse(r.stderr.trimEnd().split('\n').at(-1));

/** A script that fills memory outside of V8's heap until it is stopped. */
export const fill = 'const kept = []; for (;;) kept.push(Buffer.alloc(8 << 20, 1))';

/** For sh in a mount namespace of its own: no cgroup can be written. */
export const readOnlyCgroups = `for m in $(awk '/ - cgroup2? /{print $5}' /proc/self/mountinfo); do mount -o remount,bind,ro "$m" || exit 9; done`;

// ---- what is on the machine ----

export const read = (file) => { try { return fs.readFileSync(file, 'latin1'); } catch { return ''; } };
const identity = (file) => { try { const s = fs.statSync(file); return `${s.dev}:${s.ino}`; } catch { return null; } };
export const list = (dir) => { try { return fs.readdirSync(dir); } catch { return []; } };

/** Of a server. */
export const descriptors = (pid) => list(`/proc/${pid}/fd`).length;

/** Built with sanitizers: slower by a factor that promises nothing, and its memory says nothing. */
export const sanitized = read(jerboa).includes('__asan_init');

/** The programs in a directory of their own, so that their processes can be told from everybody else's. */
export function copyPrograms(dir, names = ['jerboa', 'jerboa-jail', 'jerboa-init', 'jerboa-fetch', 'jerboa-layer', 'jerboa-remote']) {
  for (const name of names) fs.copyFileSync(path.join(build, name), path.join(dir, name));
  return path.join(dir, 'jerboa');
}

/** Processes that are ours: run from a program in `dir`, or with the mark in their environment. */
export function processes(dir) {
  const programs = new Map(dir ? list(dir).map((name) => [identity(path.join(dir, name)), name]) : []);
  const found = [];
  for (const pid of list('/proc').filter((name) => /^\d+$/.test(name) && +name !== process.pid)) {
    const status = read(`/proc/${pid}/status`);
    if (!status || /^State:\s+[ZX]/m.test(status)) continue;
    const program = programs.get(identity(`/proc/${pid}/exe`));
    // The whole variable: jerboa itself has the mark only inside JERBOA_ENV.
    const inside = read(`/proc/${pid}/environ`).split('\0').includes(mark);
    const field = (name) => new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(status)[1];
    if (program || inside) found.push({ pid: +pid, uid: +field('Uid'), name: program ?? field('Name') });
  }
  return found;
}

/** What runs below a cgroup: pids with the names of their programs. */
export const contained = (group) => list('/proc').filter((pid) => /^\d+$/.test(pid) && read(`/proc/${pid}/cgroup`).includes(`/${group}/`))
  .flatMap((pid) => { const name = /^Name:\s+(.*)$/m.exec(read(`/proc/${pid}/status`))?.[1]; return name ? [{ pid: +pid, name }] : []; });

/** What runs below a process: pids with the names of their programs. */
export function descendants(pid) {
  const all = list('/proc').filter((name) => /^\d+$/.test(name)).flatMap((name) => {
    const stat = read(`/proc/${name}/stat`), end = stat.lastIndexOf(')');
    const [state, parent] = stat.slice(end + 2).split(' ');
    return stat ? [{ pid: +name, name: stat.slice(stat.indexOf('(') + 1, end), state, parent: +parent }] : []; // it has just gone
  });
  const found = all.filter((p) => p.pid === pid);
  for (const p of found) found.push(...all.filter((c) => c.parent === p.pid));
  return found.slice(1).filter((p) => p.state !== 'Z' && p.state !== 'X');
}

const commandLine = (pid) => read(`/proc/${pid}/cmdline`).split('\0');

/** The programs below a server that keep its sandboxes, one each: jails, or clients of the daemon. */
export const keepers = (pid) => descendants(pid).filter((p) => p.name === (engine ?? 'jerboa-jail') && (!engine || commandLine(p.pid).includes('run')));

/** Of programs in `dir`, the first process of each sandbox. */
export const inits = (dir) => processes(dir).filter((p) => p.name === 'jerboa-init' && /^NSpid:.*\t1$/m.test(read(`/proc/${p.pid}/status`)));

/** What code in the sandboxes of a server started. A daemon's containers are not below it: there, all that run in any. */
export const inside = (pid) => (engine ? contained(process.env.JERBOA_TEST_CGROUP) : descendants(pid)).filter((p) => !/^(init$|jerboa|runc|conmon|podman)/.test(p.name));

const writable = (dir) => { try { fs.accessSync(dir, fs.constants.W_OK); return true; } catch { return false; } };

/** Where cgroups of sandboxes stand, in the v1 hierarchies that they use: this process's own, or those that root made over to this user. */
export function ownCgroups() {
  const own = read('/proc/self/cgroup').trim().split('\n').map((line) => line.split(':'));
  return read('/proc/self/mountinfo').split('\n').filter((line) => / - cgroup .*\b(memory|cpu|cpuacct|pids)\b/.test(line)).map((line) => {
    const controllers = line.split(' ').at(-1).split(','), point = line.split(' ')[4];
    const dir = path.join(point, own.find(([, names]) => names.split(',').some((name) => controllers.includes(name)))?.[2] ?? '/');
    const users = path.join(point, 'jerboa', `${process.getuid()}`);
    return !writable(dir) && writable(users) ? users : dir;
  });
}

/** From here on our sandboxes' cgroups stand below one of our own, so that nobody else's are taken for ours. */
function enterCgroups() {
  const made = [];
  for (const parent of ownCgroups()) {
    const dir = path.join(parent, `jerboa-test-${mark.split('=')[1]}`);
    try {
      fs.mkdirSync(dir);
      made.push([parent, dir]);
      fs.writeFileSync(path.join(dir, 'cgroup.procs'), '0');
    } catch { /* not ours to write: then it is shared with whoever else runs sandboxes here */ }
  }
  const remove = (dir) => { // rmdir of a cgroup needs no empty directory, only no groups below
    for (const entry of fs.readdirSync(dir, { withFileTypes: true })) if (entry.isDirectory()) remove(path.join(dir, entry.name));
    fs.rmdirSync(dir);
  };
  const removeSoon = (dir, tries) => { // a client of podman's that nobody waits for, because its server was killed, goes a moment after us
    try { remove(dir); } catch (e) {
      if (e.code !== 'EBUSY' || tries === 0) throw e;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
      removeSoon(dir, tries - 1);
    }
  };
  process.on('exit', () => {
    for (const [parent, dir] of made)
      try { fs.writeFileSync(path.join(parent, 'cgroup.procs'), '0'); removeSoon(dir, engine === 'podman' ? 50 : 0); } catch (e) { console.error(e.message); }
  });
}
enterCgroups();

/** Bytes of a file that somebody has locked, as /proc/locks tells. */
function lockedBytes(file) {
  const { dev, ino } = fs.statSync(file), hex = (n) => n.toString(16).padStart(2, '0');
  const device = `${hex((dev >> 8) & 0xfff)}:${hex((dev & 0xff) | ((dev >> 12) & 0xfff00))}:${ino}`;
  return new Set(read('/proc/locks').split('\n').map((line) => line.trim().split(/\s+/)).filter((f) => f[5] === device).map((f) => +f[6]));
}

/** Cgroups of sandboxes whose jail is gone: it has a byte of its place's cgroup.procs locked as long as it lives (jail/cgroup.h). */
export function deadCgroups() {
  const slots = 4094; // IDRANGE_SLOTS of jail/idrange.h
  return ownCgroups().filter(writable).flatMap((dir) => { // where we may not write, they are somebody else's
    const locked = lockedBytes(path.join(dir, 'cgroup.procs'));
    return list(dir).map((name) => /^jerboa-(u?)(\d+)$/.exec(name)).filter((m) => m && !locked.has((m[1] ? 2 : 1) * slots + +m[2]))
      .map(([name]) => path.join(dir, name));
  });
}

/** A start sweeps what is dead. */
export async function sweep() {
  assert.equal((await run(['-e', '0'])).status, 0);
  await until(() => deadCgroups().length === 0, () => `not swept: ${deadCgroups().join(', ')}`);
}

const hostMounts = () => read('/proc/self/mountinfo').split('\n').map((line) => line.split(' ').slice(4).join(' ')).sort().join('\n');
const mountsBefore = hostMounts();

/** Everything of ours that is still there. Mounts of other namespaces live and die with the processes; those of containers are the daemon's. */
export const leftovers = (dir, ...places) => [
  ...processes(dir).map((p) => `process ${p.pid} ${p.name}`),
  ...deadCgroups(),
  ...(engine || hostMounts() === mountsBefore ? [] : ['mounts of the host changed']),
  ...list('/run/jerboa').filter((name) => name !== 'ids').map((name) => `/run/jerboa/${name}`),
  ...places.flatMap((place) => list(place).map((name) => path.join(place, name))),
];

/** Nothing is left, soon; death.test.mjs holds half of fifty ends to a second, whatever else the machine does. */
export async function assertGone(dir, ...places) {
  let last;
  await until(() => (last = leftovers(dir, ...places)).length === 0, () => `left behind: ${last.join(', ')}`);
}
