// The table of disasters. Each strikes once and is undone after a while.
//
//   needs    kinds of calls (plan.mjs) without which there is nobody to hit
//   strike   (world, random, say): hits, tells whom with `say`, and returns how it is undone (or nothing); null: nobody was there to be hit
//   takes    who dies of it: 'server' (that of HTTP or that of stdio), 'client'. Their calls are lost, all others' are answered
//   excuse   pairs of texts of errors and how many calls may end with one, which has a bound where one of many is struck; without any, every call of who survives succeeds
//   mayLast  in one of four rounds it lasts for 6 to 12 seconds, longer than a server waits for who does not answer; only then it has its excuse
//   mayHangInstalls  an installer may hang, which is given 300 seconds: longer than anybody waits here, so no call asks for packages (plan.mjs)
//   leaves   what may stay until the next start
//   halves   who writes the store may die of it, or is ended because nobody waits for it any more, and an entry that was begun stays until somebody sweeps; or one that is used becomes old, and stays as long (src/store/entry.h)
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { descriptors, freeze } from '../integration/jerboa.mjs';
import { engine } from './world.mjs';

const isThere = (pid) => fs.existsSync(`/proc/${pid}`);
const signal = (pid, name) => { try { process.kill(pid, name); return true; } catch { return false; } };

/** Tries whoever is there until one was hit; the clients' load brings them. null: nobody came for long. */
async function hit(look, random, strike) {
  for (const end = performance.now() + 30_000; performance.now() < end; await pause(2)) {
    const seen = look();
    if (seen.length === 0) continue;
    const pid = random.of(seen);
    if (await strike(pid)) return pid;
  }
  return null;
}

/** Stops it; false: it had gone meanwhile. */
async function halt(pid) {
  try { await freeze(pid); } catch { return false; }
  try { return /\) T/.test(fs.readFileSync(`/proc/${pid}/stat`, 'latin1')); } catch { return false; }
}

const stdioServer = (world) => world.clients.find((c) => c.kind === 'stdio' && !c.isGone)?.fact('serverPid');
const named = (name) => (world) => world.find(name).map((p) => p.pid);

