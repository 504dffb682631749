// What code in a sandbox meets on its network: names, streams, limits, refusals. The network is the one of network.mjs.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, test } from 'node:test';
import { code, isRoot, jerboa, limit, nativeOnly, printed, run, sanitized } from './jerboa.mjs';
import { makeNetwork } from './network.mjs';

const address = '93.184.216.34', address6 = '2606:2800:220:1::1';
let network;

before(async () => { network = await makeNetwork(['public.example']); }, limit);
after(() => network?.close());

/** `fn` runs in a sandbox, below what it may use by name. */
const tools = `import dgram from 'node:dgram'; import dns from 'node:dns/promises'; import net from 'node:net'; import { once } from 'node:events';
  import { spawnSync } from 'node:child_process'; import { createHash } from 'node:crypto'; import { text } from 'node:stream/consumers'; import { setTimeout as pause } from 'node:timers/promises';
  const code = (promise) => Promise.resolve(promise).then((value) => value, (e) => e.cause?.code ?? e.code ?? e.message);
  const ask = async (question) => { const s = net.connect(9000, '${address}'); s.write(question); return JSON.parse(await text(s)); };
  const tell = (answer) => console.log(JSON.stringify(answer));
  const echo = (host) => new Promise((resolve) => {
    const socket = net.connect(9007, host).on('error', () => resolve(false)).on('data', () => resolve(true)).on('close', () => resolve(false));
    socket.write('x');
  });
  const count = async (promises) => (await Promise.all(promises)).filter(Boolean).length;
  const crowd = (host, n) => count(Array.from({ length: n }, () => echo(host)));\n`;
const begin = (args, fn, ...more) => network.start([jerboa, 'run', ...args, '-e', tools + code(fn, ...more)], { seconds: 170 });

async function within(args, fn, ...more) {
  const child = begin(args, fn, ...more);
  child.stdin.end();
  const result = await child.ended;
  assert.deepEqual([result.status, result.signal], [0, null], result.stderr);
  return { answer: JSON.parse(result.stdout), stderr: result.stderr, lines: result.stderr.split('\n').filter(Boolean) };
}

/* global code, ask, tell, echo, count, crowd, dns, dgram, net, once, text, pause, spawnSync, createHash -- of `tools` */

test('who is no root has no right over the network that is tested', { ...limit, skip: isRoot && 'as root there is nothing to show' }, async () => {
  const r = await network.start(['sh', '-c', 'id -u; ip link set uplink down'], { input: '' }).ended;
  assert.deepEqual([r.stdout, r.stderr], [`${process.getuid()}\n`, 'RTNETLINK answers: Operation not permitted\n']);
});

// ---- names ----

const lookUp = async (names) => {
  const found = {};
  for (const name of names)
    found[name] = [await code(dns.resolve4(name)), await code(dns.resolve6(name)), await code(dns.resolveTxt(name)), await code(dns.resolveMx(name))].map((a) => a[0]?.exchange ?? [a].flat(2)[0]);
  tell(found);
};

test('names: A is made up, AAAA empty, other types are forwarded; a name that is not allowed does not exist', limit, async () => {
  const names = ['public.example', 'other.example', 'nowhere.example', 'private.example'];
  const known = [/^198\.1[89]\./, 'ENODATA', 'text of a txt', 'mail.public.example'], none = Array(4).fill('ENOTFOUND');
  const wide = (await within([], lookUp, names)).answer, narrow = (await within(['--allow', 'public.example'], lookUp, names)).answer;
  for (const found of [wide, narrow]) {
    assert.match(found['public.example'][0], known[0]);
    assert.deepEqual(found['public.example'].slice(1), known.slice(1));
    assert.equal(found['private.example'][0], 'ENOTFOUND'); // only its address is refused, and not asked for in other types
  }
  assert.match(wide['other.example'][0], known[0]);
  assert.deepEqual(narrow['other.example'], none);
  assert.deepEqual(narrow['private.example'], none);
  assert.equal(wide['nowhere.example'][0], 'ENOTFOUND');
});

