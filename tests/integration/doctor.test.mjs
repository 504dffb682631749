// jerboa doctor: what it says of this machine as it is, and of machines that lack something; each lack has its command, which is pasted
// into a shell as it stands, and mends.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { assertGone, build, copyPrograms, isRoot, limit, readOnlyCgroups, root, start, tempDir } from './jerboa.mjs';

const onlyRoot = { ...limit, skip: !isRoot && 'needs root' };
const user = { uid: 54321, gid: 54321 }; // owns nothing, is in no group
const keeping = ['user-namespace', 'mount-namespace', 'pid-namespace', 'network-namespace', 'ipc-namespace', 'uts-namespace', 'cgroup-namespace',
  'root', 'capabilities', 'no-new-privileges', 'seccomp'];
const bounding = ['cgroup', 'uid-range', 'landlock'];
const limits = ['memory', 'processes', 'cpu', 'disk'];
const needs = ['jerboa-jail', 'jerboa-init', 'jerboa-fetch', 'certificates', 'store', 'runtime', 'sandbox', 'files', 'overlay'];

/** `jerboa doctor --json ARGS`, perhaps behind words that change the world first: the report, its rows by name, the exit status. */
async function examine({ before = [], program = path.join(build, 'jerboa'), ...more } = {}) {
  const [first, ...rest] = [...before, program, 'doctor', '--json'];
  const r = await start(rest, { program: first, input: '', ...more }).ended;
  assert.deepEqual([r.signal, r.stderr], [null, '']);
  const report = JSON.parse(r.stdout);
  assert.equal(r.status, report.works ? 0 : 1);
  for (const row of report.checks) {
    assert.deepEqual([typeof row.name, typeof row.what, typeof row.required], ['string', 'string', 'boolean']);
    assert.ok(['on', 'off', 'untried'].includes(row.state));
    assert.equal(row.state === 'off', 'why' in row, JSON.stringify(row));
  }
  return { ...report, rows: Object.fromEntries(report.checks.map((row) => [row.name, row])) };
}

const names = (report, kind) => report.checks.filter((row) => row.kind === kind).map((row) => row.name);
const states = (report, list) => Object.fromEntries(list.map((name) => [name, report.rows[name]?.state]));
const all = (list, state) => Object.fromEntries(list.map((name) => [name, state]));

/** The programs where an ordinary user may read them, a home of his own, and a sudo that he alone may use. Blanks in names are meant. */
function forUser(t) {
  const dir = tempDir(t), [programs, home, sudo] = ['the programs', 'his home', 'sudo'].map((name) => path.join(dir, name));
  fs.chmodSync(dir, 0o755);
  for (const made of [programs, home, sudo]) fs.mkdirSync(made);
  fs.chownSync(home, user.uid, user.gid);
  fs.chownSync(sudo, 0, user.gid);
  fs.chmodSync(sudo, 0o710);
  execFileSync('gcc', ['-D_GNU_SOURCE', '-Wall', '-Werror', '-o', path.join(sudo, 'sudo'), `${root}/tests/programs/sudo.c`]);
  fs.chmodSync(path.join(sudo, 'sudo'), 0o4755);
  return { dir, program: copyPrograms(programs), cwd: home, env: { HOME: home, JERBOA_HOME: '', XDG_CACHE_HOME: '', PATH: `${sudo}:${process.env.PATH}` } };
}
const asUser = ['setpriv', `--reuid=${user.uid}`, `--regid=${user.gid}`, '--clear-groups'];

/** Words that paste a command into a shell, and then go on in it. */
const paste = (...fixes) => ['sh', '-c', `${fixes.join('\n')}\nexec "$@"`, 'sh'];

/** What root made over to the user goes with the test. */
function giveBackCgroups(t) {
  t.after(() => {
    for (const point of fs.readFileSync('/proc/self/mounts', 'utf8').split('\n').map((line) => line.split(' ')).filter((f) => f[2]?.startsWith('cgroup')).map((f) => f[1]))
      for (const dir of [`jerboa/${user.uid}`, 'jerboa']) try { fs.rmdirSync(path.join(point, dir)); } catch { /* not made, or others' */ }
  });
}

after(() => assertGone());

test('names are stable, and each wall has a row', limit, async () => {
  const report = await examine();
  assert.deepEqual(names(report, 'wall'), keeping);
  assert.deepEqual(names(report, 'bound'), bounding);
  assert.deepEqual(names(report, 'limit'), limits);
  assert.deepEqual(names(report, 'need').sort(), [...needs].sort());
  assert.deepEqual([report.user.uid, report.kernel], [process.getuid(), fs.readFileSync('/proc/sys/kernel/osrelease', 'utf8').trim()]);
  for (const row of report.checks) assert.equal(row.required, row.kind === 'wall' || ['jerboa-jail', 'jerboa-init', 'sandbox'].includes(row.name), row.name);
});

