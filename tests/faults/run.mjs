// Every system call of ours fails once. `node run.mjs SHARE [PATTERN]`: of the faults whose names hold PATTERN, one of each class of each role, and every
// SHARE-th, from an offset that is printed (OFFSET= chooses it); 1 is all of them. A workload is run once to count the calls of each role and class
// (tests/programs/faults.c), and then once for each of them, which fails. A few are not reached, since the number of reads and polls depends on who is faster: they are counted
// apart, and tools/faults lets a tenth of all be so. `node run.mjs names [PATTERN]`: the workloads that have such faults. What must hold is the same for all: it goes well, or ends with one sentence;
// nobody dies of a mistake or hangs; no wall is missing that stands without the fault; nothing is left, but cgroups by a jail whose cleaning up fails, which the next start sweeps, and half an entry of the store, which the next one takes over; and a server serves the next call, unless it has ended with its sentence.
import fs from 'node:fs';
import path from 'node:path';
import { build, leftovers, start, sweep, tempDir, until } from '../integration/jerboa.mjs';
import { ownStore, program, programs, storeFiles } from '../integration/serving.mjs';
import { workloads } from './workloads.mjs';

const [share = '1', pattern = ''] = process.argv.slice(2);
const meant = workloads.filter(({ name }) => !pattern || pattern.startsWith(name));
if (share === 'names') {
  console.log(meant.map(({ name }) => name).join('\n'));
  process.exit();
}
const offset = +(process.env.OFFSET ?? Math.floor(Math.random() * 1000));
const hangs = 45; // seconds; a sandbox that does not start is given up after 30
const injector = path.join(build, 'faults');
const report = path.join(tempDir(), 'report');
const told = () => { try { return fs.readFileSync(report, 'utf8').trimEnd().split('\n').map((line) => line.split(' ')); } catch { return []; } };

/** The walls that results have to be missing, or the log: `missing walls: NAME (why; fix), NAME (why)`. */
const missing = (r) => [...r.missing ?? [], ...[...r.stderr.matchAll(/missing walls: (.*)/g)].flatMap(([, list]) => [...list.matchAll(/(?:^|, )([a-z-]+) \(/g)].map(([, name]) => name))];

/** The filter of a container forbids it with the same EPERM: that is a machine that does not have it. */
const isForbidden = (wall, r) => wall === 'landlock' && r.fired?.includes(' landlock_create_ruleset ');

/** One run of a workload, with a fault or without: what came of it, and what is wrong with that. */
async function once(workload, home, fault = []) {
  fs.rmSync(report, { force: true });
  const before = storeFiles(home);
  const begin = (args, { isAgain = false, env, ...more } = {}) => start([...isAgain ? ['/dev/null'] : [report, ...fault], '--', program, ...args],
    { program: injector, seconds: hangs, ...more, env: { JERBOA_HOME: home, ...env } });
  const fired = () => told().find(([word]) => word === 'fired')?.slice(1).join(' ');
  const r = await workload.run(begin, fired, home);
  if (r.signal) r.wrong.push('it hangs');
  for (const [, role, signal] of told().filter(([word]) => word === 'died')) r.wrong.push(`${role} died of SIG${signal}`);
  let left;
  const isGone = () => (left = [...leftovers(programs), ...storeFiles(home).filter((name) => !before.includes(name) && !['downloads', 'runs'].includes(name))]).length === 0;
  await until(isGone, '', 10).catch(() => {});
  if (left.some((what) => fault[0] !== 'jail' || !isCgroup.test(what))) r.wrong.push(`left behind: ${left}`);
  if (left.length) await sweep().catch((e) => r.wrong.push(e.message));
  return { ...r, fired: fired(), told: told() };
}

/** Of a class's calls: one, which is another one each time, and every SHARE-th. */
const chosen = (n) => Array.from({ length: n }, (_, i) => i).filter((i) => i === offset % n || i % +share === offset % +share);

/** Of classes whose calls do not depend on time, what is in the first half of those counted has to come. A server opens files each second. */
const mustCome = (role, kind, i, n) => ['open', 'fork', 'exec', 'mount', 'socket'].includes(kind) && 2 * i <= n && !(role === 'jerboa' && kind === 'open');

/** What a jail leaves when its cleaning up fails; the next start sweeps it. */
const isCgroup = /^\/sys\/fs\/cgroup\/.*\/jerboa-\d+$/;

let passed = 0, failed = 0, missed = 0;
console.log(`faults: every ${share}th that has '${pattern}', OFFSET=${offset}`);
for (const workload of meant) {
  const home = ownStore(), plain = await once(workload, home);
  if (plain.wrong.length) throw new Error(`${workload.name} without a fault: ${plain.wrong.join('; ')} ${plain.stderr}`);
  const isMeant = (role, kind) => +share === 1 || pattern.includes(' ') || !workload.sampled || workload.sampled.test(`${role} ${kind}`);
  for (const [, role, kind, n] of plain.told.filter(([word, role, kind]) => word === 'count' && isMeant(role, kind)))
    for (const fault of chosen(+n).map((i) => [role, kind, `${i + 1}`])) {
      const name = `${workload.name} ${fault.join(' ')}`;
      if (!name.includes(pattern)) continue;
      const r = await once(workload, home, fault);
      const fallen = [...new Set(missing(r))].filter((wall) => !missing(plain).includes(wall) && !isForbidden(wall, r));
      if (fallen.length) r.wrong.push(`code ran without a wall that it has: ${fallen}`);
      if (!r.fired && mustCome(role, kind, +fault[2], +n)) r.wrong.push(`not reached, although ${n} were counted`);
      const verdict = r.wrong.length ? 'not ok' : r.fired ? 'ok' : 'missed';
      if (r.wrong.length) failed++;
      else if (r.fired) passed++;
      else missed++;
      if (r.wrong.length || process.env.VERBOSE)
        console.log(`${verdict} ${name} (${r.fired}) ${[...r.wrong, ''].join('; ')}${r.status} ${JSON.stringify(r.stderr)}`);
    }
}
console.log(`${passed} passed, ${failed} failed, ${missed} not reached`);
process.exit(failed ? 1 : 0); // registries still listen
