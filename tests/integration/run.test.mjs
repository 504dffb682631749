// jerboa run: what goes in, what comes out, and the exit status.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { answer, assertGone, assertRefused, code, copyPrograms, engine, jerboa, limit, nativeOnly, printed, run, runCode, start, tempDir, until, withoutNotice, writeFiles } from './jerboa.mjs';

const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');
const echo = "process.stdin.pipe(process.stdout)";
const cli = (args, more) => start(args, { input: '', ...more }).ended;

// ---- the script ----

test('a script from a file, from -e, from stdin; arguments are its own', limit, async (t) => {
  const dir = writeFiles(tempDir(t), { 'my script.js': 'console.log(process.argv.slice(1).join("|"))' });
  const tell = 'console.log(process.argv.slice(1).join("|"))';
  for (const [args, input, expected] of [
    [[path.join(dir, 'my script.js'), 'a', '--stats', '-e'], '', '/workspace/my script.js|a|--stats|-e\n'],
    [['-e', tell, 'b c', ''], '', '/workspace/index.js|b c|\n'],
    [['-e', tell, '--', '-x'], '', '/workspace/index.js|-x\n'],
    [['-', 'd'], tell, '/workspace/index.js|d\n'],
  ]) {
    const r = await run(args, { input });
    assert.deepEqual([r.stdout, r.stderr, r.status], [expected, '', 0]);
  }
});

test('kinds of files', limit, async (t) => {
  const typed = 'type T = { n: number }; const x: T = { n: 42 }; console.log(x.n satisfies number);';
  const dir = writeFiles(tempDir(t), {
    'module.js': 'import os from "node:os"; console.log(await Promise.resolve(typeof os.cpus));',
    'module.mjs': 'console.log(typeof require, typeof import.meta.url)',
    'common.cjs': 'console.log(typeof require, __filename)',
    'typed.ts': typed,
    'typed.mts': typed,
    'empty.js': '',
    'ünïcode.js': 'console.log("é")',
  });
  for (const [name, expected] of [
    ['module.js', 'function\n'], ['module.mjs', 'undefined string\n'], ['common.cjs', 'function /workspace/common.cjs\n'],
    ['typed.ts', '42\n'], ['typed.mts', '42\n'], ['empty.js', ''], ['ünïcode.js', 'é\n'],
  ]) {
    const r = await run([name], { cwd: dir });
    assert.deepEqual([name, r.stdout, r.stderr, r.status], [name, expected, '', 0]);
  }
});

test('only FILE goes in', limit, async (t) => {
  const dir = writeFiles(tempDir(t), { 'a.js': 'console.log(JSON.stringify((await import("node:fs")).readdirSync(".")))', 'b.js': '' });
  assert.deepEqual(answer(await run([path.join(dir, 'a.js')])).sort(), ['a.js', 'files', 'package.json']);
});

test('what cannot be run is told in a sentence', limit, async (t) => {
  const dir = writeFiles(tempDir(t), { 'plain.js': '', files: '' });
  for (const [name, sentence] of [
    ['nothing.js', /nothing\.js: No such file/], ['.', /is a directory/], ['plain.js/x', /Not a directory/],
    ['x'.repeat(300), /File name too long/], ['files', /cannot be called 'files'/], ['', /./],
  ])
    assertRefused(await run([name], { cwd: dir }), sentence);
  assertRefused(await run([]), /nothing to run/);
});

test('a FIFO is read to its end, and one without a writer does not hang', limit, async (t) => {
  const fifo = path.join(tempDir(t), 'fifo.js');
  execFileSync('mkfifo', [fifo]);
  const alone = await run([fifo], { seconds: 10 });
  assertRefused(alone, /nobody wrote/);
  const fd = fs.openSync(fifo, 'r+');
  fs.writeSync(fd, 'console.log("from a fifo")');
  const child = start(['run', fifo], { input: '' });
  const opened = () => fs.readdirSync(`/proc/${child.pid}/fd`).some((n) => {
    try { return fs.readlinkSync(`/proc/${child.pid}/fd/${n}`) === fifo; } catch { return false; }
  });
  await until(opened, 'jerboa did not open the FIFO');
  fs.closeSync(fd);
  const r = await child.ended;
  assert.deepEqual([r.stdout, r.status], ['from a fifo\n', 0]);
});

