// soak.mjs [RUNS [MINUTES]]: does a server grow? RUNS ephemeral runs at one server, then MINUTES of all that clients may be at, at two servers side by side with
// one store: one on stdio, one on HTTP with tokens, sessions that come and go, an audit log, a registry on loopback, `jerboa gc` now and then.
//
// Before and after each part the servers come to rest: then all counts of gauge.mjs must be the same. Memory of their own may have grown, from a fifth of the
// time on, by BOUND_KIB at most: see docs/soak.md for why so much. A long one writes soak.json and soak.svg into the build directory. Ends with `N passed, N failed`.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { build, isRoot, sanitized, start, tempDir, until } from '../integration/jerboa.mjs';
import { modern } from '../integration/mcp.mjs';
import { connectTo, ownStore, program, serveHttp, tokenOf, tokensFile } from '../integration/serving.mjs';
import { connect } from '../integration/tools.mjs';
import { registryWith } from '../integration/verdaccio.mjs';
import { counts, difference, gauge, growth, isConnected, sameCounts, watch } from './gauge.mjs';
import { draw } from './picture.mjs';
import { drawWork, packagesOfWorks, works } from './works.mjs';

const RUNS = Number(process.argv[2] || 10_000), MINUTES = Number(process.argv[3] || 20);
const TINY = RUNS < 1000;
const SAMPLE_MS = TINY ? 250 : 2000;
const POOL = 2; // sandboxes made ahead; more under load, of which one goes in each minute in which it was not needed
const REST_S = TINY ? 60 : 300;
const BOUND_KIB = { runs: 256, mixed: 1024 };
const OUTPUTS = 64; // that a server keeps: filled first, so that they are as many at each rest

// ---- what is to be ended, last first, whatever happens ----

const afters = [];
const t = { after: (f) => afters.unshift(f) };
async function endAll() {
  for (const end of afters.splice(0)) await Promise.resolve().then(end).catch((error) => judge('the end', false, error.message));
}
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => endAll().finally(() => process.exit(1)));

// ---- verdicts ----