test('names: garbage and names that are too long do no harm; a thousand lookups have a thousand addresses', limit, async () => {
  const { answer } = await within(['--timeout', '50s'], async () => {
    const socket = dgram.createSocket('udp4'), answers = [];
    socket.on('message', (message) => answers.push(message.readUInt16BE(2) & 15));
    socket.on('error', () => {});
    await new Promise((resolve) => { socket.connect(53, '198.18.0.2', resolve); });
    const query = (labels) => Buffer.concat([Buffer.from([0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]), ...labels.map((l) => Buffer.concat([Buffer.from([l.length]), Buffer.from(l)])), Buffer.from([0, 0, 1, 0, 1])]);
    const bad = [Buffer.from('x'), Buffer.alloc(12, 255), Buffer.alloc(12), Buffer.alloc(512, 0xc0), Buffer.alloc(4096), query(['x'.repeat(64), 'example']),
      query([...Array(5).fill('x'.repeat(60)), 'example']), query(['a b', 'example']), query(['\0']), query(['..', 'example']), query([])];
    for (const message of bad) socket.send(message);
    socket.send(query(['public', 'example']));
    while (!answers.includes(0)) await pause(10);
    const names = Array.from({ length: 1000 }, (_, i) => `n${i}.many.example`), addresses = new Set();
    const began = performance.now();
    await Promise.all(Array.from({ length: 50 }, async () => { while (names.length) addresses.add((await dns.resolve4(names.pop()))[0]); }));
    tell({ answers: answers.filter((c) => c !== 5), addresses: addresses.size, ms: performance.now() - began });
    process.exit();
  });
  assert.deepEqual(answer.answers, [0]); // the others were refused, or not answered
  assert.equal(answer.addresses, 1000);
});