// ---- streams ----

test('stdin: a pipe, a file, /dev/null, and none at all', limit, async (t) => {
  const big = randomBytes(10 << 20);
  const dir = writeFiles(tempDir(t), { big });
  for (const input of [big, 'x', '']) {
    const r = await run(['-e', echo], { input, seconds: 15 });
    assert.deepEqual([r.stderr, r.status, sha256(r.bytes)], ['', 0, sha256(input)], `${input.length} bytes through a pipe`);
  }
  for (const [redirect, expected] of [['<big', sha256(big)], ['</dev/null', sha256('')], ['<&-', sha256('')]]) {
    const r = await start(['-c', `exec "$0" run -e '${echo}' ${redirect}`, jerboa], { program: '/bin/sh', cwd: dir, seconds: 15 }).ended;
    assert.deepEqual([redirect, r.stderr, r.status], [redirect, '', 0]);
    assert.equal(sha256(r.bytes), expected, redirect);
  }
});

test('a file as stdin is read from where its offset stands', limit, async (t) => {
  const dir = writeFiles(tempDir(t), { lines: 'one\ntwo\n' });
  const r = await start(['-c', `{ read x; exec "$0" run -e '${echo}'; } <lines`, jerboa], { program: '/bin/sh', cwd: dir }).ended;
  assert.deepEqual([r.stdout, r.stderr, r.status], ['two\n', '', 0]);
});

test('closed outputs are no failure of the script', limit, async (t) => {
  const dir = tempDir(t);
  for (const redirect of ['>&-', '2>&-', '>&- 2>&-', '<&- >&- 2>&-']) {
    const script = 'console.log(1); console.error(2); fs.writeFileSync("files/ran", "")';
    const args = ['-c', `exec "$0" run --files . -e 'import fs from "node:fs"; ${script}' ${redirect}`, jerboa];
    const r = await start(args, { program: '/bin/sh', cwd: dir, input: '' }).ended;
    assert.deepEqual([redirect, r.status, r.signal, fs.existsSync(path.join(dir, 'ran'))], [redirect, 0, null, true]);
    assert.doesNotMatch(r.stderr, /warn/);
    fs.rmSync(path.join(dir, 'ran'), { force: true });
  }
});

test('output to files: each stream its own, appended', limit, async (t) => {
  const dir = writeFiles(tempDir(t), { out: 'before\n' });
  const script = 'console.log("one"); console.error("two"); console.log("three")';
  const r = await start(['-c', `exec "$0" run -e '${script}' >>out 2>err`, jerboa], { program: '/bin/sh', cwd: dir, input: '' }).ended;
  assert.equal(r.status, 0);
  assert.equal(fs.readFileSync(path.join(dir, 'out'), 'utf8'), 'before\none\nthree\n');
  assert.equal(withoutNotice(fs.readFileSync(path.join(dir, 'err'), 'utf8')), 'two\n');
});

test('output streams: the first line is here while the script waits for its input', limit, async () => {
  const child = start(['run', '-e', `console.log("first"); console.error("also"); process.stdin.once("data", (d) => {
    console.log("got " + d); process.stdin.destroy(); })`]);
  await printed(child, 'first\n');
  await printed(child, 'also\n', 'stderr');
  child.stdin.write('word');
  const r = await child.ended;
  assert.deepEqual([r.stdout, r.stderr, r.status], ['first\ngot word\n', 'also\n', 0]);
});

test('a script that does not read its input ends all the same', limit, async () => {
  const child = start(['run', '-e', 'console.log(1)'], { input: Buffer.alloc(4 << 20) });
  assert.equal((await child.ended).status, 0);
  const open = start(['run', '-e', 'console.log(1)']); // and its stdin never ends
  assert.equal((await open.ended).status, 0);
});