let passed = 0, failed = 0;
function judge(name, ok, words) {
  if (ok) passed++;
  else failed++;
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${name}: ${words}`);
}

/**
 * What servers, {name: {pid, spares, port}}, hold when nothing changes any more: their pools have fallen to the spares that they always have, and no client keeps
 * a connection. All of them together, since they share cgroups and a store.
 */
async function rest(servers, home) {
  const look = () => Object.fromEntries(Object.entries(servers).map(([name, { pid }]) => [name, gauge(pid, home)]));
  const rests = (now) => Object.entries(servers).every(([name, { spares, port }]) => now[name].jails === spares && !isConnected(port) && sameCounts(last[name], now[name]));
  let last = look(), since = performance.now();
  await until(() => {
    const now = look();
    if (!rests(now)) since = performance.now();
    last = now;
    return performance.now() - since > 1500;
  }, () => `the servers do not come to rest: ${JSON.stringify(last)}`, REST_S);
  return last;
}

/** At rest they hold what they held before. */
async function comeBack(part, servers, home, before) {
  const after = await rest(servers, home).catch((error) => judge(`${part}: rest`, false, error.message));
  for (const name of after ? Object.keys(servers) : [])
    judge(`${part}, ${name}: counts at rest`, sameCounts(before[name], after[name]), difference(before[name], after[name]) || counts.map((c) => `${c} ${after[name][c]}`).join(', '));
  return after;
}

function judgeMemory(name, samples, bound) {
  const { early, late, grown } = growth(samples);
  const words = `${early} KiB, in the end ${late} KiB; at most ${bound} more`;
  if (sanitized || TINY) console.log(`       ${name}: own memory (not judged): ${words}`);
  else judge(`${name}: own memory`, grown <= bound, words);
}

/** So many at a time, each until `work` says that there is no more. */
const inParallel = (atOnce, work) => Promise.all(Array.from({ length: atOnce }, async (_, i) => { while (await work(i)); }));

const sized = (more, pool = POOL) => ['--pool', `${pool}`, '--pool-memory', TINY ? '32m' : '48m', '--memory', '128m', ...more];

// ---- part 1 ----

async function manyRuns(home) {
  const s = await connect({ mode: 'legacy' }, sized([]), { JERBOA_HOME: home });
  try {
    const ask = async (n) => {
      const r = await s.client.callTool({ name: 'run_js_ephemeral', arguments: { code: `console.log(${n})` } }, { timeout: 120_000 });
      if (r.structuredContent?.stdout !== `${n}\n`) throw new Error(`run ${n}: ${JSON.stringify(r).slice(0, 300)}`);
    };
    let n = 0;
    const upTo = (end) => inParallel(4, async () => { if (n < end) await ask(n++); return n < end; });
    await upTo(20);
    const servers = { runs: { pid: s.pid, spares: POOL } }, before = await rest(servers, home), began = performance.now();
    const w = watch(servers, home, SAMPLE_MS);
    await upTo(20 + RUNS);
    w.stop();
    const seconds = (performance.now() - began) / 1e3;
    console.log(`${RUNS} runs: ${seconds.toFixed(0)} s, ${(RUNS / seconds).toFixed(1)} a second`);
    const after = await comeBack(`${RUNS} runs`, servers, home, before);
    judgeMemory(`${RUNS} runs`, w.samples.runs, BOUND_KIB.runs);
    return { runs: RUNS, seconds, before, after, samples: w.samples };
  } finally {
    await s.close();
  }
}

// ---- part 2 ----

const registry = () => registryWith(t, Object.fromEntries(packagesOfWorks.map((name) => [name, {
  more: { type: 'module', types: 'index.d.ts', description: 'of sand' },
  files: { 'index.js': `export default '${name}'`, 'index.d.ts': `declare const x: '${name}'; export default x;\n`, 'README.md': `# ${name}` },
}])));

/** A client as works want it; `told` collects what it is told of resources. */
function dress(c, era) {
  const told = new Set();
  c.client.setNotificationHandler('notifications/resources/updated', (n) => { told.add(n.params.uri); });
  return { ...c, era, told, call: (name, args, options) => c.call(name, args, { timeout: 120_000, ...options }) };
}

