// Where the disasters happen: programs, a store, FILES_DIR and TMPDIR of the test's own, each on a small file system; servers; clients; and what
// is left of them all. It stands in namespaces of its own (tools/chaos): whatever process, mount or socket is in them is ours, and nobody else's is.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { startDocker } from '../../bench/docker.mjs';
import { startPodmanHere } from '../engines/podman.mjs';
import { build, childEnv, contained, copyPrograms, descendants, jerboa, list, ownCgroups, processes, read, start, tempDir, until } from '../integration/jerboa.mjs';
import { filesOf, startRegistry } from './registry.mjs';

/** What another engine has that is different: a daemon, or what podman needs instead, and how it calls the groups of sandboxes. */
const engines = {
  native: { startDaemon: () => null, group: /^jerboa-u?\d+$/ },
  docker: { startDaemon: (runtime) => startDocker(build, runtime, { name: 'chaos', tags: ['node:lts-slim'] }), group: /^[0-9a-f]{64}$/ },
  podman: { startDaemon: (runtime) => startPodmanHere(build, runtime, { name: 'chaos', tags: ['node:lts-slim'] }), group: /^libpod-(conmon-)?[0-9a-f]{64}$/ },
};
export const engine = process.env.ENGINE || 'native';
assert.ok(engines[engine], `there are no disasters for '${engine}'`);
const { startDaemon, group } = engines[engine];

const digest = (file) => createHash('sha256').update(fs.readFileSync(file)).digest('hex');
const mebibyte = 1 << 20;

