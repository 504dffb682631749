// Every limit has its verdict and its exit status; output arrives whole; what a script started is gone afterwards.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { test } from 'node:test';
import { assertGone, code, copyPrograms, engine, jerboa, limit, nativeOnly, printed, processes, run, runCode, sanitized, start, tempDir, until } from './jerboa.mjs';

const readFile = (file) => { try { return fs.readFileSync(file, 'utf8'); } catch { return ''; } };

/** Runs with --stats: the result, with the verdict taken out of its last line. */
async function judge(args, more) {
  const r = await run(['--stats', ...args], more);
  const lines = r.stderr.trimEnd().split('\n');
  r.verdict = /^verdict (\w+),/.exec(lines.at(-1))?.[1];
  r.said = lines.find((line) => line.startsWith('jerboa: ')) ?? '';
  return r;
}

const table = (name, cases) => {
  for (const [what, args, script, verdict, status, said = /^$/, where = {}] of cases)
    test(`${name}: ${what}`, { ...limit, ...where }, async () => {
      const r = await judge([...args, '-e', typeof script === 'function' ? code(script) : script]);
      assert.deepEqual({ verdict: r.verdict, status: r.status, signal: r.signal }, { verdict, status, signal: null }, r.stderr);
      assert.match(r.said, said);
    });
};

const fillMemory = async () => { // outside V8's heap
  const kept = [];
  for (;;) kept.push(Buffer.alloc(8 << 20, 1));
};
const fillHeap = async () => {
  const kept = [];
  for (;;) kept.push(new Array(1e5).fill({}).map((x, i) => ({ i })));
};
const fillDisk = async () => {
  const { writeSync, openSync } = await import('node:fs');
  const fd = openSync('/tmp/big', 'w');
  for (;;) writeSync(fd, Buffer.alloc(1 << 20, 1));
};
const fillInodes = async () => {
  const { writeFileSync } = await import('node:fs');
  for (let i = 0; ; i++) writeFileSync(`/workspace/f${i}`, '');
};

table('timeout', [
  ['waiting', ['--timeout', '300ms'], 'setInterval(() => {}, 1e6)', 'timeout', 124, /timeout: killed after 300 ms \(--timeout\)/],
  ['spinning', ['--timeout', '300ms'], 'for (;;);', 'timeout', 124, /timeout/],
  ['ignoring SIGTERM', ['--timeout', '300ms'], 'process.on("SIGTERM", () => {}); setInterval(() => {}, 1e6)', 'timeout', 124, /timeout/],
  ['spinning threads', ['--timeout', '500ms'], async () => {
    const { Worker } = await import('node:worker_threads');
    for (let i = 0; i < 4; i++) new Worker('for (;;);', { eval: true });
  }, 'timeout', 124, /timeout/],
  ['0 is never', ['--timeout', '0'], 'setTimeout(() => process.exit(4), 200)', 'error', 4],
]);

table('memory', [
  ['buffers', ['--memory', '128m'], fillMemory, 'oom', 137, /oom: the memory limit of 128 MiB was reached \(--memory\)/],
  ['V8 heap', ['--memory', '1g', '--env', 'NODE_OPTIONS=--max-old-space-size=64'], fillHeap, 'oom', 137, /oom/],
  ['V8 heap, small', ['--memory', '96m'], fillHeap, 'oom', 137, /oom/],
  ['in a child', ['--memory', '128m'], `import { spawnSync } from 'node:child_process';
    const r = spawnSync(process.execPath, ['-e', ${JSON.stringify(`(${fillMemory})()`)}]); process.exit(r.signal === 'SIGKILL' ? 137 : 1)`, 'oom', 137, /oom/],
  ['a child died of it and the script went on: ok', ['--memory', '128m'], `import { spawnSync } from 'node:child_process';
    const r = spawnSync(process.execPath, ['-e', ${JSON.stringify(`(${fillMemory})()`)}]); process.exit(r.signal === 'SIGKILL' ? 0 : 1)`, 'ok', 0],
  ['its own SIGKILL is not oom', [], 'process.kill(process.pid, "SIGKILL")', 'error', 137],
  ['the least there may be', ['--memory', '32m'], 'console.log(1)', 'ok', 0],
]);

table('processes', [
  ['too many children', ['--pids', '40'], async () => {
    const { spawn } = await import('node:child_process');
    for (let i = 0; i < 100; i++) spawn('sleep', ['1000']).on('error', (e) => { console.error(e.code); process.exit(3); });
  }, 'pids', 3, /pids: more than 40 processes and threads \(--pids\)/],
  ['refused, but the script coped: ok', ['--pids', '40'], async () => {
    const { spawn } = await import('node:child_process');
    for (let i = 0; i < 100; i++) spawn('sleep', ['1000']).on('error', () => process.exit(0));
  }, 'ok', 0],
  ['too many threads', ['--pids', '40', '--memory', '2g'], async () => {
    const { Worker } = await import('node:worker_threads');
    for (let i = 0; i < 100; i++) new Worker('setInterval(() => {}, 1e6)', { eval: true });
  }, 'pids', 1, /pids/],
]);