async function mixed(home) {
  const url = await registry(), env = { JERBOA_HOME: home, npm_config_registry: `${url}/` };
  const args = (files, log, pool) => sized(['--files', files, '--idle', TINY ? '2s' : '20s', '--audit', path.join(log, 'audit.jsonl'), '--timeout', '20s'], pool);
  const own = tempDir(t), shared = tempDir(t);
  const stdio = await connect({ mode: 'legacy' }, args(own, tempDir(t)), env);
  t.after(() => stdio.close());
  const http = await serveHttp(t, [...args(shared, tempDir(t), TINY ? 0 : POOL), '--tokens', tokensFile(t, ['ada', 'bob'])], { env, seconds: MINUTES * 60 + 1800 });
  // With tokens each name's folder is a kind of sandbox: none of them is always kept ready.
  const servers = { stdio: { pid: stdio.pid, spares: POOL }, http: { pid: http.pid, spares: 0, port: new URL(http.url).port } };

  const seats = [ // who asks whom, one thing at a time
    { who: 'stdio' }, { who: 'stdio' },
    ...['ada', 'bob'].flatMap((name) => ['legacy', 'modern'].map((era) => ({ who: name, era }))),
  ];
  const constant = dress(stdio, 'legacy');
  /** A client in that seat, for a while. */
  async function sit({ who, era }, work) {
    if (who === 'stdio') return work(constant, { files: own, registry: url });
    const c = await connectTo(http.url, { mode: era === 'modern' ? { pin: modern } : 'legacy', token: tokenOf(who) });
    try {
      return await work(dress(c, era), { files: path.join(shared, who), registry: url });
    } finally {
      if (era === 'legacy') await c.transport.terminateSession();
      await c.client.close();
    }
  }

  const done = {}, errors = [];
  async function one(c, place, name, n) {
    try {
      await works[name].do(c, place, n);
      done[name] = (done[name] ?? 0) + 1;
    } catch (error) {
      errors.push(`${name} (${n}, ${c.era}): ${error.message}${error.cause ? `: ${error.cause.code ?? error.cause.message}` : ''}`);
    }
  }

  let n = 0;
  const nextWork = () => [drawWork(n), n++];
  for (const who of ['ada', 'bob']) fs.mkdirSync(path.join(shared, who), { recursive: true });
  // Each work once in each server, something of everybody, and outputs enough.
  await Promise.all([seats[0], ...seats.slice(2)].map((seat, i) => sit(seat, async (c, place) => {
    for (const name of i < 2 ? Object.keys(works) : ['files', 'lists']) await one(c, place, name, n++);
    if (i >= 2) return;
    let left = OUTPUTS;
    await inParallel(4, async () => { if (left-- > 0) await one(c, place, 'much output', n++); return left > 0; });
  })));
  const before = await rest(servers, home);
  console.log(`       each work done once, ${errors.length} errors; ${MINUTES} minutes begin`);

  const end = performance.now() + MINUTES * 60e3, w = watch(servers, home, SAMPLE_MS);
  let collected = 0, over = false;
  const goesOn = () => performance.now() < end && errors.length < 50;
  const gc = (async () => {
    while (!over) {
      const r = await start(['gc', '--max-size', '600m'], { program, env: { JERBOA_HOME: home } }).ended;
      if (r.status !== 0) errors.push(`gc: ${r.stderr}`);
      else collected++;
      for (let i = 0; i < 150 && !over; i++) await new Promise((resolve) => { setTimeout(resolve, 100); });
    }
  })();
  await inParallel(seats.length, async (i) => {
    try {
      await sit(seats[i], async (c, place) => { for (let k = 0; k < 25 && goesOn(); k++) await one(c, place, ...nextWork()); });
    } catch (error) {
      errors.push(`${JSON.stringify(seats[i])}: ${error.message}`);
    }
    return goesOn();
  });
  w.stop();
  over = true;
  await gc;
  const all = Object.values(done).reduce((a, b) => a + b, 0);
  judge(`${MINUTES} minutes`, errors.length === 0, `${all} works, ${collected} times gc, ${errors.length} errors${errors.map((e) => `\n         ${e}`).join('')}`);
  for (const name of Object.keys(works)) judge(`  ${name}`, done[name] > 0, `${done[name] ?? 0} times`);
  const after = await comeBack('mixed load', servers, home, before);
  for (const name of Object.keys(servers)) judgeMemory(`mixed load, ${name}`, w.samples[name], BOUND_KIB.mixed);
  return { minutes: MINUTES, works: done, before, after, samples: w.samples };
}

// ---- all ----

const machine = () => ({ cores: os.availableParallelism(), cpu: os.cpus()[0].model, kernel: os.release(), loadBefore: os.loadavg()[0] });
const report = { date: new Date().toISOString().slice(0, 10), machine: machine(), node: process.version, user: isRoot ? 'root' : 'an ordinary user',
  version: execFileSync(program, ['--version'], { encoding: 'utf8' }).trim() };
const write = (name, text) => fs.writeFileSync(path.join(build, name), text);
const keep = () => { if (!TINY) { write('soak.json', JSON.stringify(report)); write('soak.svg', draw(report)); } };
try {
  const home = ownStore(t);
  report.runs = await manyRuns(home);
  keep();
  report.mixed = await mixed(home);
} catch (error) {
  judge('the soak', false, error.stack);
} finally {
  await endAll();
}
keep();
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
