// Which engine `auto` takes, and how a container's image comes to be: found, pulled, refused, with its variables and the user's certificates.
// run.mjs beside it starts the daemon. The registry is our own.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';
import { answer, assertRefused, descendants, engine, jerboa, limit, nothingAhead, run, start, tempDir, until } from '../integration/jerboa.mjs';
import { connectFor, printed, refused, variants } from '../integration/tools.mjs';
import { startRegistry } from './registry.mjs';

assert.ok(engine, 'tests/engines/run.mjs starts a daemon for it');
const docker = async (...args) => (await promisify(execFile)(engine, args)).stdout.trim();
const auto = { JERBOA_ENGINE: 'auto' }, nowhere = { DOCKER_HOST: 'unix:///nonexistent/socket', CONTAINER_HOST: 'unix:///nonexistent/socket' };
const stdio = variants['stdio, modern'];
const missing = /^warn sandbox missing walls: .*\n/m;
const own = engine === 'docker' ? auto : {}; // it was asked for by name
const only = { ...limit, skip: engine !== 'docker' && 'auto takes docker first' };
/** With its own name in it. */
const ofEngine = (pattern) => new RegExp(pattern.source.replace('ENGINE', engine));
const environment = 'console.log(JSON.stringify(process.env))';
nothingAhead();

