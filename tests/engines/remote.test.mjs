// Daemons on another machine: nothing can be bound, so all goes in by `docker cp` and the pipe, and comes back by the pipe. run.mjs starts one that
// is reached by TCP and does not see our files.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { answer, assertRefused, copyPrograms, daemonName, descendants, jerboa, limit, printed as prints, processes, run, start, tempDir, until, writeFiles } from '../integration/jerboa.mjs';
import { connect, connectFor, printed, text, texts, variants } from '../integration/tools.mjs';

const isRemote = /^tcp:/.test(process.env.DOCKER_HOST);
assert.ok(isRemote || process.env.JERBOA_TEST_ENGINE, 'tests/engines/run.mjs remote starts a daemon for it');
const remotely = isRemote ? limit : { skip: 'of daemons on other machines: run.mjs remote' };
const exec = promisify(execFile);
const docker = async (...args) => (await exec('docker', args)).stdout.trim();
const quiet = (r) => ({ ...r, stderr: r.stderr.replace(/^warn sandbox missing walls: .*\n/m, '') });
const nothingLeft = async () => (await docker('ps', '--all', '--quiet')) + (await docker('volume', 'ls', '--quiet')) === '';
const content = (dir) => Object.fromEntries(fs.readdirSync(dir, { recursive: true, withFileTypes: true }).filter((f) => f.isFile())
  .map((f) => path.join(f.parentPath, f.name)).sort().map((file) => [path.relative(dir, file), fs.readFileSync(file, 'utf8')]));
const planned = async (args, env) => {
  const r = await run(['--explain', ...args, '-e', '1'], { env });
  assert.equal(r.status, 0, r.stderr);
  return JSON.parse(r.stdout);
};

describe('which daemon is on another machine', remotely, () => {
  const leadsAway = async (env, ...args) => (await planned(args, { DOCKER_HOST: '', ...env })).remote;

  test('by DOCKER_HOST', async () => {
    assert.equal(await leadsAway({ DOCKER_HOST: 'unix:///run/docker.sock' }), false);
    assert.equal(await leadsAway({ DOCKER_HOST: 'ssh://somebody@elsewhere' }), true);
    assert.equal(await leadsAway({ DOCKER_HOST: 'tcp://127.0.0.1:2376' }), true);
    assert.equal(await leadsAway({ DOCKER_HOST: 'unix:///run/docker.sock' }, '--remote'), true, 'a socket that leads elsewhere');
  });

  test('by the context, as the client has it', async (t) => {
    const env = { DOCKER_CONFIG: tempDir(t), DOCKER_HOST: '' };
    const context = (...args) => exec('docker', ['context', ...args], { env: { ...process.env, ...env } });
    assert.equal(await leadsAway(env), false, 'there is none');
    await context('create', 'far', '--docker', 'host=tcp://127.0.0.1:1');
    await context('create', 'near', '--docker', 'host=unix:///run/docker.sock');
    assert.equal(await leadsAway(env), false, 'none is chosen');
    await context('use', 'far');
    assert.equal(await leadsAway(env), true);
    assert.equal(await leadsAway({ ...env, DOCKER_CONTEXT: 'near' }), false, 'the variable wins');
    assert.equal(await leadsAway({ ...env, DOCKER_CONTEXT: 'far', DOCKER_HOST: 'unix:///run/docker.sock' }), false, 'and the host wins over it');
  });
});

