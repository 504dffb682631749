// The audit log (docs/audit.md): who ran what, where it connected, how it ended; what is never in it; disks that are full, files that move away.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { describe, test } from 'node:test';
import { assertRefused, engine, isRoot, jerboa, run, start, tempDir, until } from './jerboa.mjs';
import { modern } from './mcp.mjs';
import { connectTo, serveHttp, serveStdio, text as firstText, tokenOf, tokensFile } from './serving.mjs';
import { connectFor, failed, freePort, limit, printed, refused, text, variants } from './tools.mjs';

const plain = variants['stdio, legacy']; // the modern client starts a second server to find out what it speaks
const sha256 = (words) => createHash('sha256').update(words).digest('hex');
const digest = (words) => ({ sha256: sha256(words), bytes: Buffer.byteLength(words) });
const short = (id) => id.slice(0, 'js-sbx-01234567-89ab'.length);

/** Members of each event, as the documentation has them. */
const { stdout: documentation } = await start(['events']).ended;
const documented = Object.fromEntries([...documentation.matchAll(/^\| `(\w+)` \| [^|]* \| (`.*`) \|$/gm)]
  .map(([, event, members]) => [event, members.match(/\w+/g)]));

/** All lines, each as the documentation promises it. */
function lines(file, { torn = 0 } = {}) {
  const raw = fs.readFileSync(file, 'latin1');
  assert.match(raw, /^[\x20-\x7e\n]*$/);
  const parsed = raw.split('\n').filter((line) => line !== '').map((line) => { try { return JSON.parse(line); } catch { return null; } });
  assert.equal(parsed.filter((line) => !line).length, torn);
  const last = new Map();
  for (const line of parsed.filter(Boolean)) {
    assert.deepEqual(Object.keys(line), ['time', 'server', 'line', 'event', ...documented[line.event]]);
    assert.match(line.time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.ok(line.line > (last.get(line.server) ?? 0));
    last.set(line.server, line.line);
  }
  return parsed.filter(Boolean);
}
const of = (file, event, more = {}) => lines(file).filter((line) => line.event === event && Object.entries(more).every(([name, value]) => line[name] === value));
const only = (file, event, more) => {
  const found = of(file, event, more);
  assert.equal(found.length, 1, `${found.length} lines of ${event} ${JSON.stringify(more)} in\n${fs.readFileSync(file, 'utf8')}`);
  return found[0];
};
const has = (file, event, more) => until(() => of(file, event, more).length > 0, () => `no ${event} ${JSON.stringify(more)} in\n${fs.readFileSync(file, 'utf8')}`);

/** Something on this machine's loopback that sandboxes may reach: what npm is configured for. */
async function startRegistry(t) {
  const server = http.createServer((request, response) => response.end('hello')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return server.address().port;
}

describe('what is told', limit, () => {
  test('a client on stdio, from beginning to end', async (t) => {
    const log = path.join(tempDir(t), 'log'), port = await startRegistry(t), secret = 'swordfish';
    const s = await connectFor(t, plain, ['--audit', log, '--network', 'npm', '--memory', '256m'], { npm_config_registry: `http://127.0.0.1:${port}/` });
    const good = `console.log('${secret}')`;
    const network = `console.log(await (await fetch('http://127.0.0.1:${port}/', { headers: { connection: 'close' } })).text());
      await fetch('http://203.0.113.7:81/').catch(() => {}); await fetch('http://example.org/').catch(() => {})`;
    const id = await s.sandbox({ image: 'node:lts-slim', network: 'npm' });
    printed(await s.run(id, good), `${secret}\n`);
    failed(await s.run(id, 'process.exit(3)', { timeoutMs: 7000 }), 'error', /exit code 3/);
    await s.exec(id, `echo ${secret}`, 'exit 4', 'true');
    printed(await s.once(network), 'hello\n');
    await s.call('sandbox_stop', { container_id: id });
    refused(await s.run(id, good), /is unknown/);
    await s.close();
    s.close = () => {};

    const raw = fs.readFileSync(log, 'utf8');
    for (const word of [secret, 'process.exit', id]) assert.ok(!raw.includes(word), word);
    assert.equal(fs.statSync(log).mode & 0o777, 0o600);
    const all = lines(log);
    assert.deepEqual(all.map(({ line }) => line), all.map((_, i) => i + 1)); // none is missing
    assert.equal(new Set(all.map(({ server }) => server)).size, 1);
    assert.ok(all.every(({ owner }) => owner === undefined || owner === 'stdio'));

    assert.equal(all[0].event, 'server_started');
    assert.partialDeepStrictEqual(all[0], { pid: s.pid, uid: process.getuid(), network: 'npm', http: null, tokens: false, sandboxes: 64, memoryBytes: 256 << 20, pids: 512 });
    assert.equal(all.at(-1).event, 'server_stopped');

    const calls = of(log, 'call');
    assert.deepEqual(calls.map(({ tool }) => tool), ['sandbox_initialize', 'run_js', 'run_js', 'sandbox_exec', 'run_js_ephemeral', 'sandbox_stop', 'run_js']);
    const [made, first, second, shell, ephemeral, stop, late] = calls;
    assert.deepEqual([made.image, made.policy, made.sandbox, made.code], ['node:lts-slim', 'npm', null, null]);
    assert.deepEqual([first.code, first.sandbox, first.commands, first.dependencies], [digest(good), short(id), null, null]);
    assert.deepEqual([second.code, second.timeoutMs], [digest('process.exit(3)'), 7000]);
    assert.deepEqual([shell.commands, shell.code], [[`echo ${secret}`, 'exit 4', 'true'].map(digest), null]);
    assert.deepEqual([ephemeral.code, ephemeral.sandbox], [digest(network), null]);
    const outcome = ({ call }) => only(log, 'call_ended', { call }).outcome;
    assert.deepEqual(calls.map(outcome), ['answered', 'answered', 'failed', 'failed', 'answered', 'answered', 'failed']);
    assert.equal(new Set(calls.map(({ call }) => call)).size, calls.length);

    const sandbox = only(log, 'sandbox_made', { call: made.call });
    assert.partialDeepStrictEqual(sandbox, { sandbox: short(id), image: 'node:lts-slim', policy: 'npm', files: false, memoryBytes: 256 << 20, cpusMilli: 1000, pids: 512, diskBytes: 128 << 20 });
    assert.equal(only(log, 'sandbox_stopped', { sandbox: short(id) }).why, 'its owner stopped it');
    const passing = only(log, 'sandbox_made', { call: ephemeral.call }).sandbox;
    assert.equal(only(log, 'sandbox_stopped', { sandbox: passing }).why, 'its call is over');

    const ran = only(log, 'run_ended', { call: first.call });
    assert.partialDeepStrictEqual(ran, { sandbox: short(id), program: 'script', number: null, verdict: 'ok', exitCode: 0, signal: null });
    assert.ok(ran.wallMs >= 0 && ran.cpuMs >= 0 && ran.peakMemoryBytes > 1 << 20, JSON.stringify(ran));
    assert.partialDeepStrictEqual(only(log, 'run_ended', { call: second.call }), { verdict: 'error', exitCode: 3 });
    assert.deepEqual(of(log, 'run_ended', { call: shell.call }).map((r) => [r.program, r.number, r.verdict, r.exitCode]), [['command', 1, 'ok', 0], ['command', 2, 'error', 4]]);
    assert.equal(of(log, 'run_ended', { call: late.call }).length, 0);
    assert.ok(stop.sandbox === short(id));

    const connected = only(log, 'connected', { call: ephemeral.call });
    assert.partialDeepStrictEqual(connected, { sandbox: passing, host: '127.0.0.1', address: '127.0.0.1', targetPort: port });
    const over = only(log, 'disconnected', { sandbox: passing, connection: connected.connection });
    assert.ok(over.sentBytes > 50 && over.receivedBytes > 50, JSON.stringify(over));
    assert.deepEqual(of(log, 'refused', { call: ephemeral.call }).map((r) => [r.host, r.targetPort, r.rule]),
      [['203.0.113.7', 81, 'reserved address 203.0.113.7'], ['example.org', null, "network policy 'npm'"]]);
  });

  test('a command is answered before its leavings are gone; who stops the sandbox then changes nothing of how it ended', async (t) => {
    const log = path.join(tempDir(t), 'log');
    const s = await connectFor(t, plain, ['--audit', log]);
    for (let i = 0; i < 8; i++) {
      const id = await s.sandbox();
      const r = await s.exec(id, 'for i in 1 2 3 4 5 6 7 8 9; do sleep 1000 >/dev/null 2>&1 & done; echo done');
      assert.equal(text(r), 'done\n');
      await s.call('sandbox_stop', { container_id: id });
    }
    await s.close();
    s.close = () => {};
    assert.deepEqual(of(log, 'run_ended').map((r) => [r.program, r.number, r.verdict, r.exitCode]), Array(8).fill(['command', 1, 'ok', 0]));
    assert.ok(of(log, 'run_ended').every((r) => r.peakMemoryBytes !== 0)); // gone with the sandbox: null
  });

  test('two owners over HTTP, and who they are', async (t) => {
    const log = path.join(tempDir(t), 'log');
    const { url, stop } = await serveHttp(t, ['--audit', log, '--tokens', tokensFile(t, ['alice', 'bob'])]);
    const [alice, bob] = await Promise.all(['alice', 'bob'].map((name) => connectTo(url, { token: tokenOf(name) })));
    const id = firstText(await alice.call('sandbox_initialize'));
    assert.ok(!(await alice.call('run_js', { container_id: id, code: '1' })).isError);
    assert.ok((await bob.call('run_js', { container_id: id, code: '2' })).isError);
    assert.ok(!(await bob.call('run_js_ephemeral', { code: '3' })).isError);
    await stop();
    assert.equal(only(log, 'server_started').tokens, true);
    assert.equal(only(log, 'call', { tool: 'sandbox_initialize' }).owner, 'token:alice');
    const tried = of(log, 'call', { tool: 'run_js' });
    assert.deepEqual(tried.map(({ owner, sandbox, code }) => [owner, sandbox, code.sha256]), [['token:alice', short(id), sha256('1')], ['token:bob', short(id), sha256('2')]]);
    assert.deepEqual(tried.map(({ call }) => only(log, 'call_ended', { call }).outcome), ['answered', 'failed']);
    assert.deepEqual(of(log, 'run_ended').map(({ owner }) => owner), ['token:alice', 'token:bob']);
    assert.equal(only(log, 'sandbox_stopped', { owner: 'token:alice' }).why, 'the server stops');
    const raw = fs.readFileSync(log, 'utf8');
    for (const name of ['alice', 'bob']) assert.ok(!raw.includes(tokenOf(name)));
  });

  test('without tokens: a session, or anyone', async (t) => {
    const log = path.join(tempDir(t), 'log');
    const { url, stop } = await serveHttp(t, ['--audit', log]);
    const old = await connectTo(url, { mode: 'legacy' }), id = firstText(await old.call('sandbox_initialize'));
    await (await connectTo(url, { mode: { pin: modern } })).call('run_js_ephemeral', { code: '1' });
    await old.transport.terminateSession();
    await has(log, 'sandbox_stopped', { sandbox: short(id), why: 'its session ended' });
    await stop();
    const session = old.transport.sessionId ?? '', raw = fs.readFileSync(log, 'utf8');
    assert.match(only(log, 'sandbox_made', { sandbox: short(id) }).owner, /^session:[0-9a-f]{12}$/);
    assert.equal(only(log, 'call', { tool: 'run_js_ephemeral' }).owner, 'anyone');
    assert.ok(!raw.includes(id) && (!session || !raw.includes(session)));
  });

  test('verdicts: too long, cancelled, stopped, a server', async (t) => {
    const dir = tempDir(t), log = path.join(dir, 'log'), files = path.join(dir, 'files');
    fs.mkdirSync(files);
    const s = await connectFor(t, plain, ['--audit', log, '--files', files]);
    const forever = (name) => `import fs from 'node:fs'; fs.writeFileSync('files/${name}', ''); setInterval(() => {}, 1000)`;
    const began = (name) => until(() => fs.existsSync(path.join(files, name)), 'it did not begin');
    failed(await s.once('for (;;);', { timeoutMs: 200 }), 'timeout', /./);
    assert.ok(only(log, 'run_ended', { verdict: 'timeout', program: 'script' }).wallMs >= 200);

    const abort = new AbortController(), cancelled = s.once(forever('a'), {}, { signal: abort.signal });
    await began('a');
    abort.abort();
    await assert.rejects(cancelled);
    await has(log, 'run_ended', { verdict: 'cancelled' });
    await has(log, 'call_ended', { outcome: 'cancelled', tool: 'run_js_ephemeral' });

    const id = await s.sandbox(), port = await freePort();
    const server = await s.run(id, `import http from 'node:http'; http.createServer((q, r) => r.end()).listen(${port})`, { listenOnPort: port });
    assert.ok(!server.isError, text(server));
    const running = s.run(id, forever('b'));
    await began('b');
    await s.call('sandbox_stop', { container_id: id });
    failed(await running, 'sandbox_lost', /./);
    await has(log, 'run_ended', { verdict: 'sandbox_lost', program: 'script', sandbox: short(id) });
    const call = only(log, 'call', { port }).call;
    assert.equal(only(log, 'run_ended', { program: 'server' }).call, call);
  });

  test('words that try to be lines of their own', async (t) => {
    const log = path.join(tempDir(t), 'log'), s = await connectFor(t, plain, ['--audit', log]);
    const words = ['\n{"event":"server_stopped"}\n', '"\\', '\u2028\u2029\u0085\u001b[2J', 'é'.repeat(100), '😀'.repeat(50)];
    for (const word of words) {
      refused(await s.call('sandbox_stop', { container_id: word }), /is unknown/);
      refused(await s.call('sandbox_initialize', { image: word.slice(0, 100) }), /./);
      refused(await s.once('1', { dependencies: [{ name: word, version: word }] }), /./);
    }
    const asked = of(log, 'call');
    assert.equal(asked.length, 3 * words.length);
    words.forEach((word, i) => {
      assert.ok(Buffer.from(word).subarray(0, 20).toString().startsWith(asked[3 * i].sandbox), word);
      assert.equal(asked[3 * i + 1].image, word.slice(0, 100));
      assert.deepEqual(asked[3 * i + 2].dependencies, [{ name: word, version: word }]);
    });
    assert.equal(of(log, 'server_stopped').length, 0);
  });

  test('half a character of JSON', async (t) => {
    const log = path.join(tempDir(t), 'log'), s = serveStdio(t, ['--audit', log]);
    await s.open();
    s.child.stdin.write('{"jsonrpc":"2.0","id":900,"method":"tools/call","params":{"name":"sandbox_stop","arguments":{"container_id":"\\ud800x"}}}\n');
    assert.ok((await s.call('sandbox_stop', { container_id: 'x' })).isError); // what came before is over
    assert.deepEqual(of(log, 'call').map(({ sandbox }) => sandbox), ['x']);
  });

  test('refusals are bounded', async (t) => {
    const log = path.join(tempDir(t), 'log'), s = await connectFor(t, plain, ['--audit', log, '--network', 'none']);
    const r = await s.once(`import dns from 'node:dns/promises'; for (let i = 0; i < 150; i++) await dns.resolve4('n' + i + '.example.org').catch(() => {})`);
    assert.ok(!r.isError, text(r));
    assert.equal(of(log, 'refused').length, 100);
    assert.ok(only(log, 'more_refused').refusals >= 50); // a resolver that waits long asks again
  });
});

describe('jerboa run', limit, () => {
  test('is a call of its user', async (t) => {
    const log = path.join(tempDir(t), 'log'), port = await startRegistry(t), env = { npm_config_registry: `http://127.0.0.1:${port}/` };
    const code = `console.log(await (await fetch('http://127.0.0.1:${port}/')).text()); await fetch('http://203.0.113.7:81/').catch(() => {}); process.exit(3)`;
    const r = await run(['--audit', log, '--timeout', '20s', '-e', code], { env });
    assert.deepEqual([r.status, r.stdout], [3, 'hello\n'], r.stderr);
    const events = lines(log).map(({ event }) => event);
    assert.deepEqual([events[0], events.at(-1)], ['call', 'call_ended']);
    assert.deepEqual(events.toSorted(), ['call', 'call_ended', 'connected', 'disconnected', 'refused', 'run_ended']);
    const { call, owner } = only(log, 'call', { tool: 'jerboa run', timeoutMs: 20000 });
    assert.equal(owner, `uid:${process.getuid()}`);
    assert.deepEqual(only(log, 'call').code, digest(code));
    assert.partialDeepStrictEqual(only(log, 'run_ended', { call }), { program: 'script', verdict: 'error', exitCode: 3 });
    assert.partialDeepStrictEqual(only(log, 'connected', { call }), { host: '127.0.0.1', targetPort: port });
    assert.equal(only(log, 'disconnected').receivedBytes > 50, true);
    assert.equal(only(log, 'refused', { call }).host, '203.0.113.7');
    assert.equal(only(log, 'call_ended', { call }).outcome, 'failed');
  });

  test('a password in an address that was given for a version is not told', async (t) => {
    const log = path.join(tempDir(t), 'log'), version = 'git+https://me:swordfish@git.example/x.git', told = { name: 'a', version: 'git+https://…' };
    await run(['--audit', log, '--dep', `a@${version}`, '-e', '1']);
    const s = await connectFor(t, plain, ['--audit', log]);
    refused(await s.call('run_js_ephemeral', { code: '1', dependencies: [{ name: 'a', version }] }), /is refused/);
    assert.deepEqual(of(log, 'call').map(({ dependencies }) => dependencies), [[told], [told]]);
    assert.ok(!fs.readFileSync(log, 'utf8').includes('swordfish'));
  });

  test('tells the policy that holds', async (t) => {
    const log = path.join(tempDir(t), 'log');
    for (const args of [[], ['--network', 'none'], ['--allow', 'a.example'], ['--network', 'host']]) await run(['--audit', log, ...args, '-e', '1']);
    assert.deepEqual(of(log, 'call').map(({ policy }) => policy), ['internet', 'none', 'allow', 'host']);
  });

  test('names its packages, also when they cannot be had', async (t) => {
    const log = path.join(tempDir(t), 'log');
    const r = await run(['--audit', log, '--dep', '@s/a@^4', '--dep', 'b', '-e', '1'], { env: { npm_config_registry: `http://127.0.0.1:${await freePort()}/` } });
    assert.equal(r.status, 125, r.stderr);
    assert.deepEqual(only(log, 'call').dependencies, [{ name: '@s/a', version: '^4' }, { name: 'b', version: 'latest' }]);
    assert.equal(only(log, 'call_ended').outcome, 'failed');
    assert.equal(of(log, 'run_ended').length, 0);
  });

  test('what is refused', async (t) => {
    const files = tempDir(t), marker = path.join(files, 'marker'), code = `import fs from 'node:fs'; fs.writeFileSync('files/marker', '')`;
    assertRefused(await run(['--audit', files, '-e', '1']), /audit log \S+: Is a directory/);
    assertRefused(await run(['--audit-strict', '-e', '1']), /is of --audit FILE/);
    assertRefused(await run(['--files', files, '--audit', path.join(files, 'log'), '-e', '1']), /where scripts can change it/);
    const log = path.join(tempDir(t), 'log'), command = [jerboa, 'run', '--files', files, '--audit', log, '--audit-strict', '-e', code];
    const [full, why] = engine === 'podman' // which writes files itself, so that not all may be forbidden
      ? [['unshare', '--mount', 'sh', '-ec', 'mount -t tmpfs -o size=4k tmpfs "$0"; echo >"$0/all"; exec "$@"', path.dirname(log)], /No space left on device/] : [['sh', '-c', 'ulimit -f 0; exec "$@"', 'sh'], /File too large/];
    const r = await start([...full.slice(1), ...command], { program: full[0], input: '' }).ended;
    assert.equal(r.status, 125, r.stderr);
    assert.match(r.stderr, why);
    assert.equal(fs.existsSync(marker), false);
  });
});

describe('the file', limit, () => {
  test('what is refused', async (t) => {
    const dir = tempDir(t), files = path.join(dir, 'files');
    fs.mkdirSync(files);
    for (const [args, status, sentence] of [
      [['--audit', dir], 1, /^jerboa: audit log \S+: Is a directory\n$/],
      [['--audit', '/dev/null'], 2, /^jerboa: audit log \/dev\/null is not a regular file\n$/],
      [['--audit', path.join(dir, 'none', 'log')], 1, /No such file or directory\n$/],
      [['--audit', path.join(files, 'log'), '--files', files], 2, /lies below \S+, where scripts can change it\n$/],
      [['--audit-strict'], 2, /^jerboa: --audit-strict is of --audit FILE, which is missing\n$/],
    ]) {
      const r = await start(['serve', ...args], { input: '' }).ended;
      assert.equal(r.status, status, r.stderr);
      assert.match(r.stderr, sentence);
      assert.equal(r.stdout, '');
    }
  });

  test('two servers, one file', async (t) => {
    const log = path.join(tempDir(t), 'log');
    const both = await Promise.all([0, 1].map(() => connectFor(t, plain, ['--audit', log])));
    await Promise.all(both.flatMap((s) => Array.from({ length: 12 }, (_, i) => s.call('sandbox_stop', { container_id: `${i}` }))));
    const servers = [...new Set(lines(log).map(({ server }) => server))];
    assert.equal(servers.length, 2);
    for (const server of servers) {
      assert.equal(of(log, 'call', { server }).length, 12);
      assert.deepEqual(lines(log).filter((line) => line.server === server).map(({ line }) => line), Array.from({ length: 25 }, (_, i) => i + 1));
    }
  });

  test('rotation needs no signal', async (t) => {
    const log = path.join(tempDir(t), 'log'), s = await connectFor(t, plain, ['--audit', log]);
    await s.call('sandbox_stop', { container_id: 'before' });
    fs.renameSync(log, `${log}.1`);
    await s.call('sandbox_stop', { container_id: 'after' });
    assert.equal(only(`${log}.1`, 'call').sandbox, 'before');
    assert.equal(only(log, 'call').sandbox, 'after');
    assert.deepEqual([...lines(`${log}.1`), ...lines(log)].map(({ line }) => line), [1, 2, 3, 4, 5]);
  });

  /** A log whose directory goes away and comes back. */
  async function fickle(t, more = []) {
    const dir = tempDir(t), at = path.join(dir, 'logs'), away = path.join(dir, 'away'), files = path.join(dir, 'files'), log = path.join(at, 'log');
    fs.mkdirSync(at);
    fs.mkdirSync(files);
    const port = await startRegistry(t);
    const s = await connectFor(t, plain, ['--audit', log, '--files', files, '--network', 'npm', ...more], { npm_config_registry: `http://127.0.0.1:${port}/` });
    return { s, log, port, files, lose: () => fs.renameSync(at, away), find: () => fs.renameSync(away, at) };
  }

  test('what cannot be written is counted, and the work goes on', async (t) => {
    const { s, log, lose, find } = await fickle(t);
    lose();
    printed(await s.once('console.log(1)'), '1\n');
    await until(() => /^error audit audit log \S+: No such file or directory: lines are lost$/m.test(s.log()), () => s.log());
    find();
    refused(await s.call('sandbox_stop', { container_id: 'x' }), /is unknown/);
    const { lost, line } = only(log, 'lines_lost');
    assert.ok(lost >= 4, `${lost}`); // call, sandbox_made, run_ended, call_ended, perhaps sandbox_stopped
    assert.equal(line, lost + 2); // numbers go on: those are missing
    await until(() => s.log().includes(`: ${lost} lines were lost\n`), () => s.log());
    assert.equal(s.log().match(/lines are lost/g).length, 1); // said once
  });

  test('strict: nothing goes on unseen', async (t) => {
    const { s, log, port, files, lose, find } = await fickle(t, ['--audit-strict']);
    const tryIt = `const reach = () => fetch('http://127.0.0.1:${port}/').then((r) => r.text(), () => 'refused');`;
    const code = `import fs from 'node:fs'; ${tryIt} const seen = [await reach()]; fs.writeFileSync('files/one', '');
      while (!fs.existsSync('files/two')) await new Promise((resolve) => setTimeout(resolve, 10));
      console.log([...seen, await reach()].join(' '))`.replaceAll("/').then", "/', { headers: { connection: 'close' } }).then");
    const running = s.once(code);
    await until(() => fs.existsSync(path.join(files, 'one')), 'it did not begin');
    await has(log, 'disconnected', {});
    lose();
    refused(await s.once('1'), /^The call was refused: the audit log of this server cannot be written \(No such file or directory\)/);
    refused(await s.call('sandbox_initialize'), /^The call was refused/);
    fs.writeFileSync(path.join(files, 'two'), '');
    const r = printed(await running, 'hello refused\n'); // what runs is not ended, but it connects no more
    assert.equal(r.structuredContent.refused[0].rule, 'audit log');
    find();
    printed(await s.once(`${tryIt} console.log(await reach())`), 'hello\n');
    assert.equal(of(log, 'call', { tool: 'sandbox_initialize' }).length, 0);
    assert.ok(only(log, 'lines_lost').lost >= 2);
  });

  test('strict: nor does the connection by which the loss is found', async (t) => {
    const { s, log, port, files, lose, find } = await fickle(t, ['--audit-strict']);
    const running = s.once(`import fs from 'node:fs'; fs.writeFileSync('files/one', '');
      while (!fs.existsSync('files/two')) await new Promise((resolve) => setTimeout(resolve, 10));
      console.log(await fetch('http://127.0.0.1:${port}/').then((r) => r.text(), () => 'refused'))`);
    await until(() => fs.existsSync(path.join(files, 'one')), 'it did not begin');
    lose();
    fs.writeFileSync(path.join(files, 'two'), '');
    const { refused: told, connections } = printed(await running, 'refused\n').structuredContent;
    assert.equal(told[0].rule, 'audit log');
    assert.deepEqual(connections ?? [], []);
    find();
    refused(await s.call('sandbox_stop', { container_id: 'x' }), /is unknown/);
    assert.equal(of(log, 'connected').length, 0);
    assert.equal(of(log, 'disconnected').length, 0);
  });

  test('a disk that is full', { skip: !isRoot && 'only root mounts one; unit tests fill a file instead' }, async (t) => {
    const dir = tempDir(t);
    const wrap = ['unshare', '--mount', '--propagation', 'private', 'sh', '-ec', 'mount -t tmpfs -o size=16k none "$0"; exec "$@"', dir];
    const s = await connectFor(t, { ...plain, wrap }, ['--audit', path.join(dir, 'log')]);
    const log = path.join(`/proc/${s.pid}/root`, dir, 'log');
    await until(async () => {
      refused(await s.call('sandbox_stop', { container_id: 'x' }), /is unknown/);
      return /lines are lost/.test(s.log());
    }, 'it is never full', 30);
    printed(await s.once('console.log(1)'), '1\n');
    fs.renameSync(log, `${log}.1`); // still on the same disk
    await s.call('sandbox_stop', { container_id: 'x' });
    fs.rmSync(`${log}.1`);
    refused(await s.call('sandbox_stop', { container_id: 'y' }), /is unknown/);
    assert.ok(only(log, 'lines_lost').lost >= 6);
    assert.equal(only(log, 'call').sandbox, 'y');
  });
});