test('names: answers that no datagram holds arrive whole, by TCP, whatever server is asked', limit, async () => {
  const { answer, lines } = await within([], async () => {
    const others = new dns.Resolver();
    others.setServers(['9.9.9.9']);
    const ask = async (resolver) => (await resolver.resolveTxt('large.example'))[0].join('');
    const stream = net.connect(53, '1.1.1.1'); // a question of the kind that is not forwarded
    stream.write(Buffer.from('\0\x21\0\x07\x01\0\0\x01\0\0\0\0\0\0\x07private\x07example\0\0\x01\0\x01', 'latin1'));
    const [bytes] = await once(stream, 'data');
    stream.destroy();
    tell([(await ask(dns)) === 'large '.repeat(1000), (await ask(others)) === 'large '.repeat(1000), bytes.readUInt16BE(0) === bytes.length - 2, bytes[5] & 15]);
  });
  assert.deepEqual(answer, [true, true, true, 3]); // the policy is the same there: a private address is none
  assert.deepEqual(lines.map((line) => line.replace(/ \(.*/, '')), ['jerboa: network: private.example: private address 10.1.2.3']);
});

test('names: that the name servers failed is told, and is not "no such name"', limit, async () => {
  const { answer, lines } = await within([], async () => tell([await code(dns.resolve4('broken.example')), await code(dns.resolveTxt('broken.example')), await code(fetch('http://broken.example/'))]));
  assert.deepEqual(answer, ['ESERVFAIL', 'ESERVFAIL', 'EAI_AGAIN']);
  assert.deepEqual(lines, ['jerboa: network: broken.example: not resolved (nothing to allow: the name servers of this machine failed)']);
});

test('a name is looked up again when it is connected to', limit, async () => {
  const { answer, stderr } = await within([], async () => {
    const [pinned] = await dns.resolve4('pinned.rebind.example');
    await pause(1200); // longer than its answer is kept
    tell(await code(fetch(`http://${pinned}:8080/`)));
  });
  assert.equal(answer, 'ECONNRESET');
  assert.match(stderr, /^jerboa: network: pinned\.rebind\.example, port 8080: private address 10\.1\.2\.3 \(/);
});

// ---- what is not TCP ----

test('UDP other than DNS fails at once; ICMP and raw sockets do not exist', { ...limit, ...nativeOnly('the image has no python') }, async () => {
  const { answer } = await within([], async (addresses) => {
    const sends = {};
    for (const to of addresses) {
      const socket = dgram.createSocket(to.includes(':') ? 'udp6' : 'udp4'), began = performance.now();
      socket.connect(9999, to);
      const [e] = await Promise.race([once(socket, 'error'), once(socket, 'connect').then(() => { socket.send('x'); return once(socket, 'error'); }), pause(20_000, [{ code: 'nothing' }])]).catch((caught) => [caught]);
      sends[to] = [e.code, performance.now() - began];
    }
    const python = (args) => spawnSync('/usr/bin/python3', ['-c', `import socket\ntry:\n socket.socket(${args}); print('open')\nexcept OSError as e: print(e.errno)`], { encoding: 'utf8' }).stdout.trim();
    tell({ sends, raw: ['socket.AF_INET, socket.SOCK_RAW, 1', 'socket.AF_INET6, socket.SOCK_RAW, 58', 'socket.AF_INET, socket.SOCK_RAW, 255', 'socket.AF_INET, socket.SOCK_DGRAM, 1', 'socket.AF_INET6, socket.SOCK_DGRAM, 58', 'socket.AF_PACKET, socket.SOCK_RAW, 3', 'socket.AF_INET, socket.SOCK_STREAM, 132'].map(python) });
    process.exit();
  }, [address, '10.1.2.3', address6]);
  for (const [to, [error]] of Object.entries(answer.sends)) assert.equal(error, 'ECONNREFUSED', to);
  assert.ok(Math.min(...Object.values(answer.sends).map(([, ms]) => ms)) < 100, JSON.stringify(answer.sends)); // the best: a busy machine is slow
  for (const errno of answer.raw) assert.match(errno, /^\d+$/);
});

// ---- streams ----

test('ends and resets travel, either way', limit, async () => {
  const { answer } = await within([], async (host) => {
    const open = (port) => net.connect({ host, port, allowHalfOpen: true });
    const bytes = Buffer.alloc(3 << 20, 'jerboa'), up = open(9001);
    up.end(bytes);
    const sum = await text(up);
    const down = open(9002), said = await text(down);
    down.end('still here');
    await once(down, 'close');
    const broken = open(9003);
    broken.write('x');
    const error = await code(once(broken, 'data'));
    const breaking = open(9004);
    await once(breaking, 'connect');
    breaking.write('x');
    await pause(100);
    breaking.resetAndDestroy();
    let seen = [null];
    for (let i = 0; i < 50 && seen.includes(null); i++) {
      await pause(50);
      seen = [await ask('9002'), await ask('9004')];
    }
    tell({ sum: sum === `${bytes.length} ${createHash('sha256').update(bytes).digest('hex')}`, said, error, seen });
  }, address);
  assert.deepEqual(answer, { sum: true, said: 'that is all', error: 'ECONNRESET', seen: ['still here', 'ECONNRESET'] });
});

const memory = (pid) => +/^VmRSS:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${pid}/status`, 'utf8'))[1] / 1024;

test('slow readers on either side: windows fill, memory of the server stays flat, nothing is lost', limit, async () => {
  const child = begin(['--memory', '1g', '--timeout', '150s'], async (host) => {
    const first = net.connect(9007, host);
    first.write('x');
    await once(first, 'data');
    console.log('begun');
    const full = Array.from({ length: 20 }, () => net.connect(9005, host)); // nobody reads there
    let pieces = 0;
    for (const socket of full) {
      const push = () => { while (pieces++ < 1e5 && socket.write(Buffer.alloc(1 << 16))); };
      socket.on('error', () => {}).on('drain', push);
      push();
    }
    const slow = Array.from({ length: 20 }, () => net.connect(9006, host).pause()); // nobody reads here
    await Promise.all([...full, ...slow].map((socket) => once(socket, 'connect')));
    for (let before = -1; pieces !== before;) { // until all that flows has filled something
      before = pieces;
      await pause(1000);
    }
    console.log('filled');
    await once(process.stdin, 'data');
    let size = 0;
    for await (const piece of slow[7]) size += piece.length;
    console.log(`read ${size}`);
    process.exit();
  }, address);
  await printed(child, 'begun');
  const began = memory(child.pid);
  await printed(child, 'filled');
  const filled = memory(child.pid);
  child.stdin.end('go on');
  const { stdout, status, stderr } = await child.ended;
  assert.deepEqual([status, stdout], [0, `begun\nfilled\nread ${64 << 20}\n`], stderr);
  assert.ok(sanitized || filled - began < 16, `${began} MiB before, ${filled} MiB with 40 connections filled`);
});

test('a large download and upload arrive whole', limit, async () => {
  const { answer } = await within([], async (host) => {
    let size = 0;
    for await (const piece of net.connect(9006, host)) { size += piece.length; if (size % (1 << 20) < 4096) await pause(1); }
    const up = net.connect({ host, port: 9001, allowHalfOpen: true });
    up.end(Buffer.alloc(64 << 20));
    tell([size, (await text(up)).split(' ')[0]]);
  }, address);
  assert.deepEqual(answer, [64 << 20, String(64 << 20)]);
});

test('who never answers is told of; others are served meanwhile', limit, async () => {
  const { answer, stderr } = await within([], async () => {
    let waits = true;
    const silent = code(fetch('http://silent.example:8080/')).finally(() => { waits = false; });
    const other = await (await fetch('http://public.example:8080/')).text(), meanwhile = waits;
    tell([await silent, other, meanwhile]);
  });
  assert.deepEqual(answer, ['ECONNRESET', `internet ${address}`, true]);
  assert.match(stderr, /^jerboa: network: silent\.example, port 8080: unreachable \(nothing to allow: Connection timed out\)$/m);
});

// ---- limits ----

test('connections are limited in number and rate', limit, async () => {
  const { answer, stderr } = await within(['--timeout', '30s'], async (host) => {
    const burst = await crowd(host, 300); // 200, and as many as a second's fraction gives
    const more = [];
    for (let i = 0; i < 100; i++) { more.push(echo(host)); await pause(15); }
    tell([burst, burst + await count(more)]);
    process.exit();
  }, address);
  assert.ok(answer[0] >= 200 && answer[0] <= 256, `${answer[0]} of a burst of 300`);
  assert.equal(answer[1], 256);
  assert.match(stderr, /^jerboa: network: 93\.184\.216\.34, port 9007: too many new connections \(wait: it makes 100 a second \(--connect-rate\)\)$/m);
  assert.match(stderr, /^jerboa: network: 93\.184\.216\.34, port 9007: too many connections \(wait: it has 256 at once \(--connections\)\)$/m);
});

test('--connections and --connect-rate, by argument and by environment', limit, async () => {
  const few = await within(['--connections', '7'], async (host) => { tell(await crowd(host, 20)); process.exit(); }, address);
  assert.equal(few.answer, 7);
  assert.match(few.stderr, /too many connections \(wait: it has 7 at once \(--connections\)\)$/m);
  const slow = await within(['--connect-rate', '2'], async (host) => {
    const burst = await crowd(host, 20);
    await pause(1100);
    tell([burst, await crowd(host, 20)]);
    process.exit();
  }, address);
  assert.ok(slow.answer[0] >= 4 && slow.answer[0] <= 6, `${slow.answer[0]} of a burst`);
  assert.ok(slow.answer[1] >= 2 && slow.answer[1] <= 4, `${slow.answer[1]} a second later`);
  const child = network.start([jerboa, 'run', '-e', `${tools}tell(await crowd('${address}', 20)); process.exit();`], { env: { JERBOA_CONNECTIONS: '3' } });
  child.stdin.end();
  assert.equal((await child.ended).stdout, '3\n');
});

test('--lookup-rate: who asks too much is refused, and told', limit, async () => {
  const { answer, lines } = await within(['--lookup-rate', '5'], async () => {
    const all = await Promise.all(Array.from({ length: 40 }, (_, i) => code(dns.resolve4(`n${i}.many.example`))));
    tell([all.filter((got) => Array.isArray(got)).length, [...new Set(all.filter((got) => !Array.isArray(got)))]]);
  });
  assert.ok(answer[0] >= 10 && answer[0] <= 20, `${answer[0]} of 40`);
  assert.deepEqual(answer[1], ['EREFUSED']);
  assert.match(lines[0], /^jerboa: network: n\d+\.many\.example: too many lookups \(wait: it may look up 5 names a second \(--lookup-rate\), 128 at once\)$/);
});

test('--connection-idle: silence ends a connection, and is told; what talks goes on', limit, async () => {
  const { answer, lines } = await within(['--connection-idle', '3s'], async (host) => {
    const silent = net.connect(9007, host), talking = net.connect(9007, host), began = performance.now();
    talking.resume();
    const timer = setInterval(() => talking.write('x'), 100);
    const error = await code(once(silent, 'data')), ms = performance.now() - began;
    await pause(1000);
    clearInterval(timer);
    talking.write('y');
    tell([error, ms, await code(once(talking, 'data').then(() => 'alive'))]);
    process.exit();
  }, address);
  assert.deepEqual([answer[0], answer[2]], ['ECONNRESET', 'alive']);
  assert.ok(answer[1] >= 3000, `${answer[1]} ms`);
  assert.deepEqual(lines, [`jerboa: network: ${address}, port 9007: idle (--connection-idle: it is closed after 3 silent seconds)`]);
});

test('--byte-rate: both ways, and all connections together', limit, async () => {
  const rate = 256 << 10, size = 384 << 10, before = Date.now();
  const { answer, lines } = await within(['--byte-rate', '256k'], async (host, bytes) => {
    const upload = async () => { const up = net.connect({ host, port: 9001, allowHalfOpen: true }); up.end(Buffer.alloc(bytes)); return +(await text(up)).split(' ')[0]; };
    const download = async () => { let got = 0; for await (const piece of net.connect(9006, host)) if ((got += piece.length) >= bytes) break; return got >= bytes; };
    const timed = async (promises) => { const began = performance.now(); return [await Promise.all(promises), performance.now() - began, Date.now()]; };
    tell([await timed([upload()]), await timed([download()]), await timed([upload(), upload()])]);
    process.exit();
  }, address, size);
  const [[up, upMs, upAt], [down, downMs], [both, bothMs]] = answer;
  assert.deepEqual([up, down, both], [[size], [true], [size, size]]);
  // what is saved up in a second is at most a second's worth
  for (const [ms, total] of [[upMs, size], [downMs, size], [bothMs, 2 * size]])
    assert.ok(ms >= 1000 * (total - rate) / rate - 100, `${total} bytes in ${ms} ms`);
  assert.ok(Math.min(upMs / size, downMs / size, bothMs / 2 / size) < 3000 / rate, `${[upMs, downMs, bothMs]} ms`); // nor much slower than allowed
  assert.ok(upAt - before >= 1000 * size / rate - 100, `${upAt - before} ms`); // at the beginning, which was after `before`, nothing is
  assert.deepEqual(lines, []);
});

// ---- refusals ----

const visit = async (urls) => { const got = {}; for (const url of urls) { const began = performance.now(); got[url] = [await code(fetch(url).then((r) => r.text())), performance.now() - began]; } tell(got); };

test('each refusal is told with host, port, rule and a way to allow it, which works', limit, async () => {
  const urls = ['http://public.example:8080/', `http://${address}:8080/`, `http://[${address6}]:8080/`];
  const { answer, lines } = await within(['--network', 'none'], visit, urls);
  for (const [got] of Object.values(answer)) assert.match(got, /^(ENOTFOUND|ECONNRESET)$/);
  assert.ok(Math.min(...Object.values(answer).map(([, ms]) => ms)) < 1000, JSON.stringify(answer));
  const rule = "network policy 'none'";
  assert.deepEqual(lines, [
    `jerboa: network: public.example: ${rule} (--allow public.example, or --network internet)`,
    `jerboa: network: ${address}, port 8080: ${rule} (--allow ${address}:8080, or --network internet)`,
    `jerboa: network: ${address6}, port 8080: ${rule} (--allow [${address6}]:8080, or --network internet)`,
  ]);
  const allowed = await within(lines.flatMap((line) => ['--allow', /--allow (\S+),/.exec(line)[1]]), visit, urls);
  assert.deepEqual(Object.values(allowed.answer).map(([got]) => got), [`internet ${address}`, `internet ${address}`, `internet ${address6}`]);
  assert.deepEqual(allowed.lines, []);
});

