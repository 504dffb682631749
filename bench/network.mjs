// network.mjs BUILD RUNTIME_DIR: what a connection of a sandbox costs, against a direct one over loopback in the same run.
//
// All of it happens in a network namespace of its own, where a public address is on loopback: the program starts itself in there. One server,
// one client program, ordinary Node, which runs bare or in a sandbox, in turns.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import path from 'node:path';

import { beginTable, endTable, figure } from './table.mjs';
import { median } from './turns.mjs';

const [build, runtime] = process.argv.slice(2).map((p) => path.resolve(p));
const node = path.join(runtime, 'bin/node');
const address = '93.184.216.34';
const MiB = 1 << 20, SIZE = 256 * MiB, TRIPS = 2000, ROUNDS = 9;
const ports = { download: 9001, upload: 9002, trips: 9003 };

// ---- the server, a process of its own ----

function serve() {
  const piece = Buffer.alloc(1 << 18);
  const serveOn = (port, each) => net.createServer({ noDelay: true, allowHalfOpen: true }, (socket) => { socket.on('error', () => {}); each(socket); }).listen(port, address);
  serveOn(ports.download, (socket) => {
    let left = SIZE;
    const more = () => { while (left > 0) { left -= piece.length; if (!socket.write(piece)) return; } socket.end(); };
    socket.on('drain', more).resume();
    more();
  });
  serveOn(ports.upload, (socket) => socket.on('end', () => socket.end('taken')).resume());
  serveOn(ports.trips, (socket) => socket.pipe(socket));
  console.log('up');
}

// ---- the client: its source goes into both places; prints bytes a millisecond, or milliseconds a trip ----

const clients = {
  download: async (net, once, o) => {
    const began = performance.now(), socket = net.connect(o.port, o.address).on('data', () => {});
    await once(socket, 'close');
    return o.SIZE / (performance.now() - began);
  },
  upload: async (net, once, o) => {
    const piece = Buffer.alloc(1 << 18), began = performance.now(), socket = net.connect(o.port, o.address);
    for (let left = o.SIZE; left > 0; left -= piece.length) if (!socket.write(piece)) await once(socket, 'drain');
    socket.end().resume();
    await once(socket, 'close');
    return o.SIZE / (performance.now() - began);
  },
  trips: async (net, once, o) => {
    const socket = net.connect({ port: o.port, host: o.address, noDelay: true }), times = [];
    for (let i = 0; i < o.TRIPS; i++) {
      const began = performance.now();
      socket.write('x');
      await once(socket, 'data');
      times.push(performance.now() - began);
    }
    socket.destroy();
    return times.sort((a, b) => a - b)[o.TRIPS >> 1];
  },
};

const source = (what) => `import net from 'node:net'; import { once } from 'node:events';
  console.log(await (${clients[what]})(net, once, ${JSON.stringify({ port: ports[what], address, SIZE, TRIPS })}))`;

function measure(file, args, what) {
  const { status, stdout, stderr } = spawnSync(file, [...args, source(what)], { encoding: 'utf8', timeout: 60_000 });
  if (status !== 0) throw new Error(`${what}: ${stderr}`);
  return Number(stdout);
}

/** Medians, and the median of what each round gave as ratio: both halves of a round have had the same neighbours. */
function inTurns(what) {
  const rounds = [];
  for (let i = -1; i < ROUNDS; i++) {
    const round = { direct: measure(node, ['--input-type=module', '-e'], what), ours: measure(path.join(build, 'jerboa'), ['run', '-e'], what) };
    if (i >= 0) rounds.push(round); // the first fills caches
  }
  const of = (value) => median(rounds.map(value));
  return { direct: of((r) => r.direct), ours: of((r) => r.ours), ratio: of((r) => r.ours / r.direct) };
}

function throughput(what) {
  const { direct, ours, ratio } = inTurns(what);
  figure(`${SIZE / MiB} MiB ${what}, direct`, direct / 1e6, 'GB/s');
  figure(`${SIZE / MiB} MiB ${what}, from a sandbox`, ours / 1e6, 'GB/s');
  figure('  ratio', ratio, '', { least: 0.3 });
}

function latency() {
  const { direct, ours } = inTurns('trips');
  figure('one byte there and back, direct', direct, 'ms');
  figure('one byte there and back, from a sandbox', ours, 'ms');
  figure('  more than direct', ours - direct, 'ms', { most: 1 });
}

async function main() {
  const server = spawn(process.execPath, [import.meta.filename, build, runtime, 'serve'], { stdio: ['ignore', 'pipe', 'inherit'] });
  await once(server.stdout, 'data');
  beginTable();
  try {
    throughput('download');
    throughput('upload');
    latency();
  } finally {
    server.kill();
  }
  endTable();
}

if (process.argv[4] === 'serve') serve();
else if (process.argv[4] === 'inside') await main();
else {
  const script = `ip link set lo up && ip addr add ${address}/32 dev lo && exec "$@"`;
  const { status } = spawnSync('unshare', ['--net', 'sh', '-c', script, 'sh', process.execPath, import.meta.filename, build, runtime, 'inside'], { stdio: 'inherit' });
  process.exit(status ?? 1);
}
