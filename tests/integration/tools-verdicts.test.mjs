// How runs end: each verdict with its sentence and its fields, what is printed on the way, who waits for whom.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fill, keepers, nothingAhead, tempDir, until } from './jerboa.mjs';
import { connect, connectFor, descendants, failed, freePort, inside, limit, printed, refused, telemetry, text, texts, variants } from './tools.mjs';

nothingAhead();

const files = tempDir();
const quota = 4 << 20;
let s;
before(async () => {
  s = await connect(variants['stdio, modern'], ['--files', files, '--memory', '128m', '--disk', '32m', '--pids', '40', '--files-quota', `${quota}`, '--timeout', '20s']);
});
after(() => s.close());

describe('verdicts', limit, () => {
  test('ok, whatever was touched on the way', async () => {
    const r = printed(await s.once(`import fs from 'node:fs';
      try { fs.writeFileSync('/tmp/large', Buffer.alloc(64 << 20)); } catch (e) { console.log(e.code); }`), 'ENOSPC\n');
    assert.deepEqual([r.structuredContent.exitCode, r.structuredContent.signal], [0, null]);
  });

  test('error: an exit code', async () => {
    const r = failed(await s.once('process.exit(7)'), 'error', /it ended with exit code 7\b/);
    assert.deepEqual([r.structuredContent.exitCode, r.structuredContent.signal], [7, null]);
    assert.equal(texts(r)[1], 'Node.js process output:\n');
    assert.equal(telemetry(r).installTimeMs, 0);
  });

  test('error: a signal', async () => {
    const r = failed(await s.once('process.kill(process.pid, "SIGTERM"); setInterval(() => {}, 1000)'), 'error', /it ended with signal 15 \(SIGTERM\)/);
    assert.deepEqual([r.structuredContent.exitCode, r.structuredContent.signal], [null, 15]);
  });

  test('error: code that is no module', async () => {
    const r = failed(await s.once('let = ;'), 'error', /exit code 1\b/);
    assert.match(r.structuredContent.stderr, /^file:\/\/\/workspace\/index\.js:1\n.*SyntaxError/s);
  });

  test('timeout by the server\'s own limit', async (t) => {
    const short = await connectFor(t, variants['stdio, legacy'], ['--timeout', '300ms']);
    failed(await short.once('for (;;);'), 'timeout', /longer than 300 ms/);
    printed(await short.once('await new Promise((resolve) => setTimeout(resolve, 600)); console.log("waited")', { timeoutMs: 10_000 }), 'waited\n');
  });

  test('output: what is kept ends somewhere', async () => {
    const r = failed(await s.once(`const line = Buffer.alloc(1 << 20, 'x'); line[line.length - 1] = 10;
      const next = () => process.stdout.write(line, next); next()`), 'output', /it printed more than 64 MiB and was killed/);
    assert.equal(r.structuredContent.truncated.stdoutBytes, 64 << 20);
    assert.ok(JSON.stringify(r).length < 200 << 10);
  });

  test('oom: memory outside and inside of V8\'s heap', async () => {
    const r = failed(await s.once(fill), 'oom', /it needed more than 128 MiB of memory \(signal 9 \(SIGKILL\)\)/);
    assert.ok(r.structuredContent.usage.peakMemoryBytes > 100 << 20, JSON.stringify(r.structuredContent.usage));
    failed(await s.once('const kept = []; for (let i = 0; ; i++) kept.push({ i, text: `number ${i}` })'), 'oom', /128 MiB/);
  });

  test('of a command, the limit that killed it', async () => {
    const container_id = await s.sandbox();
    assert.match(texts(await s.exec(container_id, 'cat /dev/zero'))[1], /^Command 1 failed with output \(signal 9 \(SIGKILL\)\):/);
    assert.match(texts(await s.exec(container_id, `node -e '${fill}'`))[1], /^Command 1 failed with oom \(exit code 137\):/);
  });

  test('pids', async () => {
    const r = failed(await s.once(`import { spawn } from 'node:child_process';
      for (let i = 0; i < 60; i++) spawn('sleep', ['1006'], { stdio: 'ignore' });`), 'pids', /it wanted more than 40 processes and threads/);
    assert.match(r.structuredContent.stderr, /EAGAIN/);
    assert.deepEqual(inside(s.pid).filter((p) => p.name === 'sleep'), []);
  });

  test('disk: its own', async () => {
    failed(await s.once(`import fs from 'node:fs'; fs.writeFileSync('large', Buffer.alloc(64 << 20))`), 'disk', /its disk of 32 MiB is full/);
  });

  test('disk: no room is left for the next run', async () => {
    const container_id = await s.sandbox(), words = /^Error during execution: disk: it was not run, its disk of 32 MiB is full: remove what is not needed/;
    await s.exec(container_id, 'cat /dev/zero > full; true');
    failed(await s.run(container_id, 'console.log(1)'), 'disk', words);
    failed(await s.run(container_id, 'console.log(1)', { listenOnPort: await freePort() }), 'disk', words);
    await s.exec(container_id, 'rm full');
    printed(await s.run(container_id, 'console.log(2)'), '2\n'); // the sandbox is not lost
  });

  test('disk: the growth of the user\'s directory', async () => {
    const r = failed(await s.once(`import fs from 'node:fs';
      for (let i = 0; i < 4000; i++) { fs.appendFileSync('files/growing', Buffer.alloc(1 << 16)); await new Promise((resolve) => setTimeout(resolve, 2)); }`),
    'disk', /files\/ grew by more than 4 MiB, or past what can be counted, and it was killed/);
    assert.equal(r.structuredContent.files[0].path, 'growing');
    const { size } = fs.statSync(path.join(files, 'growing'));
    assert.ok(size >= quota && size < 16 * quota, `${size}`);
    fs.rmSync(path.join(files, 'growing'));
    printed(await s.once(`import fs from 'node:fs'; fs.writeFileSync('files/small', 'x')`), ''); // each run has its own measure
  });

  test('disk: what is too deep to be counted', async () => {
    failed(await s.once(`import fs from 'node:fs'; process.chdir('files');
      for (let i = 0; i < 40; i++) { fs.mkdirSync('d'.repeat(200)); process.chdir('d'.repeat(200)); }
      setInterval(() => fs.writeFileSync('x', String(Math.random())), 10);`),
    'disk', /files\/ grew by more than 4 MiB, or past what can be counted, and it was killed: .*shorter paths/);
    execFileSync('rm', ['-rf', path.join(files, 'd'.repeat(200))]);
  });

  test('disk: a server in the background is ended, too', async () => {
    const id = await s.sandbox();
    const r = await s.run(id, `import fs from 'node:fs'; import http from 'node:http';
      http.createServer((request, response) => response.end('up')).listen(4801);
      setInterval(() => fs.appendFileSync('files/by-a-server', Buffer.alloc(1 << 16)), 2);`, { listenOnPort: 4801 });
    assert.equal(r.structuredContent.verdict, 'ok');
    await until(() => inside(s.pid).length === 0, 'it goes on');
    const { size } = fs.statSync(path.join(files, 'by-a-server'));
    assert.ok(size >= quota && size < 16 * quota, `${size}`);
    fs.rmSync(path.join(files, 'by-a-server'));
    await s.call('sandbox_stop', { container_id: id });
  });

  for (const place of ['a directory of the user', 'a directory of its own'])
    test(`sandbox_lost, with ${place}`, async (t) => {
      const c = place === 'a directory of its own' ? await connectFor(t, variants['stdio, legacy']) : s;
      const begun = 'console.log("begun"); setInterval(() => {}, 1000)';
      const nodes = () => inside(c.pid).length > 0;

      // Stopped by another call.
      const stopped = await c.sandbox();
      const run = c.run(stopped, begun), waits = c.run(stopped, 'console.log("never")');
      await until(nodes, 'it did not start');
      await c.call('sandbox_stop', { container_id: stopped });
      failed(await run, 'sandbox_lost', /was stopped.*call sandbox_initialize/);
      refused(await waits, /^The call was not run: .*was stopped.*: call sandbox_initialize/);

      // The walls came down.
      const port = await freePort();
      for (const call of [(id) => c.run(id, begun), (id) => c.exec(id, 'sleep 1007'), (id) => c.run(id, begun, { listenOnPort: port })]) {
        await until(() => !nodes(), 'the one before still runs');
        const lost = await c.sandbox();
        const answer = call(lost);
        await until(nodes, 'it did not start');
        for (const p of keepers(c.pid)) process.kill(p.pid, 'SIGKILL');
        const r = await answer;
        assert.equal(r.isError, true);
        assert.match(texts(r).join(), /(^The call was not run|sandbox_lost)\b.*\b(jail ended before its time|sandbox ended)/);
        if (r.structuredContent?.verdict) failed(r, 'sandbox_lost', /call sandbox_initialize/);
        refused(await c.run(lost, '1'), /is unknown or has expired|was not run: the sandbox ended: call sandbox_initialize/);
      }
      printed(await c.once('console.log("others go on")'), 'others go on\n');
    });
});

