// A first look at the walls from inside: each probe says what it got, and each wall what it must have been.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { test } from 'node:test';
import { answer, isRoot, jerboa, limit, printed, root, run, runCode, start, tempDir } from './jerboa.mjs';

/** Runs each attempt inside; the answer has its result, or the code of its error. */
const probe = (args, attempts, ...more) => run([...args, '-e', `
  import fs from 'node:fs'; import net from 'node:net'; import dgram from 'node:dgram'; import { spawnSync } from 'node:child_process';
  const sh = (command) => { const r = spawnSync('sh', ['-c', command], { encoding: 'utf8' }); return r.status === 0 ? r.stdout.trim() : 'failed'; };
  const results = {};
  for (const [name, attempt] of Object.entries({ ${Object.entries(attempts).map(([name, text]) => `${JSON.stringify(name)}: () => ${text}`).join(',\n')} }))
    try { results[name] = (await attempt()) ?? 'done'; } catch (e) { results[name] = e.code ?? e.message; }
  console.log(JSON.stringify(results)); process.exit()`], ...more).then(answer);

const all = (results, allowed) => {
  for (const [name, result] of Object.entries(results)) assert.ok(allowed.includes(result), `${name}: ${JSON.stringify(result)}`);
};

test('files of the host cannot be named', limit, async (t) => {
  const dir = tempDir(t);
  fs.writeFileSync(path.join(dir, 'secret'), 'secret');
  const below = path.join(dir, 'shown');
  fs.mkdirSync(below);
  fs.symlinkSync('../secret', path.join(below, 'link'));
  fs.symlinkSync(path.join(dir, 'secret'), path.join(below, 'absolute'));
  const read = (file) => `fs.readFileSync(${JSON.stringify(file)}, 'utf8')`;
  const results = await probe(['--files', below], Object.fromEntries([
    '/etc/shadow', '/etc/ssh/sshd_config', '/root/.bashrc', path.join(dir, 'secret'), import.meta.filename, '/workspace/files/../../secret',
    '/workspace/files/link', '/workspace/files/absolute', '/../../../../etc/shadow', '/proc/1/root/etc/shadow', '/proc/1/environ', '/proc/1/maps', '/proc/1/mem',
    '/proc/1/fd/0', '/proc/1/fd/1', '/proc/1/cwd/etc/shadow', '/proc/kcore', '/proc/sysrq-trigger', '/.jerboa/disk/workspace/index.js', '/var/log/dpkg.log',
  ].map((file) => [file, read(file)])));
  for (const [file, result] of Object.entries(results))
    assert.ok(['ENOENT', 'EACCES', 'EPERM', 'ENOTDIR'].includes(result) || result === '', `${file}: ${JSON.stringify(result).slice(0, 80)}`);
  const seen = await probe([], {
    root: 'fs.readdirSync("/")', processes: 'fs.readdirSync("/proc").filter((n) => +n).length',
    fd: 'fs.readlinkSync("/proc/1/fd/1")', exe: 'fs.readlinkSync("/proc/1/exe")',
  });
  const tops = ['.jerboa', 'bin', 'dev', 'etc', 'lib', 'lib32', 'lib64', 'libx32', 'opt', 'proc', 'root', 'sbin', 'sys', 'tmp', 'usr', 'var', 'workspace'];
  assert.deepEqual(seen.root.filter((name) => !tops.includes(name)), []);
  assert.equal(seen.processes, 1); // the script; init is not seen
  assert.deepEqual([seen.fd, seen.exe], ['ENOENT', 'ENOENT']);
});

test('nothing can be written but the writable places', limit, async () => {
  const attempt = (files, deed) => probe([], Object.fromEntries(files.map((file) => [file, deed(JSON.stringify(file))])));
  const write = (file) => `fs.writeFileSync(${file}, '1', { flag: fs.existsSync(${file}) ? 'r+' : 'w' })`;
  all(await attempt([
    '/x', '/usr/x', '/usr/bin/x', '/etc/x', '/etc/passwd', '/opt/node/x', '/opt/node/bin/npm', '/opt/node/include/node/node.h', '/.jerboa/x',
    '/sys/x', '/sys/fs/cgroup/memory.max', '/dev/x', '/bin/x', '/lib/x', '/var/x', '/proc/1/mem', '/proc/sysrq-trigger',
    '/proc/sys/kernel/hostname', '/proc/sys/kernel/core_pattern', '/proc/sys/vm/drop_caches',
  ], write), ['EROFS', 'EACCES', 'EPERM', 'ENOENT']);
  // An ordinary user owns these outside; that they run is told before that they are read-only, so both are asked.
  const running = ['/opt/node/bin/node', '/.jerboa/init'];
  all(await attempt(running, write), ['EROFS', 'EACCES', 'ETXTBSY']);
  all(await attempt(running, (file) => `fs.chmodSync(${file}, 0o777)`), ['EROFS']);
  all(await attempt(['/usr/bin/env', '/etc/passwd', '/.jerboa/init', '/opt/node/bin/node', '/dev/null'],
    (file) => `fs.unlinkSync(${file})`), ['EROFS', 'EACCES', 'EPERM', 'EBUSY']);
  all(await attempt(['/workspace/x', '/tmp/x', '/root/x', '/dev/shm/x', '/workspace/files/x', '/var/tmp/x'], write), ['done']);
});

