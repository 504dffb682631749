// docker.mjs: a dockerd of our own, from Debian's docker.io, that leaves nothing.
//
// All that it writes, but the image's archive, is below BUILD/NAME/docker: its socket, its data, and what it and its containerd write to /run, which is an overlay there.
// It makes no bridge and no rule in the host's tables, and lives in its own mount and pid namespaces: when its wrapper dies, and it dies
// with us however we end, every container and every mount goes. What is left are files and empty cgroups, which `end` removes; after a
// kill -9 the next start does.
//
// There may be no registry to pull from: the image is made of this machine's own files (a shell, the usual small programs, their libraries)
// and the runtime that everybody else is measured with. The archive stays for the next time.
import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, openSync, readdirSync, renameSync, rmSync, rmdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { run } from './programs.mjs';

const programs = { docker: '/usr/bin/docker', dockerd: '/usr/sbin/dockerd' }; // Debian's, whatever else PATH has

// ---- the image ----

const packages = 'dash coreutils findutils grep procps sed libc6 libstdc++6 libgcc-s1';

const recipe = `set -eu
root=$1 runtime=$2
mkdir -p "$root/usr/bin" "$root/usr/sbin" "$root/usr/lib" "$root/usr/lib64" "$root/usr/local" "$root/etc/ssl/certs" "$root/tmp" "$root/root" "$root/workspace"
for link in bin sbin lib lib64; do [ ! -L "/$link" ] || cp -a "/$link" "$root"; done
{ dpkg -L ${packages}; echo /usr/bin/setsid; } | grep -E '^/(usr/)?(s?bin|lib)' | while read -r file; do
    { [ -d "$file" ] && [ ! -L "$file" ]; } || echo "$file"
done | tar -cPf - -T - | tar -x -C "$root" 2>/dev/null
find "$root/usr/bin" "$root/usr/sbin" -type f -exec ldd {} + 2>/dev/null | awk '$2 == "=>" && $3 ~ /^\\// { print $3 }' | sort -u | tar -chPf - -T - | tar -x -C "$root" 2>/dev/null
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs"
cp -a "$runtime/bin" "$runtime/lib" "$root/usr/local"
tar -C "$root" -cf "$root.tar" .
rm -rf "$root"`;

/** The image of this runtime: a tar, made once. */
export function archive(build, runtime) {
  const made = createHash('sha256').update(recipe).digest('hex').slice(0, 8);
  const file = path.join(build, `image-${path.basename(runtime)}-${made}.tar`);
  if (!existsSync(file)) {
    const work = path.join(build, `image-${process.pid}.new`);
    rmSync(work, { recursive: true, force: true });
    execFileSync('sh', ['-c', recipe, 'sh', work, runtime]);
    renameSync(`${work}.tar`, file);
  }
  return file;
}

// ---- the daemon ----

const cgroups = (group) => readdirSync('/sys/fs/cgroup').map((name) => path.join('/sys/fs/cgroup', name, group))
  .concat(path.join('/sys/fs/cgroup', group)).filter(existsSync);

/** A cgroup's directories, those inside first; its files cannot be removed. */
function removeCgroup(dir) {
  for (const entry of readdirSync(dir, { withFileTypes: true })) if (entry.isDirectory()) removeCgroup(path.join(dir, entry.name));
  rmdirSync(dir);
}

/** The namespace dies behind its wrapper: until it is gone, some things are busy. */
async function clean(dir, group) {
  const tries = 100;
  for (let i = 1; ; i++)
    try {
      for (const cgroup of cgroups(group)) removeCgroup(cgroup);
      execFileSync('rm', ['-rf', dir]); // rmSync is five times as slow
      return;
    } catch (error) {
      if (i === tries) throw error;
      await pause(100);
    }
}

/** Keys for a daemon and one client, as `docker` looks for them in DOCKER_CERT_PATH. */
function makeKeys(dir) {
  const openssl = (...args) => execFileSync('openssl', args, { cwd: dir, stdio: 'pipe' });
  const key = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  openssl('req', '-x509', ...key, '-keyout', 'ca-key.pem', '-out', 'ca.pem', '-subj', '/CN=jerboa-test', '-days', '2');
  writeFileSync(path.join(dir, 'names'), 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n');
  for (const name of ['server-', '']) {
    openssl('req', ...key, '-keyout', `${name}key.pem`, '-out', 'request', '-subj', '/CN=127.0.0.1');
    openssl('x509', '-req', '-in', 'request', '-CA', 'ca.pem', '-CAkey', 'ca-key.pem', '-CAcreateserial', '-out', `${name}cert.pem`, '-days', '2', '-extfile', 'names');
  }
}

/** A port of the loopback that nobody has at this moment. */
async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  return port;
}

