// The docker engine, and podman's, where they differ from native: images, labels, what init gives up, what is left after a kill. The rest is the suite
// itself, on them: run.mjs beside it, which also runs this file, with a daemon of its own.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { promisify } from 'node:util';
import { answer, assertRefused, contained, daemonName, fill, judged, limit, list, read, run, start, tempDir, until, writeFiles } from '../integration/jerboa.mjs';
import { connect, connectFor, printed, refused, text, texts, variants } from '../integration/tools.mjs';

const engine = process.env.JERBOA_TEST_ENGINE;
assert.ok(engine, 'tests/engines/run.mjs starts a daemon for it');
const docker = async (...args) => (await promisify(execFile)(engine, args)).stdout.trim();
const none = async () => (await docker('ps', '--all', '--quiet', '--filter', 'label=mcp-sandbox=true')) === '';

/** What has a client first in its PATH that does this for `run`, or another of its verbs. */
function runsInstead(dir, script, verb = 'run') {
  const client = execFileSync('which', [engine], { encoding: 'utf8' }).trim();
  fs.writeFileSync(path.join(dir, engine), `#!/bin/sh\nclient=${client}\ncase $1 in ${verb}) ;; *) exec $client "$@" ;; esac\nshift\n${script}\n`, { mode: 0o755 });
  return { PATH: `${dir}:${process.env.PATH}` };
}