function mountSmall(at, mebibytes) {
  fs.mkdirSync(at, { recursive: true });
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m,mode=0755`, 'chaos', at]);
}

/** Runtime and installer of the machine's store, and room for little else. */
function makeStore(at, node) {
  const bun = execFileSync(jerboa, ['fetch', 'tool', 'bun'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  const mib = Math.ceil([node, bun].reduce((sum, dir) => sum + +execFileSync('du', ['-sm', dir], { encoding: 'utf8' }).split('\t')[0], 0));
  mountSmall(at, mib + 48);
  for (const [part, dir] of [['runtimes', node], ['tools', bun]]) {
    fs.mkdirSync(path.join(at, part));
    execFileSync('cp', ['-a', dir, path.join(at, part)]);
  }
}

export async function makeWorld() {
  // Elsewhere everybody's processes would be taken for ours, and killed.
  assert.match(read('/proc/1/cmdline'), /tests\/chaos\/main\.mjs/, 'not in namespaces of its own: see tools/chaos');
  const top = tempDir(), programs = path.join(top, 'programs'), home = path.join(top, 'home'), cwd = path.join(top, 'cwd');
  const places = { store: path.join(top, 'store'), files: path.join(top, 'files'), tmp: path.join(top, 'tmp') };
  fs.mkdirSync(programs);
  fs.mkdirSync(home);
  fs.mkdirSync(cwd);
  const program = copyPrograms(programs);
  const runtime = execFileSync(jerboa, ['pull'], { encoding: 'utf8' }).trim();
  makeStore(places.store, runtime);
  mountSmall(places.files, 16);
  mountSmall(places.tmp, 8);
  const registry = await startRegistry(), daemon = await startDaemon(runtime);

  // Files that nobody has any business with.
  const kept = new Map(Array.from({ length: 8 }, (_, i) => {
    const file = path.join(places.files, `kept-${i}`);
    fs.writeFileSync(file, randomBytes(10_000 + i));
    return [file, digest(file)];
  }));

  const clock = path.join(top, 'clock');
  fs.writeFileSync(clock, Buffer.alloc(16));
  const env = { HOME: home, JERBOA_HOME: places.store, TMPDIR: places.tmp, npm_config_registry: registry.url, LD_PRELOAD: path.join(build, 'tests/chaos-clock.so'),
    JERBOA_CHAOS_CLOCK: clock, ASAN_OPTIONS: 'verify_asan_link_order=0:detect_leaks=0', no_proxy: '127.0.0.1',
    JERBOA_ENGINE: engine, ...daemon?.env };
  for (const name of Object.keys(process.env)) if (/^npm_config_|_proxy$/i.test(name) && name !== 'no_proxy') delete process.env[name];

  // A cgroup for the number of processes of the servers alone.
  const hierarchy = ownCgroups().find((dir) => fs.existsSync(path.join(dir, 'cgroup.procs')) && dir.includes('/pids'));
  assert.ok(hierarchy, 'the disasters need the pids controller of cgroup v1, and this machine has none: they do not run here');
  const pids = path.join(hierarchy, 'servers');
  fs.mkdirSync(pids);
  const enter = ['sh', '-c', 'echo 0 >"$0/cgroup.procs" && exec "$@"', pids];
  const args = ['serve', '--files', places.files, '--timeout', '10s'];

  const unixSockets = () => read('/proc/net/unix').split('\n').slice(1).map((line) => line.split(' ').at(-1)).filter((name) => /[/@]/.test(name ?? ''));
  const mountsOfNow = () => read('/proc/self/mountinfo').split('\n').filter((line) => line.split(' ')[4] !== daemon?.comesAndGoes);
  const mounts = mountsOfNow(), sockets = new Set(unixSockets()), forgiven = new Set(), abandoned = new Set(); // sockets of the daemon, if there is one
  const newMounts = () => {
    const now = mountsOfNow();
    return now.join('\n') === mounts.join('\n') ? [] : ['mounts', ...now.filter((line) => !mounts.includes(line)).map((line) => `mount ${line.split(' ')[4]}`)];
  };
  const strays = () => [places.tmp, home, cwd].flatMap((dir) => list(dir).map((name) => path.join(dir, name))); // nobody of ours writes there
  const filesOfCalls = () => list(places.files).filter((name) => !kept.has(path.join(places.files, name)));
  const world = {
    top, programs, places, registry, pids, clock, env,
    clients: [], server: null, waits: [],

    /** Something that has to come, counted from now. */
    waitFor(look, what) {
      const began = performance.now(), wait = { ms: null, what };
      const timer = setInterval(() => { if (look()) { wait.ms = performance.now() - began; clearInterval(timer); } }, 5);
      wait.end = () => clearInterval(timer);
      world.waits.push(wait);
    },

    /** A server on HTTP; `more` options are those of the stdio client's, too. */
    async serve(more) {
      world.args = [...args, ...more];
      const server = start([...enter.slice(1), program, ...world.args, '--http', '127.0.0.1:0'], { program: enter[0], env, cwd, seconds: 300, stdio: ['ignore', 'ignore', 'pipe'] });
      server.url = await until(() => /listening on (\S+)\n/.exec(server.text('stderr'))?.[1] ?? (server.exitCode !== null && assert.fail(server.text('stderr'))), () => `not listening: ${server.text('stderr')}`);
      world.server = server;
      return server;
    },

    /** A client, in a process of its own; what it tells is in `facts`. */
    join(kind, plan) {
      const child = spawn(process.execPath, [path.join(import.meta.dirname, 'client.mjs')], { env: childEnv(env && { ...env, LD_PRELOAD: '' }), cwd, stdio: ['pipe', 'pipe', 'pipe'] });
      const client = { kind, child, facts: [], log: '', isGone: false };
      const command = ['env', `LD_PRELOAD=${env.LD_PRELOAD}`, ...enter, program, ...world.args];
      let rest = '';
      child.stdin.on('error', () => {});
      child.stdin.write(`${JSON.stringify({ kind, plan, url: world.server.url, command })}\n`);
      child.stdout.setEncoding('utf8').on('data', (piece) => {
        const lines = (rest + piece).split('\n');
        rest = lines.pop();
        client.facts.push(...lines.map((line) => JSON.parse(line)));
      });
      child.stderr.setEncoding('utf8').on('data', (piece) => { client.log += piece; });
      client.ended = new Promise((resolve) => { child.on('close', (status, signal) => { client.isGone = true; resolve({ status, signal }); }); });
      client.fact = (name) => client.facts.find((f) => f[name] !== undefined)?.[name];
      world.clients.push(client);
      return client;
    },

    /** Processes of ours that have this program, by pid. */
    find: (name) => processes(programs).filter((p) => p.name === name),

    /** A program of ours to its end. */
    run: (runArgs, more = {}) => start(runArgs, { program, env, cwd, input: '', ...more }).ended,

    /** Every byte of that file system is taken; returns how to give them back. */
    fill(place) {
      const file = path.join(places[place], '.chaos-filling'), fd = fs.openSync(file, 'w'), piece = Buffer.alloc(mebibyte, 1);
      for (let size = piece.length; size >= 1;) {
        try { fs.writeSync(fd, piece, 0, size); } catch (e) { if (e.code !== 'ENOSPC') throw e; size = size > 4096 ? size >> 1 : 0; }
      }
      return () => { fs.closeSync(fd); fs.rmSync(file); };
    },

    /** Processes of the daemon itself, which outlive every round. */
    daemons() {
      if (!daemon?.pid) return [];
      const inContainers = new Set(contained(daemon.group).map((p) => p.pid));
      return [daemon.pid, ...descendants(daemon.pid).map((p) => p.pid).filter((pid) => !inContainers.has(pid))];
    },

    /** Processes of ours by the name that the kernel has of them. */
    called: (name) => list('/proc').filter((pid) => /^\d+$/.test(pid) && read(`/proc/${pid}/comm`).trim() === name).map(Number),

    /** Groups of sandboxes, dead or alive. */
    groups: () => [...ownCgroups(), pids, ...(daemon ? list('/sys/fs/cgroup').map((name) => path.join('/sys/fs/cgroup', name, daemon.group)) : [])].flatMap((dir) => list(dir).filter((name) => group.test(name)).map((name) => path.join(dir, name)))
      .filter((dir) => !abandoned.has(path.basename(dir)) || read(path.join(dir, 'cgroup.procs')) !== ''),

    /** Once they are empty, nobody may remove the groups of a container whose conmon or shim was killed. */
    abandon(id) { for (const name of [id, `libpod-${id}`]) abandoned.add(name); },

    /** Of the daemon, all that it has: id, state and whose it is. Docker 20.10 may list for ever what it has no more. */
    containers() {
      const ask = (...words) => execFileSync(engine, words, { env: { ...process.env, ...env, LD_PRELOAD: '' }, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
      const isThere = (row) => { try { return ask('inspect', row.split(' ')[0]) !== ''; } catch { return false; } };
      return daemon ? ask('ps', '--all', '--format', `{{.ID}} {{.Status}} ${engine === 'podman' ? '{{.Labels}}' : '{{.Label "mcp-server-run-id"}}'}`).split('\n').filter(Boolean).filter(isThere) : [];
    },

    /** What a round that failed has left is not the next one's. */
    forgive() {
      for (const row of world.containers()) forgiven.add(row.split(' ')[0]);
      for (const dir of world.groups()) abandoned.add(path.basename(dir));
      for (const file of [...strays(), ...filesOfCalls().map((name) => path.join(places.files, name)), path.join(places.store, 'layers')]) fs.rmSync(file, { recursive: true, force: true });
    },

    /** Everything of ours that is still there, clients and servers being over. */
    leftovers() {
      const known = new Set([1, process.pid, process.ppid, ...world.daemons()]);
      const alive = list('/proc').filter((name) => /^\d+$/.test(name) && !known.has(+name)).filter((pid) => { const s = read(`/proc/${pid}/stat`); return s && !/\) [ZX]/.test(s); });
      const listening = ['tcp', 'tcp6'].flatMap((kind) => read(`/proc/net/${kind}`).split('\n').slice(1).map((line) => line.trim().split(/\s+/)))
        .filter((f) => f[3] === '0A' && parseInt(f[1].split(':').at(-1), 16) !== registry.port);
      const left = [
        ...alive.map((pid) => `process ${pid} ${read(`/proc/${pid}/comm`).trim()} (${read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim().slice(0, 200)})`),
        ...world.groups().map((dir) => `cgroup ${dir}`),
        ...newMounts(),
        ...listening.map((f) => `socket ${f[1]}`),
        ...unixSockets().filter((name) => !sockets.has(name) && !name.includes('containerd-shim')).map((name) => `socket ${name}`),
        ...strays().map((file) => `file ${file}`),
        ...list('/run/jerboa').filter((name) => name !== 'ids').map((name) => `/run/jerboa/${name}`),
      ];
      return left.length > 0 ? left : world.containers().filter((row) => !forgiven.has(row.split(' ')[0])).map((row) => `container ${row}`); // asking takes a while
    },

    /** One more start: a daemon may make a container after whoever asked for it was killed. */
    async sweep() {
      if (daemon) await world.run(['pull', 'node:lts-slim']);
      return false;
    },

    /** What nobody may change has not changed; what calls wrote is there as they wrote it, a part of it if they failed; and nothing else is. */
    checkFiles(asked) {
      for (const [file, was] of kept) assert.equal(digest(file), was, `${file} has changed`);
      const there = new Set(filesOfCalls());
      for (const { file: [name, content], ok } of asked) {
        if (!ok && !there.has(name)) continue;
        const found = fs.readFileSync(path.join(places.files, name), 'utf8');
        assert.ok(ok ? found === content : content.startsWith(found), `${name} is '${found}'`);
        fs.rmSync(path.join(places.files, name));
        there.delete(name);
      }
      assert.deepEqual([...there], [], 'nobody asked for these in FILES_DIR');
    },

    /** What was installed, by its keys. */
    layers: () => list(path.join(places.store, 'layers')).filter((name) => !name.startsWith('.')).sort(),

    /** Whoever finds a layer finds all of it. */
    checkLayers() {
      for (const key of world.layers()) {
        const dir = path.join(places.store, 'layers', key), modules = path.join(dir, 'node_modules');
        const names = Object.keys(JSON.parse(fs.readFileSync(path.join(dir, 'package.json'), 'utf8')).dependencies);
        assert.deepEqual(list(modules).filter((name) => !name.startsWith('.')).sort(), names.sort(), `packages of ${key}`);
        for (const name of names) {
          const files = filesOf(name);
          assert.deepEqual(list(path.join(modules, name)).sort(), Object.keys(files).sort(), `${key}: files of ${name}`);
          for (const [file, content] of Object.entries(files))
            assert.ok(fs.readFileSync(path.join(modules, name, file), 'utf8') === content, `${key}: ${name}/${file} is not as it was published`);
        }
      }
    },

    /** Room for the packages of the next rounds; nobody uses those of the last ones. */
    prune() {
      const { bavail, bsize } = fs.statfsSync(places.store);
      if (bavail * bsize < 32 * mebibyte) for (const part of ['layers', 'downloads', 'cache']) fs.rmSync(path.join(places.store, part), { recursive: true, force: true });
    },

    /** Half-written entries of the store, and such that wait for their removal. */
    halves: () => ['', 'runtimes', 'tools', 'layers'].flatMap((part) => list(path.join(places.store, part)).filter((name) => name.startsWith('.')).map((name) => `${part}/${name}`)),

    /** Removes those, and counts them. */
    swept: 0,
    async gc() {
      const before = world.halves().length, gc = await world.run(['gc']);
      assert.equal(gc.status, 0, gc.stderr);
      world.swept += before - world.halves().length;
    },

    async close() {
      registry.close();
      await daemon?.end();
      for (const place of Object.values(places)) execFileSync('umount', [place]);
      await until(() => { try { fs.rmdirSync(pids); return true; } catch { return false; } }, 'the cgroup of the servers is not empty');
    },
  };
  return world;
}