test('as root all walls stand and all limits hold', onlyRoot, async () => {
  const report = await examine();
  assert.equal(report.works, true);
  assert.deepEqual(states(report, [...keeping, ...bounding, ...limits, ...needs]), all([...keeping, ...bounding, ...limits, ...needs], 'on'));
});

test('the table says the same in words', limit, async () => {
  const { checks } = await examine();
  const r = await start(['doctor'], { input: '' }).ended;
  assert.equal(r.status, 0);
  const lines = r.stdout.split('\n');
  assert.match(lines[0], new RegExp(`^jerboa \\S+ as .*uid ${process.getuid()} on Linux `));
  for (const row of checks) assert.ok(lines.some((line) => line.startsWith(row.state) && line.split(/\s+/)[2] === row.name), row.name);
  for (const row of checks.filter((row) => row.fix)) assert.ok(lines.some((line) => line.trim() === `fix: ${row.fix}`), row.fix);
  for (const line of lines.slice(2, -3)) assert.match(line, /^(on {5}|off {4}|untried)  (need |wall |bound|limit|more )  [a-z-]+ +\S|^ {35}fix: \S/);
  assert.match(r.stdout, /\n\nThe native engine works[^\n]*\.\n$/);
});

test('bad usage', limit, async () => {
  for (const args of [['--what'], ['this']]) {
    const r = await start(['doctor', ...args], { input: '' }).ended;
    assert.deepEqual([r.status, r.stdout], [2, '']);
    assert.match(r.stderr, /^jerboa: [^\n]+\n$/);
  }
});

test('an ordinary user without a cgroup: the engine works, and root is told what to do', onlyRoot, async (t) => {
  const { program, ...more } = forUser(t);
  const report = await examine({ before: asUser, program, ...more });
  assert.deepEqual(report.user.uid, user.uid);
  assert.equal(report.works, true);
  assert.deepEqual(states(report, keeping), all(keeping, 'on'));
  assert.deepEqual(states(report, bounding), { cgroup: 'off', 'uid-range': 'off', landlock: 'on' });
  assert.equal(report.rows.cgroup.fix, `sudo '${path.dirname(program)}/jerboa-jail' delegate 54321`);
  assert.match(report.rows['uid-range'].why, /uid 54321.*; run Jerboa as root$/);
  assert.equal(report.rows['uid-range'].fix, undefined);
  // bounded all the same, by the process limit and by the jail's own look; the processor is not
  assert.deepEqual(states(report, limits), { memory: 'on', processes: 'on', cpu: 'off', disk: 'on' });
  assert.equal(report.rows.cpu.fix, report.rows.cgroup.fix);
  // nothing was fetched for him yet
  assert.equal(report.rows.runtime.state, 'off');
  assert.equal(report.rows.runtime.fix, `'${program}' pull`);
  assert.deepEqual([report.rows.store.state, report.rows.files.state], ['on', 'on']);
});

test('the command for cgroups gives a user all limits', onlyRoot, async (t) => {
  const { program, ...more } = forUser(t);
  const before = await examine({ before: asUser, program, ...more });
  giveBackCgroups(t);
  const report = await examine({ before: [...asUser, ...paste(before.rows.cgroup.fix)], program, ...more });
  assert.equal(report.works, true);
  assert.deepEqual(states(report, ['cgroup', ...limits]), all(['cgroup', ...limits], 'on'));
});

// The switches are not on every kernel: a made-up one explains a real EPERM, which every chroot gets.
for (const [name, value, fix] of [['unprivileged_userns_clone', 0, 'kernel.unprivileged_userns_clone=1'],
  ['apparmor_restrict_unprivileged_userns', 1, 'kernel.apparmor_restrict_unprivileged_userns=0']])
  test(`${name} is ${value}: the sysctl is named`, onlyRoot, async (t) => {
    const { program, dir, cwd, ...more } = forUser(t), world = path.join(dir, 'world');
    fs.mkdirSync(world);
    const before = ['unshare', '--mount', 'sh', '-c',
      `mount --rbind / ${world} && mount -t tmpfs none ${world}/proc/sys/kernel && echo ${value} >${world}/proc/sys/kernel/${name} && exec chroot ${world} "$@"`, 'sh', ...asUser];
    const report = await examine({ before, program, ...more });
    assert.deepEqual([report.works, report.rows.sandbox.state], [false, 'off']);
    assert.match(report.rows.sandbox.why, /Operation not permitted/);
    assert.equal(report.rows.sandbox.fix, `sudo sysctl -w ${fix}`);
  });