test('nobody reads stdout any more: 141', limit, async () => {
  const forever = 'const more = () => { while (process.stdout.write("line\\n")); process.stdout.once("drain", more); }; more()';
  const args = ['-c', `{ "$0" run -e '${forever}'; echo $? >&2; } | head -n 1`, jerboa];
  const r = await start(args, { program: '/bin/sh', input: '' }).ended;
  assert.deepEqual([r.stdout, r.stderr], ['line\n', '141\n']);
});

// ---- the end ----

test('exit codes', limit, async () => {
  for (const [script, status] of [
    ['process.exit(0)', 0], ['process.exit(3)', 3], ['process.exitCode = 77', 77], ['process.exit(255)', 255],
    ['process.kill(process.pid, "SIGKILL")', 137], ['process.kill(process.pid, "SIGTERM"); setTimeout(() => {}, 9e6)', 143],
    ['process.kill(process.pid, "SIGUSR2"); setTimeout(() => {}, 9e6)', 140], ['process.abort()', 134],
    ['await new Promise(() => {})', 13],
  ]) {
    const r = await run(['-e', script]);
    assert.deepEqual([script, r.status, r.signal], [script, status, null]);
    assert.doesNotMatch(r.stderr, /^jerboa:/m);
  }
});

test('a thrown error and a syntax error tell their own file and line', limit, async (t) => {
  const dir = writeFiles(tempDir(t), {
    'throws.js': '\nfunction inner() { throw new RangeError("my words") }\ninner()\n',
    'broken.js': 'const a = 1;\nconst b = = 2;\n',
  });
  const thrown = await run(['throws.js'], { cwd: dir });
  assert.equal(thrown.status, 1);
  assert.match(thrown.stderr, /RangeError: my words/);
  assert.match(thrown.stderr, /at inner \(file:\/\/\/workspace\/throws\.js:2:26\)/);
  const broken = await run(['broken.js'], { cwd: dir });
  assert.equal(broken.status, 1);
  assert.match(broken.stderr, /\/workspace\/broken\.js:2\n/);
  assert.match(broken.stderr, /SyntaxError: /);
  for (const r of [thrown, broken]) assert.doesNotMatch(r.stderr, /jerboa/i);
});

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
  test(`${signal} is the script's to handle, the second one ends it`, limit, async () => {
    const handler = (answer) => `process.on("${signal}", () => { ${answer} }); console.log("ready"); setInterval(() => {}, 1e6)`;
    const polite = start(['run', '-e', handler('console.log("bye"); process.exit(5)')]);
    await printed(polite, 'ready');
    polite.kill(signal);
    const r = await polite.ended;
    assert.deepEqual([r.stdout, r.status], ['ready\nbye\n', 5]);

    const number = { SIGINT: 2, SIGTERM: 15, SIGHUP: 1 }[signal];
    const plain = start(['run', '-e', 'console.log("ready"); setInterval(() => {}, 1e6)']);
    await printed(plain, 'ready');
    plain.kill(signal);
    assert.deepEqual((({ status, signal, stderr }) => ({ status, signal, stderr }))(await plain.ended), { status: 128 + number, signal: null, stderr: '' });

    const deaf = start(['run', '-e', handler('console.log("no")')]);
    await printed(deaf, 'ready');
    deaf.kill(signal);
    await printed(deaf, 'no');
    deaf.kill(signal);
    assert.equal((await deaf.ended).status, 128 + number);
  });

// ---- options ----

