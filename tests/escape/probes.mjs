// The table of the escape tests: one row a way out.
//
//   name    the way
//   walls   what has to be left out until it is open, as the jail of the tests takes it (src/jail/leave_out.h), or `option …` of
//           `jerboa run`. With all of them left out the probe must arrive; with any one of them standing it must not: so each
//           of them holds alone, and no row can name a wall that has nothing to do with it.
//           null: nothing can be left out, and the control is the bare host
//   also    what is left out with them in each run of that jail, because it could not stand without them, or hides which of them holds
//   why     for rows of the bare host: what holds
//   code    what the probe does: JavaScript, at a place `at`: the same text inside of a sandbox and on the bare host
//   args    more options of `jerboa run`, in every run of the row
//   ready   makes on the host what the probe is after, before each run; may change `host.secret` (a new random word each time)
//   arrived how the host sees it; else the secret was printed
//   via     what `jerboa` is started through
//   command what is run instead of `jerboa run`, or of Node on the bare host; cwd: where
//   root    the control takes rights that only root has: the row is root's alone
//   lacks   why this machine cannot have the control, if so: then it is skipped, and said
//   elsewhere  why it is not closed, or not asked, on another engine: then it is skipped there, and said
//   apart   each wall closes a part of its own: the control must pass all of them, the probe none
//
// A probe runs on the bare host as well, so it touches only what `ready` made.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { createServer } from 'node:net';
import { hostname, release } from 'node:os';
import path from 'node:path';
import { packages } from './packages.mjs';
import { engine, inside, isRoot, jerboa, printed, probe, start } from './host.mjs';

const capabilities = 'step drop capabilities', landlock = 'step landlock', hostNetwork = 'option --network host';
const [major, minor] = release().split('.').map(Number), since = (a, b) => major > a || (major === a && minor >= b);
const scope = since(6, 12) ? [landlock] : []; // of signals and abstract sockets
const noUsers = 'namespace user', noProcesses = 'namespace pid', mounting = ['call mount', capabilities, landlock];
const asRoot = (...walls) => (isRoot ? walls : []);
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
  return child;
};

/** What the plan masks of what this machine has. */
const masks = execFileSync(jerboa, ['run', '--explain', '-e', '0'], { encoding: 'utf8' })
  .match(/"kind": "mask",\s+"target": "[^"]+/g).map((entry) => entry.split('"').at(-1)).filter((target) => fs.existsSync(target));
const told = (file) => { try { return fs.readFileSync(file, 'utf8'); } catch { return ''; } };
const lacking = (is, why) => (is ? undefined : why);
const noFirst = lacking(fs.existsSync('/sys/fs/cgroup/memory/release_agent'), 'this machine has no cgroups of version 1');
/** Calls with a mode that have no row of their own; openat: a file that has no name at first. */
const setters = ['fchmod', ...(since(6, 6) ? ['fchmodat2'] : []), 'mknodat', 'openat2', 'openat', ...(process.arch === 'x64' ? ['chmod', 'creat', 'open', 'mknod'] : [])];
const cores = (host) => fs.readdirSync(host.files).filter((name) => name.startsWith('core'));

/** More files than there may be. Podman's --tmpfs takes no number of them: there they are memory, which is what ends them. */
const many = engine === 'podman' ? { args: ['--memory', '64m'], files: 400_000 } : { args: ['--disk', '4m'], files: 1200 };

