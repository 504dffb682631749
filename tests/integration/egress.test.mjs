// The network of a sandbox, truly: every policy x every client x every kind of destination. Each cell is a connection that would
// succeed without the wall: the same probe proves that from outside of a sandbox first.
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { engine, jerboa, nativeOnly } from './jerboa.mjs';
import { packagesDirectory } from './mcp.mjs';
import { here, makeNetwork } from './network.mjs';

const clients = engine ? ['fetch', 'http', 'https', 'undici', 'net', 'WebSocket'] // the image has no curl and no python
  : ['fetch', 'http', 'https', 'undici', 'net', 'WebSocket', 'curl', 'curl-https', 'python', 'python-https'];
/** Clients that go to the port of TLS. */
const secure = clients.filter((client) => client.includes('https'));
/** What `npm install` is tried with, as its registry: a few, each costs a second. */
const registries = ['public.example', 'other.example', 'registry.example', 'private.example', 'metadata.example', 'loop.example', '93.184.216.34', '10.1.2.3', here];
/** A refusal comes at once; every client would wait for forty seconds, npm for minutes. */
const atOnceMs = 30_000;

/** The rules of `allow`. That a rule names what is not public does not help. */
const rules = ['public.example:8080-8443', '*.wild.example', 'six.example', 'both.example', '93.184.216.34', '[2606:2800:220:1::]/64:8080-8443',
  '10.0.0.0/8', 'private.example', 'metadata.example', 'loop.example', '0.0.0.0/0:9', '[fc00::]/7', '*.rebind.example'];

/** What is tried, where it leads without the wall, and the policies under which it leads there all the same.
 *  `own`: it is the sandbox's own loopback, under every policy but host. */
const table = [
  // names
  ['public.example', 'internet 93.184.216.34', 'allow internet'], // it has an IPv6 address too; IPv4 goes first
  ['PUBLIC.Example', 'internet 93.184.216.34', 'allow internet'],
  ['www.public.example', 'internet 93.184.216.35', 'internet'],
  ['a.wild.example', 'internet 93.184.216.36', 'allow internet'],
  ['wild.example', 'internet 93.184.216.37', 'internet'],
  ['other.example', 'internet 93.184.216.38', 'internet'],
  ['six.example', 'internet 2606:2800:220:1::2', 'allow internet'],
  ['registry.example', 'internet 10.9.9.9', 'npm internet'], // the configured one, at its port alone
  ['private.example', 'internet 10.1.2.3', ''],
  ['private6.example', 'internet fd00::5', ''],
  ['metadata.example', 'internet 169.254.169.254', ''],
  ['mapped.example', 'internet 10.1.2.3', ''],
  ['nat64.example', 'internet 64:ff9b::a01:203', ''],
  ['loop.example', 'host 127.0.0.1', ''],
  ['loop6.example', 'host ::1', ''],
  // public addresses
  ['93.184.216.34', 'internet 93.184.216.34', 'allow internet'],
  ['93.184.216.35', 'internet 93.184.216.35', 'internet'],
  ['2606:2800:220:1::1', 'internet 2606:2800:220:1::1', 'allow internet'],
  ['2606:2800:220:2::1', 'internet 2606:2800:220:2::1', 'internet'],
  ['::ffff:93.184.216.34', 'internet 93.184.216.34', 'allow internet'],
  ['64:ff9b::5db8:d822', 'internet 64:ff9b::5db8:d822', 'internet'], // NAT64 and 6to4 of a public address
  ['2002:5db8:d822::1', 'internet 2002:5db8:d822::1', 'internet'],
  // private, link-local, metadata, reserved
  ['10.1.2.3', 'internet 10.1.2.3', ''],
  ['172.16.5.5', 'internet 172.16.5.5', ''],
  ['192.168.1.1', 'internet 192.168.1.1', ''],
  ['100.64.0.1', 'internet 100.64.0.1', ''],
  ['100.100.100.200', 'internet 100.100.100.200', ''],
  ['169.254.169.254', 'internet 169.254.169.254', ''],
  ['168.63.129.16', 'internet 168.63.129.16', ''],
  ['192.0.2.1', 'internet 192.0.2.1', ''],
  ['198.18.5.5', 'internet 198.18.5.5', ''],
  ['198.51.100.7', 'internet 198.51.100.7', ''],
  ['203.0.113.5', 'internet 203.0.113.5', ''],
  ['240.0.0.1', 'internet 240.0.0.1', ''],
  ['fd00::5', 'internet fd00::5', ''],
  ['fd00:ec2::254', 'internet fd00:ec2::254', ''],
  ['fec0::1', 'internet fec0::1', ''],
  ['2001:db8::1', 'internet 2001:db8::1', ''],
  ['2001:0:a01:203::1', 'internet 2001:0:a01:203::1', ''],
  ['4000::1', 'internet 4000::1', ''],
  // IPv4 inside of IPv6
  ['::ffff:10.1.2.3', 'internet 10.1.2.3', ''],
  ['64:ff9b::a01:203', 'internet 64:ff9b::a01:203', ''],
  ['64:ff9b::7f00:1', 'internet 64:ff9b::7f00:1', ''],
  ['64:ff9b:1::a01:203', 'internet 64:ff9b:1::a01:203', ''],
  ['2002:a01:203::1', 'internet 2002:a01:203::1', ''],
  ['2002:a9fe:a9fe::1', 'internet 2002:a9fe:a9fe::1', ''],
  // other spellings of 10.1.2.3
  ['167838211', 'internet 10.1.2.3', ''],
  ['012.1.2.3', 'internet 10.1.2.3', ''],
  ['0x0a010203', 'internet 10.1.2.3', ''],
  ['10.66051', 'internet 10.1.2.3', ''],
  // the machine that it runs on
  [here, `host ${here}`, ''],
  ['fd00:255::1', 'host fd00:255::1', ''],
  ['127.0.0.1', 'host 127.0.0.1', 'own'],
  ['127.1.2.3', 'host 127.1.2.3', 'own'],
  ['2130706433', 'host 127.0.0.1', 'own'],
  ['0177.0.0.1', 'host 127.0.0.1', 'own'],
  ['0x7f.1', 'host 127.0.0.1', 'own'],
  ['::1', 'host ::1', 'own'],
  ['::ffff:127.0.0.1', 'host 127.0.0.1', 'own'],
  ['localhost', /^host (127.0.0.1|::1)$/, 'own'],
  ['0.0.0.0', 'host 127.0.0.1', 'own'],
];
/** A name with a private and a public address: whichever the client takes without the wall, only the public one behind it. */
const both = 'both.example';
/** Below it each name is public when first asked for, private from then on; so each policy has names of its own. */
const rebinding = 'rebind.example';
const rebindingOf = (policy) => `${policy}.${rebinding}`;
/** Sandboxes only: TCP cannot go there at all. */
const never = ['224.0.0.1', '255.255.255.255', 'fe80::1', 'ff0e::1', '0.1.2.3'];

