// No cgroup at all: processes are bounded by a resource limit, memory by the jail's looks; the end of a run is that of all but init.
// As root, cgroups are hidden in a mount namespace of the test's own; an ordinary user simply must not have been given any.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import { test } from 'node:test';
import { assertGone, code, copyPrograms, descendants, fill, isRoot, jerboa, judged, limit, printed, processes, readOnlyCgroups, root, start, tempDir, until } from './jerboa.mjs';
import { connectTo, serveHttp, text } from './serving.mjs';

const hide = `${readOnlyCgroups}; exec "$@"`;
const missing = isRoot ? ['cgroup'] : ['cgroup', 'uid-range'];

function begin(args, { program = jerboa, ...more } = {}) {
  const command = [program, 'run', '--json', ...args];
  return isRoot ? start(['-m', 'sh', '-ec', hide, 'sh', ...command], { program: 'unshare', input: '', ...more })
    : start(command.slice(1), { program, input: '', ...more });
}

/** To the end: the result with what the line of JSON says, which must tell that this was without a cgroup. */
async function judge(args, more) {
  const r = await begin(args, more).ended;
  Object.assign(r, judged(r));
  assert.deepEqual(r.walls, { missing });
  assert.match(r.stderr, /^warn sandbox missing walls: cgroup \([^\n]*\n/);
  return r;
}

const facts = ({ verdict, source, status, ended }) => ({ verdict, source, status, ended });

test('hello', limit, async () => {
  const r = await judge(['-e', 'console.log("hello"); process.exit(3)']);
  assert.deepEqual([r.stdout, facts(r)], ['hello\n', { verdict: 'error', source: undefined, status: 3, ended: 'sandbox' }]);
});

test('memory: buffers', limit, async () => {
  const r = await judge(['--memory', '128m', '-e', fill]);
  assert.deepEqual(facts(r), { verdict: 'oom', source: 'watch', status: 137, ended: 'sandbox' }, r.stderr);
  assert.match(r.stderr, /^jerboa: oom: the memory limit of 128 MiB was reached \(--memory\), as sampled for want of a cgroup$/m);
  assert.ok(r.usage.peakBytes > 128 << 20 && r.usage.peakBytes < 256 << 20, `${r.usage.peakBytes}`);
});

test('memory: of many processes together, none of them large', limit, async () => {
  const one = 'const b = Buffer.alloc(30 << 20, 1); setInterval(() => b[0]++, 1e3)';
  const r = await judge(['--memory', '200m', '-e', code(async (one) => {
    const { spawn } = await import('node:child_process');
    for (let i = 0; i < 12; i++) spawn(process.execPath, ['-e', one], { stdio: 'ignore' });
    setInterval(() => {}, 1e6);
  }, one)]);
  assert.deepEqual(facts(r), { verdict: 'oom', source: 'watch', status: 137, ended: 'sandbox' }, r.stderr);
});

test('memory: files count too, and what stays below the limit is left alone', limit, async () => {
  const write = (mib) => `import fs from 'node:fs'; fs.writeFileSync('/tmp/x', Buffer.alloc(1 << 20, 1)); const fd = fs.openSync('/tmp/x', 'a');
    const piece = Buffer.alloc(1 << 20, 1); for (let i = 0; i < ${mib}; i++) fs.writeSync(fd, piece);
    const kept = []; for (let i = 0; i < ${mib} / 8; i++) kept.push(Buffer.alloc(8 << 20, 1)); setTimeout(() => process.exit(0), 2000)`;
  const over = await judge(['--memory', '160m', '--disk', '100m', '-e', write(80)]);
  assert.deepEqual(facts(over), { verdict: 'oom', source: 'watch', status: 137, ended: 'sandbox' }, over.stderr);
  const under = await judge(['--memory', '256m', '--disk', '100m', '-e', write(80)]);
  assert.deepEqual(facts(under), { verdict: 'ok', source: undefined, status: 0, ended: 'sandbox' }, under.stderr);
});

test('memory: V8 says it itself', limit, async () => {
  const r = await judge(['--memory', '1g', '--env', 'NODE_OPTIONS=--max-old-space-size=64', '-e', code(async () => {
    const kept = [];
    for (;;) kept.push(new Array(1e5).fill({}).map((x, i) => ({ i })));
  })]);
  assert.deepEqual(facts(r), { verdict: 'oom', source: 'v8', status: 137, ended: 'sandbox' }, r.stderr);
});

test('memory that is hard to see: without a first thread, without a mapping; and what shows twice', limit, async (t) => {
  const dir = tempDir(t);
  execFileSync('musl-gcc', ['-std=gnu17', '-D_GNU_SOURCE', '-Wall', '-Werror', '-O1', '-static', '-o', `${dir}/hoard`, `${root}/tests/programs/hoard.c`]);
  const hoard = (how, memory = '128m') => judge(['--memory', memory, '--timeout', '5s', '--dir', dir, '-e', code(async (how) => {
    const { spawnSync } = await import('node:child_process');
    const { stdout } = spawnSync('/workspace/dir/hoard', [how, '200'], { encoding: 'utf8' });
    console.log(stdout.trim());
  }, how)]);
  for (const how of ['leaderless', 'tables']) {
    const r = await hoard(how);
    assert.deepEqual([how, facts(r)], [how, { verdict: 'oom', source: 'watch', status: 137, ended: 'sandbox' }], r.stderr);
  }
  assert.equal((await hoard('zero')).stdout, 'Permission denied\n');
  for (const how of ['memfd', 'shm', 'sem', 'shared']) assert.deepEqual([how, (await hoard(how)).stdout], [how, 'Function not implemented\n']);
  const vfork = await hoard('vfork', '320m'); // 200 MiB, for half a second those of two processes
  assert.deepEqual([vfork.stdout, vfork.verdict], ['lived\n', 'ok'], vfork.stderr);
  assert.ok(vfork.usage.peakBytes > 150 << 20 && vfork.usage.peakBytes < 320 << 20, `${vfork.usage.peakBytes}`);
});

test('processes are bounded, for this sandbox alone', limit, async (t) => {
  const count = code(async () => {
    const { spawn } = await import('node:child_process');
    let n = 0;
    for (let i = 0; i < 100; i++) {
      const child = spawn('sleep', ['1000']).on('error', (e) => { console.log(e.code); process.exit(3); });
      if (child.pid) n++;
    }
    console.log(n);
  });
  const beside = begin(['--pids', '60', '-e', code(async () => { // another sandbox of the same user, full of processes
    const { spawn } = await import('node:child_process');
    for (let i = 0; i < 40; i++) spawn('sleep', ['1000']);
    console.log('ready');
    setInterval(() => {}, 1e6);
  })], { program: copyPrograms(tempDir(t)) });
  t.after(async () => { beside.kill('SIGTERM'); await beside.ended; });
  await printed(beside, 'ready');
  const r = await judge(['--pids', '40', '-e', count]);
  assert.deepEqual([r.status, r.verdict], [3, 'error'], r.stderr); // no counter tells, so no verdict of its own
  const [started, refused] = r.stdout.split('\n');
  assert.ok(+started > 20 && +started < 40 && refused === 'EAGAIN', r.stdout);
  const fine = await judge(['--pids', '200', '-e', `${count}; process.exit(0)`]);
  assert.deepEqual([fine.stdout, fine.status], ['100\n', 0]);
});

test('timeout ends everything but init, and says so', limit, async (t) => {
  const dir = tempDir(t);
  const r = await judge(['--timeout', '3s', '-e', code(async () => {
    const { spawn } = await import('node:child_process');
    spawn('sh', ['-c', 'setsid sh -c "setsid sleep 1000 & echo started; sleep 1000" & exit 0'], { stdio: ['ignore', 'inherit', 'ignore'], detached: true }).unref();
    setInterval(() => {}, 1e6);
  })], { program: copyPrograms(dir) });
  assert.deepEqual([r.stdout, facts(r)], ['started\n', { verdict: 'timeout', source: undefined, status: 124, ended: 'sandbox' }]);
  assert.match(r.stderr, /^jerboa: timeout: killed after 3000 ms \(--timeout\), and for want of a cgroup all that ran beside it$/m);
  await assertGone(dir);
});

test('a fork bomb ends at the timeout, and nothing of it is left', limit, async (t) => {
  const dir = tempDir(t);
  const child = begin(['--pids', '100', '--timeout', '3s', '-e', code(async () => {
    const { spawn } = await import('node:child_process');
    const script = 'bomb() { bomb | bomb & }; bomb; sleep 1000';
    setInterval(() => spawn('sh', ['-c', script], { stdio: 'ignore' }).on('error', () => {}), 50);
  })], { program: copyPrograms(dir) });
  let most = 0, r;
  child.ended.then((ended) => { r = ended; });
  await until(() => { most = Math.max(most, processes(dir).length); return r; }, 'it did not end', 20);
  assert.equal(r.status, 124, r.stderr);
  // jerboa, jail, init, two helpers and at most 100; some come and go while we count
  assert.ok(most > 5 && most <= 150, `${most} processes`);
  await assertGone(dir);
});

test('what was left behind goes with a normal exit, and a cancel takes all', limit, async (t) => {
  const dir = tempDir(t), program = copyPrograms(dir);
  const leave = code(async () => {
    const { spawn } = await import('node:child_process');
    spawn('sh', ['-c', 'setsid sleep 1000 & echo started'], { stdio: 'inherit', detached: true }).once('exit', () => process.exit(0));
  });
  assert.equal((await judge(['-e', leave], { program })).stdout, 'started\n');
  await assertGone(dir);
  const deaf = begin(['-e', 'process.on("SIGTERM", () => console.log("no")); console.log("ready"); setInterval(() => {}, 1e6)'], { program });
  await printed(deaf, 'ready');
  const { pid } = processes(dir).find((p) => p.name === 'jerboa'); // unshare execs it, so it is the child itself
  process.kill(pid, 'SIGTERM');
  await printed(deaf, 'no');
  process.kill(pid, 'SIGTERM');
  assert.equal((await deaf.ended).status, 143);
  await assertGone(dir);
});

test('code that kills and stops whatever appears beside it does not escape its limit', limit, async (t) => {
  const dir = tempDir(t);
  const r = await begin(['--memory', '128m', '--timeout', '30s', '-e', code(async (fill) => {
    const { spawn } = await import('node:child_process');
    const { readdirSync } = await import('node:fs');
    spawn(process.execPath, ['-e', fill], { stdio: 'ignore', detached: true });
    const known = new Set(readdirSync('/proc'));
    for (;;) for (const name of readdirSync('/proc')) if (+name > 1 && !known.has(name) && +name > process.pid + 30) try { process.kill(+name, 'SIGSTOP'); } catch { /* gone */ }
  }, fill)], { program: copyPrograms(dir), seconds: 40 }).ended;
  assert.ok([125, 137].includes(r.status), `${r.status}: ${r.stderr}`); // oom, or the whole sandbox was ended
  await assertGone(dir);
});

test('a Node that is held goes, and a server beside it stays', limit, async (t) => {
  const s = await serveHttp(t, ['--pool', '0', '--hold', '2s'], { wrap: isRoot ? ['unshare', '-m', 'sh', '-ec', hide, 'sh'] : [] });
  const { client, call } = await connectTo(s.url), container_id = text(await call('sandbox_initialize'));
  const held = () => descendants(s.pid).filter(({ pid }) => { try { return fs.readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('gate.cjs'); } catch { return false; } });
  const { structuredContent: { server: { url } } } = await call('run_js', { container_id, listenOnPort: 8123, code: 'import http from "node:http"; http.createServer((q, a) => a.end("here")).listen(8123)' });
  const ask = async () => (await fetch(url)).text();
  assert.equal(await ask(), 'here');
  await until(() => held().length === 1, 'no Node is held');
  await until(() => held().length === 0, 'it is held for ever');
  assert.equal(await ask(), 'here');
  await client.close();
});