test('the environment inside: ours, --env, the last of two, nothing else', limit, async () => {
  const tell = 'console.log(JSON.stringify(process.env))';
  const env = { SECRET_OF_THE_HOST: 'x' };
  const usual = answer(await run(['-e', tell], { env }));
  const image = engine ? ['HOSTNAME', 'NODE_VERSION'] : []; // what an image and its daemon say
  assert.deepEqual(Object.keys(usual).sort(), [...image, 'HOME', 'JERBOA_TEST_MARK', 'LANG', 'NODE_EXTRA_CA_CERTS', 'PATH', 'SSL_CERT_FILE', 'USER', 'npm_config_registry'].sort());
  assert.equal(usual.HOME, '/root');
  const set = answer(await run(['--env', 'A=1', '--env', 'HOME=/tmp', '--env', 'A=2', '--env', 'E=', '--env', 'S=a=b c', '-e', tell], { env }));
  assert.deepEqual([set.A, set.HOME, set.E, set.S, set.SECRET_OF_THE_HOST], ['2', '/tmp', '', 'a=b c', undefined]);
});

test('--files: a writable directory whose new files belong to its owner', limit, async (t) => {
  const script = code(async () => {
    const fs = await import('node:fs');
    const read = fs.readFileSync('files/deep/given', 'utf8');
    fs.mkdirSync('files/made/below', { recursive: true });
    fs.writeFileSync('files/made/below/new', read.toUpperCase());
    fs.appendFileSync('files/deep/given', ' more');
    fs.renameSync('files/old', 'files/renamed');
    fs.symlinkSync('/etc/shadow', 'files/link');
    console.log(JSON.stringify({ uid: fs.statSync('files').uid, given: read }));
  });
  for (const uid of process.getuid() === 0 ? [0, 1000] : [process.getuid()]) {
    const dir = writeFiles(tempDir(t), { 'deep/given': 'words', old: '' });
    for (const name of ['', 'deep', 'deep/given', 'old']) fs.chownSync(path.join(dir, name), uid, uid);
    assert.deepEqual(answer(await run(['--files', dir, '-e', script])), { uid: engine ? uid : 0, given: 'words' });
    assert.equal(fs.readFileSync(path.join(dir, 'made/below/new'), 'utf8'), 'WORDS');
    assert.equal(fs.readFileSync(path.join(dir, 'deep/given'), 'utf8'), 'words more');
    for (const name of ['made', 'made/below', 'made/below/new', 'renamed', 'link']) {
      const st = fs.lstatSync(path.join(dir, name));
      assert.deepEqual([name, st.uid, st.gid], [name, uid, uid]);
    }
  }
});

test('--files: no setuid or setgid bit can be left there, and no device', limit, async (t) => {
  const dir = tempDir(t);
  const tried = answer(await runCode(['--files', dir], async () => {
    const fs = await import('node:fs');
    const { spawnSync } = await import('node:child_process');
    process.chdir('files');
    process.umask(0);
    fs.writeFileSync('chmod', '');
    fs.writeFileSync('fchmod', '');
    fs.writeFileSync('sh', '');
    const fd = fs.openSync('fchmod', 'r+');
    const attempts = {
      chmodUid: () => fs.chmodSync('chmod', 0o4755), chmodGid: () => fs.chmodSync('chmod', 0o2755),
      chmodBoth: () => fs.chmodSync('chmod', 0o6755), fchmod: () => fs.fchmodSync(fd, 0o4755),
      open: () => fs.openSync('open', 'w', 0o4755), openGid: () => fs.openSync('open2', 'w', 0o2755),
      mkdir: () => fs.mkdirSync('mkdir', { mode: 0o2755 }),
    };
    const results = {};
    for (const [name, attempt] of Object.entries(attempts)) {
      try { attempt(); results[name] = 'done'; } catch (e) { results[name] = e.code; }
    }
    for (const command of ['chmod u+s sh', 'chmod g+s sh', 'install -m 4755 /usr/bin/id inst', 'cp -p /usr/bin/passwd cp', 'mknod dev c 1 3'])
      results[command] = spawnSync('sh', ['-c', command]).status === 0 ? 'done' : 'failed';
    console.log(JSON.stringify(results));
  }));
  for (const name of ['chmodUid', 'chmodGid', 'chmodBoth', 'fchmod', 'open', 'openGid']) assert.equal(tried[name], 'EPERM', name);
  assert.equal(tried['mknod dev c 1 3'], 'failed');
  for (const name of fs.readdirSync(dir)) {
    const st = fs.lstatSync(path.join(dir, name));
    assert.equal(st.mode & 0o6000, 0, `${name} has mode ${st.mode.toString(8)}`);
    assert.ok(st.isFile() || st.isDirectory(), name);
  }
});

