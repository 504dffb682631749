// figures.mjs BUILD RUNTIME_DIR: measures, prints the table, exits 1 when a bound is missed.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { beginTable, endTable, figure } from './table.mjs';
import { median } from './turns.mjs';

const [build, runtime] = process.argv.slice(2).map((p) => path.resolve(p));
const program = (name) => path.join(build, name);
const jerboa = program('jerboa');
const KiB = 1024;
const GiB = KiB ** 3;

// ---- programs ----

/** Milliseconds from before the start to after the end; throws when it fails. */
function time(file, args) {
  const began = process.hrtime.bigint();
  const { status, error } = spawnSync(file, args, { stdio: ['ignore', 'ignore', 'inherit'] });
  const ms = Number(process.hrtime.bigint() - began) / 1e6;
  if (error || status !== 0) throw error ?? new Error(`${file} ${args.join(' ')}: status ${status}`);
  return ms;
}

/** Medians of several commands, taken in turns so that noise hits all alike; the first two rounds
 *  fill caches and do not count. */
function timeInTurns(rounds, commands) {
  const times = commands.map(() => []);
  for (let i = -2; i < rounds; i++)
    for (let k = 0; k < commands.length; k++) {
      const turn = (k + i + 2) % commands.length; // nobody always follows the same neighbour
      const ms = time(...commands[turn]);
      if (i >= 0) times[turn].push(ms);
    }
  return times.map(median);
}

function output(file, args) {
  const { status, stdout, stderr, error } = spawnSync(file, args, { encoding: 'utf8' });
  if (error || status !== 0) throw error ?? new Error(`${file}: status ${status}: ${stderr}`);
  return stdout + stderr;
}

// ---- system calls ----

const installed = (name) => (process.env.PATH ?? '').split(':').some((dir) => existsSync(path.join(dir, name)));

/** What jerboa itself does for one run, jail and Node not counted. Less noisy than any time. */
function work() {
  if (!installed('strace')) return;
  const table = output('strace', ['-c', '-U', 'calls,name', jerboa, 'run', '-e', '0']);
  figure('system calls of jerboa run -e 0', Number(table.match(/(\d+) total/)[1]));
}

// ---- init ----

const status = (pid) => readFileSync(`/proc/${pid}/status`, 'utf8');
const field = (text, name) => text.match(new RegExp(`^${name}:\\s+(\\S+)`, 'm'))?.[1];
const children = (pid) => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean);

async function init() {
  figure('jerboa-init: file', statSync(program('jerboa-init')).size / KiB, 'KiB', { most: 100 });
  const sandbox = spawn(jerboa, ['run', '-e', 'console.log("up"); setInterval(() => {}, 1e6)']);
  await once(sandbox.stdout, 'data');
  const [jail] = children(sandbox.pid);
  const [pid] = children(jail);
  const memory = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'); // VmRSS of status is an estimate
  figure('jerboa-init: resident, idle', Number(field(memory, 'Rss')), 'KiB', { most: 512 });
  sandbox.kill('SIGTERM');
  await once(sandbox, 'exit');
}

// ---- one stream ----

/** Both have three pipes and four processes, so the ratio is Jerboa's own cost. */
function stream() {
  const head = `head -c ${GiB} /dev/zero`;
  const code = `import { spawnSync } from 'node:child_process';
    process.exit(spawnSync('sh', ['-c', '${head}'], { stdio: 'inherit' }).status);`;
  const sh = (line, ...args) => ['sh', ['-c', line, 'sh', ...args]];
  const [cats, ours] = timeInTurns(5, [
    sh(`${head} | cat | cat | cat >/dev/null`),
    sh('"$1" run -e "$2" | cat >/dev/null', jerboa, code),
  ]);
  figure('1 GiB through head | cat | cat | cat', GiB / 1e6 / cats, 'GB/s');
  figure('1 GiB of stdout through jerboa run | cat', GiB / 1e6 / ours, 'GB/s');
  figure('  ratio', cats / ours, '', { least: 0.5 });
}

// ---- the way out of a sandbox: its inside half, see bench/egress.c ----

function egress() {
  const lines = output(program('egress'), [program('jerboa-init')]).trim().split('\n').map((line) => line.split(' '));
  const of = Object.fromEntries(lines.map(([name, direct, ours]) => [name, { direct: Number(direct), ours: Number(ours) }]));
  for (const [name, text] of [['down', 'to code'], ['up', 'from code']]) {
    figure(`connection ${text}: direct`, of[name].direct, 'MB/s');
    figure('  redirected, init, pipe', of[name].ours, 'MB/s');
    figure('  ratio', of[name].ours / of[name].direct, '', { least: 0.3 });
  }
  figure('a byte there and back: direct', of.trip.direct / 1e3, 'ms');
  figure('  more when redirected', (of.trip.ours - of.trip.direct) / 1e3, 'ms', { most: 1 });
  figure('connect to first byte: direct', of['first-byte'].direct / 1e3, 'ms');
  figure('  more when redirected', (of['first-byte'].ours - of['first-byte'].direct) / 1e3, 'ms', { most: 1 });
}

