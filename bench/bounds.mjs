// bounds.mjs BUILD RUNTIME_DIR: what no sandbox can save: the profile behind docs/speed.md's bars that are missed.
//
// A script that imports a package pays for that in any Node, booted or not. So a call with it takes at least what a call without takes, and the
// import in plain Node: that bounds the ratio, in units of `node -e 0` as the bars are.
// A call that is answered at once has cost processors a Node's boot and a sandbox all the same: their time bounds the calls a second.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { start } from './client.mjs';
import { nodeModules, place } from './ours.mjs';
import { writeScripts } from './peers.mjs';
import { run } from './programs.mjs';
import { beginTable, endTable, figure } from './table.mjs';
import { median } from './turns.mjs';
import { rows, scripts } from './work.mjs';

const ROUNDS = 25, PAUSE_MS = 250, CALLS = 100, TICK_MS = 10; // the kernel's USER_HZ
const [build, runtime] = process.argv.slice(2).map((p) => path.resolve(p));
const { program, home, env, node, dir } = place(build, runtime);

// ---- plain Node ----

async function ms(file, args, more = {}) {
  const began = performance.now();
  const [status] = await once(spawn(file, args, { stdio: 'ignore', env: { ...process.env, ...more } }), 'exit');
  if (status !== 0) throw new Error(`${file} ${args[0]}: status ${status}`);
  return performance.now() - began;
}

/** Medians of works, in turns; the first two rounds fill caches. */
async function inTurns(works) {
  const times = Object.fromEntries(Object.keys(works).map((key) => [key, []]));
  for (let round = -2; round < ROUNDS; round++)
    for (const [key, work] of Object.entries(works)) {
      const took = await work();
      if (round >= 0) times[key].push(took);
    }
  return Object.fromEntries(Object.entries(times).map(([key, all]) => [key, median(all)]));
}

async function imports(server) {
  const cache = path.join(dir, 'cache');
  mkdirSync(cache);
  const script = (key) => [path.join(dir, key, 'index.js')];
  const t = await inTurns({
    unit: () => ms(node, ['-e', '0']),
    hello: () => ms(node, script('hello')),
    ...Object.fromEntries(['lodash', 'express'].flatMap((key) => [
      [key, () => ms(node, script(key))],
      [`${key} cached`, () => ms(node, script(key), { NODE_COMPILE_CACHE: cache })],
    ])),
    cold: () => ms(program, ['run', ...script('hello')], env),
    call: async () => {
      await pause(PAUSE_MS); // a Node is held again
      const began = performance.now();
      await server.call('run_js_ephemeral', { code: scripts.hello.code });
      return performance.now() - began;
    },
  });
  figure('node -e 0', t.unit, 'ms');
  figure('node hello.js', t.hello, 'ms');
  figure('run_js_ephemeral hello', t.call, 'ms');
  for (const key of ['lodash', 'express']) {
    const { nodes, bar } = rows.find((row) => row.key === key);
    figure(`  importing ${key}: more`, t[key] - t.hello, 'ms');
    figure('    with a warm compile cache', t[`${key} cached`] - t.hello, 'ms');
    figure(`    so a call with it is at best, of ${bar}x`, nodes * t.unit / (t.call + t[key] - t.hello), 'x');
  }
  figure('jerboa run hello.js: more than node hello.js', t.cold - t.hello, 'ms');
}

/** What the walls add to an import: the same, by a clock around it, inside and outside. */
async function walled(server, key) {
  const { dependencies } = scripts[key], code = `const began = performance.now();\nawait import('${key}');\nconsole.log(performance.now() - began);\n`;
  const file = path.join(dir, key, 'clocked.mjs');
  writeFileSync(file, code);
  const t = await inTurns({
    inside: async () => {
      await pause(PAUSE_MS);
      return Number((await server.call('run_js_ephemeral', { code, dependencies })).structuredContent.stdout);
    },
    outside: async () => Number(await run(node, [file], {})),
  });
  figure(`importing ${key} in a sandbox ÷ in plain Node`, t.inside / t.outside, 'x');
}

// ---- processors ----

/** Milliseconds of a processor that a process and those that it has waited for took. */
const spent = (pid) => readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ').slice(11, 15).reduce((sum, ticks) => sum + Number(ticks) * TICK_MS, 0);

async function processors(server) {
  const calls = (count) => Promise.all(Array.from({ length: 4 }, async (_, i) => {
    for (let n = i; n < count; n += 4) await server.call('run_js_ephemeral', { code: scripts.hello.code });
  }));
  await calls(8);
  await pause(2000); // what was torn down behind has been waited for
  const before = spent(server.pid);
  await calls(CALLS);
  await pause(2000);
  const each = (spent(server.pid) - before) / CALLS;
  figure('processor time of one run_js_ephemeral, its sandbox included', each, 'ms');
  figure(`  so ${availableParallelism()} processors bear at most`, availableParallelism() * 1e3 / each, '/s');
}

const server = start(program, [], env);
try {
  await server.open();
  for (const { code, dependencies } of Object.values(scripts)) await server.call('run_js_ephemeral', { code, dependencies }); // their layers
  writeScripts(dir, (dependency) => nodeModules(home, dependency));
  beginTable();
  await imports(server);
  for (const key of ['lodash', 'express']) await walled(server, key);
  await processors(server);
} finally {
  await server.close();
  rmSync(dir, { recursive: true, force: true });
}
endTable();
