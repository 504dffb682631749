// A machine that lacks something: walls that keep code in are never optional, those that bound it may be missing; one sentence and the fix.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { before, test } from 'node:test';
import { assertGone, assertRefused, copyPrograms, fill, isRoot, jerboa, judged, limit, readOnlyCgroups, root, run, start, tempDir } from './jerboa.mjs';

const ENOSYS = 38, EOPNOTSUPP = 95;
const calls = process.arch === 'arm64' ? { clone3: 435, mount_setattr: 442, landlock_create_ruleset: 444, seccomp: 277 }
  : { clone3: 435, mount_setattr: 442, landlock_create_ruleset: 444, seccomp: 317 };
const script = ['-e', 'console.log("ran")'];

let deny;
before(() => {
  deny = path.join(tempDir(), 'deny');
  execFileSync('gcc', ['-D_GNU_SOURCE', '-Wall', '-Werror', '-static', '-O1', '-o', deny, `${root}/tests/programs/deny.c`]);
});

/** jerboa run on a kernel that answers one call with an error. */
const runWithout = (call, errno, args) => start([`${calls[call]}`, `${errno}`, jerboa, 'run', ...args], { program: deny, input: '' }).ended;

/** jerboa run in namespaces of the test's own, after some preparation there. */
const runIn = (unshare, preparation, args, more) =>
  start([...unshare, 'sh', '-ec', `${preparation}; exec "$@"`, 'sh', jerboa, 'run', ...args], { program: 'unshare', input: '', ...more }).ended;

const usual = isRoot ? [] : ['uid-range']; // what is missing anyway

// ---- never optional ----

for (const kind of ['user', 'mnt', 'pid', 'net', 'ipc', 'uts'])
  test(`${kind} namespaces are forbidden`, limit, async () => {
    const r = await runIn(['-Ur'], `echo 0 > /proc/sys/user/max_${kind}_namespaces`, script);
    assertRefused(r, new RegExp(`step 'clone': .*namespaces are forbidden; as root: sysctl -w user\\.max_${kind}_namespaces=\\d+`));
  });

test('a kernel that does not know a call', limit, async () => {
  for (const call of ['clone3', 'mount_setattr', 'seccomp'])
    assertRefused(await runWithout(call, ENOSYS, script), /step '.*': .*Function not implemented: sandboxes need Linux 5\.12 or newer/);
});

test('a covered /proc, as containers have it', limit, async () => {
  const r = await runIn(['-Urm'], 'mount -t tmpfs none /proc/sys/kernel', script);
  r.stderr = r.stderr.replace(/^warn sandbox missing walls: [^\n]*\n/, ''); // root of that namespace has one uid only
  assertRefused(r, /step 'build root': proc \/proc: Operation not permitted: .*uncover its \/proc/);
});

/** The programs, with another init. */
function withInit(t, bytes) {
  const dir = tempDir(t), program = copyPrograms(dir);
  fs.writeFileSync(path.join(dir, 'jerboa-init'), bytes);
  return { dir, program };
}

test('an init that cannot be executed', limit, async (t) => {
  const source = path.join(tempDir(t), 'x.c'), dynamic = source.replace('.c', '');
  fs.writeFileSync(source, 'int main(void) { return 0; }');
  execFileSync('musl-gcc', ['-o', dynamic, source]);
  const text = fs.readFileSync(dynamic, 'latin1');
  assert.match(text, /\/lib\/ld-musl-/); // it wants a loader; on this machine none may be called so
  const loaderless = Buffer.from(text.replace('/lib/ld-musl-', '/lib/no-musl-'), 'latin1');
  for (const [bytes, sentence] of [
    [loaderless, /step 'start init': \/\.jerboa\/init: No such file or directory: it wants a loader that is not there: link it with musl-gcc -static/],
    [Buffer.from('\x7fELF, says it'), /step 'start init': \/\.jerboa\/init: Exec format error: it is no program for this machine: build or install Jerboa again/],
  ]) {
    const { dir, program } = withInit(t, bytes);
    assertRefused(await run(script, { program }), sentence);
    await assertGone(dir);
  }
});

