// The table of the escape tests: one row a way out.
//
//   name    the way
//   walls   what has to be left out until it is open, as the jail of the tests takes it (src/jail/leave_out.h), or `option …` of
//           `jerboa run`. With all of them left out the probe must arrive; with any one of them standing it must not: so each
//           of them holds alone, and no row can name a wall that has nothing to do with it.
//           null: nothing can be left out, and the control is the bare host
//   why     for rows of the bare host: what holds
//   code    what the probe does: JavaScript, at a place `at`: the same text inside of a sandbox and on the bare host
//   args    more options of `jerboa run`, in every run of the row
//   ready   makes on the host what the probe is after, before each run; may change `host.secret` (a new random word each time)
//   arrived how the host sees it; else the secret was printed
//   via     what `jerboa` is started through
//   root    the control takes rights that only root has: the row is root's alone
//
// A probe runs on the bare host as well, so it touches only what `ready` made.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { createServer } from 'node:net';
import { hostname } from 'node:os';
import path from 'node:path';
import { printed, probe, start } from './host.mjs';

const capabilities = 'step drop capabilities', landlock = 'step landlock', hostNetwork = 'option --network host';
const text = JSON.stringify;

/** The program of C, with these arguments. */
const call = (...args) => (at) => `const r = spawnSync(${text(at.probe)}, ${text(args.map((a) => (typeof a === 'function' ? a(at) : a)))}, { encoding: 'utf8' });
  process.stdout.write(r.stdout ?? ''); process.stderr.write(r.stderr ?? String(r.error));`;
const read = (file) => (at) => `process.stdout.write(fs.readFileSync(${text(file(at))}, 'utf8'))`;
const connect = (options) => (at) => `net.connect(${text(options(at))}).on('data', (d) => { process.stdout.write(d); process.exit(); }).on('error', (e) => { console.error(e.code); process.exit(1); })`;
const word = (at) => at.secret;

/** A file with the secret, which everybody may read. */
const secretIn = (...names) => (host) => fs.writeFileSync(path.join(host.dir, ...names), host.secret, { mode: 0o644 });
const listen = async (host, ...where) => {
  const server = createServer((socket) => socket.on('error', () => {}).end(host.secret)).listen(...where);
  host.after(() => server.close());
  await once(server, 'listening');
  return server.address();
};
const has = (file, bits) => fs.existsSync(file) && (fs.statSync(file).mode & bits) !== 0;

/** When the probe has started, FILES_DIR becomes a link to where the secret is; in both places it is told to go on. */
const swapFiles = (host) => {
  const aside = `${host.dir}/aside`, elsewhere = `${host.dir}/elsewhere`;
  fs.mkdirSync(elsewhere);
  fs.writeFileSync(`${elsewhere}/secret`, host.secret);
  const look = setInterval(() => {
    if (!fs.existsSync(`${host.files}/started`)) return;
    clearInterval(look);
    fs.renameSync(host.files, aside);
    fs.symlinkSync(elsewhere, host.files);
    for (const place of [aside, elsewhere]) fs.writeFileSync(`${place}/go`, '');
  }, 10);
  host.after(() => {
    clearInterval(look);
    if (fs.existsSync(aside)) { fs.unlinkSync(host.files); fs.renameSync(aside, host.files); }
    for (const name of ['files/started', 'files/go', 'elsewhere']) fs.rmSync(path.join(host.dir, name), { recursive: true, force: true });
  });
};

/** Another sandbox, under the same walls. */
const neighbour = async (host, code) => {
  const child = start(['run', ...host.options, '-e', code], { program: host.jerboa, seconds: 90 });
  host.after(async () => { child.kill('SIGTERM'); await child.ended; });
  await printed(child, 'ready');
};

/** Looks through all processes that it sees: `${below}` of each directory `${link}`. */
const through = (link, below) => (at) => `for (const pid of fs.readdirSync('/proc').filter((n) => +n))
  try { process.stdout.write(fs.readFileSync('/proc/' + pid + ${text(`/${link}`)} + ${text(below(at))}, 'utf8')); break; } catch {}`;