/** Hundreds of processes. */
const limit = { timeout: 300_000 };
const undici = 'node_modules/undici/index.js';
let network;

before(async () => { network = await makeNetwork([...table.map(([host]) => host), both,
    ...['outside', 'none', 'npm', 'allow', 'internet', 'host'].flatMap((policy) => secure.map((client) => `${client}.${rebindingOf(policy)}`))]); }, limit);
after(() => network?.close());

const job = (targets, policy) => JSON.stringify({ clients: { ...Object.fromEntries(clients.map((client) => [client, targets])), npm: registries }, twice: [rebindingOf(policy)] });
const probe = path.join(import.meta.dirname, 'probe.mjs');

async function outside() {
  const targets = [...table.map(([host]) => host), both];
  const result = await network.start([process.execPath, probe, path.join(packagesDirectory(), undici)], { input: job(targets, 'outside'), seconds: 280 }).ended;
  assert.equal(result.status, 0, result.stderr);
  return JSON.parse(result.stdout);
}

async function within(policy, args) {
  const targets = [...table.map(([host]) => host), both, ...(policy === 'host' ? [] : never)];
  const result = await network.start([jerboa, 'run', '--timeout', '270s', '--memory', '1g', '--cpus', '2', '--dir', packagesDirectory(), ...args, probe, `/workspace/dir/${undici}`],
    { input: job(targets, policy), seconds: 280 }).ended;
  assert.deepEqual([result.status, result.signal], [0, null], result.stderr);
  assert.doesNotMatch(result.stderr, /too many/);
  return JSON.parse(result.stdout);
}

/** All cells that are not as expected, or are refused late: `expect` says what a cell should be, as text or pattern. */
function differences(found, expect) {
  const wrong = [];
  for (const client of [...clients, 'npm']) {
    const late = [];
    for (const [target, { got, ms }] of Object.entries(found[client])) {
      const wanted = expect(target, client);
      if (wanted === anyError) late.push(ms);
      if (wanted instanceof RegExp ? !wanted.test(got) : wanted !== got) wrong.push(`${client} ${target}: ${got}, not ${wanted}`);
      else if (wanted === anyError && ms > atOnceMs) wrong.push(`${client} ${target}: ${got} after ${ms} ms`);
    }
    late.sort((x, y) => x - y); // the quicker half: a busy machine is slow
    if (late[late.length >> 1] > (client === 'npm' ? 9000 : 3000)) wrong.push(`${client}: refused after ${late} ms`);
  }
  return wrong;
}

const anyError = /^error /;
const isRebinding = (target) => target.endsWith(rebinding);
const row = (target) => table.find(([host]) => host === target);

function expectOutside(target) {
  if (target === both) return /^internet (10\.1\.2\.3|93\.184\.216\.39)$/;
  return isRebinding(target) ? 'internet 93.184.216.34' : row(target)[1];
}

const expectUnder = (policy) => (target, client) => {
  const wide = ['allow', 'internet'].includes(policy);
  if (never.includes(target)) return anyError;
  if (target === both) return wide ? 'internet 93.184.216.39' : anyError;
  if (isRebinding(target)) return wide ? 'internet 93.184.216.34' : anyError;
  const [, leadsTo, under] = row(target);
  if (under === 'own') return [...secure, 'WebSocket'].includes(client) ? anyError : 'own';
  if (target === 'registry.example' && secure.includes(client)) return anyError;
  return under.split(' ').includes(policy) ? leadsTo : anyError;
};

/** How the second attempt at a name ended, client by client. */
const again = (found) => clients.map((client) => Object.values(found.again[client])[0].got);

test('without the wall, each of them is reached', limit, async () => {
  const found = await outside();
  assert.deepEqual(differences(found.first, expectOutside), []);
  assert.deepEqual(again(found), clients.map(() => 'internet 10.1.2.3'));
});

for (const [policy, args] of [
  ['none', ['--network', 'none']],
  ['npm', ['--network', 'npm']],
  ['allow', rules.flatMap((rule) => ['--allow', rule])],
  ['internet', []],
])
  test(`policy ${policy}`, limit, async () => {
    const found = await within(policy, args);
    assert.deepEqual(differences(found.first, expectUnder(policy)), []);
    for (const got of again(found)) assert.match(got, anyError);
  });

test('policy host is the network of the machine', { ...limit, ...nativeOnly('it is that of the daemon, which stands elsewhere here') }, async () => {
  const found = await within('host', ['--network', 'host']);
  assert.deepEqual(differences(found.first, expectOutside), []);
});