test('--dir: read-only, and a script below it runs there with its neighbours', limit, async (t) => {
  const dir = writeFiles(tempDir(t), {
    'src/main.js': `import { word } from './lib/word.js'; import fs from 'node:fs';
      const refused = []; for (const f of [() => fs.writeFileSync(new URL('new', import.meta.url), ''), () => fs.unlinkSync('/workspace/dir/package.json')])
        try { f(); } catch (e) { refused.push(e.code); }
      console.log(JSON.stringify({ word, refused, url: import.meta.url, cwd: process.cwd() }))`,
    'src/lib/word.js': 'export const word = "neighbour"', 'package.json': '{"type":"module"}',
  });
  assert.deepEqual(answer(await run(['--dir', dir, path.join(dir, 'src/main.js')])),
    { word: 'neighbour', refused: ['EROFS', 'EROFS'], url: 'file:///workspace/dir/src/main.js', cwd: '/workspace' });
  assert.deepEqual(fs.readdirSync(path.join(dir, 'src')).sort(), ['lib', 'main.js']);
  const r = await run(['--dir', dir, '-e', 'import { word } from "./dir/src/lib/word.js"; console.log(word)']);
  assert.deepEqual([r.stdout, r.stderr], ['neighbour\n', '']);
});

test('limits as Node sees them', limit, async () => {
  const tell = code(async () => {
    const os = await import('node:os');
    console.log(JSON.stringify([process.constrainedMemory(), os.availableParallelism()]));
  });
  for (const [args, bytes] of [[['--memory', '200m'], 200 << 20], [['--memory=1g'], 1 << 30], [[], 512 << 20]]) {
    const [memory, parallelism] = answer(await run([...args, '-e', tell]));
    assert.equal(memory, bytes);
    assert.ok(parallelism >= 1 && parallelism <= availableParallelism(), `${parallelism}`);
  }
});

test('options from the environment; the command line wins', limit, async () => {
  const tell = 'console.log(process.constrainedMemory() / 2**20)';
  for (const [args, env, expected] of [
    [[], { JERBOA_MEMORY: '300m' }, '300'], [[], { SANDBOX_MEMORY_LIMIT: '301m' }, '301'],
    [[], { JERBOA_MEMORY: '300m', SANDBOX_MEMORY_LIMIT: '301m' }, '300'], [['--memory', '302m'], { JERBOA_MEMORY: '300m' }, '302'],
  ]) {
    const r = await run([...args, '-e', tell], { env });
    assert.deepEqual([r.stdout, r.stderr], [`${expected}\n`, '']);
  }
  const forever = ['-e', 'setInterval(() => {}, 1e6)'];
  const ms = await run(forever, { env: { RUN_SCRIPT_TIMEOUT: '300' } });
  assert.equal(ms.status, 124);
  assert.match(ms.stderr, /killed after 300 ms/);
  assert.match((await run(forever, { env: { JERBOA_TIMEOUT: '1' } })).stderr, /killed after 1000 ms/);
  assert.match((await run(['--timeout', '200ms', ...forever], { env: { JERBOA_TIMEOUT: '20' } })).stderr, /killed after 200 ms/);
  assertRefused(await run(['-e', tell], { env: { JERBOA_MEMORY: 'much' } }), /JERBOA_MEMORY: 'much'/);
  assertRefused(await run(['-e', tell], { env: { RUN_SCRIPT_TIMEOUT: 'x' } }), /RUN_SCRIPT_TIMEOUT/);
  for (const name of ['CONNECTIONS', 'CONNECT_RATE', 'LOOKUP_RATE', 'BYTE_RATE', 'CONNECTION_IDLE'])
    assertRefused(await run(['-e', tell], { env: { [`JERBOA_${name}`]: 'x' } }), new RegExp(`JERBOA_${name}: 'x'`));
});

