// profile.mjs BUILD RUNTIME_DIR: where the time of a run_js and of a cold start goes, by perf's record of who ran when. Medians; the parts of a
// line add up to its whole but for the clock's grain. Root only.
//
// perf writes times of CLOCK_MONOTONIC, which is process.hrtime's, too: so a call's beginning and end, as the client sees them, stand
// in the same row as the scheduler's events.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { start } from './client.mjs';
import { place } from './ours.mjs';
import { run } from './programs.mjs';
import { beginTable, endTable, figure } from './table.mjs';
import { median } from './turns.mjs';
import { scripts } from './work.mjs';

const ROUNDS = 25, PAUSE_MS = 250;
const [build, runtime] = process.argv.slice(2).map((p) => path.resolve(p));
const { program, env, node, dir } = place(build, runtime);
const now = () => Number(process.hrtime.bigint()) / 1e6;

// ---- perf ----

/** Records while `work` runs. Returns its answer and the events, [{ ms, name, pid, next }], in order. */
async function recorded(work) {
  const file = path.join(dir, 'perf.data'), names = ['switch', 'process_exec', 'process_exit'];
  const perf = spawn('perf', ['record', '-q', '-a', '-k', 'CLOCK_MONOTONIC', ...names.flatMap((name) => ['-e', `sched:sched_${name}`]), '-o', file], { stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = once(perf, 'exit'), words = perf.stderr.setEncoding('utf8').toArray();
  try {
    await Promise.race([pause(1000), exited.then(async () => { throw new Error(`perf: ${(await words).join('').trim()}`); })]);
    const answer = await work();
    perf.kill('SIGINT');
    await exited;
    return { answer, events: await eventsIn(file) };
  } finally {
    perf.kill('SIGKILL');
  }
}

async function eventsIn(file) {
  const script = spawn('perf', ['script', '-i', file, '-F', 'time,event,trace', '--ns'], { stdio: ['ignore', 'pipe', 'ignore'] });
  const events = [];
  let rest = '';
  for await (const text of script.stdout.setEncoding('utf8')) {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      const [, seconds, name, fields] = /([\d.]+):\s+sched:sched_(\w+): (.*)/.exec(line) ?? [];
      const field = (key) => Number(new RegExp(`\\b${key}=(\\d+)`).exec(fields)?.[1]);
      if (name) events.push({ ms: Number(seconds) * 1e3, name, pid: field('pid'), next: field('next_pid'), program: path.basename(/filename=(\S+)/.exec(fields)?.[1] ?? '') });
    }
  }
  return events.sort((a, b) => a.ms - b.ms);
}

/** The times of events in order, each the first after the one before. `pids` are those that were executed, by program. */
function marks(events, from, wanted) {
  const pids = {};
  let at = from;
  return wanted.map((is) => {
    const event = events.find((one) => one.ms > at && is(one, pids));
    if (!event) throw new Error('perf has lost events');
    if (event.name === 'process_exec') pids[event.program] = event.pid;
    return (at = event.ms);
  });
}

const runs = (pid) => ({ next }) => next === pid;
const exits = (pid) => (event) => event.name === 'process_exit' && event.pid === pid;
const executes = (what) => (event) => event.name === 'process_exec' && event.program === what;
const ends = (what) => (event, pids) => exits(pids[what])(event);

/** Medians of what lies between the marks of each round. */
function tell(names, rounds) {
  names.forEach((name, i) => figure(`  ${name}`, median(rounds.map((at) => at[i + 1] - at[i])), 'ms'));
}

// ---- a run_js, whose Node was held ----

const childrenOf = (pid) => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);

async function runJs() {
  const server = start(program, ['--pool', '0'], env);
  try {
    await server.open();
    const { content: [{ text: container_id }] } = await server.call('sandbox_initialize', {});
    const [jail] = childrenOf(server.pid), [init] = childrenOf(jail);
    const { answer: calls, events } = await recorded(async () => {
      const all = [];
      for (let i = 0; i < ROUNDS; i++) {
        await pause(PAUSE_MS);
        const held = childrenOf(init)[0], began = now();
        await server.call('run_js', { container_id, code: scripts.hello.code });
        all.push({ held, began, ended: now() });
      }
      return all.slice(1);
    });
    figure('run_js hello', median(calls.map(({ began, ended }) => ended - began)), 'ms');
    tell(['until its Node is let go', 'until Node exits', 'until the kernel has taken Node down', 'until the answer is there'],
      calls.map(({ held, began, ended }) => [began, ...marks(events, began, [runs(held), exits(held), runs(init)]), ended]));
  } finally {
    await server.close();
  }
}

// ---- jerboa run ----

const script = path.join(dir, 'hello.mjs');
const cold = {
  'node hello.js': {
    command: [node, [script]],
    steps: [['until it is executed', executes('node')], ['until it exits', ends('node')]],
  },
  'jerboa run hello.js': {
    command: [program, ['run', '--engine', 'native', script]], // auto would start a jail before, to look
    steps: [['until it is executed', executes('jerboa')], ['until its jail is', executes('jerboa-jail')], ['until init is, behind its walls', executes('init')],
      ['until Node is', executes('node')], ['until Node exits', ends('node')], ['until the jail exits, with all that was in it', ends('jerboa-jail')], ['until jerboa exits', ends('jerboa')]],
  },
};

async function coldStart() {
  const { answer, events } = await recorded(async () => {
    const all = Object.fromEntries(Object.keys(cold).map((key) => [key, []]));
    for (let i = 0; i < ROUNDS; i++)
      for (const [key, { command: [file, args] }] of Object.entries(cold)) {
        await pause(PAUSE_MS / 5);
        const began = now();
        await run(file, args, { env, prints: scripts.hello.prints });
        all[key].push({ began, ended: now() });
      }
    return all;
  });
  for (const [key, { steps }] of Object.entries(cold)) {
    const rounds = answer[key].slice(1);
    figure(key, median(rounds.map(({ began, ended }) => ended - began)), 'ms');
    tell([...steps.map(([name]) => name), 'until its parent knows'], rounds.map(({ began, ended }) => [began, ...marks(events, began, steps.map(([, is]) => is)), ended]));
  }
}

mkdirSync(dir, { recursive: true });
writeFileSync(script, scripts.hello.code);
try {
  beginTable();
  await runJs();
  await coldStart();
} finally {
  rmSync(dir, { recursive: true, force: true });
}
endTable();