describe(engine, limit, () => {
  test('code has no right that init had: no capability, no privilege, two filters', async () => {
    const status = answer(await run(['-e', `import fs from 'node:fs';
      console.log(JSON.stringify(Object.fromEntries(fs.readFileSync('/proc/self/status', 'utf8').split('\\n').map((line) => line.split(':\\t')))))`]));
    for (const name of ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']) assert.equal(status[name], '0000000000000000', name);
    assert.equal(status.NoNewPrivs, '1');
    assert.equal(status.Seccomp, '2');
    assert.equal(status.Seccomp_filters, '2');
  });

  test('what must fail inside does: the pipe, init and its memory, the root, setuid; and lo is all of the network', async () => {
    const tried = answer(await run(['-e', `import { spawnSync } from 'node:child_process'; import fs from 'node:fs';
      const fails = (f) => { try { f(); return 'done'; } catch (e) { return e.code; } };
      console.log(JSON.stringify({
        pipe: fails(() => fs.writeFileSync('/proc/1/fd/1', 'x')),
        memory: fails(() => fs.readFileSync('/proc/1/environ')),
        root: fails(() => fs.writeFileSync('/usr/x', 'x')),
        init: fails(() => fs.writeFileSync('/.jerboa/init', 'x')),
        setuid: fails(() => { fs.writeFileSync('/workspace/s', ''); fs.chmodSync('/workspace/s', 0o4755); }),
        devices: fs.readFileSync('/proc/net/dev', 'utf8').match(/\\w+(?=:)/g),
      }))`]));
    assert.deepEqual(tried, { pipe: 'EACCES', memory: 'EACCES', root: 'EROFS', init: 'EROFS', setuid: 'EPERM', devices: ['lo'] });
  });

  test('neither what the user has in his environment nor a place without a size is there', async () => {
    const seen = answer(await run(['-e', `import fs from 'node:fs';
      const unlimited = fs.readFileSync('/proc/mounts', 'utf8').split('\\n').map((line) => line.split(' ')).filter(([, , type, options]) => type === 'tmpfs' && !options.includes('size='));
      const writable = ({ 1: target }) => { try { fs.accessSync(target, fs.constants.W_OK); return true; } catch { return false; } };
      console.log(JSON.stringify({ proxies: Object.keys(process.env).filter((name) => /proxy/i.test(name)), unlimited: unlimited.filter(writable).map(({ 1: target }) => target) }))`],
    { env: { HTTP_PROXY: 'http://user:secret@127.0.0.1:9', https_proxy: 'http://user:secret@127.0.0.1:9' } }));
    assert.deepEqual(seen, { proxies: [], unlimited: [] });
  });

  test('proxies that the client puts into containers are not there', async (t) => {
    const proxies = { default: { httpProxy: 'http://user:secret@127.0.0.1:9', httpsProxy: 'http://user:secret@127.0.0.1:9', noProxy: 'a.test', ftpProxy: 'http://f', allProxy: 'http://a' } };
    const config = writeFiles(tempDir(t), { 'config.json': JSON.stringify({ proxies }) });
    const seen = answer(await run(['-e', 'console.log(JSON.stringify(Object.keys(process.env).filter((name) => /proxy/i.test(name))))'], { env: { DOCKER_CONFIG: config } }));
    assert.deepEqual(seen, []);
  });

  test('nothing is written where it was started, whatever happens', async (t) => {
    const cwd = tempDir(t), r = await run(['--memory', '96m', '-e', fill], { cwd });
    assert.match(r.stderr, /oom: the memory limit/);
    await until(none, () => 'it lives');
    assert.deepEqual(fs.readdirSync(cwd), []);
  });

  test('an image that declares volumes is refused, since they have no size', async () => {
    const id = await docker('create', 'node:24', 'true');
    await docker('commit', '--change', 'VOLUME /data', id, 'with/volume:1');
    await docker('rm', id);
    assertRefused(await run(['--image', 'with/volume:1', '-e', '1']), /^jerboa: the image 'with\/volume:1' declares volumes, .*VOLUME\n$/);
    await docker('rmi', 'with/volume:1');
  });

  test('a device of the host that lies in a shown directory cannot be opened', async (t) => {
    const dir = tempDir(t), device = path.join(dir, 'fuse');
    await promisify(execFile)('mknod', ['-m', '666', device, 'c', '10', '229']);
    fs.closeSync(fs.openSync(device, 'r+')); // by whoever is not in a container
    const r = await run(['--dir', dir, '-e', `import fs from 'node:fs'; try { fs.openSync('dir/fuse', 'r'); console.log('open'); } catch (e) { console.log(e.code); }`]);
    assert.equal(r.stdout, 'EPERM\n', r.stderr);
  });

  test('connections leave through the pipe, and private addresses are refused', async () => {
    const r = await run(['--json', '-e', `await fetch('http://169.254.169.254/').catch((e) => console.log(e.cause.code))`]);
    assert.match(r.stdout, /ECONNRE(SET|FUSED)/);
    assert.equal(judged(r).refused[0].host, '169.254.169.254');
    const policy = await run(['--network', 'none', '--json', '-e', `await fetch('http://93.184.216.34/').catch((e) => console.log(e.cause.code))`]);
    assert.equal(judged(policy).refused.length, 1);
  });

  test('a run that is killed takes along what left its session; a server beside it lives', async (t) => {
    const s = await connectFor(t, variants['stdio, modern']);
    const id = await s.sandbox();
    const r = await s.run(id, `import http from 'node:http'; http.createServer((q, a) => a.end('up')).listen(3000)`, { listenOnPort: 3000 });
    assert.ok(!r.isError, text(r));
    await s.run(id, `import { spawn } from 'node:child_process'; spawn('setsid', ['sh', '-c', 'sleep 1007 & sleep 1008'], { stdio: 'ignore' });
      setInterval(() => {}, 1000)`, { timeoutMs: 1500 });
    assert.equal(contained(process.env.JERBOA_TEST_CGROUP).filter((p) => p.name === 'sleep').length, 0);
    assert.equal(await (await fetch(r.structuredContent.server.url)).text(), 'up');
  });

  test('files of the user belong to the owner of the folder', async (t) => {
    const dir = tempDir(t);
    fs.chownSync(dir, 1234, 2345);
    const seen = answer(await run(['--files', dir, '-e', `import fs from 'node:fs'; fs.writeFileSync('files/x', 'y');
      const owner = (path) => { const { uid, gid } = fs.statSync(path); return [uid, gid]; };
      console.log(JSON.stringify([[process.getuid(), process.getgid()], owner('/workspace'), owner(process.env.HOME), owner('/tmp')]))`]));
    assert.deepEqual(seen, Array(4).fill([1234, 2345]));
    const { uid, gid } = fs.statSync(path.join(dir, 'x'));
    assert.deepEqual([uid, gid], [1234, 2345]);
  });

  test('--runtime names what starts containers', async () => {
    assert.equal(answer(await run(['--runtime', 'runc', '-e', 'console.log(7)'])), 7);
    assert.match((await run(['--runtime', 'jerboa-nothing', '-e', '1'])).stderr, /^jerboa: .*jerboa-nothing/m);
    assertRefused(await run(['--engine', 'native', '--runtime', 'runc', '-e', '1']), /--runtime is of --engine docker and podman/);
    assertRefused(await run(['--engine', 'native', '--remote', '-e', '1']), /--remote is of --engine docker/);
  });

  test('containers have our labels, and no program of the image is run beside init', async () => {
    const child = start(['run', '-e', 'console.log("up"); setInterval(() => {}, 1000)']);
    await until(() => child.text('stdout').includes('up'), 'it does not start');
    const { Labels: labels, Healthcheck } = JSON.parse(await docker('inspect', '--format', '{{json .Config}}', await docker('ps', '--quiet', '--filter', 'label=mcp-sandbox=true')));
    assert.deepEqual(Healthcheck.Test, ['NONE']);
    assert.match(labels['mcp-server-run-id'], /^[0-9a-f]{32}$/);
    assert.ok(Math.abs(Date.now() - labels['mcp-creation-timestamp']) < 60_000);
    child.kill('SIGTERM');
    await child.ended;
  });

  test('an image that is not there, one without Node, one that is no name', async (t) => {
    assert.match((await run(['--image', 'jerboa.invalid/nothing:1', '-e', '1'])).stderr, new RegExp(`\\njerboa: ${engine} cannot pull the image 'jerboa\\.invalid/nothing:1'`));
    const dir = tempDir(t), archive = path.join(dir, 'x.tar');
    fs.mkdirSync(path.join(dir, 'etc'));
    await promisify(execFile)('tar', ['-C', dir, '-cf', archive, 'etc']);
    await docker('import', archive, 'jerboa-no-node');
    assert.match((await run(['--image', 'jerboa-no-node', '-e', '1'])).stderr, /^jerboa: the image has no 'node' on its PATH\n$/m);
    assertRefused(await run(['--image', '--privileged', '-e', '1']), /is no name of an image/);
  });

  test('why a client does not answer is its own reason, not a guess', async (t) => {
    for (const [said, told] of [['time="x" level=warning msg="y"\\nError: cannot set up namespace', 'Error: cannot set up namespace'], ['', 'it does not say why']]) {
      const dir = tempDir(t), env = { PATH: `${dir}:${process.env.PATH}` };
      fs.writeFileSync(path.join(dir, engine), `#!/bin/sh\nprintf '${said}\\n' >&2\nexit 125\n`, { mode: 0o755 });
      assertRefused(await run(['-e', '1'], { env }), new RegExp(`^jerboa: ${engine} does not answer: ${told}\\n$`));
    }
  });

  test('who is silent is waited for once, and it is said how long', async (t) => {
    const dir = tempDir(t), home = path.join(dir, 'home'), env = { JERBOA_HOME: home, PATH: `${dir}:${process.env.PATH}` };
    writeFiles(path.join(home, 'runs', daemonName(engine)), { ['0'.repeat(32)]: '' }); // of an earlier run, which would be asked for
    fs.writeFileSync(path.join(dir, engine), '#!/bin/sh\nexec sleep 1000\n', { mode: 0o755 });
    const began = performance.now();
    assertRefused(await run(['-e', '1'], { env }), new RegExp(`^jerboa: ${engine} does not answer: nothing came within 10 s\\n$`));
    const took = performance.now() - began;
    assert.ok(took < 15_000, `${took} ms`);
  });

  test('a start that nobody answers is told when its time is over, not when all is cleaned up', async (t) => {
    const dir = tempDir(t), late = path.join(dir, 'late'); // is there when a client has ended
    const s = await connectFor(t, variants['stdio, modern'], ['--pool', '1'], runsInstead(dir, `cat >/dev/null; sleep 5; : >${late}`));
    refused(await s.once('1'), /^The sandbox could not be started: the container engine did not start the sandbox within 30 seconds/);
    assert.ok(!fs.existsSync(late));
  });

  test('who asks for a sandbox that was lost does not wait until it is cleaned up', async (t) => {
    for (const pool of [0, 1]) {
      const dir = tempDir(t), late = path.join(dir, 'late');
      const s = await connectFor(t, variants['stdio, modern'], ['--pool', `${pool}`], runsInstead(dir, `$client run "$@"; exec >&-; sleep 5; : >${late}`));
      const id = text(await s.call('sandbox_initialize', {})), asked = s.call('sandbox_exec', { container_id: id, commands: ['touch here; sleep 100'] });
      const waits = s.call('run_js', { container_id: id, code: '1' });
      let container;
      await until(async () => {
        for (const one of (await docker('ps', '--quiet', '--filter', 'label=mcp-sandbox=true')).split('\n').filter(Boolean))
          if ((await docker('exec', one, 'ls', '/workspace').catch(() => '')).includes('here')) container = one;
        return container;
      }, () => 'it does not run');
      await docker('kill', container);
      const lost = await asked;
      assert.ok(lost.isError);
      assert.match(texts(lost).join('\n'), /^Error during execution: sandbox_lost: .*: run it again in a new sandbox/m);
      refused(await waits, /^The call was not run: .*: call sandbox_initialize for a new sandbox/);
      refused(await s.call('run_js', { container_id: id, code: '1' }), /^Sandbox '.*' is unknown or has expired/);
      assert.ok(!fs.existsSync(late));
    }
  });

  test('doctor believes what it tried, and its lines agree', async (t) => {
    const auto = engine === 'podman' ? { DOCKER_HOST: 'unix:///nonexistent/socket' } : {}; // else it would take docker
    const rows = async (env) => {
      const { checks } = JSON.parse((await start(['doctor', '--json'], { input: '', env: { ...auto, ...env } }).ended).stdout);
      return Object.fromEntries(checks.map((row) => [row.name, row]));
    };
    const works = await rows();
    assert.deepEqual([works[engine].state, works.auto.what], ['on', `takes native for node images, ${engine} for others`]);
    assert.match(works[engine].what, /^version \d+\./);
    const said = 'it has no room; as root: reboot'; // which nobody is told to paste
    const fails = await rows(runsInstead(tempDir(t), `echo '${said}' >&2; exit 125`)); // it answers all else
    assert.deepEqual([fails[engine].state, fails[engine].why, fails[engine].fix], ['off', said, undefined]);
    const dead = await rows(runsInstead(tempDir(t), `echo '${said}' >&2; exit 1`, '*'));
    assert.deepEqual([dead[engine].state, dead[engine].why, dead[engine].fix], ['off', `${engine} does not answer: ${said}`, undefined]);
    assert.deepEqual([fails.auto.state, fails.auto.what], ['on', `takes native for node images; others would be ${engine}'s, which is off`]);
    const lacks = await rows(runsInstead(tempDir(t), '[ "$1" = --quiet ]', 'image*')); // no image is there
    assert.deepEqual([lacks[engine].state, lacks.auto.what], ['untried', works.auto.what]);
    assert.match(lacks[engine].what, /answers, and was given nothing to run: .* has no image 'node:lts-slim'/);
    assert.ok(await none());
  });

  test('why an image cannot be pulled is told to its end', async (t) => {
    const why = `Error: reading from the registry of ${'another '.repeat(20)}machine: no such host`;
    const env = runsInstead(tempDir(t), `printf 'Trying to pull\\n${why}\\n' >&2; exit 125`, 'pull');
    assert.ok((await run(['--image', 'jerboa.invalid/nothing:1', '-e', '1'], { env })).stderr.endsWith(`\njerboa: ${engine} cannot pull the image 'jerboa.invalid/nothing:1': ${why}\n`));
  });

  test('pull --deps with an image of its own is one sentence', async () => {
    const r = await start(['pull', '--engine', engine, '--deps', 'lodash', 'express']).ended;
    assert.deepEqual([r.status, r.stderr], [2, `jerboa: --deps is of the native engine, and the image 'express' is ${engine}'s; packages are told apart by commas: --deps a,b\n`]);
  });

  test('--strict refuses, and says which wall is missing', async () => {
    assertRefused(await run(['--strict', '-e', '1']), /--strict: the wall 'user-namespace' is missing/);
  });

  test('what a run that is over left is removed by the next one; a live one is left alone', async (t) => {
    const home = tempDir(t), [over, live] = ['0', '1'].map((digit) => digit.repeat(32));
    const file = path.join(home, 'runs', daemonName(engine), over), elsewhere = path.join(home, 'runs', `${engine}-${'0'.repeat(16)}`, over);
    for (const name of [file, elsewhere]) writeFiles(path.dirname(name), { [over]: '' });
    const left = (id) => docker('run', '--detach', '--rm', '--runtime=runc', '--network=none', '--label=mcp-sandbox=true', `--label=mcp-server-run-id=${id}`, 'node:24', 'sleep', '1000');
    const [dead, others] = [await left(over), await left(live)];
    t.after(() => docker('rm', '--force', others));
    const next = async () => {
      const r = await start(['pull', '--engine', engine, 'node:24'], { env: { JERBOA_HOME: home } }).ended;
      assert.equal(r.status, 0, r.stderr);
    };
    const all = () => docker('ps', '--all', '--quiet', '--no-trunc');
    await next();
    await until(async () => !(await all()).includes(dead), 'it lives');
    const late = await docker('create', '--rm', '--label=mcp-sandbox=true', `--label=mcp-server-run-id=${over}`, 'node:24', 'true'); // by a daemon that is slower than who asked lives
    await next();
    const there = await all();
    assert.ok(!there.includes(late) && there.includes(others), there);
    fs.utimesSync(file, 0, 0);
    await next();
    assert.ok(!fs.existsSync(file));
    assert.equal(fs.readFileSync(elsewhere, 'utf8'), '', 'what another daemon has of it was not asked');
  });

  test('who waits for a start that nobody will give is ended by the next run, though podman lists nothing of it; others wait on', { skip: engine !== 'podman' && 'a daemon forgets nobody' }, async (t) => {
    const home = tempDir(t), [over, live] = ['2', '3'].map((digit) => `${digit}`.repeat(32));
    writeFiles(path.join(home, 'runs', daemonName(engine)), { [over]: '' });
    for (const id of [over, live]) { // without our label: as if it had been forgotten
      await docker('create', '--runtime=runc', '--network=none', `--name=jerboa-${id}-1`, 'node:24', 'sleep', '1000');
      t.after(() => docker('rm', '--force', `jerboa-${id}-1`));
      await docker('--runtime=runc', 'init', `jerboa-${id}-1`);
    }
    const waiting = () => list('/proc').map((pid) => read(`/proc/${pid}/cmdline`)).filter((words) => /conmon\0/.test(words)).map((words) => /\0-n\0jerboa-([0-9a-f]{32})-1\0/.exec(words)?.[1]).filter(Boolean).sort();
    assert.deepEqual(waiting(), [over, live]);
    const r = await start(['pull', '--engine', engine, 'node:24'], { env: { JERBOA_HOME: home } }).ended;
    assert.equal(r.status, 0, r.stderr);
    await until(() => !waiting().includes(over), 'it waits on');
    assert.deepEqual(waiting(), [live]);
  });

  test('a client that dies between making a container and starting it leaves none, while its server lives', async (t) => {
    for (const [end, told] of [['kill -KILL $$', /the sandbox ended/], ['echo it is lost >&2; exit 125', /it is lost/]]) {
      const dir = tempDir(t), s = await connectFor(t, variants['stdio, modern'], ['--pool', '0'], runsInstead(dir, `$client create "$@" >>${dir}/made; ${end}`));
      refused(await s.once('1'), told);
      assert.match(fs.readFileSync(path.join(dir, 'made'), 'utf8'), /^[0-9a-f]{64}\n$/);
      await until(none, () => 'a container is left', 10);
    }
  });

  test('of what a client says the first line that is no warning is the reason, as much as fits', async (t) => {
    const s = await connectFor(t, variants['stdio, modern'], ['--pool', '0'], runsInstead(tempDir(t), `echo 'WARNING: of no matter\nit is like that: ${'x'.repeat(1000)}\nsee --help' >&2; exit 125`));
    refused(await s.once('1'), /it is like that: x{100,}/);
  });

  test('a run is forgotten when its clients ended well; not when one failed, or was killed', async (t) => {
    for (const [end, left] of [['exit 0', 0], ['exit 126', 1], ['kill -KILL $$', 1]]) {
      const dir = tempDir(t), home = path.join(dir, 'home'), env = runsInstead(dir, `: >${dir}/up; cat >/dev/null; ${end}`);
      const s = await connect(variants['stdio, legacy'], ['--pool', '1'], { ...env, JERBOA_HOME: home });
      await until(() => fs.existsSync(path.join(dir, 'up')), () => 'nothing is made ahead');
      await s.close();
      assert.equal(fs.readdirSync(path.join(home, 'runs', daemonName(engine))).length, left, end);
    }
  });

  test('a service of podman is refused in one sentence', { skip: engine !== 'podman' && 'where podman is' }, async () => {
    for (const [args, env] of [[[], { CONTAINER_HOST: 'unix:///nonexistent/socket' }], [[], { CONTAINER_CONNECTION: 'x' }], [['--remote'], {}]])
      for (const more of [[], ['--explain']])
        assertRefused(await run([...args, ...more, '-e', '1'], { env }), /^jerboa: podman is asked on this machine alone/);
  });

  test('auto passes by a docker that does not answer', { skip: engine !== 'podman' && 'where podman is' }, async (t) => {
    const dir = tempDir(t);
    fs.writeFileSync(path.join(dir, 'docker'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    const env = { JERBOA_ENGINE: 'auto', DOCKER_HOST: 'unix:///nonexistent/socket', PATH: `${dir}:${process.env.PATH}` };
    assert.equal(answer(await run(['--image', 'localhost/bench', '-e', 'console.log(1)'], { env })), 1);
  });

  test('nothing is left five seconds after a server was killed', async () => {
    for (let i = 0; i < 3; i++) {
      const s = await connect(variants['stdio, modern'], ['--pool', '2']);
      printed(await s.once('console.log(1)'), '1\n');
      process.kill(s.pid, 'SIGKILL');
      await until(none, () => 'containers are left', 5);
      await s.close();
    }
  });

  test('an image that somebody named and that is not there is not looked for ahead', async (t) => {
    const dir = tempDir(t), client = execFileSync('which', [engine], { encoding: 'utf8' }).trim();
    fs.writeFileSync(path.join(dir, engine), `#!/bin/sh\necho "$*" >>${dir}/asked\nexec ${client} "$@"\n`, { mode: 0o755 });
    const s = await connectFor(t, variants['stdio, modern'], ['--pull', 'node', '--pool', '2'], { PATH: `${dir}:${process.env.PATH}` });
    refused(await s.once('1', { image: 'localhost/nobody' }), /localhost\/nobody/);
    const asked = () => fs.readFileSync(path.join(dir, 'asked'), 'utf8').split('\n').filter((line) => line.includes('localhost/nobody')).length;
    const once = asked();
    assert.ok(once > 0);
    await pause(2000); // four times with the pauses of what failed: 100, 200, 400, 800 ms
    assert.equal(asked(), once);
  });

  test('an unknown image of an agent is one sentence', async (t) => {
    const s = await connectFor(t, variants['stdio, modern']);
    refused(await s.call('sandbox_initialize', { image: '--privileged' }), /^Image '--privileged' is not /);
  });
});