test('refusals beyond a hundred are counted', limit, async () => {
  const { lines } = await within(['--network', 'none', '--json'], async () => {
    for (let i = 0; i < 130; i++) await code(dns.resolve4(`n${i}.many.example`));
    tell('done');
  });
  assert.equal(lines.length, 102);
  assert.equal(lines[100], 'jerboa: network: and 30 more: not listed one by one (the first hundred are listed)');
  const { refused } = JSON.parse(lines[101]);
  assert.deepEqual([refused.length, refused[100]], [101, { host: 'and 30 more', port: null, rule: 'not listed one by one', allow: 'the first hundred are listed' }]);
});

test('a private address is told as what it is, by name and by number; the hint is honest', { ...limit, ...nativeOnly('the network of the host is that of the daemon, which stands elsewhere here') }, async () => {
  const urls = ['http://private.example:8080/', 'http://169.254.169.254:8080/', 'http://[::ffff:10.1.2.3]:8080/'];
  const { lines } = await within(['--allow', '0.0.0.0/0', '--allow', 'private.example'], visit, urls);
  const hint = '(--network host, which gives it all that this machine can reach)';
  assert.deepEqual(lines, [`jerboa: network: private.example: private address 10.1.2.3 ${hint}`,
    `jerboa: network: 169.254.169.254, port 8080: link-local address 169.254.169.254 ${hint}`, `jerboa: network: 10.1.2.3, port 8080: private address 10.1.2.3 ${hint}`]);
  const none = await within(['--network', 'none'], visit, urls.slice(1));
  assert.deepEqual(none.lines, lines.slice(1)); // not the policy, for no rule would help
  const wide = await within(['--network', 'host'], visit, urls);
  assert.deepEqual(Object.values(wide.answer).map(([got]) => got), ['internet 10.1.2.3', 'internet 169.254.169.254', 'internet 10.1.2.3']);
});