const fewerMasks = 'the daemon masks less, and lets nobody mask more';

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
  { name: '/proc/*/root', walls: isRoot ? [noProcesses, capabilities, landlock] : null, also: [noUsers], why: 'processes of its own', ready: secretIn('secret'),
    // Only this process of ours: others may have laid down what keeps code from them.
    code: (at) => `process.stdout.write(fs.readFileSync(${text(`/proc/${process.pid}/root${at.host}/secret`)}, 'utf8'))` },
  { name: '/proc/*/fd', walls: isRoot ? [noProcesses, capabilities, landlock] : null, also: [noUsers], why: 'processes of its own',
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
  { name: 'a file by its handle', root: true, walls: ['call name_to_handle_at', 'call open_by_handle_at', capabilities], also: [noUsers], ready: secretIn('shown', 'secret'),
    code: call('handle', (at) => `${at.shown}/secret`, (at) => at.shown) },
  { name: 'a device in a shown directory', root: true, elsewhere: 'the daemon lets everybody have this one; of others, see docker.test.mjs', walls: ['devices /workspace/dir'],
    ready: (host) => { if (!fs.existsSync(`${host.shown}/device`)) execFileSync('mknod', ['-m', '666', `${host.shown}/device`, 'c', '1', '5']); },
    code: call('device', (at) => `${at.shown}/device`, word) },
  { name: 'making a device', root: true, walls: [noUsers, capabilities, landlock], code: call('mknod', '/tmp/made', word) },

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
  { name: 'init\'s own program', walls: ['writable /.jerboa/init', capabilities, ...asRoot(noUsers)],
    ready: (host) => { host.program = path.join(path.dirname(host.jerboa), 'jerboa-init'); host.after(() => fs.chmodSync(host.program, 0o755)); },
    code: () => `fs.chmodSync('/proc/1/exe', 0o751)`, arrived: (host) => (fs.statSync(host.program).mode & 0o777) === 0o751 },
  { name: 'init in /proc', elsewhere: 'the daemon\'s /proc shows that there is one', walls: ['hidepid /proc'], code: (at) => `fs.readFileSync('/proc/1/status'); process.stdout.write(${text(at.secret)})` },
  { name: 'a signal to init', walls: [noProcesses], also: ['proc /proc'], ready: (host) => { host.after(() => fs.rmSync(`${host.files}/began`, { force: true })); },
    code: (at) => `fs.writeFileSync(${text(`${at.files}/began`)}, ''); const init = ${engine ? 1 : 'process.ppid'}; for (const signal of ['SIGSTOP', 'SIGTERM', 'SIGKILL']) process.kill(init, signal); console.log('still here')`,
    arrived: (host, r) => fs.existsSync(`${host.files}/began`) && !r.stdout.includes('still here') },
  { name: 'the pipe of init', walls: ['call pidfd_open', 'call pidfd_getfd', capabilities], code: call('pipe', word) },
  { name: 'a signal to a process of the host', walls: [noProcesses, ...scope, ...asRoot(noUsers)], also: ['proc /proc'],
    ready: (host) => { const heard = () => { host.heard = true; }; host.heard = false; process.on('SIGURG', heard); host.after(() => process.off('SIGURG', heard)); },
    code: (at) => `process.kill(${process.pid}, 'SIGURG')`, arrived: (host) => host.heard },

  // ---- the kernel's surface ----
  { name: 'bpf', root: true, walls: ['call bpf', capabilities, noUsers], code: call('bpf', word) },
  { name: 'a module of the kernel', root: true, lacks: lacking(fs.existsSync('/proc/modules'), 'this kernel has no modules'), walls: ['call init_module', capabilities, noUsers], code: call('module', word) },
  { name: 'setting the clock', root: true, walls: ['call clock_adjtime', capabilities, noUsers], code: call('clock', word) },
  { name: 'swapping', root: true, lacks: lacking(fs.existsSync('/proc/swaps'), 'this kernel does not swap'), walls: ['call swapoff', capabilities, noUsers], code: call('swap', word) },
  { name: 'perf_event_open', walls: ['call perf_event_open'], code: call('perf', word) },
  { name: 'io_uring', walls: ['call io_uring_setup'], also: ['call io_uring_enter', 'call io_uring_register'], // Node itself takes it
    code: call('io_uring', word) },
  { name: 'userfaultfd', walls: ['call userfaultfd'], code: call('userfaultfd', word) },
  { name: 'a key of the session', walls: ['call keyctl', 'step own keyring'], via: (host) => [probe, 'with-key', 'jerboa-escape', host.secret], code: call('key', 'jerboa-escape') },
  { name: 'typing into a terminal', lacks: lacking(told('/proc/sys/dev/tty/legacy_tiocsti').trim() !== '0', 'this kernel lets nobody type for others'), walls: ['devices /workspace/dir', 'call ioctl'],
    ready: async (host) => {
      const child = start(['terminal'], { program: probe });
      host.after(async () => { child.stdin.end(); await child.ended; fs.rmSync(`${host.files}/probe`); });
      await printed(child, '\n');
      host.terminal = path.basename(child.text('stdout').trim());
      host.shows = '/dev/pts';
      fs.copyFileSync(probe, `${host.files}/probe`);
    },
    code: (at) => call('type', `/workspace/dir/${at.terminal}`, word)({ ...at, probe: `${at.files}/probe` }) },
  { name: 'shared memory of the host', walls: ['namespace ipc'],
    ready: (host) => {
      const number = `${1 + Math.floor(Math.random() * 0x7ffffff0)}`;
      execFileSync(probe, ['shm-put', number, host.secret]);
      host.after(() => execFileSync(probe, ['shm-drop', number]));
      host.number = number;
    },
    code: call('shm', (at) => at.number) },
  { name: 'the kernel\'s command line', elsewhere: fewerMasks, walls: ['mask /proc/cmdline'], ready: (host) => { host.secret = fs.readFileSync('/proc/cmdline', 'utf8'); }, code: read(() => '/proc/cmdline') },
  { name: 'what /proc shows of the machine', elsewhere: fewerMasks, apart: true, walls: masks.map((target) => `mask ${target}`),
    code: () => `console.log(JSON.stringify(${text(masks)}.filter((target) => fs.statSync(target).dev === fs.statSync('/proc').dev)))`,
    arrived: (host, r, leftOut) => { const seen = JSON.parse(r.stdout); return leftOut ? seen.length === masks.length : seen.length > 0; } },
  { name: 'writing below /sys', root: true, walls: ['old root', landlock, noUsers], // opened and left as it is
    code: (at) => `fs.openSync('/../sys/devices/virtual/net/lo/mtu', 'r+'); process.stdout.write(${text(at.secret)})` },
  { name: 'processors of interrupts', root: true, lacks: lacking(fs.existsSync('/proc/irq/default_smp_affinity'), 'this kernel does not tell'), walls: ['readonly /proc/irq', landlock, noUsers],
    code: (at) => `fs.openSync('/proc/irq/default_smp_affinity', 'r+'); process.stdout.write(${text(at.secret)})` },
  { name: 'a sysctl', walls: ['readonly /proc/sys', landlock, capabilities],
    code: (at) => `const file = '/proc/sys/net/ipv4/ip_default_ttl'; fs.writeFileSync(file, '77', { flag: 'r+' }); if (+fs.readFileSync(file) === 77) process.stdout.write(${text(at.secret)})` },
  { name: 'core_pattern', root: true, walls: ['readonly /proc/sys', landlock, noUsers],
    code: (at) => `fs.openSync('/proc/sys/kernel/core_pattern', 'r+'); process.stdout.write(${text(at.secret)})` },
  { name: 'a core file', walls: ['limit core'], lacks: lacking(!fs.readFileSync(jerboa).includes('__asan_init'), 'a sanitizer forbids itself cores, and so what it starts')
      ?? lacking(!/^[|/]/.test(told('/proc/sys/kernel/core_pattern')) && /core file size\s+\S+\s+unlimited/.test(told('/proc/self/limits')), 'cores of this machine go elsewhere'),
    via: () => ['/bin/sh', '-c', 'ulimit -c unlimited && exec "$0" "$@"'], ready: (host) => { host.after(() => cores(host).forEach((name) => fs.rmSync(`${host.files}/${name}`))); },
    code: (at) => `spawnSync('/bin/sh', ['-c', 'kill -SEGV $$'], { cwd: ${text(at.files)} })`, arrived: (host) => cores(host).length > 0 },
  { name: 'a core limit of 0', walls: ['call prlimit64'], code: call('core', word) },
  { name: 'the name of the host', walls: ['namespace uts'], ready: (host) => { host.secret = hostname(); }, code: () => `process.stdout.write((await import('node:os')).hostname())` },
  { name: 'where its cgroup lies', walls: ['step hide cgroup'], ready: (host) => { host.secret = process.env.JERBOA_TEST_CGROUP ?? `jerboa-test-${process.pid}`; }, code: read(() => '/proc/self/cgroup') },
  { name: 'leaving its cgroup', lacks: noFirst, walls: [...mounting, ...asRoot(noUsers)], code: call('leave-cgroup', word) },
  { name: 'raising its own limit', root: true, lacks: noFirst, walls: [...mounting, noUsers, 'step hide cgroup'], code: call('raise-limit', word) },
  { name: 'release_agent', root: true, lacks: noFirst, walls: [...mounting, noUsers, 'step hide cgroup'], code: call('release-agent', word) },

  // ---- the network ----
  { name: 'a port of the host', walls: [hostNetwork], ready: async (host) => { host.port = (await listen(host, 0, '127.0.0.1')).port; }, code: connect((at) => ({ host: '127.0.0.1', port: at.port })) },
  { name: 'an abstract socket of the host', walls: [hostNetwork, ...scope],
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
  { name: 'a setuid file by any other call', apart: true, walls: setters.map((name) => `call ${name}`),
    ready: (host) => { host.made = setters.map((name) => `${host.files}/set-${name}`); host.after(() => host.made.forEach((file) => fs.rmSync(file, { force: true }))); fs.writeFileSync(`${host.files}/set-chmod`, ''); },
    code: (at) => setters.map((name) => `{ ${call('set-id', name, `${at.files}/set-${name}`)(at)} }`).join('\n'),
    arrived: (host, r, leftOut) => { const set = host.made.filter((file) => has(file, 0o6000)); return leftOut ? set.length === setters.length : set.length > 0; } },

  // ---- limits ----
  { name: 'descriptors', walls: ['limit descriptors'], code: call('descriptors', '2000', word) },
  { name: 'processes', args: ['--pids', '60'], walls: ['option --pids 300'], code: call('processes', '100', word) },
  { name: 'threads', args: ['--pids', '60'], walls: ['option --pids 300'], code: call('threads', '100', word) },
  { name: 'memory', args: ['--memory', '96m'], walls: ['option --memory 400m'], code: call('memory', '160', word) },
  { name: 'the size of a file', walls: ['limit file size'], ready: (host) => { host.after(() => fs.rmSync(`${host.files}/vast`, { force: true })); },
    code: (at) => `fs.writeFileSync(${text(`${at.files}/vast`)}, ''); fs.truncateSync(${text(`${at.files}/vast`)}, 2 ** 40)`, arrived: (host) => fs.statSync(`${host.files}/vast`).size === 2 ** 40 },
  { name: 'disk', args: ['--disk', '4m'], walls: ['limit bytes'], code: (at) => `fs.writeFileSync('/tmp/large', Buffer.alloc(8 << 20, 1)); process.stdout.write(${text(at.secret)})` },
  { name: 'inodes', args: many.args, walls: ['limit inodes'], code: (at) => `for (let i = 0; i < ${many.files}; i++) fs.writeFileSync('/tmp/' + i, ''); process.stdout.write(${text(at.secret)})` },
  { name: 'deep directories', args: many.args, walls: ['limit inodes'], code: (at) => `process.chdir('/tmp'); for (let i = 0; i < ${many.files}; i++) { fs.mkdirSync('deeper'); process.chdir('deeper'); } process.stdout.write(${text(at.secret)})` },
  { name: 'long names', args: many.args, walls: ['limit inodes'], code: (at) => `for (let i = 0; i < ${many.files}; i++) fs.writeFileSync('/tmp/' + String(i).padEnd(255, 'x'), ''); process.stdout.write(${text(at.secret)})` },

  // ---- other sandboxes ----
  { name: 'a process of another sandbox', walls: [noProcesses, ...scope, ...asRoot('own uids')], also: ['proc /proc'],
    ready: async (host) => {
      const script = `process.stdin.on('data', () => { console.log('alive'); process.exit(); }); console.log('ready')`;
      host.other = await neighbour(host, script);
      host.pid = inside(host.other.pid).at(-1).pid;
    },
    code: (at) => `process.kill(${at.pid}, 'SIGKILL')`,
    arrived: async ({ other }) => { other.stdin.end('x'); return !(await other.ended).stdout.includes('alive'); } },
  { name: 'uids of another sandbox', root: true, elsewhere: 'containers of one owner have one uid: the wall uid-range is missing', walls: ['own uids'],
    ready: async (host) => {
      const other = await neighbour(host, `import fs from 'node:fs'; process.stdout.write(fs.readFileSync('/proc/self/uid_map')); console.log('ready'); setInterval(() => {}, 1000)`);
      host.secret = other.text('stdout').split('\n')[0];
    },
    code: read(() => '/proc/self/uid_map') },
  { name: 'node_modules of others', elsewhere: 'nothing is mounted: each has a copy', walls: ['overlay layer', 'writable layer'],
    ready: (host) => {
      host.layer = fs.mkdtempSync(`${host.dir}/layer-`);
      fs.chmodSync(host.layer, 0o755);
      fs.mkdirSync(`${host.layer}/node_modules`);
      fs.writeFileSync(`${host.layer}/node_modules/kept`, 'untouched');
      if (host.owner) for (const name of ['', '/node_modules', '/node_modules/kept']) fs.chownSync(host.layer + name, ...host.owner);
      host.after(() => fs.rmSync(host.layer, { recursive: true }));
    },
    command: (host) => [path.join(path.dirname(host.jerboa), 'layers'), path.dirname(path.dirname(process.execPath)), `${32 << 20}`, 'attach', host.layer, 'sh', `echo ${host.secret} > node_modules/kept; cat node_modules/kept`],
    arrived: (host) => fs.readFileSync(`${host.layer}/node_modules/kept`, 'utf8').includes(host.secret) },
  packages,
  { name: 'a file of another sandbox', walls: isRoot ? [noProcesses, landlock] : null, also: [noUsers], why: 'processes and a root of its own',
    ready: (host) => neighbour(host, `import fs from 'node:fs'; fs.writeFileSync('/workspace/mine', ${text(host.secret)}); console.log('ready'); setInterval(() => {}, 1000)`),
    code: () => `for (const pid of fs.readdirSync('/proc').filter((n) => +n))
      try { process.stdout.write(fs.readFileSync('/proc/' + pid + '/root/workspace/mine', 'utf8')); break; } catch {}` },
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
