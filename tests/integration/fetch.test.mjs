// jerboa-fetch against the configured registry, and against registries that misbehave.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { access, lstat, readdir, readlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { arch, deferred, fetchRuntime, makeStore, nodePackage, nodeTgz, npmTgz, partOf, program,
  runProgram, serve, sha512, soundPackages, storeEnv, storeLeftovers, tgz } from './registry.mjs';

const limit = { timeout: 180_000 };

/** Fails as it must: one sentence, the status, and nothing left in the store but `left`. */
async function assertFails(t, { registry, status = 1, sentence, image, left = [] }) {
  const store = await makeStore(t);
  const result = await fetchRuntime(store, registry, image);
  const lines = result.stderr.split('\n').filter((line) => line && !line.startsWith('fetching '));
  assert.equal(result.status, status, result.stderr);
  assert.equal(result.stdout, '');
  assert.equal(lines.length, 1, result.stderr);
  assert.match(lines[0], /^jerboa: /);
  assert.match(lines[0], sentence);
  assert.deepEqual(await storeLeftovers(store), left);
}

test('the configured registry: node, npm and npx work, the second time nothing is downloaded',
  { timeout: 300_000 }, async (t) => {
    const store = await makeStore(t);
    const env = { ...process.env, JERBOA_HOME: store };
    const first = await runProgram(program, ['runtime', 'node:lts-slim'], env);
    assert.equal(first.status, 0, first.stderr);
    assert.match(first.stderr, /^fetching node 24\.\d+\.\d+ \(\d+ MB\)\nfetching npm \d+\.\d+\.\d+ \(\d+ MB\)\n$/);
    const dir = first.stdout.trim();
    const [, version] = /node-(24\.\d+\.\d+)-/.exec(dir);
    const inside = { ...process.env, PATH: `${dir}/bin:/usr/bin:/bin` };
    assert.equal((await runProgram(`${dir}/bin/node`, ['-v'], inside)).stdout, `v${version}\n`);
    for (const name of ['npm', 'npx']) {
      const { status, stdout, stderr } = await runProgram(`${dir}/bin/${name}`, ['-v'], inside);
      assert.equal(status, 0, stderr);
      assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
    }
    assert.deepEqual(await readdir(path.join(store, 'downloads')), []);
    assert.deepEqual(await runProgram(program, ['runtime', 'lts'], env), { status: 0, stdout: first.stdout, stderr: '' });
  });

test('a runtime is the newest version that suits, with the npm that suits it', limit, async (t) => {
  const store = await makeStore(t);
  const registry = await serve(t, soundPackages());
  const { status, stdout, stderr } = await fetchRuntime(store, registry.url);
  const dir = path.join(store, `runtimes/node-24.1.0-${arch}`);
  assert.equal(status, 0, stderr);
  assert.equal(stdout, `${dir}\n`);
  assert.deepEqual(registry.tarballs(), [`/${nodePackage}/-/${nodePackage}-24.1.0.tgz`, '/npm/-/npm-11.0.0.tgz']);
  assert.equal(await readlink(`${dir}/bin/npm`), '../lib/node_modules/npm/bin/npm-cli.js');
  assert.equal(await readlink(`${dir}/bin/npx`), '../lib/node_modules/npm/bin/npx-cli.js');
  for (const name of ['bin/node', 'lib/node_modules/npm/bin/npm-cli.js', 'lib/node_modules', '.'])
    assert.equal((await lstat(path.join(dir, name))).mode & 0o7777, 0o755, name);
  assert.equal((await runProgram(`${dir}/bin/node`, [], process.env)).stdout, 'fake node\n');

  const again = await fetchRuntime(store, registry.url, '24');
  assert.deepEqual(again, { status: 0, stdout, stderr: '' });
  assert.equal(registry.tarballs().length, 2);
});

test('modes do not depend on the umask', limit, async (t) => {
  const store = await makeStore(t);
  const registry = await serve(t, soundPackages());
  const { status, stdout } = await runProgram('/bin/sh', ['-c', `umask 077; exec ${program} runtime lts`],
    storeEnv(store, registry.url));
  assert.equal(status, 0);
  const dir = stdout.trim();
  assert.equal((await lstat(dir)).mode & 0o777, 0o755);
  assert.equal((await lstat(`${dir}/include/node/node.h`)).mode & 0o777, 0o644);
});

