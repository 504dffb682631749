// The tools as their users know them from the predecessor, with the official client: on stdio and HTTP, in both eras.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { isRoot, someAhead, tempDir, until } from './jerboa.mjs';
import { connect, failed, inside, kinds, limit, printed, refused, telemetry, text, texts, variants } from './tools.mjs';

someAhead();

const id = /^js-sbx-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;
const jpeg = '/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////wgALCAABAAEBAREA/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABPxA=';

for (const [name, variant] of Object.entries(variants))
  describe(name, limit, () => {
    const files = tempDir();
    let s;
    before(async () => { s = await connect(variant, ['--files', files]); });
    after(() => s.close());

    test('lists the seven tools, with output schemas and hints', () => {
      assert.deepEqual(s.tools.map((tool) => tool.name).sort(),
        ['get_dependency_types', 'run_js', 'run_js_ephemeral', 'sandbox_exec', 'sandbox_initialize', 'sandbox_stop', 'search_npm_packages']);
      for (const tool of s.tools) assert.ok(tool.outputSchema && tool.annotations.title !== '' && tool.description, tool.name);
    });

    test('hello', async () => {
      const r = printed(await s.once('console.log("hello")'), 'hello\n');
      assert.deepEqual(kinds(r), ['text', 'text']);
      assert.partialDeepStrictEqual(r.structuredContent,
        { verdict: 'ok', exitCode: 0, signal: null, stdout: 'hello\n', stderr: '', truncated: null, files: [], refused: [], server: null, walls: { missing: isRoot ? [] : ['uid-range'] } });
      const { timings } = r.structuredContent; // that fields are looked at is no matter of course
      for (const wrong of [{ extra: 1 }, { timings: { ...timings, extra: 1 } }, { verdict: 1 }, { files: [{}] }, { exitCode: '0' }])
        assert.equal(s.allows('run_js_ephemeral', { ...r.structuredContent, ...wrong }), false, JSON.stringify(wrong));
    });

    test('telemetry', async () => {
      const r = await s.once('await new Promise((resolve) => setTimeout(resolve, 50)); console.error("oops")');
      assert.deepEqual(texts(r).slice(0, 2), ['Node.js process output:\n', 'Node.js process errors:\noops\n']);
      assert.match(r.content.at(-1).text, /^Telemetry:\n\{/);
      assert.deepEqual(Object.keys(telemetry(r)), ['installTimeMs', 'installOutput', 'runTimeMs']);
      const { installTimeMs, installOutput, runTimeMs } = telemetry(r);
      assert.deepEqual([installTimeMs, installOutput], [0, 'Skipped npm install (no dependencies)']);
      assert.ok(runTimeMs >= 50 && runTimeMs < 30_000, `${runTimeMs}`);
      const { timings, usage } = r.structuredContent;
      assert.deepEqual(timings, { installMs: 0, runMs: runTimeMs });
      assert.ok(usage.wallMs >= 50 && usage.cpuMs > 0 && usage.cpuMs < 10_000 && usage.peakMemoryBytes > 1 << 20, JSON.stringify(usage));
    });

    test('the whole life of a sandbox', async () => {
      const made = await s.call('sandbox_initialize');
      assert.deepEqual(kinds(made), ['text']);
      assert.match(text(made), id);
      const container_id = text(made);
      assert.deepEqual(made.structuredContent, { container_id, url: null, filesPersist: true });

      printed(await s.run(container_id, 'import fs from "node:fs"; fs.writeFileSync("kept", "1"); console.log(process.cwd(), import.meta.filename)'),
        '/workspace /workspace/index.js\n');
      const done = await s.exec(container_id, 'cat kept', 'echo `echo back` $(echo ticks) "$HOME"; echo err >&2', 'pwd');
      assert.ok(!done.isError);
      assert.deepEqual(kinds(done), ['text']);
      const [one, two, three] = done.structuredContent.commands;
      assert.equal(text(done), [one, two, three].map((c) => c.stdout).join('\n'));
      assert.deepEqual([one, three], [{ stdout: '1', stderr: '', exitCode: 0 }, { stdout: '/workspace\n', stderr: '', exitCode: 0 }]);
      assert.match(two.stdout, /^back ticks \//);
      assert.equal(two.stderr, 'err\n');

      const stopped = await s.call('sandbox_stop', { container_id });
      assert.deepEqual([stopped.content, stopped.structuredContent],
        [[{ type: 'text', text: `Container ${container_id} removed.` }], { container_id }]);
      for (const r of [await s.call('sandbox_stop', { container_id }), await s.run(container_id, '1'), await s.exec(container_id, 'true')])
        refused(r, new RegExp(`^Sandbox '${container_id}' is unknown or has expired: call sandbox_initialize`));
    });

    test('a command that fails stops the rest', async () => {
      const container_id = await s.sandbox();
      const r = await s.exec(container_id, 'echo first', 'echo second; echo why >&2; exit 3', 'touch third');
      assert.equal(r.isError, true);
      assert.deepEqual(texts(r), ['first\n\nsecond\n', 'Command 2 failed with exit code 3:\nwhy\n']);
      assert.deepEqual(r.structuredContent.commands.map((c) => c.exitCode), [0, 3]);
      assert.equal(text(await s.exec(container_id, 'ls third 2>/dev/null || echo none')), 'none\n');
      assert.deepEqual(texts(await s.exec(container_id, 'kill -9 $$')), ['', 'Command 1 failed with signal 9 (SIGKILL):\n']);
    });

    test('writes and reads files of the user', async () => {
      const container_id = await s.sandbox();
      fs.writeFileSync(path.join(files, 'given.txt'), 'from the user');
      const r = await s.run(container_id, `import fs from 'node:fs';
        fs.writeFileSync('./files/answer.txt', fs.readFileSync('files/given.txt', 'utf8').toUpperCase());`);
      const uri = pathToFileURL(path.join(files, 'answer.txt')).href;
      assert.deepEqual(r.content.slice(0, -1), [
        { type: 'text', text: 'Node.js process output:\n' },
        { type: 'text', text: 'List of changed files:\n- answer.txt was created' },
        { type: 'resource', resource: { uri, mimeType: 'text/plain', text: 'FROM THE USER' } },
      ]);
      assert.deepEqual(r.structuredContent.files, [{ path: 'answer.txt', change: 'created', size: 13, mimeType: 'text/plain', uri }]);
      assert.equal(fs.readFileSync(path.join(files, 'answer.txt'), 'utf8'), 'FROM THE USER');
      assert.equal(fs.statSync(path.join(files, 'answer.txt')).uid, process.getuid()); // the user's own
      assert.equal((await s.read(uri)).text, 'FROM THE USER');
      const gone = await s.run(container_id, `import fs from 'node:fs'; fs.appendFileSync('files/given.txt', '!'); fs.rmSync('files/answer.txt')`);
      assert.equal(texts(gone)[1], 'List of changed files:\n- answer.txt was deleted\n- given.txt was updated');
      assert.deepEqual(gone.structuredContent.files[0], { path: 'answer.txt', change: 'deleted', size: null, mimeType: null, uri: null });
      await s.call('sandbox_stop', { container_id });
      assert.equal(fs.readFileSync(path.join(files, 'given.txt'), 'utf8'), 'from the user!');
    });

    test('a text and a picture together', async () => {
      const r = printed(await s.once(`import fs from 'node:fs';
        fs.writeFileSync('./files/note.txt', 'a note');
        fs.writeFileSync('./files/dot.jpg', Buffer.from('${jpeg}', 'base64')); console.log('both')`), 'both\n');
      const uri = pathToFileURL(path.join(files, 'dot.jpg')).href;
      const size = Buffer.from(jpeg, 'base64').length;
      assert.deepEqual(r.content.slice(1, -1), [
        { type: 'text', text: 'List of changed files:\n- dot.jpg was created\n- note.txt was created' },
        { type: 'image', data: jpeg, mimeType: 'image/jpeg' },
        { type: 'resource_link', uri, name: 'dot.jpg', mimeType: 'image/jpeg', size },
        { type: 'resource', resource: { uri: pathToFileURL(path.join(files, 'note.txt')).href, mimeType: 'text/plain', text: 'a note' } },
      ]);
      assert.equal((await s.read(uri)).blob, jpeg);
    });

    test('a thrown error', async () => {
      const r = failed(await s.once('console.log("before");\nfunction broken() { throw new TypeError("no such luck"); }\nbroken();'),
        'error', /it ended with exit code 1\b/);
      assert.deepEqual(texts(r).length, 4);
      assert.equal(texts(r)[1], 'Node.js process output:\nbefore\n');
      assert.match(texts(r)[2], /^Node\.js process errors:\n/);
      const { stderr, exitCode, stdout } = r.structuredContent;
      assert.deepEqual([exitCode, stdout], [1, 'before\n']);
      assert.match(stderr, /^file:\/\/\/workspace\/index\.js:2\n/);
      assert.match(stderr, /TypeError: no such luck\n {4}at broken \(file:\/\/\/workspace\/index\.js:2:27\)\n {4}at file:\/\/\/workspace\/index\.js:3:1\n/);
      for (const line of stderr.match(/^ {4}at .*$/gm)) assert.match(line, /\/workspace\/index\.js|node:internal/);
      assert.doesNotMatch(stderr, /jerboa|gate/i);
    });

    test('a timeout: the whole tree is killed, and what was printed is there', async () => {
      const container_id = await s.sandbox();
      const r = failed(await s.run(container_id, `import { spawn } from 'node:child_process';
        console.log('until then'); console.error('this too');
        spawn('/bin/sh', ['-c', 'sleep 1000 & setsid sleep 1001 & wait'], { detached: true, stdio: 'ignore' });
        setInterval(() => {}, 1000)`, { timeoutMs: 2000 }), 'timeout', /it ran longer than 2 s and was killed with all its processes/);
      assert.deepEqual(inside(s.pid).filter((p) => p.name === 'sleep'), []);
      assert.deepEqual(texts(r).slice(1, 3), ['Node.js process output:\nuntil then\n', 'Node.js process errors:\nthis too\n']);
      assert.ok(telemetry(r).runTimeMs >= 2000);
      assert.equal(r.structuredContent.exitCode, null);
      printed(await s.run(container_id, 'console.log("goes on")'), 'goes on\n');
      const slow = await s.call('sandbox_exec', { container_id, commands: ['echo one', 'echo two; sleep 1002', 'echo three'], timeoutMs: 2000 });
      assert.equal(slow.isError, true);
      assert.deepEqual(texts(slow), ['one\n\ntwo\n', 'Command 2 failed with timeout:\n']);
      assert.deepEqual(slow.structuredContent.commands.map((c) => c.exitCode), [0, null]);
      assert.deepEqual(inside(s.pid).filter((p) => p.name === 'sleep'), []);
    });

    test('progress with the newest line', async () => {
      const container_id = await s.sandbox();
      const seen = [];
      await s.run(container_id, `for (let i = 0; i < 4; i++) { console.log('line ' + i); await new Promise((resolve) => setTimeout(resolve, 300)); }`, {},
        { onprogress: (p) => seen.push(p) });
      assert.ok(seen.some((p) => /^line \d$/.test(p.message)), JSON.stringify(seen));
      assert.deepEqual(seen.map((p) => p.progress), seen.map((p) => p.progress).toSorted((a, b) => a - b));
      assert.equal(new Set(seen.map((p) => p.progress)).size, seen.length);
      const lines = [], controller = new AbortController();
      const call = s.call('sandbox_exec', { container_id, commands: ['echo begun; sleep 1003'] }, { onprogress: (p) => lines.push(p.message), signal: controller.signal });
      await until(() => lines.includes('begun'), () => JSON.stringify(lines));
      controller.abort();
      await assert.rejects(call);
      await s.exec(container_id, 'true'); // it has ended
    });

    test('a cancel kills what runs, at once', async () => {
      const container_id = await s.sandbox();
      const sleepers = () => inside(s.pid).filter((p) => p.name === 'sleep').length;
      const calls = {
        run_js: { code: `import { spawn } from 'node:child_process'; spawn('setsid', ['sleep', '1003'], { stdio: 'ignore' }); setInterval(() => {}, 1000)` },
        sandbox_exec: { commands: ['setsid sleep 1004 & sleep 1005', 'touch later'] },
      };
      const took = [];
      for (const [tool, args] of Object.entries(calls).flatMap((each) => Array(5).fill(each))) {
        const controller = new AbortController();
        const call = s.call(tool, { container_id, ...args }, { signal: controller.signal });
        await until(() => sleepers() > 0, 'it did not start');
        controller.abort();
        await assert.rejects(call);
        const began = performance.now();
        await until(() => sleepers() === 0, 'it still runs');
        took.push(performance.now() - began);
      }
      assert.ok(Math.min(...took) < 100, `${took.map(Math.round)} ms`); // the best of them: a busy machine is slow
      assert.equal(text(await s.exec(container_id, 'ls later 2>/dev/null || echo none')), 'none\n');
      assert.deepEqual(s.errors, []);
    });
  });