test('no privileges, and no way back to them', limit, async () => {
  const status = answer(await runCode([], async () => {
    const fs = await import('node:fs');
    console.log(JSON.stringify(Object.fromEntries(fs.readFileSync('/proc/self/status', 'utf8').trim().split('\n').map((line) => line.split(/:\s+/)))));
  }));
  for (const name of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) assert.match(status[name], /^0+$/, name);
  assert.deepEqual([status.NoNewPrivs, status.Seccomp], ['1', '2']);
  // An ordinary user may not give groups up: his own is 0 inside, any other nobody's.
  assert.match(status.Groups ?? '', isRoot ? /^$/ : /^((0|65534) ?)*$/);
  all(await probe([], {
    mount: `sh('mount -t tmpfs none /tmp')`, bind: `sh('mount --bind /usr /tmp')`, umount: `sh('umount /proc')`, remount: `sh('mount -o remount,rw /usr')`,
    unshare: `sh('unshare -U true')`, unshareMount: `sh('unshare -Urm true')`, nsenter: `sh('nsenter -t 1 -m true')`, chroot: `sh('chroot / true')`, hostname: `sh('hostname other')`,
    chown: `sh('touch /tmp/f && chown 1 /tmp/f')`, mknod: `sh('mknod /tmp/d c 1 3')`, swap: `sh('swapoff -a && false')`, date: `sh('date -s 2001-01-01')`, priority: `sh('nice -n -5 true 2>&1 | grep -q . || echo went')`,
    suid: `sh('cp /bin/sh /tmp/s && chmod 4755 /tmp/s')`, su: `sh('su nobody -s /bin/sh -c true')`, dmesg: `sh('dmesg')`,
  }), ['failed', '']);
  const ids = await probe([], { setuid: 'process.setuid(65534)', setgid: 'process.setgid(65534)', groups: 'process.setgroups([1])' });
  all(ids, ['EPERM', 'ENOSYS', 'EINVAL']);
});

test('a setuid file of the user means nothing inside', limit, async (t) => {
  const dir = tempDir(t), file = path.join(dir, 'id');
  fs.copyFileSync('/usr/bin/id', file);
  if (isRoot) fs.chownSync(dir, 1000, 1000);
  fs.chmodSync(file, 0o4755); // root's, or the user's own
  for (const option of ['--files', '--dir']) {
    const { id } = await probe([option, dir], { id: `sh('/workspace/${option.slice(2)}/id -u; grep CapEff /proc/self/status')` });
    assert.match(id, /^0\nCapEff:\s+0+$/);
  }
});

test('init cannot be killed, stopped, traced or fed', limit, async () => {
  const r = await runCode([], async () => {
    const fs = await import('node:fs');
    for (const signal of ['SIGKILL', 'SIGSTOP', 'SIGTERM', 'SIGSEGV', 'SIGINT', 'SIGHUP', 'SIGUSR1', 'SIGCHLD', 'SIGPIPE']) process.kill(1, signal);
    const { spawnSync } = await import('node:child_process');
    for (const file of ['/proc/1/fd/1', '/proc/1/mem']) try { fs.openSync(file, 'w'); console.log('opened', file); } catch (e) { if (e.code !== 'ENOENT') console.log(file, e.code); }
    console.log(spawnSync('echo', ['still here'], { encoding: 'utf8' }).stdout.trim());
  });
  assert.deepEqual([r.stdout, r.stderr, r.status], ['still here\n', '', 0]);
});

