// run.mjs: tests of the native engine, on another one.
//
//   node tests/engines/run.mjs [--shard I/N] docker|podman|remote [FILE…]
//
// With --shard every N-th file, as node's --test-shard has it. Without a file: all but those of the table in native.mjs, which are told with their reasons.
// A daemon of our own is started on a private socket (bench/docker.mjs), or podman gets a place of its own (podman.mjs), with an image made of this
// machine's files that has the names which the tests ask for; the files run with JERBOA_TEST_ENGINE, which tests/integration/jerboa.mjs makes every
// server's and every run's engine.
//
// `remote`: the same, with a daemon that is as if on another machine: it is reached by TCP, and sees neither the project nor home nor temporary files.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { startDocker } from '../../bench/docker.mjs';
import { run } from '../../bench/programs.mjs';
import { filesOf, native } from './native.mjs';
import { startPodman } from './podman.mjs';

const build = path.resolve(process.env.JERBOA_BUILD ?? 'build');
const { values: { shard }, positionals: [kind, ...named] } = parseArgs({ options: { shard: { type: 'string', default: '1/1' } }, allowPositionals: true }), isRemote = kind === 'remote', engine = isRemote ? 'docker' : kind;

/** How each is started: its command, what finds it, and what runs where it can be found. */
const engines = {
  docker: async (...args) => { const d = await startDocker(...args); return { ...d, client: d.docker, around: (argv) => argv }; },
  podman: startPodman,
};
if (!Object.hasOwn(engines, engine)) {
  console.error('usage: run.mjs [--shard I/N] docker|podman|remote [FILE…]');
  process.exit(2);
}
const files = named.length > 0 ? named : isRemote ? [path.join(import.meta.dirname, 'remote.test.mjs')] : filesOf();
if (named.length === 0 && !isRemote) for (const [name, reason] of Object.entries(native)) console.log(`# not on ${engine}: ${name}: ${reason}`);
const hidden = isRemote ? [path.resolve(import.meta.dirname, '../..'), build, os.homedir(), os.tmpdir()] : undefined;
const runtime = (await run(path.join(build, 'jerboa'), ['pull'], {})).trim();
const daemon = await engines[engine](build, runtime, { name: `${isRemote ? 'on-remote' : 'on-engine'}-${shard.split('/')[0]}`, hidden, tags: ['node:lts-slim', 'node:lts', 'node:24', 'node:24-slim'] });

/** A container that ends goes by itself, soon. Docker 20.10 may list for ever what it has no more. */
async function leftovers(until) {
  const rows = (await daemon.client('ps', '--all', '--format', '{{.ID}} {{.Status}}')).split('\n').filter(Boolean);
  const isThere = await Promise.all(rows.map((row) => daemon.client('inspect', row.split(' ')[0]).then(() => true, () => false)));
  const left = [...rows.filter((_, i) => isThere[i]), ...(await daemon.client('volume', 'ls', '--quiet')).split('\n').filter(Boolean)].join(', ');
  return left && Date.now() < until ? leftovers(until) : left;
}

let status = 1;
try {
  const env = { ...process.env, JERBOA_TEST_ENGINE: engine, JERBOA_TEST_CGROUP: daemon.group, ...daemon.env, JERBOA_BUILD: build };
  const [file, ...args] = daemon.around([process.execPath, '--test', '--test-reporter=tap', '--test-concurrency=1', `--test-shard=${shard}`, ...files]);
  const child = spawn(file, args, { env, stdio: ['ignore', 'inherit', 'inherit'] });
  [status] = await once(child, 'exit');
  const left = await leftovers(Date.now() + 5000);
  if (left) {
    console.error(`containers or volumes are left: ${left}`);
    status ||= 1;
  }
} finally {
  await daemon.end();
}
process.exit(status ?? 1);