// ---- many sandboxes, one after the other, by one process ----

const FIRST_UID = 0x70000000;
const UIDS_PER_SLOT = 0x10000;

/** Slots whose byte of the lock file somebody holds: live sandboxes, others' included. */
function liveSlots() {
  const inode = statSync('/run/jerboa/ids').ino;
  const locks = readFileSync('/proc/locks', 'utf8').matchAll(/OFDLCK .*:(\d+) (\d+) \d+$/gm);
  return new Set([...locks].filter((m) => Number(m[1]) === inode).map((m) => Number(m[2])));
}

/** Slots that have a cgroup below ours, one entry a hierarchy. */
function cgroupSlots() {
  const own = new Map(readFileSync('/proc/self/cgroup', 'utf8').trim().split('\n')
    .map((line) => line.split(':')).map(([, controllers, dir]) => [controllers, dir]));
  const parents = readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
    .filter((line) => line.includes(' - cgroup ')).map((line) => line.split(' '))
    .map((words) => [words[4], own.get(words.at(-1).replace(/^rw,/, ''))])
    .filter(([, dir]) => dir !== undefined).map(([point, dir]) => path.join(point, dir));
  return parents.filter(existsSync).flatMap((dir) => readdirSync(dir).filter((n) => /^jerboa-\d+$/.test(n)).map((n) => Number(n.slice(7))));
}

function processSlots() {
  const uids = readdirSync('/proc').filter((n) => /^\d+$/.test(n)).map((pid) => {
    try {
      return Number(field(status(pid), 'Uid'));
    } catch {
      return 0; // gone meanwhile
    }
  });
  return uids.filter((uid) => uid >= FIRST_UID && uid < 2 ** 31).map((uid) => Math.floor((uid - FIRST_UID) / UIDS_PER_SLOT));
}

const mounts = () => readFileSync('/proc/self/mountinfo', 'utf8').split('\n').filter(Boolean).length;

/** What belongs to no live sandbox. Sandboxes of other people end while we look: look again. */
async function leftovers() {
  let left;
  for (let i = 0; i < 20; i++) {
    const [groups, processes, live] = [cgroupSlots(), processSlots(), liveSlots()];
    left = [groups, processes].map((slots) => slots.filter((slot) => !live.has(slot)).length);
    if (left.every((n) => n === 0)) break;
    await pause(50);
  }
  return { groups: left[0], processes: left[1] };
}

function live(count, ...command) {
  const text = output(program('churn'), [runtime, String(count), ...command]);
  return Object.fromEntries(text.trim().split('\n').map((line) => line.split(' ')).map(([k, v]) => [k, Number(v)]));
}

async function churn() {
  const mountsBefore = mounts();
  const one = live(1000, '/bin/true');
  const left = await leftovers();
  const withNode = live(50, '/opt/node/bin/node', '-e', '0');
  figure('1,000 sandboxes with /bin/true, one after the other: each', one.median_ms, 'ms');
  figure('  slowest', one.worst_ms, 'ms');
  figure('  resident after 1,000 more than after 100', one.late_kib - one.early_kib, 'KiB', { most: 1024 });
  figure('  descriptors after more than before', one.fds_after - one.fds_before, '', { most: 0 });
  figure('  processes left', left.processes, '', { most: 0 });
  figure('  cgroups left', left.groups, '', { most: 0 });
  figure('  mounts after more than before', mounts() - mountsBefore, '', { most: 0 });
  figure('50 sandboxes with node -e 0: each', withNode.median_ms, 'ms');
}

// ---- FILES_DIR, see bench/files.c ----

function files() {
  const text = output(program('files'), [tmpdir(), '10000']);
  const of = Object.fromEntries(text.trim().split('\n').map((line) => line.split(' ')).map(([k, v]) => [k, Number(v)]));
  figure('10,000 files in FILES_DIR: the walk at the start', of.open_ms, 'ms');
  figure('  a run that changes none: more', of.run_ms, 'ms', { most: 5 });
  figure('  slowest of 201', of.run_worst_ms, 'ms');
  figure('  a run that changes one: more', of.change_ms, 'ms', { most: 5 });
  figure('  a run that loses its events, and walks: more', of.walk_ms, 'ms');
  figure('a writer at full speed: beyond its quota', of.quota_mb, 'MB');
}

beginTable();
work();
await init();
egress();
stream();
files();
await churn();
endTable();