table('disk', [
  ['full', ['--disk', '8m'], fillDisk, 'disk', 1, /disk: no block or no inode is left in the 8192 KiB of \/workspace, \/tmp and HOME \(--disk\)/],
  ['no inode left', ['--disk', '8m'], fillInodes, ...(engine === 'podman' ? ['oom', 137, /memory/] : ['disk', 1, /disk/])], // podman's --tmpfs takes no number of them: they are memory
  ['ENOSPC, deleted, usable again', ['--disk', '8m'], async () => {
    const fs = await import('node:fs');
    const fill = (file) => {
      const fd = fs.openSync(file, 'w');
      let n = 0;
      try { for (;;) n += fs.writeSync(fd, Buffer.alloc(1 << 16)); } catch (e) { if (e.code !== 'ENOSPC') throw e; }
      fs.closeSync(fd);
      return n;
    };
    const first = fill('/tmp/a');
    fs.unlinkSync('/tmp/a');
    const second = fill('/root/b');
    process.exit(first > 7 << 20 && second > 7 << 20 ? 0 : 9);
  }, 'ok', 0],
  ['shared by all writable places', ['--disk', '8m'], async () => {
    const fs = await import('node:fs');
    for (const dir of ['/workspace', '/tmp', '/root', '/dev/shm']) fs.writeFileSync(`${dir}/x`, Buffer.alloc(3 << 20));
  }, 'disk', 1, /disk/, nativeOnly('in a container each place has that size')],
  ['failed for another reason', ['--disk', '8m'], 'process.exit(5)', 'error', 5],
]);

test('descriptors: EMFILE and no hang', limit, async () => {
  const r = await runCode([], async () => {
    const fs = await import('node:fs');
    let n = 0;
    try { for (;; n++) fs.openSync('/dev/null'); } catch (e) { console.log(e.code, n > 900 && n < 1024); }
  });
  assert.deepEqual([r.stdout, r.status], ['EMFILE true\n', 0]);
});

test('a script larger than the disk is refused in a sentence', limit, async (t) => {
  const file = `${tempDir(t)}/large.js`;
  fs.writeFileSync(file, `//${'x'.repeat(200_000)}`);
  const r = await run(['--disk', '64k', file]);
  assert.equal(r.status, 125);
  assert.match(r.stderr, /^jerboa: [^\n]*large\.js[^\n]*No space left[^\n]*\n$/);
});

// ---- the tree is gone ----

const bombs = {
  'fork bomb': ['--pids', '100', '--timeout', '1s', '-e', code(async () => {
    const { spawn } = await import('node:child_process');
    const script = 'bomb() { bomb | bomb & }; bomb; sleep 1000';
    spawn('sh', ['-c', script], { stdio: 'ignore' });
    setInterval(() => spawn('sh', ['-c', script], { stdio: 'ignore' }).on('error', () => {}), 50);
  })],
  'grandchild, at the timeout': ['--timeout', '3s', '-e', code(async () => {
    const { spawn } = await import('node:child_process');
    spawn('sh', ['-c', 'setsid sh -c "setsid sleep 1000 & echo started; sleep 1000" & exit 0'], { stdio: ['ignore', 'inherit', 'ignore'], detached: true }).unref();
    setInterval(() => {}, 1e6);
  })],
  'grandchild, after a normal exit': ['-e', code(async () => {
    const { spawn } = await import('node:child_process');
    const child = spawn('sh', ['-c', 'setsid sh -c "setsid sleep 1000 & echo started; exec sleep 1000" & sleep 1000'], { stdio: ['ignore', 'pipe', 'ignore'], detached: true });
    child.stdout.once('data', () => { console.log('started'); process.stdin.on('end', () => process.exit(0)).resume(); });
  })],
  'grandchild that holds stdout': ['-e', code(async () => {
    const { spawn } = await import('node:child_process');
    spawn('sh', ['-c', 'setsid sleep 1000 & echo started'], { stdio: 'inherit', detached: true }).once('exit', () => process.stdin.on('end', () => process.exit(0)).resume());
  })],
};
for (const [name, args] of Object.entries(bombs))
  test(`gone afterwards: ${name}`, limit, async (t) => {
    const dir = tempDir(t);
    const child = start(['run', ...args], { program: copyPrograms(dir) }), isTimed = args.includes('--timeout');
    let most = 0, r;
    child.ended.then((ended) => { r = ended; });
    if (!isTimed) { // it ends when we have seen its processes, with its input
      await printed(child, 'started');
      await until(() => processes(dir).length > 4, 'jerboa, jail, init, Node and the grandchild');
    }
    child.stdin.end();
    await until(() => { most = Math.max(most, processes(dir).length); return r; }, 'it did not end', 20);
    assert.equal(r.status, isTimed ? 124 : 0, r.stderr);
    if (name !== 'fork bomb') assert.equal(r.stdout, 'started\n');
    assert.ok(most <= 104, `${most} processes`); // jerboa, jail, init and at most 100
    await assertGone(dir);
  });

// ---- output ----

