// load.mjs: many calls at once, and many sandboxes: what one server bears, and what it takes of the machine.
import { readFileSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { start, startHttp } from './client.mjs';
import { echo, scripts } from './work.mjs';

const hello = { code: scripts.hello.code };

/** Does work(i) for i below count, so many at once. */
async function inParallel(count, atOnce, work) {
  let next = 0;
  const worker = async () => { while (next < count) await work(next++); };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

/** A server for the time of one measurement; it is ended whatever happens. */
async function withServer(open, measure) {
  const server = await open();
  try {
    return await measure(server);
  } finally {
    await server.close();
  }
}

const onStdio = (program, args, env) => async () => {
  const server = start(program, args, env);
  await server.open();
  return server;
};

// ---- throughput ----

/** Calls a second, of one client with four of them unanswered at a time. */
export const burst = (program, env, count = 100) => withServer(onStdio(program, [], env), async (server) => {
  await inParallel(8, 4, () => server.call('run_js_ephemeral', hello)); // the server has run something
  const began = performance.now();
  await inParallel(count, 4, () => server.call('run_js_ephemeral', hello));
  return count * 1e3 / (performance.now() - began);
});

/** Several clients on HTTP, each with one call at a time: scripts on their own, and every fourth time a sandbox that is kept for some steps. */
export const clients = (program, env, count, seconds) => withServer(() => startHttp(program, [], env), async (server) => {
  const until = performance.now() + seconds * 1e3, errors = [];
  let calls = 0;
  const call = async (name, args) => {
    const r = await server.call(name, args);
    calls++;
    return r;
  };
  async function keep() {
    const { content: [{ text: container_id }] } = await call('sandbox_initialize', {});
    await call('run_js', { container_id, ...hello });
    await call('sandbox_exec', { container_id, commands: [echo.command] });
    await call('sandbox_stop', { container_id });
  }
  async function client(i) {
    for (let n = i; performance.now() < until && errors.length < 100; n++)
      await (n % 4 === 0 ? keep() : call('run_js_ephemeral', hello)).catch((error) => errors.push(error.message));
  }
  await Promise.all(Array.from({ length: count }, (_, i) => client(i)));
  return { rate: calls / seconds, errors };
});

// ---- memory ----

const KiB = 1024;
const memory = (pid, field) => Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))[1]) / KiB;

/** What /proc tells of a process, or nothing of one that is gone meanwhile. */
function look(tell) {
  try {
    return tell();
  } catch {
    return '';
  }
}
const children = (pid) => look(() => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')).split(' ').filter(Boolean);
const descendants = (pid) => children(pid).flatMap((child) => [child, ...descendants(child)]);
const named = (pids, name) => pids.filter((pid) => path.basename(look(() => readlinkSync(`/proc/${pid}/exe`))) === name); // Node's comm is another

export const residentMiB = (pid) => memory(pid, 'Rss');

/**
 * What each of ten sandboxes takes that wait for their first call: jail, init, and a held Node if there is one. No pool: more of them would
 * share more. undefined: they do not become as wanted, with so many Nodes for each jail.
 */
const ready = (program, env, args, nodes) => withServer(onStdio(program, ['--pool', '0', ...args], env), async (server) => {
  for (let i = 0; i < 10; i++) await server.call('sandbox_initialize', {});
  const all = () => descendants(server.pid), asWanted = (pids) => named(pids, 'node').length === nodes * named(pids, 'jerboa-jail').length;
  for (let i = 0; i < 50 && !asWanted(all()); i++) await pause(100);
  await pause(1000); // what has just been made comes to rest
  const pids = all();
  return asWanted(pids) ? pids.reduce((sum, pid) => sum + memory(pid, 'Pss'), 0) / named(pids, 'jerboa-jail').length : undefined;
});

export const gatedMiB = (program, env) => ready(program, env, [], 1);
export const ungatedMiB = (program, env) => ready(program, env, ['--hold', '0'], 0);

/** So many sandboxes, each of which answers. Returns how many there were, and the seconds it took to make them. */
export const live = (program, env, count) => withServer(onStdio(program, ['--sandboxes', String(Math.ceil(count * 1.1))], env), async (server) => {
  const began = performance.now(), ids = [];
  await inParallel(count, 4, async () => ids.push((await server.call('sandbox_initialize', {})).content[0].text));
  const seconds = (performance.now() - began) / 1e3;
  let answers = 0;
  await inParallel(count, 4, async (i) => {
    const { structuredContent: { commands } } = await server.call('sandbox_exec', { container_id: ids[i], commands: [`echo ${i}`] });
    if (commands[0].stdout === `${i}\n`) answers++;
  });
  return { answers, seconds };
});