describe('outputs', limit, () => {
  test('bytes that are not UTF-8', async () => {
    const seen = [];
    const r = await s.once(`process.stdout.write(Buffer.from([0x61, 0xff, 0xc3, 0x62, 10])); process.stderr.write('fine')`, {}, { onprogress: (p) => seen.push(p) });
    assert.match(text(r), /^Node\.js process output:\na\uFFFD\uFFFDb\n\n\[2 bytes that are not UTF-8 are shown as U\+FFFD; the exact bytes: (output:\/\/\w+)\]$/);
    assert.equal(r.structuredContent.truncated, null);
    assert.deepEqual([...Buffer.from((await s.read(text(r).match(/output:\/\/\w+/)[0])).blob, 'base64')], [0x61, 0xff, 0xc3, 0x62, 10]);
    const nul = await s.once(`process.stdout.write('a\\0b\\u2028c')`);
    assert.ok(text(nul).endsWith('a\u2400b\u2028c'), JSON.stringify(nul.content));
    const container_id = await s.sandbox();
    const shell = await s.exec(container_id, String.raw`printf 'x\377y'; printf '\376' >&2; exit 1`);
    assert.match(text(shell), /^x\uFFFDy\n\[1 bytes that are not UTF-8/);
    assert.match(texts(shell)[1], /^Command 1 failed with exit code 1:\n\uFFFD\n/);
  });

  test('megabytes are cut in the middle, and the whole is a resource', async () => {
    const r = await s.once(`let all = ''; for (let i = 0; i < 400_000; i++) all += i + '\\n';
      process.stdout.write(all); process.stderr.write('e'.repeat(100_000) + 'end')`);
    const whole = Array.from({ length: 400_000 }, (_, i) => `${i}\n`).join('');
    const { stdout, truncated } = r.structuredContent;
    assert.equal(truncated.stdoutBytes, whole.length);
    assert.equal(truncated.stderrBytes, 100_003);
    assert.ok(Buffer.byteLength(stdout) < 50 << 10, `${stdout.length}`);
    assert.ok(stdout.startsWith('0\n1\n2\n') && stdout.endsWith('399998\n399999\n'));
    assert.ok(stdout.includes(truncated.uri));
    assert.equal(text(r), `Node.js process output:\n${stdout}`);
    assert.equal((await s.read(truncated.uri)).text, whole);
    assert.ok(texts(r)[1].endsWith('eeend'));
    assert.equal((await s.read(texts(r)[1].match(/output:\/\/\w+/)[0])).text.length, 100_003);
    await assert.rejects(s.read('output://00000000000000000000000000000000'), { code: -32602 });
    assert.equal((await s.read(`${truncated.uri}/${whole.length - 7}`)).text, '399999\n');
    for (const from of [whole.length, -1, '0x1', '1e3', '99999999999999999999', '', ' 1', '%00'])
      await assert.rejects(s.read(`${truncated.uri}/${from}`), { code: -32602 }, `${from}`);
    const container_id = await s.sandbox();
    const shell = await s.exec(container_id, 'seq 100000', 'echo end');
    const [uri] = text(shell).match(/output:\/\/\w+/);
    assert.equal((await s.read(uri)).text, Array.from({ length: 100_000 }, (_, i) => `${i + 1}\n`).join(''));
  });

  test('progress of a script that speaks once', async () => {
    const seen = [];
    await s.once('console.log("ünï " + "x".repeat(500)); await new Promise((resolve) => setTimeout(resolve, 1000))', {}, { onprogress: (p) => seen.push(p.message) });
    assert.ok(seen.some((line) => line.startsWith('ünï x')), JSON.stringify(seen));
    assert.ok(seen.every((line) => line.length <= 200));
  });
});

describe('order', limit, () => {
  const span = `const began = Date.now(); await new Promise((resolve) => setTimeout(resolve, 250)); console.log(JSON.stringify([began, Date.now()]))`;
  const spans = (results) => results.map((r) => JSON.parse(r.structuredContent.stdout)).sort(([a], [b]) => a - b);

  test('one sandbox: one after the other', async () => {
    const container_id = await s.sandbox();
    const [a, b, c] = spans(await Promise.all([s.run(container_id, span), s.run(container_id, span), s.run(container_id, span)]));
    assert.ok(a[1] <= b[0] && b[1] <= c[0], JSON.stringify([a, b, c]));
  });

  test('two sandboxes: side by side', async () => {
    const ids = [await s.sandbox(), await s.sandbox()];
    const [a, b] = spans(await Promise.all(ids.map((container_id) => s.run(container_id, span.replace('250', '1500')))));
    assert.ok(b[0] < a[1], JSON.stringify([a, b]));
  });

  test('who is cancelled while he waits does not run, and holds nobody up', async () => {
    const container_id = await s.sandbox();
    const controller = new AbortController();
    const first = s.run(container_id, span.replace('250', '2000'));
    const second = s.run(container_id, 'import fs from "node:fs"; fs.writeFileSync("ran", "")', {}, { signal: controller.signal });
    const third = s.exec(container_id, 'ls ran || echo none');
    setTimeout(() => controller.abort(), 50);
    await assert.rejects(second);
    spans([await first]);
    assert.equal(text(await third), 'none\n');
  });
});