test('the user\'s npmrc names the registry', limit, async (t) => {
  const store = await makeStore(t);
  const registry = await serve(t, soundPackages());
  await writeFile(path.join(store, '.npmrc'), `registry = ${registry.url}\n`);
  const { status, stderr } = await fetchRuntime(store, undefined, '26.0.0');
  assert.equal(status, 0, stderr);
  await access(path.join(store, `runtimes/node-26.0.0-${arch}/bin/npm`));
});

test('usage and unknown images', limit, async (t) => {
  const store = await makeStore(t);
  assert.equal((await runProgram(program, [], storeEnv(store))).status, 2);
  assert.equal((await runProgram(program, ['banana', 'lts'], storeEnv(store))).status, 2);
  await assertFails(t, { registry: 'http://127.0.0.1:1', image: 'python:3', sentence: /"python:3" is not known: use node:lts-slim/ });
});

test('a registry that cannot be reached is status 3', limit, async (t) => {
  const sentence = /the registry cannot be reached/;
  const closed = await serve(t, {});
  const hangUp = await serve(t, {}, (req) => Boolean(req.socket.destroy()));
  const busy = await serve(t, {}, (req, res) => Boolean(res.writeHead(503).end()));
  await t.test('closed port', (t) => assertFails(t, { registry: 'http://127.0.0.1:1', status: 3, sentence }));
  await t.test('hangs up', (t) => assertFails(t, { registry: hangUp.url, status: 3, sentence }));
  await t.test('503', (t) => assertFails(t, { registry: busy.url, status: 3, sentence: /HTTP status 503/ }));
  await t.test('404 is not', (t) => assertFails(t, { registry: closed.url, sentence: /does not have it.*404/ }));
});

test('--answer tells the sentence on stdout', limit, async (t) => {
  const store = await makeStore(t);
  const { status, stdout, stderr } = await fetchRuntime(store, 'http://127.0.0.1:1', 'lts', '--answer');
  assert.equal(status, 3);
  assert.equal(stderr, '');
  assert.match(stdout, /^npm package .*: the registry cannot be reached: .*\n$/);
});

test('documents that are not what they should be', limit, async (t) => {
  const say = (body) => serve(t, {}, (req, res) => Boolean(res.end(body)));
  const flood = await serve(t, {}, (req, res) => {
    const megabyte = Buffer.alloc(1 << 20, ' ');
    const pour = () => { while (!res.destroyed && res.write(megabyte)); };
    res.on('drain', pour).on('error', () => {});
    pour();
    return true;
  });
  const bomb = gzipSync(Buffer.alloc(40 << 20, ' '));
  const swelling = await serve(t, {}, (req, res) =>
    Boolean(res.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb)));
  const circle = await serve(t, {}, (req, res) => Boolean(res.writeHead(302, { location: '/again' }).end()));
  const elsewhere = await serve(t, {}, (req, res) =>
    Boolean(res.writeHead(302, { location: 'file:///etc/passwd' }).end()));
  for (const [name, registry, sentence] of [
    ['garbage', await say('<html>'), /is not JSON/],
    ['nothing', await say(''), /is not JSON/],
    ['no versions', await say('{}'), /lists no versions/],
    ['no version that suits', await say('{"versions":{"20.0.0":{}}}'), /no version that suits/],
    ['over the cap', flood, /longer than 32 MiB/],
    ['over the cap once decompressed', swelling, /longer than 32 MiB/],
    ['redirects without end', circle, /cannot be used/],
    ['a redirect to a file', elsewhere, /cannot be used/],
  ])
    await t.test(name, (t) => assertFails(t, { registry: registry.url, sentence }));
});