test('open descriptors are the three streams', limit, async () => {
  const { fds } = await probe([], { fds: `sh('ls -l /proc/self/fd')` });
  const links = fds.split('\n').filter((line) => line.includes('->')).map((line) => line.replace(/.* (\d+ -> [^:[]*).*/, '$1'));
  assert.deepEqual(links.filter((link) => !/^\d+ -> (pipe|socket|\/dev\/null)$/.test(link)).map((link) => link.split(' -> ')[1].replace(/\d+/, 'N')), ['/proc/N/fd']);
  // Node's own are pipes and pollers; a socket would be init's, through which cgroups come
  const own = await run(['-e', `import { readdirSync, readlinkSync } from 'node:fs'; for (const n of readdirSync('/proc/self/fd')) try { console.log(readlinkSync('/proc/self/fd/' + n)) } catch {}`]);
  for (const link of own.stdout.trim().split('\n')) assert.match(link, /^(pipe:|anon_inode:|\/dev\/null$|\/proc\/)/);
});

test('no service of the host is reached', limit, async (t) => {
  const tcp = createServer((socket) => socket.end('hello')).listen(0, '127.0.0.1');
  const name = `\0jerboa-test-${process.pid}`;
  const abstract = createServer((socket) => socket.end('hello')).listen(name);
  t.after(() => { tcp.close(); abstract.close(); });
  await Promise.all([once(tcp, 'listening'), once(abstract, 'listening')]);
  const reach = (options) => `new Promise((resolve, reject) => net.connect(${JSON.stringify(options)}).on('connect', () => resolve('connected')).on('error', reject))`;
  const { port } = tcp.address();
  all(await probe([], {
    loopback: reach({ host: '127.0.0.1', port }), any: reach({ host: '0.0.0.0', port }), v6: reach({ host: '::1', port }),
    abstract: reach({ path: name }), docker: reach({ path: '/var/run/docker.sock' }), name: reach({ host: 'localhost', port }),
    udp: `new Promise((resolve, reject) => { const s = dgram.createSocket('udp4').on('error', reject); s.send('x', 123, '1.1.1.1', (e) => e ? reject(e) : resolve('sent')) })`,
  }), ['ECONNREFUSED', 'ENETUNREACH', 'EADDRNOTAVAIL', 'ENOENT', 'EACCES', 'EPERM']);
  // What is redirected is reset, and told. (Of destinations that would answer: egress.test.mjs.)
  const away = await run(['--network', 'none', '-e', `import net from 'node:net';
    for (const [host, port] of [['1.1.1.1', 443], ['169.254.169.254', 80]])
      net.connect({ host, port }).on('data', () => console.log('data')).on('error', (e) => console.log(e.code)).end('x');`]);
  assert.equal(away.stdout, 'ECONNRESET\nECONNRESET\n');
  assert.match(away.stderr, /^jerboa: network: 1\.1\.1\.1, port 443: network policy 'none' /m);
  assert.match(away.stderr, /^jerboa: network: 169\.254\.169\.254, port 80: /m);
  const { interfaces } = await probe([], { interfaces: `fs.readdirSync('/proc/sys/net/ipv4/conf').join()` });
  assert.deepEqual(interfaces.split(',').filter((n) => !['all', 'default', 'lo'].includes(n) && !/^(sit|tunl|gre|gretap|erspan|ip6tnl|ip6gre|ip_vti|ip6_vti)\d/.test(n)), []);
});

test('the host\'s names and numbers do not show', limit, async () => {
  const seen = await probe([], { hostname: `sh('uname -n')`, environ: 'Object.keys(process.env).sort().join()', cgroup: `fs.readFileSync('/proc/self/cgroup', 'utf8')`, mounts: `fs.readFileSync('/proc/self/mountinfo', 'utf8')`, uids: `fs.readFileSync('/proc/self/uid_map', 'utf8').trim().split(/\\s+/)[0]` }, { env: { SECRET: 'of the host' } });
  assert.equal(seen.hostname, 'sandbox');
  assert.equal(seen.environ, 'HOME,JERBOA_TEST_MARK,LANG,NODE_EXTRA_CA_CERTS,PATH,SSL_CERT_FILE,USER,npm_config_registry');
  assert.equal(seen.uids, '0');
  // init's group is the root of what it sees, and its own stands beside that; no name of the host's is in it
  for (const line of seen.cgroup.trim().split('\n')) assert.match(line, /^\d+:[^:]*:\/(\.\.\/box\/run-\d+)?$/);
  const mounts = seen.mounts.trim().split('\n').map((line) => line.split(' '));
  for (const mount of mounts) assert.doesNotMatch(mount[4], /^\/(home|mnt|media|boot|run)\b/);
  // the disk's own root is covered by an empty, closed, read-only directory
  const disk = mounts.filter((mount) => mount[4].startsWith('/.jerboa/disk'));
  assert.deepEqual(disk.map((mount) => [mount[4], mount[5].split(',')[0]]), [['/.jerboa/disk', 'rw'], ['/.jerboa/disk', 'ro']]);
  assert.equal(disk[1][1], disk[0][0]); // it stands on the other one
  assert.match(disk[1].at(-1), /\bsize=0k,nr_inodes=1,mode=000\b/);
});

/** System calls that no script of ours makes, by a program of the test. */
test('system calls that are walls', limit, async (t) => {
  const dir = tempDir(t);
  execFileSync('musl-gcc', ['-D_GNU_SOURCE', '-static', '-O1', '-o', path.join(dir, 'calls'), `${root}/tests/programs/calls.c`]);
  const { out } = await probe(['--files', dir], { out: `sh('/workspace/files/calls')` });
  const lines = out.split('\n').map((line) => /^(.*) (\d+)$/.exec(line));
  assert.equal(lines.length, 38);
  const EPERM = 1, ENOSYS = 38;
  for (const [, name, errno] of lines) assert.ok([EPERM, ENOSYS].includes(+errno), `${name}: errno ${errno}`);
});

test('limits of init are not the code\'s to set', limit, async () => {
  const results = await probe([], {
    prlimit: `sh('prlimit --pid 1 --nofile=64:64')`, renice: `sh('renice -n 19 -p 1')`, taskset: `sh('taskset -pc 0 1')`,
    core: `sh('ulimit -c 0 && prlimit --core=0:0')`,
  });
  all(results, ['failed']);
  assert.equal((await probe([], { own: `sh('ulimit -n 64 && ulimit -n')` })).own, '64'); // the control: one's own can be set
});

test('Landlock: of /proc nothing can be written, and no abstract socket of the host is reached even with its network', limit, async (t) => {
  const name = `\0jerboa-test-landlock-${process.pid}`;
  const abstract = createServer((socket) => socket.end('hello')).listen(name);
  t.after(() => abstract.close());
  await once(abstract, 'listening');
  const attempts = {
    score: `fs.writeFileSync('/proc/self/oom_score_adj', '500')`, comm: `fs.writeFileSync('/proc/self/comm', 'x')`,
    abstract: `new Promise((resolve, reject) => net.connect({ path: ${JSON.stringify(name)} }).on('connect', () => resolve('connected')).on('error', reject))`,
  };
  // Without it (refuse.test.mjs: 'without Landlock') the same attempts succeed: the probe can fail.
  const r = await run(['--network', 'host', '-e', `import fs from 'node:fs'; import net from 'node:net'; const results = {};
    for (const [name, attempt] of Object.entries({ ${Object.entries(attempts).map(([n, text]) => `${n}: async () => ${text}`).join(', ')} }))
      try { results[name] = (await attempt()) ?? 'done'; } catch (e) { results[name] = e.code; }
    console.log(JSON.stringify(results)); process.exit()`]);
  const results = JSON.parse(r.stdout);
  assert.deepEqual([results.score, results.comm], ['EACCES', 'EACCES']);
  assert.ok(['EPERM', 'EACCES'].includes(results.abstract), results.abstract);
  // what is writable by the plan stays so, and files move between its directories
  const { moved } = await probe([], { moved: `sh('mkdir -p /tmp/a /tmp/b && echo x > /tmp/a/f && mv /tmp/a/f /tmp/b/ && cat /tmp/b/f > /dev/null && truncate -s 0 /tmp/b/f && mkfifo /tmp/p && ln -s p /tmp/l && rm -r /tmp/b && echo fine')` });
  assert.equal(moved, 'fine');
});

test('what the host mounts later below a shown directory does not appear', limit, async (t) => {
  const dir = tempDir(t);
  // A shell in a mount namespace of its own is the host here.
  const host = start([isRoot ? '-m' : '-Urm', 'sh'], { program: 'unshare', cwd: dir });
  const script = `import fs from "node:fs"; console.log("ready");
    process.stdin.once("data", () => { console.log("seen:", fs.readdirSync("/workspace/dir/sub").join()); process.exit(); })`;
  host.stdin.write(`mkdir shown && mount -t tmpfs tmpfs shown && mount --make-shared shown && mkdir shown/sub && mkfifo go || exit 1
    '${jerboa}' run --dir shown -e '${script}' < go & exec 3> go\n`);
  await printed(host, 'ready\n');
  host.stdin.end('mount -t tmpfs tmpfs shown/sub && touch shown/sub/secret && ls shown/sub && echo go >&3; wait\n');
  assert.equal((await host.ended).stdout, 'ready\nsecret\nseen: \n');
});
