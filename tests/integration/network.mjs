// A network without uplink, for the tests of egress: two namespaces joined by a veth pair. In one, `jerboa` runs beside servers of
// "the host"; the other is "the internet", where every address answers, public, private or reserved, IPv4 and IPv6. So whatever code in
// a sandbox tries would succeed without the wall. Names come from a DNS server of ours.
//
// An ordinary user makes them in a user namespace, whose root he is. What is tested starts in one more, in which he is himself again: his
// uid, and no right over anything around.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { isIP } from 'node:net';
import path from 'node:path';
import { isRoot, start, tempDir } from './jerboa.mjs';

/** The machine's address, and the other end's, where the name server is. */
export const here = '10.255.0.1', there = '10.255.0.2';
const here6 = 'fd00:255::1', there6 = 'fd00:255::2';

const nodeOptions = { program: process.execPath, stdio: ['pipe', 'pipe', 'inherit'], seconds: 590 };

/** Words that enter namespaces of a process. */
const enter = (pid, ...flags) => ['nsenter', '-t', String(pid), ...(isRoot ? [] : ['-U', '--preserve-credentials']), ...flags];
const asHimself = isRoot ? [] : ['unshare', '--user', `--map-user=${process.getuid()}`, `--map-group=${process.getgid()}`];

async function startServers(role, dir, before) {
  const [program, ...args] = [...before, process.execPath, path.join(import.meta.dirname, 'internet.mjs'), role, dir];
  const child = start(args, { ...nodeOptions, program });
  await Promise.race([once(child.stdout, 'data'), child.ended.then((r) => Promise.reject(new Error(`'${role}' ended with ${r.status}`)))]);
  return child;
}

function ip(pid, lines) {
  const [program, ...args] = [...enter(pid, '-n'), 'ip', '-batch', '-'];
  execFileSync(program, args, { stdio: ['pipe', 'pipe', 'inherit'], input: `${lines.join('\n')}\n` });
}

function makeCertificate(dir, names) {
  const known = names.filter((name) => isIP(name) || /^[a-z]/i.test(name)); // other spellings are these in the end
  const alternatives = known.map((name) => `${isIP(name) ? 'IP' : 'DNS'}:${name}`).join(',');
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=jerboa test',
    '-addext', `subjectAltName=${alternatives}`, '-keyout', path.join(dir, 'key.pem'), '-out', path.join(dir, 'cert.pem')], { stdio: 'ignore' });
}

function join(internet, host) {
  ip(host, [`link add uplink type veth peer name downlink netns ${internet}`]);
  // `local` in the main table, so that what is nearer (the veth) goes first: every other address is the internet's own.
  ip(internet, ['link set lo up', 'link set downlink up', `addr add ${there}/30 dev downlink`, `addr add ${there6}/64 dev downlink nodad`,
    'route add local 0.0.0.0/0 dev lo table main', 'route add local ::/0 dev lo table main', 'route add blackhole 93.184.216.99/32']);
  ip(host, ['link set lo up', 'link set uplink up', `addr add ${here}/30 dev uplink`, `addr add ${here6}/64 dev uplink nodad`,
    `route add default via ${there}`, `route add default via ${there6}`]);
}

/** `names`: hosts that HTTPS is to be trusted for. */
export async function makeNetwork(names) {
  const dir = tempDir();
  makeCertificate(dir, names);
  fs.writeFileSync(path.join(dir, 'resolv.conf'), `nameserver ${there}\n`);
  fs.writeFileSync(path.join(dir, 'hosts'), '127.0.0.1 localhost\n::1 localhost\n');
  const mounts = ['resolv.conf', 'hosts'].map((name) => `mount --bind ${path.join(dir, name)} /etc/${name}`).join(' && ');
  const running = [];
  const close = () => { for (const child of running) child.stdin.end(); return Promise.all(running.map((child) => child.ended)); };
  try {
    running.push(await startServers('internet', dir, ['unshare', ...(isRoot ? [] : ['--user', '--map-root-user']), '--net']));
    running.push(await startServers('host', dir, [...(isRoot ? [] : enter(running[0].pid)), 'unshare', '--net', '--mount', '--propagation', 'private',
      'sh', '-c', `${mounts} && exec "$@"`, 'sh']));
    join(...running.map((child) => child.pid));
  } catch (e) {
    await close();
    throw e;
  }
  const [nsenter, ...inside] = [...enter(running[1].pid, '-n', '-m'), ...asHimself];
  const certificate = path.join(dir, 'cert.pem');
  const env = { SSL_CERT_FILE: certificate, CURL_CA_BUNDLE: certificate, NODE_EXTRA_CA_CERTS: certificate, npm_config_registry: 'http://registry.example:8080/' };
  return {
    /** Starts a program on "the host". */
    start: (command, more = {}) => start([...inside, ...command], { program: nsenter, ...more, env: { ...env, ...more.env } }),
    certificate,
    key: path.join(dir, 'key.pem'),
    close,
  };
}