// ---- may be missing ----

test('a read-only cgroup: one line with the fix, in the result, and --strict refuses', limit, async () => {
  const mounts = isRoot ? ['-m'] : ['-Urm'];
  const missing = isRoot ? ['cgroup'] : ['cgroup', 'uid-range'];
  const r = await runIn(mounts, readOnlyCgroups, ['--json', ...script]);
  assert.deepEqual([r.stdout, r.status], ['ran\n', 0], r.stderr);
  assert.match(r.stderr, /^warn sandbox missing walls: cgroup \(\S+: Read-only file system; as root: sh -c 'findmnt [^\n]* mount -o remount,bind,rw'\)[^\n]*\n\{[^\n]*\}\n$/);
  assert.deepEqual(judged(r).walls.missing, missing);
  assertRefused(await runIn(mounts, readOnlyCgroups, ['--strict', ...script]),
    /--strict: the wall 'cgroup' is missing: .*: Read-only file system: as root: sh -c 'findmnt .* mount -o remount,bind,rw'$/m);
});

test('without Landlock: said, in the result, --strict refuses; and what it forbids is possible', limit, async (t) => {
  const name = `\0jerboa-test-landlock-${process.pid}`;
  const abstract = createServer((socket) => socket.on('error', () => {})).listen(name);
  t.after(() => abstract.close());
  await once(abstract, 'listening');
  for (const errno of [ENOSYS, EOPNOTSUPP]) {
    const r = await runWithout('landlock_create_ruleset', errno, ['--json', '--network', 'host', '-e', `import fs from 'node:fs'; import net from 'node:net';
      fs.writeFileSync('/proc/self/oom_score_adj', '500'); net.connect({ path: ${JSON.stringify(name)} }).on('connect', () => { console.log('connected'); process.exit(); })`]);
    assert.deepEqual([r.stdout, r.status], ['connected\n', 0], r.stderr);
    assert.match(r.stderr, /^warn sandbox missing walls: .*landlock \(Landlock: [^\n]+; [^\n]*Landlock[^\n]*\)$/m);
    assert.deepEqual(judged(r).walls.missing, [...usual, 'landlock']);
  }
  if (isRoot)
    assertRefused(await runWithout('landlock_create_ruleset', ENOSYS, ['--strict', ...script]), /--strict: the wall 'landlock' is missing: Landlock: Function not implemented: /);
});

test('--strict and --json where all is well, and where a uid range is missing', limit, async () => {
  const r = await run(['--json', ...script]);
  assert.deepEqual([r.stdout, r.status], ['ran\n', 0]);
  const { walls, verdict, ended, code, signal, usage } = judged(r);
  assert.deepEqual({ walls, verdict, ended, code, signal }, { walls: { missing: usual }, verdict: 'ok', ended: 'run', code: 0, signal: null });
  assert.ok(usage.peakBytes > 1 << 20 && usage.maxRssBytes > 1 << 20 && usage.wallMs >= 0 && usage.cpuMs >= 0, JSON.stringify(usage));
  const strict = await run(['--strict', ...script]);
  if (isRoot) assert.deepEqual([strict.stdout, strict.stderr, strict.status], ['ran\n', '', 0]);
  else assertRefused(strict, /--strict: the wall 'uid-range' is missing: only root can give a sandbox uids of its own/);
  const nested = await runIn(['-Ur'], ':', ['--strict', ...script]); // root of a namespace that has one uid
  assertRefused(nested, /--strict: the wall 'uid-range' is missing: root of this container has no uids of its own to give: run Jerboa outside of this container\n$/);
});

test('oom in the result tells who found out', limit, async () => {
  const { verdict, source, signal } = judged(await run(['--json', '--memory', '128m', '-e', fill]));
  assert.deepEqual({ verdict, source, signal }, { verdict: 'oom', source: 'cgroup', signal: 9 });
});