const sha256 = (chunks) => chunks.reduce((hash, chunk) => hash.update(chunk), createHash('sha256')).digest('hex');

test('100 MB of output arrive whole', limit, async () => {
  const piece = Buffer.from(Array.from({ length: 1 << 20 }, (_, i) => (i * 7 + (i >> 8)) & 0xff));
  const child = start(['run', '-e', code(async () => {
    const piece = Buffer.from(Array.from({ length: 1 << 20 }, (_, i) => (i * 7 + (i >> 8)) & 0xff));
    const { once } = await import('node:events');
    for (let i = 0; i < 100; i++) if (!process.stdout.write(piece)) await once(process.stdout, 'drain');
  })], { input: '', keep: false });
  const hash = createHash('sha256');
  let bytes = 0;
  child.stdout.on('data', (d) => { bytes += d.length; hash.update(d); });
  child.stderr.resume();
  assert.equal((await child.ended).status, 0);
  assert.equal(bytes, 100 << 20);
  assert.equal(hash.digest('hex'), sha256(Array(100).fill(piece)));
});

test('bytes are not changed, no newline is added, both streams at once', limit, async () => {
  const r = await run(['-e', `process.stdout.write(Buffer.from([...Array(256).keys()])); process.stderr.write(Buffer.from("\\u001b[1mé\\n no newline"))`]);
  assert.deepEqual([...r.bytes], [...Array(256).keys()]);
  assert.equal(r.stderr, '\u001b[1mé\n no newline');
  const both = await run(['-e', 'import fs from "node:fs"; for (let i = 0; i < 2000; i++) { fs.writeSync(1, `o${i} `.repeat(50)); fs.writeSync(2, `e${i} `.repeat(50)); }']);
  assert.equal(both.stdout, Array.from({ length: 2000 }, (_, i) => `o${i} `.repeat(50)).join(''));
  assert.equal(both.stderr, both.stdout.replaceAll('o', 'e'));
});

test('large output then process.exit: what the pipe took is not lost', { ...limit, ...nativeOnly('pipes in containers are small once their owner has many (fs.pipe-user-pages-soft)') }, async () => {
  const r = await run(['-e', 'process.stdout.write("x".repeat(500_000)); process.exit(3)']);
  assert.deepEqual([r.stdout.length, r.status], [500_000, 3]);
});

test('a script that closes its outputs and goes on', limit, async (t) => {
  for (const closing of ['fs.closeSync(1)', 'fs.closeSync(1); fs.closeSync(2)', 'fs.closeSync(0); fs.closeSync(1); fs.closeSync(2)']) {
    const dir = tempDir(t);
    const r = await run(['--files', dir, '-e', `import fs from "node:fs"; fs.writeSync(1, "said"); ${closing}; setTimeout(() => { fs.writeFileSync("files/went-on", ""); process.exit(6) }, 100)`]);
    assert.deepEqual([closing, r.stdout, r.status, fs.existsSync(`${dir}/went-on`)], [closing, 'said', 6, true]);
  }
});

test('a reader that stops stops the script, and jerboa\'s memory stays flat', limit, async () => {
  const child = start(['run', '--timeout', '60', '-e', code(async () => {
    const piece = Buffer.alloc(1 << 20, 'x');
    const { once } = await import('node:events');
    for (let i = 0; i < 200; i++) {
      if (!process.stdout.write(piece)) await once(process.stdout, 'drain');
      process.stderr.write(`${i}\n`);
    }
  })], { input: '', keep: false });
  let written = 0, bytes = 0;
  child.stderr.on('data', (d) => { written += d.toString().split('\n').length - 1; });
  // Nobody listens on stdout yet: the script comes to a halt, having written far less than it wants to.
  let last = -1, since = 0;
  await until(() => {
    if (written !== last) [last, since] = [written, performance.now()];
    return written > 0 && performance.now() - since > 500;
  }, 'the script never came to a halt', 20);
  assert.ok(written < 20, `${written} MiB were written although nobody reads`);
  child.stdout.on('data', (d) => { bytes += d.length; });
  let peak = 0;
  const watch = setInterval(() => {
    peak = Math.max(peak, +(/VmHWM:\s+(\d+)/.exec(readFile(`/proc/${child.pid}/status`))?.[1] ?? 0));
  }, 5);
  const r = await child.ended;
  clearInterval(watch);
  assert.deepEqual([r.status, bytes], [0, 200 << 20]);
  assert.ok(peak > 0 && (sanitized || peak < 64 << 10), `jerboa used ${peak} KiB`);
});

test('a umask that shuts everybody out takes no limit away, now or later', limit, async () => {
  const closed = await start(['-c', 'umask 0777; exec "$@"', 'sh', jerboa, 'run', '--json', '-e', '0'], { program: '/bin/sh', input: '' }).ended;
  for (const r of [closed, await run(['--json', '-e', '0'])]) {
    assert.equal(r.status, 0, r.stderr);
    assert.equal(JSON.parse(r.stderr.trim().split('\n').at(-1)).walls.missing.includes('cgroup'), false);
  }
});