test('bad values: one sentence, 125, nothing run', limit, async (t) => {
  const dir = writeFiles(tempDir(t), { plain: '' });
  for (const [args, sentence] of [
    ...['', 'x', '-1', '1.5g', '12q', '99999999999g', '1m', '0'].map((v) => [`--memory=${v}`, /--memory/]),
    ...['', '0', '-1', 'two', 'nan', '0.001', '99999'].map((v) => [`--cpus=${v}`, /--cpus/]),
    ...['', 'soon', '-1s', '1d', '5 s', '99999999999999999999'].map((v) => [`--timeout=${v}`, /--timeout/]),
    ...['', '1k', '512m', '9g', 'x'].map((v) => [`--disk=${v}`, /--disk/]),
    ...['', '0', '-5', '1.5', '9999999', 'x'].map((v) => [`--pids=${v}`, /--pids/]),
    ...['', 'all', 'None', 'none,host'].map((v) => [`--network=${v}`, /none of none, npm, allow, internet, host\n$/]),
    ...['', '0', '-1', '257', 'x'].map((v) => [`--connections=${v}`, /--connections/]),
    ...['', '0', '1.5', '9999999'].flatMap((v) => [[`--connect-rate=${v}`, /--connect-rate/], [`--lookup-rate=${v}`, /--lookup-rate/]]),
    ...['', '1', '1023', '-1k', 'fast'].map((v) => [`--byte-rate=${v}`, /--byte-rate/]),
    ...['', '0', '99ms', '25h', 'never'].map((v) => [`--connection-idle=${v}`, /--connection-idle/]),
    ...['', 'nowhere', 'plain'].map((v) => [`--files=${v}`, /--files/]),
    ...['', 'nowhere', 'plain'].map((v) => [`--dir=${v}`, /--dir/]),
    ...['', 'X', '=1'].map((v) => [`--env=${v}`, /--env.*K=V/]),
    ...['', '../../etc', ...(engine ? ['--help'] : ['bad', 'python:3', 'node:', 'node:24-fat'])].map((v) => [`--image=${v}`, /image .*is not known/]),
    ...['', 'lxc', 'nativ'].map((v) => [`--engine=${v}`, /--engine/]),
    ['--stats=maybe', /--stats/], ['--explain=2', /--explain/], ['--memroy=1g', /did you mean '--memory'/],
    ['--netwrok', /did you mean '--network'/], ['--qqqqqqqqqq', /unknown option '--qqqqqqqqqq'\n/], ['-x', /unknown option '-x'/],
  ]) {
    await t.test(args, async () => assertRefused(await run([args, '-e', 'console.log("ran")'], { cwd: dir }), sentence));
  }
  for (const name of ['memory', 'cpus', 'timeout', 'disk', 'pids', 'network', 'allow', 'connections', 'connect-rate', 'lookup-rate', 'byte-rate', 'connection-idle',
    'files', 'dir', 'env', 'image', 'engine', 'eval'])
    assertRefused(await run([`--${name}`]), new RegExp(`--${name} needs `));
  if (!engine) assertRefused(await run(['--image', 'node:24.0.99', '-e', '0'], { env: { npm_config_registry: 'http://127.0.0.1:1/', PATH: '/nowhere' } }), /node:24\.0\.99/);
});

test('--stats: one line at the end, whatever the end', limit, async () => {
  const line = (verdict) => new RegExp(`^verdict ${verdict}, wall \\d+ ms, cpu \\d+ ms, peak memory \\d+\\.\\d MiB \\(largest process \\d+\\.\\d MiB\\)\\n$`, 'm');
  const good = await run(['--stats', '-e', 'console.log(1)']);
  assert.deepEqual([good.stdout, good.status], ['1\n', 0]);
  assert.match(good.stderr, line('ok'));
  assert.match((await run(['--stats', '-e', 'process.exit(9)'])).stderr, line('error'));
  assert.match((await run(['--stats', '--timeout', '100ms', '-e', 'for (;;);'])).stderr, line('timeout'));
});