/** A client of the daemon that keeps a sandbox, not one that asks something. */
const isKeeper = (pid) => { try { return fs.readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0').includes('run'); } catch { return false; } };

/** The first of its namespace, not a child of it that is about to become somebody's program. */
const isFirst = (pid) => { try { return /^NSpid:.*\t1$/m.test(fs.readFileSync(`/proc/${pid}/status`, 'latin1')); } catch { return false; } };

/** Who can be hit: pids. */
const victims = {
  server: (world) => [world.server.pid, stdioServer(world)].filter((pid) => pid && isThere(pid)),
  jail: named('jerboa-jail'),
  docker: (world) => world.called('docker').filter((pid) => isKeeper(pid)),
  shim: (world) => world.called('containerd-shim'),
  podman: (world) => world.called('podman').filter((pid) => isKeeper(pid)),
  conmon: (world) => world.called('conmon'),
  init: (world) => named('jerboa-init')(world).filter(isFirst),
  installer: named('jerboa-layer'),
  fetch: named('jerboa-fetch'),
  client: (world) => world.clients.filter((c) => !c.isGone && c.fact('ready')).map((c) => c.child.pid),
};
const needs = { installer: ['withPackage'], fetch: ['types'] };

const any = (...texts) => new RegExp(texts.map((text) => text.source).join('|'), 'i');
const lost = /sandbox_lost|unknown or has expired|was not run|could not be started|no page|failed with|could not be published/i;
const notFetched = /could not be installed|"reason"|search failed|cannot be searched/i;
const noSpace = /ENOSPC|no space|disk quota/i;
const tooLate = /timeout: |does not tell/i;

/** What a dead one takes along for others; those of the server are lost with it, a client's are nobody's. In a sandbox there is one call at a time, and one more is
 *  forgiven; for one install or one fetch all may wait: three clients with two calls each. */
const ofFetch = [[notFetched, 6]], ofSandbox = [[lost, 2], ...ofFetch];
const ofPages = [[/no page/i, 6]]; // a server's ports go with it, and somebody may be on his way there
const excuses = { server: ofPages, jail: ofSandbox, docker: ofSandbox, shim: ofSandbox, podman: ofSandbox, conmon: ofSandbox, init: ofSandbox, installer: ofFetch, fetch: ofFetch };

/** Of one that stands still for long: its server gives it up, or its call comes to its timeout. An installer is given more time than that. */
const ofStandstill = [[any(lost, tooLate), 2], ...ofFetch];
const ofServer = [[any(tooLate, /did not answer within 10 s/), 6]]; // who asks and waits then, be it for a search, which has ten seconds: three clients, two calls each
const excusesOfStop = { server: ofServer, jail: ofStandstill, docker: ofStandstill, shim: ofStandstill, podman: ofStandstill, conmon: ofStandstill, init: ofStandstill, fetch: ofFetch };
const article = (whom) => (/^[aeiou]/.test(whom) ? 'an' : 'a');

/** The groups of a jail's sandbox, by what cannot be taken for the next one's of the same name. */
function groupsOf(world, jail) {
  const [init] = fs.readFileSync(`/proc/${jail}/task/${jail}/children`, 'latin1').split(' ');
  const name = init && /\/(jerboa-u?\d+)\/init$/m.exec(fs.readFileSync(`/proc/${init}/cgroup`, 'latin1'))?.[1];
  return world.groups().filter((dir) => path.basename(dir) === name).map((dir) => [dir, fs.statSync(dir).ino]);
}
const stands = ([dir, ino]) => { try { return fs.statSync(dir).ino === ino; } catch { return false; } };

/** A container whose client ended between making and starting it goes with the next start; of podman's, its cgroup, its root and who waits for its start do, which a daemon would see to. */
const justStarted = { docker: /^container /, podman: /^(container |cgroup \S+\/libpod_parent\/|mounts$|mount \S+\/(userdata\/shm|merged)$|process \d+ (conmon|runc:\[2:INIT\]|podman \(podman run) |socket (\S+\/attach|@[0-9a-f]+)$)/ }[engine];

/** Killed, it leaves them to the server, and the world waits until they are gone. */
function killJail(world, jail) {
  let groups = [];
  try { groups = groupsOf(world, jail); } catch { /* it is just coming, or going */ }
  if (!signal(jail, 'SIGKILL')) return false;
  world.waitFor(() => !groups.some(stands), () => `the server does not sweep: ${groups.filter(stands).map(([dir]) => dir).join(', ')}`);
  return true;
}

/** Its container, whose empty groups podman may leave; so does docker, if it was just being made, whoever asked for it. */
function killKeeper(world, keeper) {
  let id;
  try { id = /\0-(?:c|id)\0([0-9a-f]{64})\0/.exec(fs.readFileSync(`/proc/${keeper}/cmdline`, 'latin1'))?.[1]; } catch { /* it is just going */ }
  if (!id || !signal(keeper, 'SIGKILL')) return false;
  world.abandon(id);
  return true;
}

const killers = { jail: killJail, conmon: killKeeper, shim: killKeeper };

const kill = (whom) => ({
  name: `SIGKILL of ${article(whom)} ${whom}`,
  leaves: justStarted, halves: true,
  needs: needs[whom], takes: whom === 'server' || whom === 'client' ? whom : undefined, excuse: excuses[whom],
  async strike(world, random, say) {
    const pid = await hit(() => victims[whom](world), random, (found) => (killers[whom] ? killers[whom](world, found) : signal(found, 'SIGKILL')));
    say(pid);
    return pid === null ? null : undefined;
  },
});

const stop = (whom) => ({
  name: `SIGSTOP of ${article(whom)} ${whom}`,
  needs: needs[whom], mayLast: true, excuse: excusesOfStop[whom], halves: true,
  async strike(world, random, say) {
    const pid = await hit(() => victims[whom](world), random, halt);
    say(pid);
    return pid === null ? null : () => { signal(pid, 'SIGCONT'); };
  },
});

const fill = (place, texts, kinds) => ({
  name: `no space left under ${place}`,
  needs: kinds, excuse: texts && [[texts, Infinity]],
  strike: async (world) => world.fill(place),
});

const jump = (name, day_s, boot_s) => ({
  name, halves: true,
  async strike(world) {
    const fd = fs.openSync(world.clock, 'r+');
    const set = (...seconds) => fs.writeSync(fd, BigInt64Array.from(seconds, (s) => BigInt(s) * 1_000_000_000n), 0, 16, 0);
    set(day_s, boot_s);
    return () => { set(0, 0); fs.closeSync(fd); }; // back again: a jump in the other direction
  },
});

const limitOf = (pid) => /^Max open files\s+(\S+)\s+(\S+)/m.exec(fs.readFileSync(`/proc/${pid}/limits`, 'utf8')).slice(1).join(':');

const keepers = { native: ['jail'], docker: ['docker', 'shim'], podman: ['podman', 'conmon'] }[engine];

/** What an engine has to do with. */
const ofEngines = [
  ...['server', ...keepers, 'init'].map(kill),
  ...['server', ...keepers, 'init'].map(stop),
  { // so that neither sees the other go
    name: `SIGKILL of a server and its ${keepers[0]}s`, takes: 'server', leaves: engine === 'podman' ? justStarted : /^(cgroup|container) /, halves: true, excuse: ofPages,
    async strike(world, random, say) {
      const pid = random.of(victims.server(world));
      const children = fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ').filter(Boolean).map(Number);
      await freeze(pid);
      for (const child of children) signal(child, 'SIGKILL');
      signal(pid, 'SIGKILL');
      say(`${pid} with ${children}`);
    },
  },
  fill('files', noSpace, ['file']),
  {
    name: 'no more descriptors', halves: true, excuse: [[any(lost, notFetched, /too many open files|cannot be/), Infinity]],
    async strike(world, random, say) {
      const pid = random.of(victims.server(world));
      const before = limitOf(pid), open = descriptors(pid) + random.below(6);
      execFileSync('prlimit', ['--pid', `${pid}`, `--nofile=${open}:`]);
      say(`${pid}: ${open}`);
      return () => { if (isThere(pid)) execFileSync('prlimit', ['--pid', `${pid}`, `--nofile=${before}`]); };
    },
  },
  { // A Node that gets some of its threads and not all hangs for ever (so does a bare one): its call ends at its timeout.
    name: 'no more processes', mayHangInstalls: true, leaves: justStarted, excuse: [[any(lost, notFetched, /resource temporarily unavailable|fork|spawn|EAGAIN|ended with|pids|timeout: /, ...(engine === 'native' ? [] : [/does not answer/])), Infinity]], // its client has not its threads, either
    async strike(world, random, say) {
      const now = +fs.readFileSync(path.join(world.pids, 'pids.current'), 'utf8') + random.below(8);
      fs.writeFileSync(path.join(world.pids, 'pids.max'), `${now}`);
      say(now);
      return () => fs.writeFileSync(path.join(world.pids, 'pids.max'), 'max');
    },
  },
];

/** And the others, which are shown once. */
const ofOthers = [
  ...['installer', 'fetch', 'client'].map(kill),
  ...['installer', 'fetch', 'client'].map(stop),
  fill('store', any(notFetched, noSpace), ['withPackage', 'types', 'much']),
  fill('tmp', undefined, ['file', 'much']), // strikes nobody: it shows that nothing of ours writes there
  {
    name: 'the registry drops everybody in mid-transfer', needs: ['withPackage', 'types', 'search'], excuse: [[notFetched, Infinity]],
    async strike(world) {
      const met = world.registry.drop();
      const isMet = await Promise.race([met.then(() => true), pause(8000, false)]);
      if (!isMet) world.registry.mend();
      return isMet ? world.registry.mend : null;
    },
  },
  jump('the clock jumps a year ahead', 366 * 86400, 0),
  jump('the clock jumps to 1971', -Math.floor(Date.now() / 1000) + 366 * 86400, 0),
  jump('the machine was asleep for a day', 86400, 86400),
];

export const disasters = engine === 'native' ? [...ofEngines, ...ofOthers] : ofEngines;
