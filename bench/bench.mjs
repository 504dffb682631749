// bench.mjs BUILD RUNTIME_DIR [ROUNDS]: Jerboa beside its peers, in one run; prints it, and writes BUILD/bench.json, .md and .svg.
// Exit status 1 when a bar is missed. Whatever ends it, servers and daemons end with it. What it keeps for the next time, a store and an
// image, is below BUILD/bench.
import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import path from 'node:path';

import { burst, clients, gatedMiB, live, residentMiB, ungatedMiB } from './load.mjs';
import { coldTurns, nodeModules, ourTurn, place } from './ours.mjs';
import { peers, writeScripts } from './peers.mjs';
import { draw } from './plot.mjs';
import { endPrograms } from './programs.mjs';
import { missed, report, toText } from './report.mjs';
import { medianMore, reasonOf, settle, takeTurns } from './turns.mjs';
import { bars } from './work.mjs';

const [build, runtime] = process.argv.slice(2, 4).map((p) => path.resolve(p));
const rounds = Number(process.argv[4] ?? 15), pauseMs = 250;
const { program, home, env, node, dir } = place(build, runtime);
const load = loadavg()[0];
const say = (text) => process.stderr.write(`bench: ${text}\n`);

// ---- what is to be undone, the last first; also when somebody ends us ----

const undo = [() => rmSync(dir, { recursive: true, force: true })];

async function end() {
  while (undo.length > 0) await undo.pop()();
}

const interrupt = new AbortController();
for (const [name, number] of [['SIGINT', 2], ['SIGTERM', 15], ['SIGHUP', 1]])
  process.once(name, async () => {
    interrupt.abort();
    endPrograms();
    await end().finally(() => process.exit(128 + number));
  });

// ---- everybody ----

/** The registry and the certificates of this machine, for a container that runs npm. */
function npmEnv() {
  const registry = execFileSync(path.resolve(import.meta.dirname, '../tools/registry'), { encoding: 'utf8' }).trim();
  const proxies = ['http_proxy', 'https_proxy', 'no_proxy'].flatMap((name) => [name, name.toUpperCase()]).filter((name) => process.env[name]);
  return [`npm_config_registry=${registry}`, 'NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt', ...proxies.map((name) => `${name}=${process.env[name]}`)];
}

async function everybody() {
  const ours = await ourTurn(program, home);
  undo.push(ours.end);
  writeScripts(dir, (dependency) => nodeModules(home, dependency));
  const turns = [ours], told = {}, machine = { build, program, home, dir, node, npmEnv: npmEnv() };
  for (const [who, { name, make }] of Object.entries(peers)) {
    told[who] = { name };
    try {
      const turn = await make(machine);
      if (turn.end) undo.push(turn.end);
      turns.push({ ...turn, who });
      told[who].version = turn.version;
      if (who === 'node') turns.push(...coldTurns(program, home, dir, node));
    } catch (error) {
      if (who === 'node') throw error; // the unit
      told[who].reason = reasonOf(error);
    }
  }
  return { ours, turns, told };
}

// ---- what is not a time ----

async function figures(samples, resident) {
  const of = (bar, value) => ({ ...bar, value });
  say('many at once');
  const rate = await burst(program, env);
  const { rate: calls, errors } = await clients(program, env, 8, 60);
  say('memory');
  const gated = await gatedMiB(program, env), ungated = await ungatedMiB(program, env);
  const { answers, seconds } = await live(program, env, 200);
  if (errors.length > 0) say(`first error of the 8 clients: ${errors[0]}`);
  return [
    of(bars.cold, medianMore(samples.cold.jerboa, samples.cold.node)),
    of(bars.burst, rate),
    of(bars.errors, errors.length),
    { name: '8 clients for 60 s: calls', unit: '/s', value: calls },
    of(bars.resident, resident),
    of(bars.gated, gated),
    of(bars.ungated, ungated),
    of(bars.live, answers),
    { name: '  made in', unit: 's', value: seconds },
  ];
}

try {
  if (load > 0.5) say(`others work on this machine (load ${load.toFixed(1)}): times say little, ratios less than they could`);
  say(`the first time packages, an image and a store are made; then ${rounds} rounds, some minutes`);
  const { ours, turns, told } = await everybody();
  const { samples, reasons } = await takeTurns(turns, { rounds, pauseMs, signal: interrupt.signal, told: (round) => say(`round ${round} of ${rounds}`) });
  for (const [who, of] of Object.entries(reasons)) told[who].reasons = of;
  const resident = residentMiB(ours.pid), more = [];
  for (const { who, figures } of turns) if (figures && !reasons[who]) more.push(...await figures(samples));
  await end();
  await settle();
  const version = execFileSync(program, ['--version'], { encoding: 'utf8' }).trim().split(' ').at(-1);
  const r = report({ samples, peers: told, figures: [...await figures(samples, resident), ...more], rounds, pauseMs, version, load });
  writeFileSync(path.join(build, 'bench.json'), `${JSON.stringify(r, null, 1)}\n`);
  writeFileSync(path.join(build, 'bench.svg'), draw(r));
  writeFileSync(path.join(build, 'bench.md'), `${toText(r)}\n`);
  console.log(toText(r));
  process.exitCode = missed(r).length > 0 ? 1 : 0;
} catch (error) {
  if (!interrupt.signal.aborted) throw error; // else the one who ends us goes on
} finally {
  if (!interrupt.signal.aborted) await end();
}