test('--explain: the plan as JSON and the steps; nothing runs', { ...limit, ...nativeOnly('its plan is a jail\'s') }, async (t) => {
  const dir = tempDir(t);
  const r = await run(['--explain', '--memory', '100m', '--files', dir, '-e', 'import fs from "node:fs"; fs.writeFileSync("files/ran", "")']);
  assert.deepEqual([r.status, r.stderr], [0, '']);
  const [json, steps] = r.stdout.split('\n\n');
  const plan = JSON.parse(json);
  assert.equal(plan.memoryBytes, 100 << 20);
  assert.ok(plan.entries.some((entry) => entry.target === '/workspace/files' && entry.source === fs.realpathSync(dir)));
  for (const name of ['clone', 'pivot', 'drop capabilities', 'filter system calls', 'start init']) assert.ok(steps.includes(name), name);
  assert.deepEqual(fs.readdirSync(dir), []);
});

test('help, version, unknown words', limit, async () => {
  const version = await cli(['--version']);
  assert.match(version.stdout, /^jerboa \d+\.\d+\.\d+\n$/);
  const help = await cli(['--help']);
  assert.match(help.stdout, /jerboa run .*\n[^]*jerboa pull /);
  assert.equal((await cli(['help'])).stdout, help.stdout);
  const ofRun = await cli(['help', 'run']);
  for (const name of ['eval', 'memory', 'cpus', 'timeout', 'disk', 'pids', 'network', 'allow', 'connections', 'connect-rate', 'lookup-rate', 'byte-rate', 'connection-idle',
    'files', 'dir', 'env', 'image', 'engine', 'strict', 'stats', 'json', 'explain'])
    assert.match(ofRun.stdout, new RegExp(`--${name}\\b`));
  assert.equal((await cli(['run', '--help'])).stdout, ofRun.stdout);
  for (const r of [version, help, ofRun]) assert.deepEqual([r.status, r.stderr], [0, '']);
  for (const [args, sentence] of [[['runn'], /unknown verb 'runn': did you mean 'run'/], [['xyzzyxyzzy'], /unknown verb/], [[], /no verb/], [['help', 'xx'], /unknown verb/]]) {
    const r = await cli(args);
    assert.deepEqual([r.status, r.stdout], [2, '']);
    assert.match(r.stderr, /^jerboa: [^\n]+\n$/);
    assert.match(r.stderr, sentence);
  }
});

// ---- the world inside ----