describe('a sandbox on another machine', remotely, () => {
  test('has a volume of ours, which code cannot write, and nothing of the host', async (t) => {
    const child = start(['run', '--files', tempDir(t), '--dir', tempDir(t), '-e', `import fs from 'node:fs';
      const fails = (f) => { try { f(); return 'done'; } catch (e) { return e.code; } };
      console.log(JSON.stringify({ uid: process.getuid(), files: fs.readdirSync('/.jerboa').sort(), here: fs.existsSync(${JSON.stringify(import.meta.filename)}),
        put: fails(() => fs.writeFileSync('/.jerboa/x', '')), init: fails(() => fs.appendFileSync('/.jerboa/init', '')), chmod: fails(() => fs.chmodSync('/.jerboa', 0o777)) }));
      setInterval(() => {}, 1000)`]);
    await prints(child, '}\n');
    assert.deepEqual(JSON.parse(child.text('stdout')),
      { uid: 65534, files: ['certificates', 'gate.cjs', 'init'], here: false, put: 'EACCES', init: 'EACCES', chmod: 'EPERM' });
    const id = await docker('ps', '--quiet', '--filter', 'label=mcp-sandbox=true');
    const mounts = JSON.parse(await docker('inspect', '--format', '{{json .Mounts}}', id));
    assert.deepEqual(mounts.map((m) => [m.Type, m.Destination]), [['volume', '/.jerboa']]);
    child.kill('SIGTERM');
    await child.ended;
    await until(nothingLeft, 'a container or a volume is left', 10);
  });

  test('what the image has at its place is not there, and does not say who may write', async (t) => {
    const dir = writeFiles(tempDir(t), { '.jerboa/of-image': '' });
    fs.chmodSync(path.join(dir, '.jerboa'), 0o777);
    const id = await docker('create', 'node:24', 'true');
    await docker('cp', path.join(dir, '.jerboa'), `${id}:/`);
    await docker('commit', id, 'with/place:1');
    await docker('rm', id);
    const seen = answer(quiet(await run(['--image', 'with/place:1', '-e', `import fs from 'node:fs'; let put = 'done'; try { fs.writeFileSync('/.jerboa/x', ''); } catch (e) { put = e.code; }
      console.log(JSON.stringify([fs.readdirSync('/.jerboa').sort(), put]))`])));
    assert.deepEqual(seen, [['certificates', 'gate.cjs', 'init'], 'EACCES']);
    await docker('rmi', 'with/place:1');
  });

  test('a client that is killed takes its container along', async () => {
    const child = start(['run', '-e', 'console.log("up"); setInterval(() => {}, 1000)']);
    await prints(child, 'up');
    process.kill(descendants(child.pid).find((p) => p.name === 'docker').pid, 'SIGKILL');
    const r = await child.ended;
    assert.match(r.stderr, /^jerboa: the sandbox ended\n$/m);
    await until(nothingLeft, 'a container or a volume is left', 10);
  });

  test('nothing is left of a server that is killed, whenever that is', async (t) => {
    const dir = tempDir(t), program = copyPrograms(dir);
    for (const when of ['at once', 'when a container is made', 'when it runs']) {
      const child = start(['run', '-e', 'console.log("up"); setInterval(() => {}, 1000)'], { program });
      if (when === 'at once') await until(() => descendants(child.pid).some((p) => p.name === 'jerboa-remote'), 'nothing is started');
      else if (when === 'when it runs') await prints(child, 'up');
      else await until(() => docker('ps', '--all', '--quiet'), 'no container is made');
      child.kill('SIGKILL');
      await child.ended;
      await until(() => processes(dir).length === 0, 'jerboa-remote goes on and on'); // it goes on, to the end
      await until(nothingLeft, `killed ${when}: a container or a volume is left`, 15);
    }
  });

  test('one that was made and never started is swept, with its volume', async (t) => {
    const home = tempDir(t), over = '0'.repeat(32);
    writeFiles(home, { [path.join('runs', daemonName('docker'), over)]: '' });
    await docker('create', '--label=mcp-sandbox=true', `--label=mcp-server-run-id=${over}`, '--mount=type=volume,target=/.jerboa', 'node:24', 'x');
    assert.ok(!await nothingLeft());
    const r = await start(['pull', '--engine', 'docker', 'node:24'], { env: { JERBOA_HOME: home } }).ended;
    assert.equal(r.status, 0, r.stderr);
    assert.ok(await nothingLeft());
  });

  test('what the daemon says when it cannot is one sentence, and nothing is left', async () => {
    const r = await run(['--memory', '900g', '--cpus', '999', '-e', '1']);
    assert.equal(r.status, 125);
    assert.match(quiet(r).stderr, /^jerboa: .*CPUs.*\n$/i);
    assert.ok(await nothingLeft());
  });
});