export const probes = [
  // ---- files of the host ----
  { name: 'a file by its path', walls: null, why: 'a root of its own', ready: secretIn('secret'), code: read((at) => path.join(at.host, 'secret')) },
  { name: 'a file by ..', walls: ['old root', landlock], ready: secretIn('secret'), code: read((at) => `/..${at.host}/secret`) },
  { name: 'a link in files/', walls: ['old root', landlock],
    ready: (host) => { secretIn('secret')(host); fs.rmSync(`${host.files}/link`, { force: true }); fs.symlinkSync(`/..${host.dir}/secret`, `${host.files}/link`); },
    code: read((at) => `${at.files}/link`) },
  { name: 'a relative link in files/', walls: null, why: 'above a shown directory is the sandbox\'s own',
    ready: (host) => { secretIn('secret')(host); fs.rmSync(`${host.files}/near`, { force: true }); fs.symlinkSync('../secret', `${host.files}/near`); },
    code: read((at) => `${at.files}/near`) },
  { name: 'files/ swapped for a link while it runs', walls: null, why: 'a mount is of the directory, not of its path', ready: swapFiles,
    code: (at) => `fs.writeFileSync(${text(`${at.files}/started`)}, '');
      for (let i = 0; i < 500 && !fs.existsSync(${text(`${at.files}/go`)}); i++) await new Promise((done) => setTimeout(done, 10));
      if (fs.existsSync(${text(`${at.files}/go`)})) process.stdout.write(fs.readFileSync(${text(`${at.files}/secret`)}, 'utf8'))` },
  { name: 'a hard link from a read-only directory', walls: null, why: 'each shown directory is a mount of its own',
    ready: (host) => { fs.writeFileSync(`${host.shown}/linked`, 'untouched'); fs.rmSync(`${host.files}/hard`, { force: true }); },
    code: (at) => `fs.linkSync(${text(`${at.shown}/linked`)}, ${text(`${at.files}/hard`)}); fs.writeFileSync(${text(`${at.files}/hard`)}, ${text(at.secret)})`,
    arrived: (host) => fs.readFileSync(`${host.shown}/linked`, 'utf8') === host.secret },
  { name: 'writing into a read-only directory', walls: ['writable /workspace/dir'],
    ready: (host) => fs.writeFileSync(`${host.shown}/kept`, 'untouched'),
    code: (at) => `fs.writeFileSync(${text(`${at.shown}/kept`)}, ${text(at.secret)}, { flag: 'r+' })`,
    arrived: (host) => fs.readFileSync(`${host.shown}/kept`, 'utf8') === host.secret },
  { name: '/proc/*/root', walls: null, why: 'processes of its own', ready: secretIn('secret'), code: through('root', (at) => `${at.host}/secret`) },
  { name: '/proc/*/fd', walls: null, why: 'processes of its own',
    ready: (host) => {
      const file = `${host.dir}/open-${host.secret}`, fd = fs.openSync(file, 'w+');
      fs.writeSync(fd, host.secret);
      fs.unlinkSync(file);
      host.after(() => fs.closeSync(fd));
    },
    // Only what has the name is opened: other processes' descriptors are nobody's to touch.
    code: (at) => `for (const pid of fs.readdirSync('/proc').filter((n) => +n)) try {
      for (const fd of fs.readdirSync('/proc/' + pid + '/fd')) {
        const link = '/proc/' + pid + '/fd/' + fd;
        if (/[/]open-[0-9a-f]+ /.test(fs.readlinkSync(link)) && fs.readlinkSync(link).startsWith(${text(at.host)})) process.stdout.write(fs.readFileSync(link, 'utf8'));
      } } catch {}` },
  { name: 'a directory left open', walls: null, why: 'closed by the server and by the jail', ready: secretIn('secret'),
    code: () => `for (const fd of fs.readdirSync('/proc/self/fd')) try { process.stdout.write(fs.readFileSync('/proc/self/fd/' + fd + '/secret', 'utf8')); break; } catch {}`,
    stdio: (host) => { const fd = fs.openSync(host.dir, 'r'); host.after(() => fs.closeSync(fd)); return ['pipe', 'pipe', 'pipe', 'ignore', fd, fd, fd]; } },
  { name: 'the environment of the server', walls: null, why: 'init starts with none', env: (host) => ({ ESCAPE_SECRET: host.secret }), code: () => 'process.stdout.write(`${process.env.ESCAPE_SECRET}`)' },

  // ---- mounts ----
  { name: 'remounting what is read-only', walls: ['call mount', capabilities, landlock],
    ready: (host) => fs.writeFileSync(`${host.shown}/kept`, 'untouched'),
    code: call('remount', (at) => at.shown, (at) => `${at.shown}/kept`, word), arrived: (host) => fs.readFileSync(`${host.shown}/kept`, 'utf8') === host.secret },
  { name: 'umount of what covers the disk', walls: ['call umount2', capabilities, landlock],
    code: (at) => `fs.writeFileSync('/workspace/secret', ${text(at.secret)}); ${call('umount', '/.jerboa/disk', '/.jerboa/disk/workspace/secret')(at)}` },
  { name: 'the disk that is covered', walls: ['aside /.jerboa/disk'],
    code: (at) => `fs.writeFileSync('/workspace/secret', ${text(at.secret)}); ${read(() => '/.jerboa/disk/workspace/secret')(at)}` },
  { name: 'chroot', walls: ['call chroot', capabilities], ready: secretIn('shown', 'secret'), code: call('chroot', (at) => at.shown, '/secret') },
  { name: 'pivot_root', walls: ['call pivot_root', capabilities, landlock], ready: secretIn('shown', 'secret'), code: call('pivot_root', (at) => at.shown, '/secret') },
  { name: 'fsopen', walls: ['call fsopen', capabilities], code: call('fsopen', word) },
  { name: 'open_tree', walls: ['call open_tree', capabilities], code: call('open_tree', word) },
  { name: 'a file by its handle', root: true, walls: null, why: 'the filter, and capabilities of the machine itself', ready: secretIn('shown', 'secret'),
    code: call('handle', (at) => `${at.shown}/secret`, (at) => at.shown) },
  { name: 'a device in a shown directory', root: true, walls: ['devices /workspace/dir'],
    ready: (host) => { if (!fs.existsSync(`${host.shown}/device`)) execFileSync('mknod', ['-m', '666', `${host.shown}/device`, 'c', '1', '5']); },
    code: call('device', (at) => `${at.shown}/device`, word) },
  { name: 'making a device', root: true, walls: null, why: 'a user namespace', code: call('mknod', (at) => `${at.files}/made`, word) },

  // ---- namespaces ----
  { name: 'unshare', walls: ['call unshare'], code: call('unshare', word) },
  { name: 'clone', walls: ['call clone'], code: call('clone', word) },
  { name: 'clone3', walls: ['call clone3'], code: call('clone3', word) },
  { name: 'setns', walls: ['call setns', capabilities], code: call('setns', word) },

  // ---- init and other processes ----
  { name: 'ptrace of init', walls: ['call ptrace', capabilities], code: call('ptrace', word) },
  { name: 'process_vm_readv of init', walls: ['call process_vm_readv', capabilities], code: call('vm-read', word) },
  { name: 'process_vm_writev of init', walls: ['call process_vm_writev', capabilities], code: call('vm-write', word) },
  { name: 'limits of init', walls: ['call prlimit64'], code: call('limits', word) },
  { name: 'processors of init', walls: ['call sched_setaffinity'], code: call('affinity', word) },
  { name: '/proc/1/mem', walls: [capabilities], code: (at) => `fs.openSync('/proc/1/mem', 'r'); process.stdout.write(${text(at.secret)})` },
  { name: 'init\'s own program', walls: [capabilities], code: (at) => `fs.readlinkSync('/proc/1/exe'); process.stdout.write(${text(at.secret)})` },
  { name: 'the pipe of init', walls: ['call pidfd_open', 'call pidfd_getfd', capabilities], code: call('pipe', word) },
  { name: 'a signal to a process of the host', walls: null, why: 'processes of its own',
    ready: (host) => { const heard = () => { host.heard = true; }; host.heard = false; process.on('SIGURG', heard); host.after(() => process.off('SIGURG', heard)); },
    code: (at) => `process.kill(${process.pid}, 'SIGURG')`, arrived: (host) => host.heard },

  // ---- the kernel's surface ----
  { name: 'bpf', root: true, walls: null, why: 'the filter', code: call('bpf', word) },
  { name: 'perf_event_open', walls: ['call perf_event_open'], code: call('perf', word) },
  { name: 'io_uring', walls: null, why: 'the filter', code: call('io_uring', word) }, // left out, Node itself would take it
  { name: 'userfaultfd', walls: ['call userfaultfd'], code: call('userfaultfd', word) },
  { name: 'a key of the session', walls: ['call keyctl'], via: (host) => [probe, 'with-key', 'jerboa-escape', host.secret], code: call('key', 'jerboa-escape') },
  { name: 'shared memory of the host', walls: ['namespace ipc'],
    ready: (host) => {
      const number = `${1 + Math.floor(Math.random() * 0x7ffffff0)}`;
      execFileSync(probe, ['shm-put', number, host.secret]);
      host.after(() => execFileSync(probe, ['shm-drop', number]));
      host.number = number;
    },
    code: call('shm', (at) => at.number) },
  { name: 'the kernel\'s command line', walls: ['mask /proc/cmdline'], ready: (host) => { host.secret = fs.readFileSync('/proc/cmdline', 'utf8'); }, code: read(() => '/proc/cmdline') },
  { name: 'a sysctl', walls: ['readonly /proc/sys', landlock, capabilities],
    code: (at) => `const file = '/proc/sys/net/ipv4/ip_default_ttl'; fs.writeFileSync(file, '77', { flag: 'r+' }); if (+fs.readFileSync(file) === 77) process.stdout.write(${text(at.secret)})` },
  { name: 'core_pattern', root: true, walls: null, why: 'a user namespace, and all of /proc/sys read-only', // opened and left as it is
    code: (at) => `fs.openSync('/proc/sys/kernel/core_pattern', 'r+'); process.stdout.write(${text(at.secret)})` },
  { name: 'a core limit of 0', walls: ['call prlimit64'], code: call('core', word) },
  { name: 'the name of the host', walls: null, why: 'a host name of its own', ready: (host) => { host.secret = hostname(); }, code: () => `process.stdout.write((await import('node:os')).hostname())` },
  { name: 'where its cgroup lies', walls: ['step hide cgroup'], ready: (host) => { host.secret = `jerboa-test-${process.pid}`; }, code: read(() => '/proc/self/cgroup') },

  // ---- the network ----
  { name: 'a port of the host', walls: [hostNetwork], ready: async (host) => { host.port = (await listen(host, 0, '127.0.0.1')).port; }, code: connect((at) => ({ host: '127.0.0.1', port: at.port })) },
  { name: 'an abstract socket of the host', walls: [hostNetwork, landlock],
    ready: async (host) => { host.path = `\0jerboa-escape-${process.pid}-${Math.random()}`; await listen(host, host.path); }, code: connect((at) => ({ path: at.path })) },
  { name: 'a raw socket', walls: ['call socket', capabilities], code: call('raw', word) },
  { name: 'a packet socket', walls: ['call socket', capabilities], code: call('packet', word) },
  { name: 'undoing the redirect', walls: ['call socket', capabilities], code: call('redirect', word) },
  { name: 'another address, by netlink', walls: [capabilities], code: call('address', word) },

  // ---- what it leaves in FILES_DIR ----
  { name: 'a setuid file by chmod', walls: ['call fchmodat'], ready: (host) => { fs.rmSync(`${host.files}/set`, { force: true }); fs.writeFileSync(`${host.files}/set`, '', { mode: 0o644 }); if (host.owner) fs.chownSync(`${host.files}/set`, ...host.owner); },
    code: call('chmod', (at) => `${at.files}/set`), arrived: (host) => has(`${host.files}/set`, 0o6000) },
  { name: 'a setuid file by open', walls: ['call openat'], ready: (host) => fs.rmSync(`${host.files}/opened`, { force: true }),
    code: call('create', (at) => `${at.files}/opened`), arrived: (host) => has(`${host.files}/opened`, 0o6000) },

  // ---- limits ----
  { name: 'descriptors', walls: ['limit descriptors'], code: call('descriptors', '2000', word) },
  { name: 'processes', args: ['--pids', '60'], walls: ['option --pids 300'], code: call('processes', '100', word) },
  { name: 'memory', args: ['--memory', '96m'], walls: ['option --memory 400m'], code: call('memory', '160', word) },
  { name: 'disk', args: ['--disk', '4m'], walls: ['limit bytes'], code: (at) => `fs.writeFileSync('/tmp/large', Buffer.alloc(8 << 20, 1)); process.stdout.write(${text(at.secret)})` },
  { name: 'inodes', args: ['--disk', '4m'], walls: ['limit inodes'], code: (at) => `for (let i = 0; i < 1200; i++) fs.writeFileSync('/tmp/' + i, ''); process.stdout.write(${text(at.secret)})` },

  // ---- other sandboxes ----
  { name: 'a file of another sandbox', walls: null, why: 'processes and a root of its own',
    ready: (host) => neighbour(host, `import fs from 'node:fs'; fs.writeFileSync('/workspace/mine', ${text(host.secret)}); console.log('ready'); setInterval(() => {}, 1000)`),
    code: through('root', () => '/workspace/mine') },
  { name: 'a port of another sandbox', walls: [hostNetwork],
    ready: async (host) => {
      const free = createServer().listen(0, '127.0.0.1');
      await once(free, 'listening');
      host.port = free.address().port;
      await new Promise((done) => { free.close(done); });
      await neighbour(host, `import net from 'node:net'; net.createServer((s) => s.end(${text(host.secret)})).listen(${host.port}, '127.0.0.1', () => console.log('ready'))`);
    },
    code: connect((at) => ({ host: '127.0.0.1', port: at.port })) },
];