test('user namespaces forbidden: nothing works, and the sysctl is named', onlyRoot, async (t) => {
  const { program, ...more } = forUser(t);
  const forbidden = [...asUser, 'unshare', '--user', '--map-root-user', 'sh', '-c', 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"', 'sh'];
  const report = await examine({ before: forbidden, program, ...more });
  assert.equal(report.works, false);
  assert.equal(report.rows.sandbox.state, 'off');
  assert.match(report.rows.sandbox.why, /user namespaces are forbidden/);
  assert.match(report.rows.sandbox.fix, /sysctl -w user\.max_user_namespaces=[1-9]\d*$/);
  assert.deepEqual(states(report, [...keeping, ...bounding]), all([...keeping, ...bounding], 'untried'));
  const r = await start([...forbidden.slice(1), program, 'doctor'], { program: forbidden[0], input: '', ...more }).ended;
  assert.match(r.stdout, /\n\s+fix: .*sysctl -w user\.max_user_namespaces=/);
  assert.match(r.stdout, /\nThe native engine does not work\.\n$/);
  assert.equal(r.status, 1);
  const mended = await examine({ before: [...forbidden, 'sh', '-c', `${report.rows.sandbox.fix} >/dev/null && exec "$@"`, 'sh'], program, ...more });
  assert.equal(mended.works, true);
});

const readOnly = ['unshare', '--mount', 'sh', '-c', `${readOnlyCgroups}; exec "$@"`, 'sh'];
const remount = "sh -c 'findmnt -nro TARGET -t cgroup,cgroup2 | xargs -n1 mount -o remount,bind,rw'";

test('cgroups that cannot be written: told, with the command', onlyRoot, async () => {
  const report = await examine({ before: readOnly });
  assert.equal(report.works, true);
  assert.equal(report.rows.cgroup.state, 'off');
  assert.match(report.rows.cgroup.why, /Read-only file system/);
  assert.equal(report.rows.cgroup.fix, remount);
  const mended = await examine({ before: [...readOnly, ...paste(report.rows.cgroup.fix)] });
  assert.equal(mended.rows.cgroup.state, 'on');
});

test('cgroups that a user cannot write, for both reasons: one command after the other', onlyRoot, async (t) => {
  const { program, ...more } = forUser(t);
  giveBackCgroups(t);
  const fixes = [];
  for (const expected of [`sudo ${remount}`, `sudo '${path.dirname(program)}/jerboa-jail' delegate 54321`]) {
    const { rows: { cgroup } } = await examine({ before: [...readOnly, ...asUser, ...paste(...fixes)], program, ...more });
    assert.deepEqual([cgroup.state, cgroup.fix], ['off', expected]);
    fixes.push(cgroup.fix);
  }
  assert.equal((await examine({ before: [...readOnly, ...asUser, ...paste(...fixes)], program, ...more })).rows.cgroup.state, 'on');
  // made over already: the first alone will do
  const given = await examine({ before: [...readOnly, ...asUser], program, ...more });
  assert.match(given.rows.cgroup.why, /Read-only file system/);
  assert.equal(given.rows.cgroup.fix, fixes[0]);
  assert.equal((await examine({ before: [...readOnly, ...asUser, ...paste(given.rows.cgroup.fix)], program, ...more })).rows.cgroup.state, 'on');
});

test('no runtime, no store', limit, async (t) => {
  const dir = tempDir(t);
  const empty = await examine({ env: { JERBOA_HOME: path.join(dir, 'home') } });
  assert.equal(empty.works, true);
  assert.equal(empty.rows.runtime.state, 'off');
  assert.equal(empty.rows.runtime.fix, `${path.join(build, 'jerboa')} pull`);
  assert.deepEqual(states(empty, keeping), all(keeping, 'on')); // they do not need it
  fs.writeFileSync(path.join(dir, 'file'), '');
  const none = await examine({ env: { JERBOA_HOME: path.join(dir, 'file') } });
  assert.equal(none.rows.store.state, 'off');
  assert.equal(none.rows.store.fix, 'export JERBOA_HOME="$(mktemp -d /var/tmp/jerboa-XXXXXX)"'); // not a name that others could foretell
  const { rows: { store } } = await examine({ before: paste(none.rows.store.fix), env: { JERBOA_HOME: path.join(dir, 'file') } });
  t.after(() => fs.rmSync(path.dirname(store.what), { recursive: true }));
  assert.match(store.what, /^\/var\/tmp\/jerboa-\w{6}\/runtimes$/);
  assert.equal(store.state, 'on');
});

test('a working directory that is gone', limit, async (t) => {
  const gone = (fix = '') => ['sh', '-c', `mkdir "$0" && cd "$0" && rmdir "$0"\n${fix}\nexec "$@"`, path.join(tempDir(t), 'gone')];
  const report = await examine({ before: gone() });
  assert.deepEqual([report.rows.files.state, report.rows.files.why], ['off', 'the working directory is gone']);
  const mended = await examine({ before: gone(report.rows.files.fix), env: { TMPDIR: tempDir(t) } });
  assert.equal(mended.rows.files.state, 'on');
});

test('a store that cannot be written: root makes over what belongs to another, the user opens his own', onlyRoot, async (t) => {
  const { program, cwd, ...more } = forUser(t), cache = path.join(cwd, '.cache'), store = path.join(cache, 'jerboa'), part = path.join(store, 'runtimes');
  const give = (...dirs) => { for (const dir of dirs) fs.chownSync(dir, user.uid, user.gid); };
  const close = (...dirs) => { for (const dir of dirs) fs.chmodSync(dir, 0o500); };
  const takeOver = "sudo chown -R 54321 '" + store + "'", open = "chmod -R u+rwX '" + store + "'";
  for (const [what, prepare, fix] of [
    ['all is root\'s', () => {}, takeOver],
    ['the part is', () => give(cache, store), takeOver],
    ['the whole is, and the part cannot be seen', () => { give(cache, part); fs.chmodSync(store, 0o700); }, takeOver],
    ['his own', () => { give(cache, store, part); close(part); }, open],
    ['his own, and closed altogether', () => { give(cache, store, part); close(part); fs.chmodSync(store, 0); }, open],
    ['none yet, below what is root\'s', () => { fs.rmSync(store, { recursive: true }); }, "sudo chown 54321 '" + cache + "'"],
    ['none yet, below his own', () => { fs.rmSync(store, { recursive: true }); give(cache); close(cache); }, "chmod u+rwX '" + cache + "'"],
  ]) {
    fs.rmSync(cache, { recursive: true, force: true });
    fs.mkdirSync(part, { recursive: true });
    prepare();
    const { rows } = await examine({ before: asUser, program, cwd, ...more });
    assert.deepEqual([what, rows.store.state, rows.store.fix], [what, 'off', fix]);
    const mended = await examine({ before: [...asUser, ...paste(rows.store.fix)], program, cwd, ...more });
    assert.deepEqual([what, mended.rows.store.state], [what, 'on']);
  }
});

test('no home: the store goes elsewhere, nobody is told to make over what lies above', onlyRoot, async (t) => {
  const { program, dir, cwd, ...more } = forUser(t);
  for (const HOME of ['/nonexistent', '/', path.join(dir, 'none', 'yet')]) {
    const env = { ...more.env, HOME };
    const { rows: { store } } = await examine({ before: asUser, program, cwd, env });
    assert.deepEqual([HOME, store.state, store.fix], [HOME, 'off', 'export JERBOA_HOME="$(mktemp -d /var/tmp/jerboa-XXXXXX)"']);
    const mended = (await examine({ before: [...asUser, ...paste(store.fix)], program, cwd, env })).rows.store;
    t.after(() => fs.rmSync(path.dirname(mended.what), { recursive: true }));
    assert.deepEqual([HOME, mended.state], [HOME, 'on']);
  }
});

test('a runtime that is damaged', limit, async (t) => {
  const dir = tempDir(t), entry = path.join(dir, `runtimes/node-24.99.0-${process.arch}`);
  fs.mkdirSync(path.join(entry, 'bin'), { recursive: true });
  fs.writeFileSync(path.join(entry, 'bin/node'), 'not a program', { mode: 0o755 });
  const report = await examine({ env: { JERBOA_HOME: dir } });
  assert.equal(report.works, true);
  assert.equal(report.rows.runtime.state, 'off');
  assert.equal(report.rows.runtime.fix, `${path.join(build, 'jerboa')} pull`);
});

test('programs that are not there', onlyRoot, async (t) => {
  // an installed Jerboa would help out
  const libexec = /JERBOA_LIBEXEC "(.*)"/.exec(fs.readFileSync(path.join(build, 'src/config.h'), 'utf8'))[1];
  const before = ['unshare', '--mount', 'sh', '-c', '[ ! -d "$0" ] || mount -t tmpfs none "$0" || exit 9; exec "$@"', libexec];
  for (const missing of ['jerboa-jail', 'jerboa-init']) {
    const program = copyPrograms(tempDir(t), ['jerboa', 'jerboa-jail', 'jerboa-init', 'jerboa-fetch'].filter((name) => name !== missing));
    const report = await examine({ before, program });
    assert.equal(report.works, false);
    assert.deepEqual([report.rows[missing].state, report.rows[missing].fix], ['off', undefined]);
    assert.match(report.rows[missing].why, /: install Jerboa again$/);
    assert.equal(report.rows.sandbox.state, 'off');
  }
});