describe('files of the user on another machine', remotely, () => {
  const script = (fn) => ['-e', `import fs from 'node:fs'; await (${fn})(fs)`];

  test('go in, and what changed comes back, as the owner’s', async (t) => {
    const dir = writeFiles(tempDir(t), { 'a/b/deep': 'deep', kept: 'one\n', dead: 'two', same: 'three', tool: '#!/bin/sh\necho ran\n' });
    fs.chmodSync(path.join(dir, 'tool'), 0o755);
    fs.symlinkSync('kept', path.join(dir, 'link'));
    fs.chownSync(dir, 1234, 2345);
    const before = fs.statSync(path.join(dir, 'same'));
    const r = quiet(await run(['--files', dir, '-e', `import fs from 'node:fs'; import { execFileSync } from 'node:child_process';
      const seen = { deep: fs.readFileSync('files/a/b/deep', 'utf8'), link: fs.readlinkSync('files/link'), tool: String(execFileSync('files/tool')) };
      fs.rmSync('files/a', { recursive: true }); fs.unlinkSync('files/dead'); fs.appendFileSync('files/kept', 'more\\n');
      fs.mkdirSync('files/x/y', { recursive: true }); fs.writeFileSync('files/x/y/large', 'z'.repeat(3e6)); fs.writeFileSync('files/tool', '#!/bin/sh\\n');
      fs.writeFileSync(Buffer.from('files/\\xff\\n', 'latin1'), 'odd');
      console.log(JSON.stringify(seen))`]));
    assert.deepEqual(answer(r), { deep: 'deep', link: 'kept', tool: 'ran\n' });
    const odd = fs.readdirSync(dir, 'buffer').find((name) => name[0] === 0xff);
    assert.deepEqual(odd, Buffer.from('\xff\n', 'latin1'));
    fs.unlinkSync(Buffer.concat([Buffer.from(`${dir}/`), odd]));
    assert.deepEqual(content(dir), { kept: 'one\nmore\n', same: 'three', tool: '#!/bin/sh\n', 'x/y/large': 'z'.repeat(3e6) });
    assert.deepEqual(fs.readdirSync(dir).sort(), ['kept', 'link', 'same', 'tool', 'x'], 'a directory that is gone inside is gone, nothing else is here');
    for (const file of ['kept', 'x', 'x/y', 'x/y/large']) assert.deepEqual([fs.statSync(path.join(dir, file)).uid, fs.statSync(path.join(dir, file)).gid], [1234, 2345], file);
    assert.equal(fs.statSync(path.join(dir, 'tool')).mode & 0o777, 0o755);
    assert.deepEqual([fs.statSync(path.join(dir, 'same')).ino, fs.statSync(path.join(dir, 'same')).mtimeMs], [before.ino, before.mtimeMs], 'what did not change is not touched');
  });

  test('also of a run that fails, and of one that runs out of time', async (t) => {
    const dir = tempDir(t);
    assert.equal((await run(['--files', dir, ...script((fs) => { fs.writeFileSync('files/failed', '1'); process.exit(3); })])).status, 3);
    assert.equal((await run(['--files', dir, '--timeout', '5s', ...script((fs) => { fs.writeFileSync('files/late', '2'); setInterval(() => {}, 1000); })])).status, 124);
    assert.deepEqual(content(dir), { failed: '1', late: '2' });
  });

  test('links, FIFOs and what they lead to stay where they are', async (t) => {
    const dir = tempDir(t), secret = writeFiles(tempDir(t), { secret: 's' });
    fs.symlinkSync(secret, path.join(dir, 'was-link'));
    const r = quiet(await run(['--files', dir, '-e', `import fs from 'node:fs'; import { execFileSync } from 'node:child_process';
      fs.symlinkSync('/etc', 'files/etc'); fs.symlinkSync('../../../../etc/passwd', 'files/passwd');
      fs.unlinkSync('files/was-link'); fs.mkdirSync('files/was-link'); fs.writeFileSync('files/was-link/secret', 'mine');
      execFileSync('mkfifo', ['files/fifo']); console.log(1)`]));
    assert.equal(answer(r), 1);
    assert.deepEqual(content(dir), { 'was-link/secret': 'mine' });
    assert.deepEqual(fs.readdirSync(dir), ['was-link']);
    assert.deepEqual(content(secret), { secret: 's' });
  });

  test('a link that appears here meanwhile leads nowhere: nothing is written behind it, and it is said', async (t) => {
    const dir = tempDir(t), outside = tempDir(t);
    const child = start(['run', '--files', dir, '-e', `import fs from 'node:fs'; fs.mkdirSync('files/sub'); fs.writeFileSync('files/sub/x', '1'); fs.writeFileSync('files/y', '2');
      console.log('up'); process.stdin.resume()`]);
    await prints(child, 'up');
    fs.symlinkSync(outside, path.join(dir, 'sub'));
    child.stdin.end();
    const r = quiet(await child.ended);
    assert.equal(r.status, 0);
    assert.match(r.stderr, /^jerboa: not everything reached --files: "sub\/x" was not brought back: .*\n$/);
    assert.deepEqual(fs.readdirSync(outside), []);
    assert.equal(fs.readFileSync(path.join(dir, 'y'), 'utf8'), '2', 'the others are there');
  });

  test('a file that others changed here meanwhile is not deleted', async (t) => {
    const dir = writeFiles(tempDir(t), { mine: 'old', theirs: 'old' });
    const child = start(['run', '--files', dir, '-e', `import fs from 'node:fs'; fs.unlinkSync('files/mine'); fs.unlinkSync('files/theirs'); console.log('up'); process.stdin.resume()`]);
    await prints(child, 'up');
    fs.writeFileSync(path.join(dir, 'theirs'), 'newer');
    child.stdin.end();
    assert.equal((await child.ended).status, 0);
    assert.deepEqual(content(dir), { theirs: 'newer' });
  });

  test('what cannot go in stays here: a file that the server may not read, one that lies too deep', async (t) => {
    const deep = `${'d/'.repeat(64)}file`, dir = writeFiles(tempDir(t), { closed: 'secret', open: 'o', [deep]: 'deep' });
    fs.chownSync(path.join(dir, 'closed'), 1234, 1234);
    fs.chmodSync(path.join(dir, 'closed'), 0o600);
    const r = quiet(await start(['--bounding-set=-dac_override,-dac_read_search', jerboa, 'run', '--files', dir, ...script((fs) => console.log(JSON.stringify(fs.readdirSync('files').sort())))],
      { program: 'setpriv', input: '' }).ended);
    assert.equal(r.stdout, '["d","open"]\n');
    assert.match(r.stderr, /^jerboa: not everything reached --files: "d\/d\/.*it lies too deep\n$/);
    assert.deepEqual(content(dir), { closed: 'secret', [deep]: 'deep', open: 'o' });
  });

  test('what is too large is said, and not written: a file of holes, a directory that does not fit', async (t) => {
    const dir = tempDir(t);
    const r = quiet(await run(['--files', dir, '-e', `import fs from 'node:fs'; fs.ftruncateSync(fs.openSync('files/holes', 'w'), 2 ** 33); fs.writeFileSync('files/small', 's')`]));
    assert.match(r.stderr, /^jerboa: not everything reached --files: "holes" was not brought back: there is no room for so much\n$/);
    assert.deepEqual(fs.readdirSync(dir), ['small']);
    fs.writeFileSync(path.join(dir, 'large'), '');
    fs.truncateSync(path.join(dir, 'large'), 300 << 20);
    assertRefused(quiet(await run(['--files', dir, '-e', 'console.log(1)'])), /FILES_DIR has 300 MiB, which does not fit into the 256 MiB of a sandbox on another machine \(--disk\)/);
  });

  test('a signal ends what is still on its way in', async (t) => {
    const dir = writeFiles(tempDir(t), { large: '' });
    fs.truncateSync(path.join(dir, 'large'), 240 << 20);
    for (const option of ['--dir', '--files']) {
      const child = start(['run', option, dir, '-e', 'console.log("up"); setInterval(() => {}, 1000)']);
      const reader = () => descendants(child.pid).find((p) => p.name === 'jerboa-layer');
      await until(reader, 'nothing is sent');
      process.kill(reader().pid, 'SIGSTOP'); // else it might be through by then
      child.kill('SIGINT');
      const r = quiet(await child.ended);
      assert.deepEqual([r.status, r.stdout, r.stderr], [130, '', ''], option);
    }
    await until(nothingLeft, 'a container or a volume is left', 10);
  });

  test('--dir goes in, and nothing of it comes back', async (t) => {
    const dir = writeFiles(tempDir(t), { 'in/main.mjs': 'import fs from "node:fs"; console.log(JSON.stringify(fs.readdirSync(".").sort())); fs.writeFileSync("dir/in/new", "")' });
    assert.ok(answer(quiet(await run(['--dir', dir, path.join(dir, 'in/main.mjs')]))).includes('dir'));
    assert.deepEqual(fs.readdirSync(path.join(dir, 'in')), ['main.mjs']);
  });
});

describe('tools on another machine', remotely, () => {
  test('files go in and out with every call, both ways, and are resources', async (t) => {
    const dir = writeFiles(tempDir(t), { first: '1' });
    const s = await connectFor(t, variants['stdio, modern'], ['--files', dir]);
    const id = await s.sandbox();
    printed(await s.run(id, `import fs from 'node:fs'; console.log(fs.readFileSync('files/first', 'utf8')); fs.writeFileSync('files/made', 'm')`), '1\n');
    assert.deepEqual(content(dir), { first: '1', made: 'm' });
    writeFiles(dir, { 'by/hand': 'h', first: 'changed' });
    fs.unlinkSync(path.join(dir, 'made'));
    const r = await s.run(id, `import fs from 'node:fs'; console.log(fs.readdirSync('files').sort().join(), fs.readFileSync('files/by/hand', 'utf8'), fs.readFileSync('files/first', 'utf8'));
      fs.writeFileSync('files/by/code.txt', 'c')`);
    printed(r, 'by,first h changed\n');
    assert.deepEqual(r.structuredContent.files.map((f) => [f.path, f.change]), [['by/code.txt', 'created']]);
    assert.equal((await s.read(r.structuredContent.files[0].uri)).text, 'c');
    assert.ok(!(await s.exec(id, 'echo e >files/by/exec', 'rm files/first')).isError);
    assert.deepEqual(content(dir), { 'by/code.txt': 'c', 'by/exec': 'e\n', 'by/hand': 'h' });
    printed(await s.once(`import fs from 'node:fs'; console.log(fs.readFileSync('files/by/exec', 'utf8'))`), 'e\n\n');
  });

  test('a file that finds no room inside is told, and nothing is left of it', async (t) => {
    const dir = tempDir(t), s = await connectFor(t, variants['stdio, modern'], ['--files', dir, '--disk', '16m']), id = await s.sandbox();
    fs.writeFileSync(path.join(dir, 'grows'), Buffer.alloc(9 << 20));
    printed(await s.run(id, `import fs from 'node:fs'; console.log(fs.statSync('files/grows').size)`), `${9 << 20}\n`);
    fs.writeFileSync(path.join(dir, 'grows'), Buffer.alloc(10 << 20)); // beside the old one
    assert.match(text(await s.run(id, '1')), /FILES_DIR cannot be put into the sandbox: ENOSPC/);
    fs.writeFileSync(path.join(dir, 'grows'), 'small');
    printed(await s.run(id, `import fs from 'node:fs'; console.log(fs.readFileSync('files/grows', 'utf8'), fs.readdirSync('.', { recursive: true }).filter((f) => /arriving|jerboa/.test(f)).length)`), 'small 0\n');
    assert.deepEqual(content(dir), { grows: 'small' });
  });

  test('what a server writes comes with the next call', async (t) => {
    const dir = tempDir(t), s = await connectFor(t, variants['stdio, modern'], ['--files', dir]), id = await s.sandbox();
    const r = await s.run(id, `import fs from 'node:fs'; import http from 'node:http';
      http.createServer((q, a) => { fs.writeFileSync('files/asked', q.url); a.end('ok'); }).listen(3000)`, { listenOnPort: 3000 });
    assert.ok(!r.isError, text(r));
    assert.equal(await (await fetch(`${r.structuredContent.server.url}/hello`)).text(), 'ok');
    assert.ok(!(await s.exec(id, 'true')).isError);
    assert.deepEqual(content(dir), { asked: '/hello' });
  });

  test('an agent is told what did not come back, and --files-quota counts', async (t) => {
    const dir = tempDir(t), s = await connectFor(t, variants['stdio, modern'], ['--files', dir, '--files-quota', '1m']), id = await s.sandbox();
    const r = await s.run(id, `import fs from 'node:fs'; fs.writeFileSync('files/large', 'x'.repeat(2 << 20)); fs.writeFileSync('files/small', 's')`);
    assert.ok(texts(r).some((t) => /^Not everything reached the files directory: "large" was not brought back/.test(t)), texts(r).join('\n'));
    assert.deepEqual(content(dir), { small: 's' });
  });

  test('nothing is left soon after a server was killed', async () => {
    for (let i = 0; i < 3; i++) {
      const s = await connect(variants['stdio, modern']);
      printed(await s.once('console.log(1)'), '1\n');
      process.kill(s.pid, 'SIGKILL');
      await until(nothingLeft, () => 'containers or volumes are left', 15);
      await s.close();
    }
  });
});