test('npm, npx, sh, and a HOME to write to', limit, async () => {
  const found = answer(await runCode(['--timeout', '60'], async () => {
    const { execSync } = await import('node:child_process');
    const say = (command) => execSync(command, { encoding: 'utf8' }).trim();
    const results = { npm: say('npm -v'), npx: say('npx -v'), sh: say('echo $((6 * 7))'), node: say('node -p 1+1'), home: say('echo x > ~/f && cat ~/f'), tmp: say('f=$(mktemp) && echo $f') };
    console.log(JSON.stringify(results));
  }));
  assert.match(found.npm, /^\d+\.\d+\.\d+$/);
  assert.match(found.npx, /^\d+\.\d+\.\d+$/);
  assert.match(found.tmp, /^\/tmp\//);
  assert.deepEqual([found.sh, found.node, found.home], ['42', '2', 'x']);
});

test('--image: another Node', { timeout: 180_000, ...nativeOnly('the daemon of these tests has one image') }, async () => {
  const r = await run(['--image', 'node:22', '-e', 'console.log(process.version)'], { seconds: 170 });
  assert.match(r.stdout, /^v22\./, r.stderr);
});

test('--network none: nothing is reached; host: everything, with a warning', limit, async (t) => {
  const server = createServer((req, res) => res.end('hello')).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const script = `try { console.log(await (await fetch("http://127.0.0.1:${server.address().port}/")).text()) } catch (e) { console.log(e.cause.code); process.exit(7) }`;
  for (const args of [[], ['--network', 'none']]) {
    const none = await run([...args, '-e', script]);
    assert.deepEqual([none.stdout, none.stderr, none.status], ['ECONNREFUSED\n', '', 7]);
  }
  const host = await run(['--network', 'host', '-e', script]);
  assert.deepEqual([host.stdout, host.status], ['hello\n', 0]);
  assert.match(host.stderr, /^jerboa: warning: --network host: [^\n]+\n$/);
  const loopback = await run(['-e', code(async () => { // its own loopback works
    const { createServer } = await import('node:http');
    const server = createServer((req, res) => res.end('inside')).listen(0, '127.0.0.1', async () => {
      console.log(await (await fetch(`http://127.0.0.1:${server.address().port}`)).text());
      process.exit();
    });
  })]);
  assert.equal(loopback.stdout, 'inside\n');
});

// ---- a machine without a registry ----

test('no registry and an empty store: the Node of this machine, and one line that says so', { ...limit, ...nativeOnly('images have their Node') }, async (t) => {
  const home = tempDir(t);
  const pulled = await cli(['pull']);
  const env = { JERBOA_HOME: home, npm_config_registry: 'http://127.0.0.1:1/', PATH: `${pulled.stdout.trim()}/bin:/usr/bin:/bin` };
  const r = await run(['-e', 'console.log("runs", process.version)'], { env });
  assert.match(r.stdout, /^runs v\d+/, r.stderr);
  assert.equal(r.status, 0);
  assert.match(r.stderr, /^jerboa: using Node \d+\.\d+\.\d+ of this machine \([^\n]+\n$/);
  assertRefused(await run(['--image', 'node:18', '-e', '0'], { env }), /no Node for node:18/);
  assertRefused(await run(['-e', '0'], { env: { ...env, PATH: '/nowhere' } }), /no Node for node:lts-slim/);
});

test('a program of ours that does not start is told by its name', limit, async (t) => {
  for (const [broken, sentence] of engine ? [['jerboa-init', /exec \/\.jerboa\/init: exec format error/]]
    : [['jerboa-init', /step 'start init'.*Exec format error/], ['jerboa-jail', /jerboa-jail: Exec format error/]]) {
    const dir = tempDir(t), program = copyPrograms(dir);
    fs.writeFileSync(path.join(dir, broken), '\x7fELF, says it', { mode: 0o755 });
    assertRefused(await run(['-e', '0'], { program }), sentence);
    await assertGone(dir);
  }
});

test('output that nobody takes', limit, async (t) => {
  const dir = tempDir(t);
  // a full device is told, and is no broken pipe
  const full = await start(['run', '-e', 'console.log("x")'], { stdio: ['ignore', fs.openSync('/dev/full', 'w'), 'pipe'] }).ended;
  assert.deepEqual([full.status, full.stderr], [125, 'jerboa: standard output: No space left on device\n']);
  // a stderr whose reader went away does not hold the script up
  const script = path.join(dir, 'loud.js');
  fs.writeFileSync(script, 'for (let i = 0; i < 320; i++) process.stderr.write("x".repeat(65536)); console.log("through")');
  const shell = await start(['-c', `"${jerboa}" run --timeout 20s ${script} 2> >(sleep 0.2)`], { program: '/bin/bash' }).ended;
  assert.deepEqual([shell.status, shell.stdout], [0, 'through\n']);
});

test('whoever starts us may ignore SIGCHLD', limit, async () => {
  const r = await start(['-c', `trap '' CHLD; exec "${jerboa}" run -e 'console.log(1)'`], { program: '/bin/bash' }).ended;
  assert.deepEqual([r.status, r.stdout], [0, '1\n']);
});

test('fewer processes than Node itself needs are refused', limit, async () => {
  for (const n of ['1', '9']) assertRefused(await run(['--pids', n, '-e', '0']), /--pids must be at least 10/);
  assert.equal((await run(['--pids', '10', '-e', '0'])).status, 0); // the control
});
