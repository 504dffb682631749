// The store that survives: killed, cut off, full, read-only, damaged, used by two at once.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes, randomInt } from 'node:crypto';
import { once } from 'node:events';
import { chmod, mkdir, readdir, readFile, rm, stat, symlink, truncate, unlink, utimes, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { arch, deferred, makeStore, nodePackage, nodeTgz, npmTgz, partOf, program, runProgram, serve,
  soundPackages, storeEnv, storeLeftovers, tgz } from './registry.mjs';

const limit = { timeout: 240_000 };
const jerboa = path.join(path.dirname(program), 'jerboa');
const pull = (store, registry, ...args) => runProgram(jerboa, ['pull', ...args], storeEnv(store, registry?.url));
const entry = (version) => `node-${version}-${arch}`;
const dirOf = (store, version) => path.join(store, 'runtimes', entry(version));
const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/** Node as a tarball that takes a while: it does not compress. */
const bigNodeTgz = tgz({ name: 'package/bin/node', content: '#!/bin/sh\necho fake node\n', mode: 0o755 },
  { name: 'package/lib/large', content: randomBytes(3 << 20) });
const bigPackages = () => ({ ...soundPackages(), [nodePackage]: { '24.1.0': { tarball: bigNodeTgz } } });

/** Answers a request for a tarball from the byte it asks for, as servers do that know Range. */
function sendRest(req, res, tarball, { pieces = 1, pause = 0 } = {}) {
  const from = Number(/^bytes=(\d+)-$/.exec(req.headers.range)?.[1] ?? 0);
  if (from >= tarball.length) {
    res.writeHead(416, { 'content-range': `bytes */${tarball.length}` }).end();
    return;
  }
  const rest = tarball.subarray(from);
  res.writeHead(from > 0 ? 206 : 200, {
    'content-length': rest.length,
    ...(from > 0 ? { 'content-range': `bytes ${from}-${tarball.length - 1}/${tarball.length}` } : {}),
  });
  const size = Math.ceil(rest.length / pieces);
  const send = async () => {
    for (let at = 0; at < rest.length && !res.destroyed; at += size) {
      res.write(rest.subarray(at, at + size));
      if (pause > 0) await sleep(pause);
    }
    res.end();
  };
  send();
}

/** Everything is as after one good pull, and nothing else is there. */
async function assertClean(store, version) {
  assert.deepEqual(await readdir(path.join(store, 'runtimes')), [entry(version)]);
  assert.deepEqual(await readdir(path.join(store, 'downloads')), []);
  assert.equal((await runProgram(path.join(dirOf(store, version), 'bin/node'), [], process.env)).stdout, 'fake node\n');
}

/** By turns the worker itself, and the program that waits for it. */
function startPull(store, registry, turn) {
  const [file, args] = turn % 2 ? [program, ['runtime', 'node:24']] : [jerboa, ['pull', 'node:24']];
  const child = spawn(file, args, { env: storeEnv(store, registry.url), stdio: 'ignore' });
  return { child, exit: once(child, 'exit') };
}

test('kill -9 in mid-download, fifty times: the next pull works, and nothing is left', { timeout: 180_000 }, async (t) => {
  const store = await makeStore(t), part = path.join(store, partOf(bigNodeTgz));
  const most = Math.floor(bigNodeTgz.length / 60); // all fifty together are not the whole
  let sent = null; // while a pull is to be killed: called when some of the rest is on its way, after which no more comes
  const registry = await serve(t, bigPackages(), (req, res) => {
    if (!req.url.endsWith('24.1.0.tgz')) return false;
    if (!sent) {
      sendRest(req, res, bigNodeTgz);
      return true;
    }
    const from = Number(/^bytes=(\d+)-$/.exec(req.headers.range)?.[1] ?? 0);
    res.writeHead(from > 0 ? 206 : 200, { 'content-length': bigNodeTgz.length - from,
      ...(from > 0 ? { 'content-range': `bytes ${from}-${bigNodeTgz.length - 1}/${bigNodeTgz.length}` } : {}) });
    res.write(bigNodeTgz.subarray(from, from + randomInt(1, most)), sent);
    return true;
  });
  for (let i = 0; i < 50; i++) {
    const some = deferred();
    sent = some.resolve;
    const { child, exit } = startPull(store, registry, i);
    await Promise.race([some.promise, exit.then(() => assert.fail(`pull ${i} ended by itself`))]);
    await sleep(randomInt(0, 20)); // the bytes arrive, or are being written, or lie there
    child.kill('SIGKILL');
    await exit;
    assert.deepEqual((await readdir(path.join(store, 'runtimes'))).filter((name) => !name.startsWith('.')), []);
    assert.ok((await stat(part)).size < bigNodeTgz.length);
  }
  assert.ok((await stat(part)).size > 0); // they went on from each other's beginnings
  sent = null;
  const { status, stdout, stderr } = await pull(store, registry, 'node:24');
  assert.equal(status, 0, stderr);
  assert.equal(stdout, `${dirOf(store, '24.1.0')}\n`);
  await assertClean(store, '24.1.0');
});

test('kill -9 at twenty other moments', { timeout: 180_000 }, async (t) => {
  const store = await makeStore(t);
  const registry = await serve(t, bigPackages(), (req, res) => {
    if (!req.url.endsWith('24.1.0.tgz')) return false;
    sendRest(req, res, bigNodeTgz, { pieces: 40, pause: 5 });
    return true;
  });
  let done = 0;
  for (let i = 0; i < 20; i++) {
    const { child, exit } = startPull(store, registry, i);
    await Promise.race([sleep(randomInt(0, 400)), exit]);
    child.kill('SIGKILL');
    await exit;
    if (!(await readdir(path.join(store, 'runtimes')).catch(() => [])).includes(entry('24.1.0'))) continue;
    done++;
    // whatever has this name is whole
    assert.equal((await runProgram(program, ['verify', '24.1.0'], storeEnv(store, 'http://127.0.0.1:1'))).status, 0);
    await rm(dirOf(store, '24.1.0'), { recursive: true });
  }
  t.diagnostic(`${done} were done before`);
  const { status, stdout, stderr } = await pull(store, registry, 'node:24');
  assert.equal(status, 0, stderr);
  assert.equal(stdout, `${dirOf(store, '24.1.0')}\n`);
  await assertClean(store, '24.1.0');
});

test('jerboa pull node:22', limit, async (t) => {
  const store = await makeStore(t);
  const registry = await serve(t, { ...soundPackages(), [nodePackage]: { '22.3.1': { tarball: nodeTgz }, '24.1.0': { tarball: nodeTgz } } });
  const { status, stdout, stderr } = await pull(store, registry, 'node:22');
  assert.equal(status, 0, stderr);
  assert.equal(stdout, `${dirOf(store, '22.3.1')}\n`);
  await assertClean(store, '22.3.1');
  assert.deepEqual(await pull(store, undefined, 'node:22'), { status: 0, stdout, stderr: '' });
});

test('what was not done is no success', limit, async (t) => {
  const store = await makeStore(t), bin = path.join(store, 'host/bin');
  const env = storeEnv(store, 'http://127.0.0.1:1');
  await mkdir(bin, { recursive: true });
  await writeFile(path.join(bin, 'node'), '#!/bin/sh\necho v24.1.0\n', { mode: 0o755 });
  await t.test('pull, with no registry but a Node on this machine', async () => {
    const { status, stdout, stderr } = await runProgram(jerboa, ['pull'], { ...env, PATH: `${bin}:${env.PATH}` });
    assert.deepEqual([status, stdout], [1, '']);
    assert.match(stderr, /^jerboa: nothing was fetched; a run would be using Node 24\.1\.0 of this machine \([^\n]*: the registry cannot be reached: [^\n]*\n$/);
  });
  const registry = await serve(t, soundPackages());
  assert.equal((await pull(store, registry, '24')).status, 0);
  for (const command of [`${jerboa} pull 24`, `${jerboa} doctor`, `${jerboa} doctor --json`, `${jerboa} --help`, `${program} runtime 24`])
    await t.test(`${path.basename(command)} >/dev/full`, async () => {
      const { status, stderr } = await runProgram('/bin/sh', ['-c', `exec ${command} >/dev/full`], storeEnv(store, registry.url));
      assert.equal(status, 1, stderr);
      assert.match(stderr, /^jerboa: write to stdout: No space left on device$/m);
    });
});

test('a download that broke off goes on where it was', limit, async (t) => {
  const half = bigNodeTgz.length >> 1;
  const cut = (res) => {
    res.writeHead(200, { 'content-length': bigNodeTgz.length });
    res.write(bigNodeTgz.subarray(0, half), () => res.destroy());
  };
  /** Breaks off once; then `answer` has its say. Resolves to the ranges that were asked for. */
  async function resume(t, answer, spoil = async () => {}) {
    const store = await makeStore(t);
    const ranges = [];
    const registry = await serve(t, bigPackages(), (req, res) => {
      if (!req.url.endsWith('24.1.0.tgz')) return false;
      ranges.push(req.headers.range);
      if (ranges.length === 1) cut(res);
      else answer(req, res);
      return true;
    });
    const first = await runProgram(program, ['runtime', '24'], storeEnv(store, registry.url));
    assert.equal(first.status, 3, first.stderr);
    assert.deepEqual(await storeLeftovers(store), [partOf(bigNodeTgz)]);
    const part = path.join(store, partOf(bigNodeTgz));
    const { size } = await stat(part);
    assert.ok(size > 0 && size <= half, `${size} of ${half}`);
    await spoil(part);
    const second = await runProgram(program, ['runtime', '24'], storeEnv(store, registry.url));
    assert.equal(second.status, 0, second.stderr);
    await assertClean(store, '24.1.0');
    return { ranges, size };
  }
  await t.test('the rest is asked for, and no more', async (t) => {
    const { ranges, size } = await resume(t, (req, res) => sendRest(req, res, bigNodeTgz));
    assert.deepEqual(ranges, [undefined, `bytes=${size}-`]);
  });
  await t.test('a server that ignores Range', async (t) => {
    const { ranges } = await resume(t, (req, res) => res.end(bigNodeTgz));
    assert.equal(ranges.length, 2);
  });
  await t.test('a beginning of other bytes: the hash decides', async (t) => {
    const { ranges, size } = await resume(t, (req, res) => sendRest(req, res, bigNodeTgz),
      async (part) => writeFile(part, Buffer.alloc((await stat(part)).size)));
    assert.deepEqual(ranges, [undefined, `bytes=${size}-`, undefined]);
  });
  await t.test('a beginning longer than the whole', async (t) => {
    const { ranges } = await resume(t, (req, res) => sendRest(req, res, bigNodeTgz),
      (part) => truncate(part, bigNodeTgz.length + 10));
    assert.deepEqual(ranges, [undefined, `bytes=${bigNodeTgz.length + 10}-`, undefined]);
  });
  await t.test('all of it is there already', async (t) => {
    const { ranges } = await resume(t, (req, res) => sendRest(req, res, bigNodeTgz), (part) => writeFile(part, bigNodeTgz));
    assert.deepEqual(ranges, [undefined]);
  });
  await t.test('another part than was asked for', async (t) => {
    const { ranges } = await resume(t, (req, res) => {
      if (!req.headers.range) return res.end(bigNodeTgz);
      res.writeHead(206, { 'content-range': `bytes 0-9/${bigNodeTgz.length}`, 'content-length': 10 });
      return res.end(bigNodeTgz.subarray(0, 10));
    });
    assert.equal(ranges.length, 3);
  });
});

test('a beginning that nobody wants any more goes after a day', limit, async (t) => {
  const store = await makeStore(t);
  const registry = await serve(t, soundPackages());
  const [old, young] = ['old', 'young'].map((name) => path.join(store, partOf(Buffer.from(name))));
  await mkdir(path.join(store, 'downloads'));
  for (const file of [old, young]) await writeFile(file, 'x');
  await utimes(old, new Date(), new Date(Date.now() - 25 * 60 * 60 * 1000));
  assert.equal((await pull(store, registry, 'node:24')).status, 0);
  assert.deepEqual(await readdir(path.join(store, 'downloads')), [path.basename(young)]);
});

test('two at once: one fetches, the other waits for it', limit, async (t) => {
  for (const [what, file, args, expected, name] of [
    ['pull', jerboa, ['pull', 'node:24'], 2, entry('24.1.0')],
    ['fetch package', jerboa, ['fetch', 'package', 'npm', '11'], 1, 'npm 11.0.0'],
  ])
    await t.test(what, async (t) => {
      const store = await makeStore(t);
      const first = deferred();
      let held;
      const registry = await serve(t, soundPackages(), (req, res) => {
        if (!req.url.endsWith('.tgz') || held) return false;
        held = { req, res };
        first.resolve();
        return true;
      });
      const children = [runProgram(file, args, storeEnv(store, registry.url))];
      await first.promise;
      for (let i = 0; i < 4; i++) children.push(runProgram(file, args, storeEnv(store, registry.url)));
      while (registry.requests.filter((url) => !url.endsWith('.tgz')).length < 5) await sleep(5);
      await sleep(1500);
      held.res.end(held.req.url.startsWith('/npm/') ? npmTgz : nodeTgz);
      const results = await Promise.all(children);
      for (const { status, stderr } of results) assert.equal(status, 0, stderr);
      for (const [i, { stderr }] of results.entries()) // who waits for more than a second is told on what
        assert.equal(stderr.split('\n').includes(`waiting for another jerboa that fetches ${name}`), i > 0, stderr);
      assert.equal(new Set(results.map(({ stdout }) => stdout)).size, 1);
      assert.equal(registry.tarballs().length, expected);
      assert.deepEqual((await readdir(path.join(store, 'downloads'))).filter((name) => name.startsWith('.')), []);
    });
});

/** Runs a shell script in a mount namespace of its own: what it mounts nobody else sees, and it goes with it. */
function inNamespace(script, env) {
  const flags = process.getuid() === 0 ? ['-m'] : ['-r', '-m'];
  return runProgram('unshare', [...flags, '--propagation', 'private', '/bin/sh', '-euc', script], env);
}

test('a full disk: one sentence, nothing left, and with room again it works', limit, async (t) => {
  for (const [where, size] of [['while it downloads', '2m'], ['while it unpacks', '5m']])
    await t.test(where, async (t) => {
      const store = await makeStore(t);
      const registry = await serve(t, bigPackages());
      const { status, stdout, stderr } = await inNamespace(`
        mount -t tmpfs -o size=${size} jerboa-test ${store}
        ${jerboa} pull node:24 && exit 9 || echo status $?
        find ${store} -type f
        mount --options-mode ignore -o remount,size=50m ${store} # the old ones have uids that a user's namespace lacks
        ${jerboa} pull node:24
        find ${store}/downloads -type f`, storeEnv(store, registry.url));
      assert.equal(status, 0, stderr);
      assert.equal(stdout, `status 1\n${dirOf(store, '24.1.0')}\n`);
      const sentences = stderr.split('\n').filter((line) => line.startsWith('jerboa: '));
      assert.deepEqual(sentences, [`jerboa: there is no space left for the store ${store}: free some, or set JERBOA_HOME to a directory elsewhere`]);
    });
});

test('a read-only store: what is there is used, the rest is one sentence', limit, async (t) => {
  const store = await makeStore(t);
  const registry = await serve(t, soundPackages());
  assert.equal((await pull(store, registry, '24')).status, 0);
  const { status, stdout, stderr } = await inNamespace(`
    mount --bind ${store} ${store}
    mount -o remount,bind,ro ${store}
    ${jerboa} pull node:24
    ${program} runtime 24
    ${jerboa} pull --verify node:24
    ${jerboa} pull node:26 && exit 9 || echo status $?
    ${jerboa} fetch package npm 11 && exit 9 || echo status $?
    ${jerboa} run --image node:24 --dep lodash -e 0 && exit 9 || echo status $?
    ${jerboa} gc --max-size 1 && exit 9 || echo status $?`, storeEnv(store, registry.url));
  assert.equal(status, 0, stderr);
  assert.equal(stdout, `${`${dirOf(store, '24.1.0')}\n`.repeat(3)}status 1\nstatus 1\nstatus 125\nstatus 1\n`);
  const sentence = `jerboa: the store ${store} cannot be written (Read-only file system): set JERBOA_HOME to a directory that can\n`;
  assert.equal(stderr, sentence.repeat(4));
});

test('a store that cannot be made', limit, async (t) => {
  const store = await makeStore(t);
  await writeFile(path.join(store, 'file'), '');
  const { status, stderr } = await pull(path.join(store, 'file/below'), await serve(t, soundPackages()), '24');
  assert.equal(status, 1);
  assert.match(stderr, /^jerboa: .*file\/below\/runtimes: Not a directory\n$/);
});

test('a damaged entry is found, named and fetched again', limit, async (t) => {
  const damages = {
    'node is cut off': ['bin/node has changed', (dir) => truncate(`${dir}/bin/node`, 5)],
    'node is gone': ['bin/node is missing', (dir) => unlink(`${dir}/bin/node`)],
    'node is another': ['bin/node has changed', (dir) => writeFile(`${dir}/bin/node`, '#!/bin/sh\necho evil node\n')],
    'node is no program': ['bin/node cannot be executed by all', (dir) => chmod(`${dir}/bin/node`, 0o644)],
    'node is for its owner alone': ['bin/node cannot be executed by all', (dir) => chmod(`${dir}/bin/node`, 0o700)],
    'npm is no program': ['lib/node_modules/npm/bin/npm-cli.js cannot be executed by all', (dir) => chmod(`${dir}/lib/node_modules/npm/bin/npm-cli.js`, 0o644)],
    'the entry is a file': ['it is no directory', async (dir) => {
      await rm(dir, { recursive: true });
      await writeFile(dir, '');
    }],
    'the entry is a link to nothing': ['it is no directory', async (dir) => {
      await rm(dir, { recursive: true });
      await symlink('/nowhere', dir);
    }],
    'npm is gone': ['bin/npm is missing', (dir) => rm(`${dir}/bin/npm`)],
    'its directory is gone': ['lib/node_modules/npm/bin/npm-cli.js is missing', (dir) => rm(`${dir}/lib`, { recursive: true })],
    'the seal is gone': ['it has no seal', (dir) => rm(`${dir}/.seal`)],
    'the seal is empty': ['its seal cannot be read', (dir) => truncate(`${dir}/.seal`, 0)],
    'the seal is a pipe that nobody writes to': ['its seal cannot be read', async (dir) => {
      await rm(`${dir}/.seal`);
      execFileSync('mkfifo', [`${dir}/.seal`]);
    }],
  };
  const store = await makeStore(t);
  const dir = dirOf(store, '24.1.0');
  const registry = await serve(t, soundPackages());
  assert.equal((await pull(store, registry, '24')).status, 0);
  for (const [name, [how, damage]] of Object.entries(damages))
    await t.test(name, async () => {
      await damage(dir);
      const { status, stdout, stderr } = await pull(store, registry, '24');
      assert.equal(status, 0, stderr);
      assert.equal(stdout, `${dir}\n`);
      assert.match(stderr, new RegExp(`^jerboa: ${entry('24.1.0')} in the store is damaged \\(${how}\\): fetching it again\nfetching node`));
      await assertClean(store, '24.1.0');
      assert.deepEqual(await pull(store, undefined, '24'), { status: 0, stdout, stderr: '' });
    });
  for (const [name, [how, damage]] of Object.entries(damages))
    await t.test(`${name}: --verify`, async () => {
      await damage(dir);
      const { status, stderr } = await pull(store, registry, '--verify', '24');
      assert.equal(status, 0, stderr);
      if (how === 'it is no directory') assert.match(stderr, /^jerboa: \S+ in the store is damaged \(it is no directory\): fetching it again\n/);
      await assertClean(store, '24.1.0');
    });
  await t.test('a stray file of a newer name is none', async () => {
    const stray = dirOf(store, '24.99.0');
    await writeFile(stray, '');
    for (const args of [['24'], ['--verify', '24']])
      assert.deepEqual(await pull(store, { url: 'http://127.0.0.1:1' }, ...args), { status: 0, stdout: `${dir}\n`, stderr: '' });
    await unlink(stray);
  });
  await t.test('and when it cannot be fetched, that is told', async () => {
    await truncate(`${dir}/bin/node`, 5);
    const { status, stderr } = await runProgram(jerboa, ['pull', '24.1.0'], { ...storeEnv(store, 'http://127.0.0.1:1'), PATH: '/nowhere' });
    assert.equal(status, 1);
    assert.match(stderr, /^jerboa: node-24\.1\.0-\w+ in the store is damaged \(bin\/node has changed\), none of this machine suits, and .*the registry cannot be reached/);
    assert.equal((await readFile(`${dir}/bin/node`)).length, 5); // what is there stays until there is better
  });
});

test('pull --verify compares every file', limit, async (t) => {
  const header = 'include/node/node.h';
  const changes = {
    'a bit that changed by itself': [`${header} has changed`, async (dir) => {
      const { atime, mtime } = await stat(`${dir}/${header}`);
      await writeFile(`${dir}/${header}`, '/x */\n');
      await utimes(`${dir}/${header}`, atime, mtime);
    }],
    'a file less': [`${header} is missing`, (dir) => unlink(`${dir}/${header}`)],
    'a file more': ['include/node/extra.h does not belong to it', (dir) => writeFile(`${dir}/include/node/extra.h`, '')],
    'another mode': [`${header} has changed`, (dir) => chmod(`${dir}/${header}`, 0o600)],
    'a link instead': [`${header} has changed`, async (dir) => {
      await unlink(`${dir}/${header}`);
      await symlink('/etc/passwd', `${dir}/${header}`);
    }],
  };
  const store = await makeStore(t);
  const dir = dirOf(store, '24.1.0');
  const registry = await serve(t, soundPackages());
  const nowhere = { url: 'http://127.0.0.1:1' };
  assert.equal((await pull(store, registry, '--verify', '24')).status, 0); // it fetches when there is none
  assert.deepEqual(await pull(store, nowhere, '--verify', '24'), { status: 0, stdout: `${dir}\n`, stderr: '' });
  for (const [name, [how, change]] of Object.entries(changes))
    await t.test(name, async () => {
      await change(dir);
      assert.equal((await pull(store, nowhere, '24')).stderr, '', 'the quick look does not see it');
      const { status, stdout, stderr } = await pull(store, registry, '--verify', '24');
      assert.equal(status, 0, stderr);
      assert.equal(stdout, `${dir}\n`);
      assert.ok(stderr.startsWith(`jerboa: ${entry('24.1.0')} in the store is damaged (${how}): fetching it again\n`), stderr);
      assert.deepEqual(await pull(store, nowhere, '--verify', '24'), { status: 0, stdout: `${dir}\n`, stderr: '' });
      await assertClean(store, '24.1.0');
    });
});

test('fetch package: a verified tarball that stays', limit, async (t) => {
  const store = await makeStore(t);
  const registry = await serve(t, soundPackages());
  const fetchPackage = (...args) => runProgram(jerboa, ['fetch', 'package', ...args], storeEnv(store, registry.url));
  const first = await fetchPackage('npm', '^11.0.0');
  assert.equal(first.status, 0, first.stderr);
  const file = first.stdout.trim();
  assert.equal(path.dirname(file), path.join(store, 'downloads'));
  assert.deepEqual(await readFile(file), npmTgz);
  assert.equal((await fetchPackage('npm', '11')).stdout, first.stdout);
  assert.equal(registry.tarballs().length, 1);
  await t.test('a damaged one is fetched again', async () => {
    await truncate(file, 10);
    assert.equal((await fetchPackage('npm', '11')).stdout, first.stdout);
    assert.deepEqual(await readFile(file), npmTgz);
    assert.equal(registry.tarballs().length, 2);
  });
  await t.test('names that are none', async () => {
    for (const name of ['../x', '@a', '@/x', '@a/', 'a/b', 'a?b', '', '.x', 'x'.repeat(300)]) {
      const { status, stderr } = await fetchPackage(name);
      assert.equal(status, 1, name);
      assert.match(stderr, /is no name of an npm package\n$/);
    }
  });
  await t.test('a range that nothing suits', async () =>
    assert.match((await fetchPackage('npm', '^99.0.0')).stderr, /npm package npm: the registry has no version that suits "\^99\.0\.0"/));
  await t.test('the verb is not in the help', async () =>
    assert.doesNotMatch((await runProgram(jerboa, ['--help'], process.env)).stdout, /fetch /));
});