test('connections are in the statistics', limit, async () => {
  const { lines } = await within(['--stats'], visit, ['http://public.example:8080/']);
  assert.match(lines.join('\n'), /^connection public\.example:8080 \(93\.184\.216\.34\), sent \d{2,} bytes, received \d{2,}, \d+ ms$/m);
});

// ---- npm, with the registry that this machine is configured for: not in the network of ours ----

const install = code(async () => {
  const { spawnSync } = await import('node:child_process');
  const began = performance.now();
  const npm = spawnSync('npm', ['install', '--no-audit', '--no-fund', 'is-number@7.0.0'], { encoding: 'utf8', cwd: '/workspace' });
  const works = npm.status === 0 && (await import('/workspace/node_modules/is-number/index.js')).default(7);
  console.log(JSON.stringify({ works, ms: performance.now() - began, npm: npm.stderr }));
});

for (const policy of ['npm', 'internet'])
  test(`npm install works under ${policy}`, limit, async () => {
    const result = await run(['--network', policy, '--timeout', '50s', '--memory', '1g', '-e', install], { seconds: 55 });
    assert.deepEqual([result.stderr, result.status, JSON.parse(result.stdout).works], ['', 0, true], result.stdout);
  });

test('npm install fails soon under none, and it is told why', limit, async () => {
  const result = await run(['--network', 'none', '--timeout', '50s', '--memory', '1g', '-e', install], { seconds: 55 });
  assert.equal(JSON.parse(result.stdout).works, false); // within its timeout, which npm's retries would exceed
  assert.match(result.stderr, /^jerboa: network: \S+( port \d+)?: network policy 'none' \(--allow \S+, or --network internet\)\n$/);
});
