// podman.mjs: a podman of our own, from Debian's, that leaves nothing.
//
// There is no daemon. Whoever runs podman does it in mount and pid namespaces (`around`) whose first process we hold: when that dies, and it dies with
// us however we end, every container, every conmon and every mount goes. All that is written is below BUILD/NAME/podman: images, containers, and what
// stands in /run, which is an overlay there. Its locks (/dev/shm) and its cache (/var/lib/containers) are in memory. What is left are files and empty cgroups,
// which `end` removes; after a kill -9 the next start does. There, and nowhere else, is an ordinary user, `podmanUser`, who has uids of his own.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, openSync, readFileSync, readdirSync, rmdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { archive } from '../../bench/docker.mjs';
import { run } from '../../bench/programs.mjs';

export const podmanUser = { name: 'jerboa-podman', uid: 54321 };

const group = 'libpod_parent'; // podman's own name for where its cgroups are

/** Root that may not raise limits is told those it has: podman would ask for a million descriptors, and for as many processes as there are pids. */
function limits() {
  const hard = (name) => Number(new RegExp(`^Max ${name} +\\S+ +(\\d+)`, 'm').exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? Infinity);
  const most = { nofile: Math.min(hard('open files'), 2 ** 20), nproc: Math.min(hard('processes'), Number(readFileSync('/proc/sys/kernel/pid_max', 'utf8'))) };
  return JSON.stringify(Object.entries(most).map(([name, n]) => `${name}=${n}:${n}`));
}

/** Containers of others may stand beside ours: what is not empty stays. */
function removeCgroups() {
  const busy = (dir) => { try { rmdirSync(dir); } catch (error) { if (!['EBUSY', 'ENOTEMPTY', 'ENOENT', 'ENOTDIR'].includes(error.code)) throw error; } };
  const below = (dir) => { try { return readdirSync(dir, { withFileTypes: true }).filter((e) => e.isDirectory()).map((e) => path.join(dir, e.name)); } catch { return []; } };
  for (const dir of [...below('/sys/fs/cgroup'), '/sys/fs/cgroup'].map((dir) => path.join(dir, group))) {
    for (const one of below(dir)) for (const inner of [...below(one), one]) busy(inner);
    busy(dir);
  }
}

/** The namespace dies behind its wrapper: until it is gone, some things are busy. */
async function clean(dir) {
  const tries = 100;
  for (let i = 1; ; i++)
    try {
      execFileSync('rm', ['-rf', dir], { stdio: ['ignore', 'ignore', 'pipe'] });
      removeCgroups();
      return;
    } catch (error) {
      if (i === tries) throw error;
      await pause(100);
    }
}

/** What podman writes to that is not told by its settings. */
const mounts = `mount -t overlay -o "lowerdir=/run,upperdir=$1/run,workdir=$1/work" overlay /run
mount -t tmpfs tmpfs /dev/shm
mkdir -p /var/lib/containers
mount -t tmpfs tmpfs /var/lib/containers`;
const first = `exec 3<&0
${mounts}
for file in passwd subuid subgid; do mount --bind "$1/$file" "/etc/$file"; done
echo up
cat <&3 &
wait`; // a shell that waits reaps whoever is left to it

/** The place, and what leads podman there. */
async function makePlace(build, label) {
  const own = path.join(build, label, 'podman');
  await clean(own);
  for (const name of ['run', 'work', 'data', 'state', 'tmp']) mkdirSync(path.join(own, name), { recursive: true });
  const env = { CONTAINERS_CONF: path.join(own, 'containers.conf'), CONTAINERS_STORAGE_CONF: path.join(own, 'storage.conf') };
  writeFileSync(env.CONTAINERS_CONF, `[containers]\ndefault_ulimits = ${limits()}\n[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\ntmp_dir = "${own}/tmp"\n`);
  writeFileSync(env.CONTAINERS_STORAGE_CONF, `[storage]\ndriver = "overlay"\ngraphroot = "${own}/data"\nrunroot = "${own}/state"\n`);
  return { own, env };
}

/** The image, with these tags. */
async function importImage(client, build, runtime, tags) {
  const image = archive(build, runtime);
  await client('import', '--change', `ENV NODE_VERSION=${path.basename(runtime).split('-')[1]}`, image, 'bench');
  for (const tag of tags) await client('tag', 'bench', tag);
  return image;
}

/** The same for who stands in mount and pid namespaces of his own, where nobody else is: returns { group, env, client(...args), end(), comesAndGoes }. */
export async function startPodmanHere(build, runtime, { name: label, tags }) {
  const { own, env } = await makePlace(build, label);
  const client = (...args) => run('podman', args, { env });
  execFileSync('sh', ['-euc', mounts, 'sh', own]);
  await importImage(client, build, runtime, tags);

  async function end() {
    const points = readFileSync('/proc/self/mountinfo', 'utf8').split('\n').map((line) => line.split(' ')[4]).filter((point) => point?.startsWith(`${own}/`));
    for (const point of [...points.reverse(), '/var/lib/containers', '/dev/shm', '/run']) execFileSync('umount', [point]);
    await clean(own);
  }
  return { group, env, client, end, comesAndGoes: path.join(own, 'data/overlay') }; // which it mounts on itself while somebody looks
}

/** Returns { version, group, env, client(...args), around(argv), end() }; the image has these tags. Two at a time need two names. */
export async function startPodman(build, runtime, { name: label, tags }) {
  const { own, env } = await makePlace(build, label);

  const { name, uid } = podmanUser;
  writeFileSync(path.join(own, 'passwd'), `${readFileSync('/etc/passwd', 'utf8')}${name}:x:${uid}:${uid}::/nonexistent:/bin/sh\n`);
  for (const file of ['subuid', 'subgid']) writeFileSync(path.join(own, file), `${name}:1000000:65536\n`);

  const log = openSync(path.join(build, label, 'podman.log'), 'w');
  const holder = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', 'sh', '-euc', first, 'sh', own],
    { stdio: ['pipe', 'pipe', log] });
  const exited = once(holder, 'exit');
  const around = (argv) => ['nsenter', `--mount=/proc/${holder.pid}/ns/mnt`, `--pid=/proc/${holder.pid}/ns/pid_for_children`, 'env', '-C', process.cwd(), ...argv];
  const client = (...args) => { const [file, ...rest] = around(['podman', ...args]); return run(file, rest, { env }); };

  async function end() {
    holder.kill('SIGKILL');
    await exited;
    await clean(own);
  }

  try {
    await Promise.race([once(holder.stdout, 'data'), exited.then(() => { throw new Error(`no namespaces for podman, see ${build}/${label}/podman.log`); })]);
    env.JERBOA_TEST_IMAGE = await importImage(client, build, runtime, tags);
    return { version: (await client('version', '--format', '{{.Server.Version}}')).trim(), group, env, client, around, end };
  } catch (error) {
    await end();
    throw error;
  }
}
