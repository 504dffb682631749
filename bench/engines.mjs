// engines.mjs BUILD RUNTIME_DIR: the engines beside each other, in one run, and what docker and podman take for the same without us: the figures of
// docs/engines.md. Nothing is demanded here; bench.mjs has docker's bars. Root, with docker and podman of Debian, each in a place of its own.
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { startPodman } from '../tests/engines/podman.mjs';
import { start } from './client.mjs';
import { startDocker } from './docker.mjs';
import { aSandbox, place } from './ours.mjs';
import { run } from './programs.mjs';
import { median, takeTurns } from './turns.mjs';
import { echo, scripts } from './work.mjs';

const ROUNDS = 15, SANDBOXES = 10;
const image = 'node:lts-slim';
const [build, runtime] = process.argv.slice(2).map((p) => path.resolve(p));
const { program, home } = place(build, runtime);

/** Our program where that engine is found; podman's is in namespaces of its own. */
function programFor({ around }, engine) {
  if (!around) return program;
  const file = path.join(build, 'bench', `jerboa-on-${engine}`), words = around([program]).map((word) => `'${word}'`);
  writeFileSync(file, `#!/bin/sh\nexec ${words.join(' ')} "$@"\n`, { mode: 0o755 });
  return file;
}

// ---- times ----

async function ourTurn(engine, file, env) {
  const server = start(file, ['--engine', engine], env);
  await server.open();
  return {
    who: engine, must: true, end: server.close,
    async run(time) {
      await aSandbox(server, time);
      await time('cold', () => run(file, ['run', '--engine', engine, '-e', scripts.hello.code], { env, prints: scripts.hello.prints }));
    },
  };
}

/** The same in a container that stands there. */
async function theirTurn(name, client) {
  const id = (await client('run', '--detach', ...(name === 'podman' ? ['--runtime=runc'] : []), '--network=none', image, 'sleep', '10000')).trim();
  const exec = (...command) => client(...(name === 'podman' ? ['--runtime=runc'] : []), 'exec', id, ...command);
  return {
    who: `${name} exec`, must: true, end: () => client('rm', '--force', id),
    async run(time) {
      await time('exec', () => exec('sh', '-c', echo.command));
      await time('run_js', () => exec('node', '-e', scripts.hello.code));
    },
  };
}

// ---- memory ----

const processes = () => readdirSync('/proc').filter((name) => /^\d+$/.test(name));

/** PSS in MiB by name of program, of who was not there before. */
function takenBy(pids) {
  const sums = {};
  for (const pid of pids)
    try {
      const pss = Number(/^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) / 1024;
      const name = path.basename(readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0')[0]);
      sums[name] = (sums[name] ?? 0) + pss;
    } catch { /* it has gone */ }
  return sums;
}

/** What each of ten sandboxes takes that wait for their first call. The machine must be quiet: whoever else comes is counted. */
async function memoryOf(engine, file, env, args) {
  const server = start(file, ['--engine', engine, '--pool', '0', ...args], env);
  try {
    await server.open();
    const before = new Set(processes());
    await Promise.all(Array.from({ length: SANDBOXES }, () => server.call('sandbox_initialize', {})));
    await pause(5000); // a Node that is held comes later
    const taken = takenBy(processes().filter((pid) => !before.has(pid)));
    const each = Object.entries(taken).map(([name, mib]) => [name, mib / SANDBOXES]).filter(([, mib]) => mib >= 0.05).sort((a, b) => b[1] - a[1]);
    return `${each.reduce((sum, [, mib]) => sum + mib, 0).toFixed(1)} MiB (${each.map(([name, mib]) => `${name} ${mib.toFixed(1)}`).join(', ')})`;
  } finally {
    await server.close();
  }
}

// ---- all of it ----

const daemons = {};
try {
  daemons.native = { env: {}, end() {} };
  daemons.docker = await startDocker(build, runtime, { name: 'bench-engines', tags: [image] }).then((d) => ({ ...d, client: d.docker }));
  daemons.podman = await startPodman(build, runtime, { name: 'bench-engines', tags: [image] });
  const turns = [];
  try {
    for (const [engine, daemon] of Object.entries(daemons)) {
      daemon.program = programFor(daemon, engine);
      daemon.ourEnv = { JERBOA_HOME: home, ...daemon.env };
      turns.push(await ourTurn(engine, daemon.program, daemon.ourEnv));
      if (daemon.client) turns.push(await theirTurn(engine, daemon.client));
    }
    const { samples } = await takeTurns(turns, { rounds: ROUNDS, pauseMs: 1000 });
    for (const [what, of] of Object.entries(samples)) console.log(`${what.padEnd(12)} ${Object.entries(of).map(([who, ms]) => `${who} ${median(ms).toFixed(1)} ms`).join(' · ')}`);
  } finally {
    for (const turn of turns) await turn.end();
  }
  for (const [engine, daemon] of Object.entries(daemons))
    for (const [what, args] of [['ready', ['--hold', '0']], ['Node held', []]])
      console.log(`memory       ${engine}, ${what}: ${await memoryOf(engine, daemon.program, daemon.ourEnv, args)}`);
} finally {
  for (const daemon of Object.values(daemons)) await daemon.end();
}
