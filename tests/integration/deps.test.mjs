// Dependencies: layers made by installers in sandboxes, from a registry of the test's own on loopback that sees every request.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { before, test } from 'node:test';
import { assertGone, assertRefused, build, copyPrograms, jerboa, start, tempDir, until } from './jerboa.mjs';
import { connectFor, printed, variants } from './tools.mjs';
import { deferred, sha512, storeEnv, tgz } from './registry.mjs';

const limit = { timeout: 240_000 };

// ---- a registry ----

/** What a tarball holds: package.json and `files`; names ending in "!" can be executed. */
const pack = (name, version, manifest, files) => tgz(
  { name: 'package/package.json', content: JSON.stringify({ name, version, ...manifest }) },
  ...Object.entries(files).map(([file, content]) =>
    ({ name: `package/${file.replace(/!$/, '')}`, content, mode: file.endsWith('!') ? 0o755 : 0o644 })));

/** `packages` is {name: {version: {files, integrity, tarball, ...manifest}}} and may change; `answer(req, res)` may take a request. */
async function startRegistry(t, packages, { token, answer = () => false } = {}) {
  const requests = [];
  const document = (name, url) => {
    const versions = {};
    for (const [version, { files = {}, integrity, tarball, ...manifest }] of Object.entries(packages[name])) {
      const bytes = pack(name, version, manifest, files);
      versions[version] = { name, version, ...manifest, hasInstallScript: Boolean(manifest.scripts?.postinstall), dist: {
        tarball: tarball ?? `${url}/${name}/-/${name}-${version}.tgz`, integrity: integrity ?? sha512(bytes),
        shasum: createHash('sha1').update(bytes).digest('hex') } };
    }
    return { name, 'dist-tags': { latest: Object.keys(versions).at(-1) }, versions };
  };
  const server = createServer((req, res) => {
    requests.push(req.url);
    if (answer(req, res)) return;
    const [, name, version] = /^\/([^/]+)(?:\/-\/\1-(.+)\.tgz)?$/.exec(req.url) ?? [];
    if (token && req.headers.authorization !== `Bearer ${token}`) res.writeHead(401).end('{"error":"who are you?"}');
    else if (packages[name] && !version) res.setHeader('content-type', 'application/json').end(JSON.stringify(document(name, address)));
    else if (packages[name]?.[version]) { const { files = {}, integrity, tarball, ...manifest } = packages[name][version]; res.end(pack(name, version, manifest, files)); }
    else res.writeHead(404).end('{"error":"no such package"}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = `http://127.0.0.1:${server.address().port}`;
  const stop = () => { server.closeAllConnections(); server.close(); };
  t.after(stop);
  return { url: address, host: address.slice('http:'.length), requests, stop, of: (name) => requests.filter((url) => url === `/${name}`).length };
}

// ---- a store ----

let ready; // the directory of a store with a runtime and bun in it
before(() => {
  ready = tempDir();
  const node = execFileSync(jerboa, ['pull'], { encoding: 'utf8' }).trim();
  const bun = execFileSync(jerboa, ['fetch', 'tool', 'bun'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  for (const [part, dir] of [['runtimes', node], ['tools', bun]]) {
    fs.mkdirSync(path.join(ready, part));
    execFileSync('cp', ['-a', '--reflink=auto', dir, path.join(ready, part)]);
  }
});

/** A store of the test's own; the runtime and bun are links to files that nobody changes. */
function makeStore(t, { bun = true } = {}) {
  const store = tempDir(t);
  execFileSync('cp', ['-al', path.join(ready, 'runtimes'), ...(bun ? [path.join(ready, 'tools')] : []), store]);
  return store;
}

const layersOf = (store) => { try { return fs.readdirSync(path.join(store, 'layers')); } catch { return []; } };
const layerOf = (store) => {
  const names = layersOf(store);
  assert.equal(names.length, 1, `layers: ${names}`);
  return path.join(store, 'layers', names[0]);
};

const runIn = (store, registry, args, more = {}) => {
  const { program, env, ...rest } = more;
  return start(['run', ...args], { program, input: '', seconds: 100, env: { ...storeEnv(store, registry?.url), JERBOA_ENV: undefined, ...env }, ...rest });
};
const print = (name) => ['-e', `const m = await import(${JSON.stringify(name)}); console.log(JSON.stringify(m.default))`];

/** It ended well; what it printed. Lines about progress are no complaint. */
function told(result) {
  const complaints = result.stderr.split('\n').filter((line) => line && !line.startsWith('jerboa: installing dependencies'));
  assert.deepEqual({ status: result.status, signal: result.signal, complaints }, { status: 0, signal: null, complaints: [] });
  return JSON.parse(result.stdout);
}

/** One sentence, nothing ran, no layer. */
function refused(result, sentence, store) {
  assertRefused({ ...result, stderr: result.stderr.replace(/^jerboa: installing dependencies.*\n/mg, '').replace(/^warn deps .*\n/mg, '') }, sentence);
  assert.deepEqual(layersOf(store), []);
}

const plain = (text) => ({ files: { 'index.js': `module.exports = ${JSON.stringify(text)}` } });

// ---- what works ----

for (const [installer, lock] of [['bun', 'bun.lock'], ['npm', 'package-lock.json']])
  test(`${installer}: a package and what it wants; the second time nobody is asked`, limit, async (t) => {
    const store = makeStore(t), registry = await startRegistry(t, {
      lead: { '1.0.0': { ...plain('one'), dependencies: { rest: '^2' } }, '1.1.0': { files: { 'index.js': 'module.exports = [require("rest"), "1.1"]' }, dependencies: { rest: '^2' } } },
      rest: { '2.0.0': plain('rest 2.0'), '2.1.0': plain('rest 2.1'), '3.0.0': plain('rest 3') },
    });
    const args = ['--dep', 'lead@^1', ...print('lead')], env = { JERBOA_INSTALLER: installer };
    assert.deepEqual(told(await runIn(store, registry, args, { env }).ended), ['rest 2.1', '1.1']);
    const text = fs.readFileSync(path.join(layerOf(store), lock), 'utf8');
    assert.match(text, /rest@2\.1\.0|"node_modules\/rest": \{\s*"version": "2\.1\.0"/);
    assert.deepEqual(fs.readdirSync(layerOf(store)).filter((name) => name.startsWith('.jerboa')), ['.jerboa-layer.json'], 'it is on the disk when who made it has ended');
    registry.stop();
    assert.deepEqual(told(await runIn(store, registry, args, { env }).ended), ['rest 2.1', '1.1']);
  });

test('package.json names them; what code does to node_modules stays in its sandbox', limit, async (t) => {
  const store = makeStore(t), registry = await startRegistry(t, { lead: { '1.0.0': plain('one') } });
  const args = ['--dep', 'lead', '-e', `import fs from 'node:fs';
    fs.appendFileSync('node_modules/lead/index.js', '; module.exports = "changed"');
    console.log(JSON.stringify([JSON.parse(fs.readFileSync('package.json')), (await import('lead')).default]))`];
  for (let i = 0; i < 2; i++)
    assert.deepEqual(told(await runIn(store, registry, args).ended), [{ type: 'module', dependencies: { lead: 'latest' } }, 'changed']);
  assert.equal(fs.readFileSync(path.join(layerOf(store), 'node_modules/lead/index.js'), 'utf8'), 'module.exports = "one"');
});

test('an alias, a scope of its own registry, a range with blanks', limit, async (t) => {
  const store = makeStore(t), other = await startRegistry(t, { '@mine%2fthing': { '1.0.0': plain('scoped') }, '@mine': {} }, {
    answer: (req, res) => {
      const bytes = pack('@mine/thing', '1.0.0', {}, plain('scoped').files);
      if (req.url.endsWith('.tgz')) res.end(bytes);
      else res.end(JSON.stringify({ name: '@mine/thing', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': { name: '@mine/thing', version: '1.0.0',
        dist: { tarball: `http://${req.headers.host}/@mine/thing/-/thing-1.0.0.tgz`, integrity: sha512(bytes) } } } }));
      return true;
    } });
  const registry = await startRegistry(t, { lead: { '1.0.0': plain('one'), '1.5.0': plain('one and a half') } });
  fs.writeFileSync(path.join(store, '.npmrc'), `@mine:registry=${other.url}/\n`);
  const args = ['--dep', 'again@npm:lead@>=1.0 <1.2', '--dep', '@mine/thing', '-e',
    'console.log(JSON.stringify([(await import("again")).default, (await import("@mine/thing")).default]))'];
  assert.deepEqual(told(await runIn(store, registry, args).ended), ['one', 'scoped']);
});

test('a prebuilt binary in an optional dependency, for this machine only', limit, async (t) => {
  const binary = (os, cpu) => ({ os: [os], cpu: [cpu], files: { 'bin/tool!': '#!/bin/sh\necho prebuilt $1\n' } });
  const store = makeStore(t), registry = await startRegistry(t, {
    tool: { '1.0.0': { optionalDependencies: { 'tool-here': '1.0.0', 'tool-elsewhere': '1.0.0' }, files: {
      'index.js': `const { execFileSync } = require('node:child_process'); module.exports = [execFileSync(require.resolve('tool-here/bin/tool'), ['runs'], { encoding: 'utf8' }).trim(),
        require('node:fs').existsSync(__dirname + '/../tool-elsewhere')]` } } },
    'tool-here': { '1.0.0': binary('linux', process.arch) }, 'tool-elsewhere': { '1.0.0': binary('darwin', 'arm64') },
  });
  assert.deepEqual(told(await runIn(store, registry, ['--dep', 'tool', ...print('tool')]).ended), ['prebuilt runs', false]);
});

const addon = {
  'binding.gyp': JSON.stringify({ targets: [{ target_name: 'addon', sources: ['addon.c'] }] }),
  'addon.c': `#include <node_api.h>
static napi_value init(napi_env env, napi_value exports) { napi_value v; napi_create_string_utf8(env, "compiled", NAPI_AUTO_LENGTH, &v); return v; }
NAPI_MODULE(addon, init)\n`,
  'index.js': 'module.exports = require("./build/Release/addon.node")',
};

test('binding.gyp: compiled once, against the runtime\'s own headers, with no download', limit, async (t) => {
  const store = makeStore(t), registry = await startRegistry(t, { native: { '1.0.0': { files: addon, gypfile: true } } });
  assert.equal(told(await runIn(store, registry, ['--dep', 'native', ...print('native')]).ended), 'compiled');
  assert.deepEqual(registry.requests.filter((url) => !/^\/native/.test(url)), []);
  const file = path.join(layerOf(store), 'node_modules/native/build/Release/addon.node'), before = fs.statSync(file).mtimeMs;
  assert.equal(told(await runIn(store, registry, ['--dep', 'native', ...print('native')]).ended), 'compiled');
  assert.equal(fs.statSync(file).mtimeMs, before);
});

test('a build that fails: one sentence of the compiler, no layer', limit, async (t) => {
  const files = { ...addon, 'addon.c': '#error "this machine is too small"\n' };
  const store = makeStore(t), registry = await startRegistry(t, { native: { '1.0.0': { files, gypfile: true } } });
  refused(await runIn(store, registry, ['--dep', 'native', ...print('native')]).ended, /install script of native failed: .*too small/, store);
});

test('without bun npm does it, and the log says so', limit, async (t) => {
  const store = makeStore(t, { bun: false }), registry = await startRegistry(t, { lead: { '1.0.0': plain('one') } });
  const result = await runIn(store, registry, ['--dep', 'lead', ...print('lead')]).ended;
  assert.equal(JSON.parse(result.stdout), 'one');
  assert.match(result.stderr, /^warn deps .*npm is tried instead$/m);
  assert.ok(fs.existsSync(path.join(layerOf(store), 'package-lock.json')));
});

test('a mirror whose documents place tarballs elsewhere: npm asks the mirror itself', limit, async (t) => {
  const store = makeStore(t), registry = await startRegistry(t, { lead: { '1.0.0': { ...plain('one'), tarball: 'http://original.invalid/lead/-/lead-1.0.0.tgz' } } });
  const result = await runIn(store, registry, ['--dep', 'lead', ...print('lead')]).ended;
  assert.equal(result.stdout, '"one"\n', result.stderr);
});

test('ranges are resolved again when they are old: the same layer if nothing changed, another if something did', limit, async (t) => {
  const packages = { lead: { '1.0.0': plain('old') } };
  const store = makeStore(t), registry = await startRegistry(t, packages, { answer: (req, res) => { res.setHeader('cache-control', 'no-store'); return false; } });
  const args = ['--dep', 'lead@1', ...print('lead')], inode = () => fs.statSync(layerOf(store)).ino;
  assert.equal(told(await runIn(store, registry, args).ended), 'old');
  const first = inode(), asked = registry.of('lead');
  assert.equal(told(await runIn(store, registry, ['--fresh', '1h', ...args]).ended), 'old');
  assert.equal(registry.of('lead'), asked);
  const again = async () => {
    fs.rmSync(path.join(store, 'cache'), { recursive: true, force: true }); // installers believe documents for some minutes
    return told(await runIn(store, registry, ['--fresh', '1ms', ...args]).ended);
  };
  assert.equal(await again(), 'old');
  assert.ok(registry.of('lead') > asked, 'nobody asked again');
  assert.equal(inode(), first);
  packages.lead['1.1.0'] = plain('new');
  assert.equal(await again(), 'new');
  assert.notEqual(inode(), first);
  registry.stop();
  const result = await runIn(store, registry, ['--fresh', '1ms', ...args]).ended;
  assert.equal(JSON.parse(result.stdout), 'new');
  assert.match(result.stderr, /^warn deps .*what was installed before is used/m);
});

for (const installer of ['bun', 'npm'])
  test(`${installer}: packages that were installed one by one are installed together from the cache, with the registry gone`, limit, async (t) => {
    const store = makeStore(t), registry = await startRegistry(t, { lead: { '1.0.0': plain('one') }, rest: { '2.0.0': plain('two') } });
    const run = (deps, code) => runIn(store, registry, ['--installer', installer, ...deps.flatMap((dep) => ['--dep', dep]), ...code]).ended;
    assert.equal(told(await run(['lead@1'], print('lead'))), 'one');
    assert.equal(told(await run(['rest@2'], print('rest'))), 'two');
    registry.stop();
    assert.deepEqual(told(await run(['lead@1', 'rest@2'], ['-e', 'console.log(JSON.stringify([(await import("lead")).default, (await import("rest")).default]))'])), ['one', 'two']);
    assert.equal(layersOf(store).length, 3);
  });

const pullIn = (store, registry, args, env = {}) => start(['pull', ...args], { seconds: 100, env: { ...storeEnv(store, registry?.url), ...env } }).ended;

test('pull --deps: sets ahead; who names the same packages and ranges finds them, and nobody is asked', limit, async (t) => {
  const store = makeStore(t), registry = await startRegistry(t, {
    lead: { '1.0.0': plain('one'), '2.0.0': plain('two') }, rest: { '2.0.0': plain('rest') },
  });
  const both = ['-e', 'console.log(JSON.stringify([(await import("lead")).default, (await import("rest")).default]))'];
  const pulled = await pullIn(store, registry, ['--deps', 'lead@^1,rest@2', '--deps', 'lead']);
  assert.deepEqual([pulled.status, pulled.stderr.replace(/^jerboa: installing dependencies.*\n/mg, '')], [0, '']);
  const [runtime, ...layers] = pulled.stdout.trimEnd().split('\n');
  assert.ok(fs.existsSync(path.join(runtime, 'bin/node')));
  assert.deepEqual(layers.map((dir) => path.dirname(dir)), [path.join(store, 'layers'), path.join(store, 'layers')]);
  assert.deepEqual(layers.map((dir) => fs.readdirSync(path.join(dir, 'node_modules')).filter((name) => !name.startsWith('.'))), [['lead', 'rest'], ['lead']]);
  const asked = registry.requests.length;
  assert.deepEqual(told(await runIn(store, registry, ['--dep', 'rest@2', '--dep', 'lead@^1', ...both]).ended), ['one', 'rest']);
  assert.equal(told(await runIn(store, registry, ['--dep', 'lead', ...print('lead')]).ended), 'two');
  assert.equal((await pullIn(store, registry, ['--deps', 'rest@2,lead@^1'])).stdout, `${runtime}\n${layers[0]}\n`);
  assert.equal(registry.requests.length, asked);
  assert.equal(layersOf(store).length, 2);
  const other = await pullIn(store, registry, ['--deps', 'lead'], { JERBOA_INSTALLER: 'npm' });
  assert.ok(!layers.includes(other.stdout.trimEnd().split('\n')[1]), 'npm lays packages out in another way');
});

test('pull --deps: the server finds it', limit, async (t) => {
  const store = makeStore(t), registry = await startRegistry(t, { lead: { '1.0.0': plain('one') } });
  assert.equal((await pullIn(store, registry, ['--deps', 'lead@1'])).status, 0);
  registry.stop();
  const server = await connectFor(t, variants['stdio, modern'], [], storeEnv(store, registry.url));
  printed(await server.once('import lead from "lead"; console.log(lead)', { dependencies: [{ name: 'lead', version: '1' }] }), 'one\n');
});

test('pull --deps of what is no package, or is not there', limit, async (t) => {
  const store = makeStore(t), registry = await startRegistry(t, { lead: { '1.0.0': plain('one') } });
  for (const [set, sentence] of [['', /'' is no name/], ['lead,', /'' is no name/], ['lead@', /version should begin/], ['lead,x@file:/etc', /'file:\/etc' is refused/], ['lead,lead@1', /lead is named twice/],
    [Array.from({ length: 65 }, (_, i) => `p${i}`).join(','), /more than 64/]]) {
    const { status, stdout, stderr } = await pullIn(store, registry, ['--deps', 'lead', '--deps', set]);
    assert.deepEqual([status === 0, stdout], [false, ''], stderr);
    assert.match(stderr, sentence);
    assert.match(stderr, /^jerboa: --deps '[^\n]+\n$/);
  }
  assert.deepEqual(registry.requests, []);
  const { status, stdout, stderr } = await pullIn(store, registry, ['--deps', 'lead', '--deps', 'lead,no-such']);
  assert.equal(status, 1, stderr);
  assert.match(stderr, /^jerboa: --deps 'lead,no-such': .*no such package/m);
  assert.equal(stdout.trimEnd().split('\n').length, 2, 'the runtime and the set that could be had');
});

// ---- what does not ----

test('unknown package, impossible range, unknown tag: the registry\'s reason, and no layer', limit, async (t) => {
  const store = makeStore(t), registry = await startRegistry(t, { lead: { '1.0.0': plain('one') } });
  for (const installer of ['bun', 'npm'])
    for (const [dep, sentence] of [['no-such', /no-such.*404|404.*no-such/], ['lead@^99', /(\^99.*lead|lead.*\^99)/], ['lead@nowhere', /nowhere.*lead|lead.*nowhere/]])
      refused(await runIn(store, registry, ['--installer', installer, '--dep', dep, '-e', 'console.log(1)']).ended, sentence, store);
});

test('a registry that is down', limit, async (t) => {
  const store = makeStore(t), registry = await startRegistry(t, {});
  registry.stop();
  for (const installer of ['bun', 'npm'])
    refused(await runIn(store, registry, ['--installer', installer, '--dep', 'lead', '-e', 'console.log(1)']).ended, new RegExp(`^jerboa: ${installer}: .*lead`), store);
});

test('bytes that are not what the registry promised', limit, async (t) => {
  const store = makeStore(t), registry = await startRegistry(t, { lead: { '1.0.0': { ...plain('one'), integrity: sha512(Buffer.from('something else')) } } });
  for (const installer of ['bun', 'npm'])
    refused(await runIn(store, registry, ['--installer', installer, '--dep', 'lead', '-e', 'console.log(1)']).ended, /ntegrity/, store);
});

test('names and versions that are none, before anything is asked', limit, async (t) => {
  const store = makeStore(t), registry = await startRegistry(t, {});
  for (const dep of ['x@file:/etc', 'x@link:..', 'x@git+https://127.0.0.1/x.git', 'x@github:a/b', 'x@a/b', 'x@http://127.0.0.1/x.tgz', 'x@workspace:*',
    '../x', '.x', 'a b', 'x@', '$(id)', 'x@npm:y@file:z'])
    refused(await runIn(store, registry, ['--dep', dep, '-e', 'console.log(1)']).ended, /refused|no name|no version|version should begin/, store);
  refused(await runIn(store, registry, ['--dep', 'x', '--dep', 'x@2', '-e', '1']).ended, /twice/, store);
  refused(await runIn(store, registry, ['--installer', 'yarn', '--dep', 'x', '-e', '1']).ended, /'bun' and 'npm'/, store);
  assert.deepEqual(registry.requests, []);
  assert.ok(!fs.existsSync(path.join(store, 'layers')));
});

test('a registry\'s package that wants something from elsewhere', limit, async (t) => {
  const packages = { good: { '1.0.0': plain('good') } };
  const store = makeStore(t), registry = await startRegistry(t, packages);
  const places = { git: 'git+https://127.0.0.1:1/x.git', hub: 'github:a/b', tarball: `${registry.url}/good/-/good-1.0.0.tgz`, file: 'file:/root', link: 'link:/root' };
  for (const [name, place] of Object.entries(places)) packages[name] = { '1.0.0': { ...plain(name), dependencies: { good: place } } };
  packages.optional = { '1.0.0': { ...plain('optional'), optionalDependencies: { good: 'file:/root' } } };
  packages.deep = { '1.0.0': { ...plain('deep'), dependencies: { tarball: '1' } } };
  for (const installer of ['bun', 'npm'])
    for (const name of [...Object.keys(places), 'optional', 'deep'])
      refused(await runIn(store, registry, ['--installer', installer, '--dep', name, '-e', 'console.log(1)']).ended, /^jerboa: /, store);
  assert.equal(told(await runIn(store, registry, ['--dep', 'good', ...print('good')]).ended), 'good');
});

// ---- walls ----

/** Runs when it is installed: everything that it can read, searched for the secret; what it can write. */
const spy = `
const fs = require('node:fs'), found = [];
const secret = Buffer.from(process.argv[2] ?? fs.readFileSync(__dirname + '/half', 'utf8').trim() + fs.readFileSync(__dirname + '/other-half', 'utf8').trim());
function look(dir, depth) {
  let names; try { names = fs.readdirSync(dir); } catch { return; }
  for (const name of names) {
    const file = (dir === '/' ? '' : dir) + '/' + name;
    let st; try { st = fs.lstatSync(file); } catch { continue; }
    if (st.isDirectory() && depth < 12 && !/^\\/(usr|sys|proc\\/(sys|[0-9]+\\/.))/.test(file)) look(file, depth + 1);
    else if (st.isFile() && (!file.startsWith('/proc') || /(environ|cmdline)$/.test(file)) && st.size < 4 << 20) try { if (fs.readFileSync(file).includes(secret)) found.push(file); } catch {}
  }
}
look(process.argv[3] ?? '/', 0);
const writable = ['/cache', '/layer', '/opt/bun', '/opt/node', '/usr', '/etc', '/workspace/node_modules/..'].filter((dir) => { try { fs.writeFileSync(dir + '/probe', ''); return true; } catch { return false; } });
if (process.argv[3]) console.log(JSON.stringify(found));
else fs.writeFileSync(__dirname + '/report.json', JSON.stringify({ found: found.filter((f) => !f.startsWith(__dirname)), environment: JSON.stringify(process.env).includes(String(secret)), writable, caches: fs.existsSync('/cache') }));
`;

test('a package\'s script sees no token, no cache, and nothing of the layer but node_modules', limit, async (t) => {
  const token = 'npm_Secret0123456789Token';
  const files = { 'spy.js': spy, half: token.slice(0, 9), 'other-half': token.slice(9), 'index.js': 'module.exports = require("./report.json")' };
  const store = makeStore(t), registry = await startRegistry(t, { spy: { '1.0.0': { files, scripts: { postinstall: 'node spy.js' } } } }, { token });
  for (const installer of ['bun', 'npm']) {
    fs.writeFileSync(path.join(store, '.npmrc'), '');
    refused(await runIn(store, registry, ['--installer', installer, '--dep', 'spy', ...print('spy')]).ended, /401/, store);
    fs.writeFileSync(path.join(store, '.npmrc'), `${registry.host}/:_authToken=${token}\n`);
    const spyFile = path.join(tempDir(t), 'spy.js');
    fs.writeFileSync(spyFile, spy);
    assert.deepEqual(JSON.parse(execFileSync(process.execPath, [spyFile, token, store], { encoding: 'utf8' })), [path.join(store, '.npmrc')]); // it would find one
    const report = told(await runIn(store, registry, ['--installer', installer, '--dep', 'spy', ...print('spy')]).ended);
    assert.deepEqual(report, { found: [], environment: false, writable: ['/workspace/node_modules/..'], caches: false });
    assert.ok(!fs.existsSync(path.join(layerOf(store), 'probe')));
    assert.ok(!JSON.stringify(fs.readdirSync(layerOf(store))).includes('npmrc'));
    fs.rmSync(path.join(store, 'layers'), { recursive: true });
  }
});

test('what a script leaves behind leads nowhere', limit, async (t) => {
  const script = `const fs = require('node:fs'); fs.rmSync('../quiet', { recursive: true }); fs.symlinkSync('/etc', '../quiet'); fs.symlinkSync('/', '../all');
    let dir = '../deep'; fs.mkdirSync(dir); process.chdir(dir); for (let i = 0; i < 90; i++) { fs.mkdirSync('d'); process.chdir('d'); }`;
  const store = makeStore(t), registry = await startRegistry(t, {
    rogue: { '1.0.0': { files: { 'x.js': script, 'index.js': 'module.exports = [require("fs").existsSync(__dirname + "/../quiet/shadow"), require("fs").existsSync(__dirname + "/../quiet/passwd")]' }, scripts: { postinstall: 'node x.js' }, dependencies: { quiet: '1' } } },
    quiet: { '1.0.0': plain('quiet') },
  });
  assert.deepEqual(told(await runIn(store, registry, ['--dep', 'rogue', ...print('rogue')]).ended), [false, true]); // the sandbox's own /etc
  fs.rmSync(path.join(store, 'layers'), { recursive: true });
  assert.ok(fs.existsSync('/etc/passwd'));
});

// ---- two, and none ----

test('two processes want the same: one installs', limit, async (t) => {
  const store = makeStore(t), gate = deferred(), reached = deferred();
  const registry = await startRegistry(t, { lead: { '1.0.0': plain('one') } }, { answer: (req, res) => {
    if (!req.url.endsWith('.tgz')) return false;
    reached.resolve();
    gate.promise.then(() => res.end(pack('lead', '1.0.0', {}, plain('one').files)));
    return true;
  } });
  const first = runIn(store, registry, ['--dep', 'lead', ...print('lead')]);
  await reached.promise;
  const second = runIn(store, registry, ['--dep', 'lead', ...print('lead')]);
  await until(() => second.text('stderr').includes('another jerboa'), () => second.text('stderr'));
  gate.resolve();
  assert.equal(told(await first.ended), 'one');
  assert.equal(told(await second.ended), 'one');
  assert.deepEqual(registry.requests.sort(), ['/lead', '/lead/-/lead-1.0.0.tgz']);
});

for (const [who, signal] of [['jerboa', 'SIGKILL'], ['jerboa', 'SIGTERM'], ['jerboa-layer', 'SIGKILL']])
  test(`${signal} of ${who} while it installs leaves nothing, and the next one does it`, limit, async (t) => {
    const dir = tempDir(t), program = copyPrograms(dir);
    const store = makeStore(t), reached = deferred();
    let hang = true;
    const registry = await startRegistry(t, { lead: { '1.0.0': plain('one') } }, { answer: (req) => {
      if (!req.url.endsWith('.tgz') || !hang) return false;
      reached.resolve();
      return true;
    } });
    const first = runIn(store, registry, ['--dep', 'lead', ...print('lead')], { program });
    await reached.promise;
    if (who === 'jerboa') first.kill(signal);
    else process.kill(Number(execFileSync('pgrep', ['-P', `${first.pid}`, '-x', who], { encoding: 'utf8' })), signal);
    const result = await first.ended;
    if (who === 'jerboa') assert.equal(result.signal, signal);
    else assert.deepEqual([result.status, result.stdout], [125, '']);
    await assertGone(dir);
    assert.deepEqual(layersOf(store).filter((name) => !name.startsWith('.')), []);
    hang = false;
    assert.equal(told(await runIn(store, registry, ['--dep', 'lead', ...print('lead')], { program }).ended), 'one');
    assert.equal(layersOf(store).length, 1);
  });

test('lodash and express of the configured registry; the second time nothing is installed', limit, async (t) => {
  const store = makeStore(t);
  const args = ['--dep', 'lodash@^4', '--dep', 'express', '-e', 'console.log(JSON.stringify([(await import("lodash")).default.chunk([1, 2, 3], 2), typeof (await import("express")).default]))'];
  const go = async () => {
    assert.deepEqual(told(await start(['run', ...args], { input: '', seconds: 100, env: { JERBOA_HOME: store } }).ended), [[[1, 2], [3]], 'function']);
    const [layer, ...others] = layersOf(store);
    assert.deepEqual(others, []);
    return fs.statSync(path.join(store, 'layers', layer, 'node_modules')).ino;
  };
  assert.equal(await go(), await go()); // what was installed is used as it is
});