test('tarballs that are not what they should be', limit, async (t) => {
  const evil = (member) => tgz({ name: 'package/bin/node', mode: 0o755 }, member);
  const cases = {
    'wrong hash': [{ tarball: nodeTgz, integrity: sha512('other') }, /sha512 is not the one/],
    'no integrity': [{ tarball: nodeTgz, integrity: null }, /gives no sha512/],
    'sha1 only': [{ tarball: nodeTgz, integrity: 'sha1-qZk+NkcGgWq6PiVxeFDCbJzQ2J0=' }, /gives no sha512/],
    'cut short, and so promised': [{ tarball: nodeTgz.subarray(0, 100) }, /damaged/],
    'no archive': [{ tarball: Buffer.from('hello') }, /damaged/],
    'no node inside': [{ tarball: tgz({ name: 'package/README' }) }, /holds no bin\/node/],
    'leads out': [{ tarball: evil({ name: 'package/../../evil' }) }, /"package\/..\/..\/evil": its name leads out/],
    'absolute': [{ tarball: evil({ name: '/tmp/evil' }) }, /its name is absolute/],
    'symlink': [{ tarball: evil({ name: 'package/x', type: '2', link: '/etc' }) }, /neither a file nor a directory/],
    'hard link': [{ tarball: evil({ name: 'package/x', type: '1', link: '/etc/passwd' }) }, /neither a file nor/],
    'device': [{ tarball: evil({ name: 'package/x', type: '3' }) }, /neither a file nor a directory/],
  };
  for (const [name, [release, sentence]] of Object.entries(cases)) {
    const registry = await serve(t, { ...soundPackages(), [nodePackage]: { '24.1.0': release } });
    await t.test(name, (t) => assertFails(t, { registry: registry.url, sentence }));
  }
  const noNpx = await serve(t, { ...soundPackages(), npm: { '11.0.0': { tarball: nodeTgz } } });
  await t.test('npm without its commands', (t) =>
    assertFails(t, { registry: noNpx.url, sentence: /holds no bin\/npm-cli.js/ }));
});

test('a tarball whose connection breaks is status 3', limit, async (t) => {
  const registry = await serve(t, soundPackages(), (req, res) => {
    if (!req.url.endsWith('.tgz')) return false;
    res.writeHead(200, { 'content-length': nodeTgz.length });
    res.write(nodeTgz.subarray(0, 50), () => res.destroy());
    return true;
  });
  const left = [partOf(nodeTgz)]; // the next one goes on from there: see store.test.mjs
  await assertFails(t, { registry: registry.url, status: 3, sentence: /the registry cannot be reached/, left });
});

test('hostile versions never become paths', limit, async (t) => {
  const registry = await serve(t, { [nodePackage]: { '24.0.0/../../../../evil': { tarball: nodeTgz } } });
  await assertFails(t, { registry: registry.url, sentence: /no version that suits/ });
});

test('two at once download once', limit, async (t) => {
  const store = await makeStore(t);
  const firstTarball = deferred(), secondDocument = deferred();
  let documents = 0, held;
  const registry = await serve(t, soundPackages(), (req, res) => {
    if (req.url === `/${nodePackage}` && ++documents === 2) secondDocument.resolve();
    if (!req.url.endsWith('.tgz') || held) return false;
    held = res;
    firstTarball.resolve();
    return true;
  });
  const first = fetchRuntime(store, registry.url);
  await firstTarball.promise;
  const second = fetchRuntime(store, registry.url);
  await secondDocument.promise;
  held.end(nodeTgz);
  const results = await Promise.all([first, second]);
  for (const { status, stderr } of results) assert.equal(status, 0, stderr);
  assert.equal(results[0].stdout, results[1].stdout);
  assert.equal(results[1].stderr, '');
  assert.equal(registry.tarballs().length, 2);
  assert.deepEqual(await readdir(path.join(store, 'runtimes')), [`node-24.1.0-${arch}`]);
});

for (const signal of ['SIGKILL', 'SIGINT'])
  test(`${signal} in the middle: the next one cleans up and works`, limit, async (t) => {
    const store = await makeStore(t);
    const stuck = deferred();
    const bad = await serve(t, soundPackages(), (req, res) => {
      if (!req.url.startsWith('/npm/')) return false;
      res.writeHead(200, { 'content-length': npmTgz.length });
      res.write(npmTgz.subarray(0, 50), stuck.resolve); // Node is unpacked, npm half-way
      return true;
    });
    const child = spawn(program, ['runtime', 'lts'], { env: storeEnv(store, bad.url), stdio: 'ignore' });
    await stuck.promise;
    child.kill(signal);
    await once(child, 'exit');
    assert.deepEqual((await readdir(path.join(store, 'runtimes'))).filter((n) => !n.startsWith('.')), []);
    const parts = (await readdir(path.join(store, 'downloads'))).map((name) => `downloads/${name}`);
    assert.deepEqual(parts.sort(), [partOf(nodeTgz), partOf(npmTgz)].sort());

    // another version is taken now, so the half-written one is nobody's
    const good = await serve(t, soundPackages());
    const { status, stderr } = await fetchRuntime(store, good.url, '26');
    assert.equal(status, 0, stderr);
    assert.deepEqual(await readdir(path.join(store, 'runtimes')), [`node-26.0.0-${arch}`]);
    assert.deepEqual(await readdir(path.join(store, 'downloads')), []); // it had the same tarballs
  });