/** Where our files are it sees empty directories; what is its own it has at /mnt. */
const elsewhere = `mount --bind "$1" /mnt; shift
while [ "$1" != -- ]; do [ ! -d "$1" ] || mount -t tmpfs tmpfs "$1"; shift; done
shift; exec "$@"`;

/**
 * Returns { version, pid, socket, group, docker(...args), end() }; the image is called `bench`, and has these tags, too. Two at a time need two names.
 * `hidden`: it is as if on another machine: these directories it does not see, and it is reached by TCP, with keys, as `env` says.
 */
export async function startDocker(build, runtime, { name: label = 'bench', tags = [], hidden } = {}) {
  const group = `jerboa-${label}-${createHash('sha256').update(build).digest('hex').slice(0, 8)}`; // of this build
  for (const file of Object.values(programs)) if (!existsSync(file)) throw new Error(`${file} is not there`);
  const dir = path.join(build, label), own = path.join(dir, 'docker'), socket = path.join(own, 'sock');
  if (socket.length > 107) throw new Error(`${socket} is too long for a socket`);
  await clean(own, group);
  for (const name of ['run', 'work', 'data', 'keys']) mkdirSync(path.join(own, name), { recursive: true });

  let env = { DOCKER_HOST: `unix://${socket}` }, reached = ['--host', `unix://${socket}`];
  if (hidden) {
    const keys = path.join(own, 'keys'), host = `tcp://127.0.0.1:${await freePort()}`;
    makeKeys(keys);
    env = { DOCKER_HOST: host, DOCKER_TLS_VERIFY: '1', DOCKER_CERT_PATH: keys };
    reached = ['--host', host, '--tlsverify', '--tlscacert', '/mnt/keys/ca.pem', '--tlscert', '/mnt/keys/server-cert.pem', '--tlskey', '/mnt/keys/server-key.pem'];
  }
  const log = openSync(path.join(dir, 'dockerd.log'), 'w');
  const daemon = spawn('setpriv', ['--pdeathsig', 'KILL', 'unshare', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc',
    'sh', '-euc', 'mount -t overlay -o "lowerdir=/run,upperdir=$1/run,workdir=$1/work" overlay /run; shift; exec "$@"', 'sh', own,
    ...(hidden ? ['sh', '-euc', elsewhere, 'sh', own, ...hidden, '--'] : []),
    programs.dockerd, ...reached, '--data-root', path.join(hidden ? '/mnt' : own, 'data'), '--exec-root', `/run/${group}`, '--pidfile', `/run/${group}.pid`,
    '--bridge', 'none', '--iptables=false', '--ip6tables=false', '--ip-masq=false',
    '--cgroup-parent', `/${group}`, '--exec-opt', 'native.cgroupdriver=cgroupfs'], { stdio: ['ignore', log, log] });
  const exited = once(daemon, 'exit');
  const docker = (...args) => run(programs.docker, args, { env });

  async function end() {
    daemon.kill('SIGKILL');
    await exited;
    await clean(own, group);
  }

  try {
    const tries = 100;
    for (let i = 1; ; i++)
      try {
        await docker('version');
        break;
      } catch (error) {
        if (i === tries || daemon.exitCode !== null) throw new Error(`dockerd does not answer, see ${path.join(dir, 'dockerd.log')}: ${error.message}`);
        await pause(100);
      }
    await docker('import', '--change', `ENV NODE_VERSION=${path.basename(runtime).split('-')[1]}`, archive(build, runtime), 'bench');
    for (const tag of tags) await docker('tag', 'bench', tag);
    const version = (await docker('version', '--format', '{{.Server.Version}}')).trim();
    return { version, pid: daemon.pid, socket, env, group, docker, end };
  } catch (error) {
    await end();
    throw error;
  }
}