/** No user namespace can be made behind these words. */
const forbidden = ['unshare', '-Ur', 'sh', '-ec', 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"', 'sh'];
const runForbidden = (args, env) => start([...forbidden.slice(1), jerboa, 'run', ...args], { program: forbidden[0], input: '', env: { ...auto, ...env } }).ended;

before(async () => {
  if (only.skip) return;
  const id = await docker('create', 'node:24', 'true');
  await docker('commit', '--change', 'ENV PATH=/of/the/image:/usr/local/bin:/usr/bin:/bin', '--change', 'ENV GREETING=hello HOME=/nowhere LANG=C', id, 'of/others:1');
  await docker('commit', '--change', 'ENV NODE_VERSION=', id, 'of/others:unversioned');
  await docker('rm', id);
});

describe('auto', only, () => {
  test('a docker that is passed by is told of when podman fails', async (t) => {
    const dir = tempDir(t);
    fs.writeFileSync(path.join(dir, 'podman'), '#!/bin/sh\necho it is sad >&2\nexit 1\n', { mode: 0o755 });
    const env = { ...auto, DOCKER_HOST: nowhere.DOCKER_HOST, PATH: `${dir}:${process.env.PATH}` };
    assertRefused(await run(['--image', 'of/others:1', '-e', '1'], { env }), /^jerboa: podman does not answer: it is sad; docker was passed by, for nobody listens to you at its socket\n$/);
  });

  test('an image of node is native', async () => {
    assert.deepEqual(answer(await run(['-e', 'console.log(1)'], { env: auto })), 1);
    assert.deepEqual(answer(await run(['-e', 'console.log(1)'], { env: { ...auto, ...nowhere } })), 1); // no daemon is asked
  });

  test('any other is the daemon\'s, and its variables are there, below ours', async () => {
    const child = start(['run', '--image', 'of/others:1', '-e', environment], { input: '', env: auto }), r = await child.ended;
    assert.match(child.text('stderr'), missing); // which `ended` sets aside
    const env = answer(r);
    assert.deepEqual([env.GREETING, env.PATH, env.LANG, env.HOME], ['hello', '/of/the/image:/usr/local/bin:/usr/bin:/bin', 'C', '/root']);
    assert.match(env.NODE_VERSION, /^\d+\./);
    const own = answer(await run(['--image', 'of/others:1', '--env', 'GREETING=mine', '--env', 'PATH=/bin', '-e', environment], { env: auto }));
    assert.deepEqual([own.GREETING, own.PATH], ['mine', '/bin']);
  });

  test('a command finds what the image has on its PATH', async (t) => {
    const s = await connectFor(t, stdio, [], auto);
    const r = await s.exec(await s.sandbox({ image: 'of/others:1' }), 'node --print "1 + 1"', 'echo $GREETING');
    assert.deepEqual(r.structuredContent.commands.map((c) => c.stdout), ['2\n', 'hello\n']);
  });

  test('where native cannot work the daemon has node images, too, and why is said once', async (t) => {
    const r = await runForbidden(['-e', 'console.log(1)']);
    assert.match(r.stderr, /^jerboa: native cannot work here, so it is run by docker: .*sysctl -w user\.max_user_namespaces=\d+\n/);
    assert.deepEqual([r.stdout, r.status], ['1\n', 0]);
    assert.equal((await runForbidden(['--image', '24', '-e', 'console.log(1)'])).stdout, '1\n'); // short names, too
    const s = await connectFor(t, { ...stdio, wrap: forbidden }, [], auto);
    printed(await s.once('console.log(2)'), '2\n');
    assert.equal(s.log().match(/^warn engine native cannot work here, so docker makes all sandboxes: .*max_user_namespaces/gm).length, 1);
  });

  test('where neither can, one sentence says so of both', async (t) => {
    assertRefused(await runForbidden(['-e', '1'], nowhere), /docker does not answer.*native cannot work here: .*namespaces are forbidden/);
    const s = await connectFor(t, { ...stdio, wrap: forbidden }, [], { ...auto, ...nowhere });
    refused(await s.once('1'), /docker does not answer.*native cannot work here: .*namespaces are forbidden/);
  });

  test('of an image that was never native\'s, native is not to blame', async (t) => {
    const s = await connectFor(t, { ...stdio, wrap: forbidden }, [], { ...auto, ...nowhere });
    for (const told of [await s.once('1', { image: 'of/others:2' }), await s.call('sandbox_initialize', { image: 'of/others:2' })]) { // nor is the image
      refused(told, /^The sandbox could not be started: docker does not answer: .*[Cc]onnect.*nonexistent.*: on the server's machine 'jerboa doctor' tells/);
      assert.doesNotMatch(JSON.stringify(told), /native/);
    }
    const r = await runForbidden(['--image', 'of/others:2', '-e', '1'], nowhere);
    assertRefused(r, /docker does not answer/);
    assert.doesNotMatch(r.stderr, /native/);
  });

  test('an image that tells no version is given no dependencies, wherever they are installed', async () => {
    for (const how of [runForbidden, (args) => run(args, { env: auto })])
      assert.match((await how(['--image', 'of/others:unversioned', '--dep', 'ms@2', '-e', '1'])).stderr, /the image does not tell its version of Node\.js \(NODE_VERSION\)/);
  });

  test('where native cannot work dependencies are installed in a container of the same image', async (t) => {
    const home = tempDir(t), s = await connectFor(t, { ...stdio, wrap: forbidden }, ['--installer', 'npm'], { ...auto, JERBOA_HOME: home });
    const code = `import ms from 'ms'; console.log(ms('1s'))`, wanted = { dependencies: [{ name: 'ms', version: '2' }] };
    printed(await s.once(code, wanted), '1000\n');
    const again = printed(await s.once(code, wanted), '1000\n');
    assert.match(again.content.at(-1).text, /installed before/);
    assert.deepEqual(fs.readdirSync(home).filter((name) => name === 'runtimes'), []); // no Node of native's was fetched
    const [layer] = fs.readdirSync(path.join(home, 'layers'));
    assert.equal(fs.statSync(path.join(home, 'layers', layer, 'node_modules/ms')).uid, process.getuid());
  });

  test('nothing is installed by a daemon whose socket leads to another machine', async () => {
    const r = await runForbidden(['--remote', '--dep', 'ms@2', '-e', '1']);
    assert.match(r.stderr, /a daemon on another machine cannot install for this one, and the native engine cannot work here/);
    assert.equal(r.status, 125);
  });

  test('doctor tells what it takes', async () => {
    const row = async (...before) => {
      const [first, ...rest] = [...before, jerboa, 'doctor', '--json'];
      return JSON.parse((await start(rest, { program: first, input: '' }).ended).stdout).checks.find(({ name }) => name === 'auto').what;
    };
    assert.equal(await row(), 'takes native for node images, docker for others');
    assert.equal(await row(...forbidden), 'takes docker for all images: native cannot work here');
  });
});

describe('images', limit, () => {
  const dir = tempDir();
  let registry;
  before(async () => {
    await docker('save', '--output', path.join(dir, 'image.tar'), 'node:24');
    registry = await startRegistry(path.join(dir, 'image.tar'), dir);
    process.env.CONTAINERS_REGISTRIES_CONF = path.join(dir, 'registries.conf'); // podman asks no other without keys
    fs.writeFileSync(process.env.CONTAINERS_REGISTRIES_CONF, `[[registry]]\nlocation = "${registry.host}"\ninsecure = true\n`);
  });
  after(() => registry.end());
  const fresh = (name) => `${registry.host}/${name}:1`; // each test has a name of its own: no daemon has it

  test('one that the client fails to look at is not taken for missing', async (t) => {
    const bin = tempDir(t), real = process.env.PATH.split(':').map((d) => path.join(d, engine)).find((file) => fs.existsSync(file));
    fs.writeFileSync(path.join(bin, engine), `#!/bin/sh\n[ "$1 $2" != "image inspect" ] || exit 1\nexec ${real} "$@"\n`, { mode: 0o755 });
    assertRefused(await run(['--engine', engine, '-e', '1'], { env: { PATH: `${bin}:${process.env.PATH}` } }), new RegExp(`^jerboa: ${engine} does not answer`));
  });

  test('by default an agent cannot make the daemon ask a registry', async (t) => {
    const s = await connectFor(t, stdio, engine === 'docker' ? [] : ['--pull', 'node'], own), image = fresh('unasked');
    for (const r of [await s.call('sandbox_initialize', { image }), await s.once('1', { image })])
      refused(r, ofEngine(/ENGINE has no image '.*\/unasked:1', and this server pulls those of node only: .*--pull any/));
    assert.deepEqual(registry.asked, []);
  });

  test('one without a tag is missing, whatever other tags are there', async (t) => {
    await docker('tag', 'node:24', 'of/untagged:1');
    const s = await connectFor(t, stdio, ['--pull', 'node'], own);
    refused(await s.once('1', { image: 'of/untagged' }), ofEngine(/ENGINE has no image 'of\/untagged', and this server pulls those of node only/));
    printed(await s.once('console.log(1)', { image: 'of/untagged:1' }), '1\n');
  });

  test('one that is missing is pulled while the call tells so', async (t) => {
    const s = await connectFor(t, stdio, ['--pull', 'any'], own), image = fresh('pulled'), told = [];
    registry.hold = true;
    t.after(() => registry.release());
    const call = s.once('console.log(process.env.NODE_VERSION.length > 0)', { image }, { onprogress: ({ message }) => told.push(message) });
    await until(() => registry.waiting.size > 0 && told.length > 1, () => `nothing is told: ${told}, or asked for: ${registry.asked}`);
    assert.match(told[0], ofEngine(/ENGINE gets the image .*\/pulled:1, \d+ s/));
    registry.release();
    printed(await call, 'true\n');
  });

  test('the pull ends with the call that wanted it', async (t) => {
    const s = await connectFor(t, stdio, ['--pull', 'any'], own), image = fresh('cancelled'), gone = new AbortController();
    registry.hold = true;
    t.after(() => registry.release());
    const pulls = () => descendants(s.pid).filter((p) => p.name === engine), asked = () => registry.asked.filter((url) => url.includes('/cancelled/manifests/')).length;
    const call = s.once('1', { image }, { signal: gone.signal });
    await until(() => pulls().length > 0 && registry.waiting.size > 0, 'it is not asked for');
    gone.abort();
    await assert.rejects(call);
    await until(() => pulls().length === 0, 'the pull goes on');
    const before = asked();
    registry.release();
    printed(await s.once('console.log(1)', { image }), '1\n');
    assert.ok(asked() > before, 'the daemon had it already');
  });

  test('the pull ends with the run that wanted it', async (t) => {
    registry.hold = true;
    t.after(() => registry.release());
    const child = start(['run', '--image', fresh('ended'), '-e', '1'], { env: own }), pull = () => descendants(child.pid).find((p) => p.name === engine);
    await until(() => pull() && registry.asked.some((url) => url.includes('/ended/')) && registry.waiting.size > 0, 'it is not asked for');
    const { pid } = pull();
    child.kill('SIGTERM');
    await child.ended;
    await until(() => !fs.existsSync(`/proc/${pid}`), 'the pull goes on');
  });

  test('the daemon\'s reason is the sentence', async (t) => {
    const s = await connectFor(t, stdio, []); // an engine that was named may pull any
    refused(await s.once('1', { image: `${registry.host}/none:2` }), ofEngine(/ENGINE cannot pull the image '.*\/none:2': .*(manifest|not found)/));
  });

  test('run and pull show the daemon\'s progress on stderr', async () => {
    const r = await start(['pull', fresh('shown')], { env: own }).ended;
    assert.match(r.stdout, engine === 'docker' ? /^sha256:[0-9a-f]{64} \d+\.\d+\.\d+\n$/ : /^[0-9a-f]{64} \d+\.\d+\.\d+\n$/);
    assert.match(r.stderr, /\/shown/);
    assert.equal(r.status, 0);
  });

  test('one without Node is one sentence', async (t) => {
    const empty = path.join(dir, 'empty'), archive = path.join(dir, 'empty.tar');
    fs.mkdirSync(path.join(empty, 'etc'), { recursive: true });
    execFileSync('tar', ['-C', empty, '-cf', archive, 'etc']);
    await docker('import', archive, 'of/others:no-node');
    const s = await connectFor(t, stdio, [], own);
    for (const r of [await s.once('1', { image: 'of/others:no-node' }), await s.call('sandbox_initialize', { image: 'of/others:no-node' })])
      refused(r, /^This image cannot be used: the image has no 'node' on its PATH: leave image out, or name another one/);
  });

  test('one whose Node does not tell its version is not waited for, nor believed', async (t) => {
    const node = path.join(tempDir(t), 'node'), s = await connectFor(t, stdio, [], own);
    for (const [image, script] of [['of/others:endless', 'sleep 1000 &\nexec sleep 1000'], ['of/others:mute', 'exit 0']]) {
      fs.writeFileSync(node, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
      const id = await docker('create', 'node:24', 'true');
      await docker('cp', node, `${id}:/usr/local/bin/node`);
      await docker('commit', id, image);
      await docker('rm', id);
      refused(await s.once('1', { image }), /^This image cannot be used: the image's \/usr\/local\/bin\/node does not run: it does not tell its version/);
    }
  });

  test('one whose Node does not run says why', async (t) => {
    const s = await connectFor(t, stdio, [], own);
    for (const [name, make, why] of [
      ['loader', (node) => fs.copyFileSync('/bin/true', node), 'what loads it is missing'],
      ['machine', (node) => fs.writeFileSync(node, 'of another machine'), 'Exec format error'],
      ['status', (node) => fs.copyFileSync(path.join(path.dirname(jerboa), 'jerboa-init'), node), 'it ended with status 1'],
    ]) {
      const image = `of/others:no-${name}`, root = path.join(dir, name), archive = `${root}.tar`, node = path.join(root, 'bin/node');
      fs.mkdirSync(path.dirname(node), { recursive: true });
      make(node);
      fs.chmodSync(node, 0o755);
      execFileSync('tar', ['-C', root, '-cf', archive, 'bin']);
      await docker('import', archive, image);
      for (const r of [await s.once('1', { image }), await s.call('sandbox_initialize', { image })])
        refused(r, new RegExp(`^This image cannot be used: the image's /bin/node does not run: ${why}`));
    }
  });
});

describe('certificates', limit, () => {
  test('the user\'s are beside the system\'s, and the key in the same file is not', async (t) => {
    const dir = tempDir(t), [key, cert, both] = ['key', 'cert', 'both'].map((name) => path.join(dir, name));
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=jerboa test', '-keyout', key, '-out', cert], { stdio: 'ignore' });
    fs.writeFileSync(both, fs.readFileSync(key, 'utf8') + fs.readFileSync(cert, 'utf8'));
    const look = `import fs from 'node:fs'; console.log(JSON.stringify([process.env.NODE_EXTRA_CA_CERTS, process.env.SSL_CERT_FILE].map((f) => fs.readFileSync(f, 'utf8'))))`;
    const seen = async (env) => answer(await run(['-e', look], { env }));
    const plain = await seen({ NODE_EXTRA_CA_CERTS: '' }), own = fs.readFileSync(cert, 'utf8').trim();
    for (const texts of [await seen({ NODE_EXTRA_CA_CERTS: both }), await seen({ SSL_CERT_FILE: both })])
      for (const text of texts) assert.ok(text.includes(own) && !text.includes('PRIVATE KEY'));
    const [extended] = await seen({ NODE_EXTRA_CA_CERTS: both }), count = (text) => text.split('BEGIN CERTIFICATE').length;
    assert.ok(!plain[0].includes(own) && count(extended) === count(plain[0]) + 1);
  });
});
