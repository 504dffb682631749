// get_dependency_types and search_npm_packages: the configured registry, a real one on loopback, and registries that misbehave.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { printed, start, tempDir, until } from './jerboa.mjs';
import { makeStore, packument, serve as serveUntagged, sha512, storeEnv, tarMember, tgz } from './registry.mjs';
import { connectFor, connect, descendants, kinds, refused, text, variants } from './tools.mjs';
import { makeToken, publish, startVerdaccio } from './verdaccio.mjs';

const limit = { timeout: 240_000 };
const fetchers = (s) => descendants(s.pid).filter((p) => p.name.startsWith('jerboa-fetch'));
const lines = (s) => descendants(s.pid).filter((p) => p.name === 'fetch-line'); // each fetcher has one

/** A server that asks this registry, with a store of its own. */
const serverOf = async (t, url, variant = 'stdio, legacy') => connectFor(t, variants[variant], [], storeEnv(await makeStore(t), url));

/** The packages of an answer; its text says the same, without what is not there. */
async function ask(s, dependencies, options) {
  const r = await s.call('get_dependency_types', { dependencies }, options);
  assert.ok(!r.isError, JSON.stringify(r.content));
  assert.deepEqual(kinds(r), ['text']);
  const { packages } = r.structuredContent;
  const brief = packages.map((p) => Object.fromEntries(Object.entries(p).filter(([, value]) => value !== null && value.length !== 0)));
  assert.deepEqual(JSON.parse(text(r)), brief);
  assert.deepEqual(packages.map((p) => p.name), dependencies.map((d) => d.name));
  for (const p of packages) {
    assert.equal(typeof p.types === 'string' && p.reason === null, p.hasTypes, JSON.stringify(p));
    if (!p.hasTypes) assert.match(p.reason, /^[^\n]{5,240}$/);
  }
  return packages;
}

/** As registries are: the tag latest is there. */
const tagged = (name, releases) => ({ ...packument(name, releases), 'dist-tags': { latest: '1.0.0' } });
const serve = (t, packages, answer = () => false) => serveUntagged(t, packages, (req, res) =>
  answer(req, res) || (req.url.slice(1) in packages && Boolean(res.end(JSON.stringify(tagged(req.url.slice(1), packages[req.url.slice(1)]))))));

/** A package of one version: {path: content}. */
const pack = (files, json = {}) => ({ '1.0.0': { tarball: tgz(...Object.entries({ 'package.json': JSON.stringify(json), ...files })
  .map(([name, content]) => ({ name: `package/${name}`, content }))) } });

describe('types of the configured registry', limit, () => {
  let s;
  before(async () => { s = await connect(variants['HTTP, modern'], [], { JERBOA_HOME: tempDir() }); });
  after(() => s.close());

  test('own types, those of @types, exports only, scopes, ranges, tags, an alias', async () => {
    const seen = [];
    const [dayjs, express, zod, is, babel, ms, alias, old, range] = await ask(s, [{ name: 'dayjs' }, { name: 'express', version: '^4' }, { name: 'zod', version: 'latest' },
      { name: '@sindresorhus/is', version: '^7' }, { name: '@babel/core', version: '7' }, { name: 'ms', version: '2.1.3' }, { name: 'short', version: 'npm:ms@^2' },
      { name: 'zod', version: '3.22.4' }, { name: 'ms', version: '^99' }], { onprogress: (p) => seen.push(p.message) });
    assert.match(dayjs.types, /^\/\/ index\.d\.ts\n[^]*declare function dayjs/);
    assert.match(dayjs.types, /\n\/\/ locale\/index\.d\.ts\n/); // named by a reference comment
    assert.deepEqual([dayjs.typesPackage, dayjs.reason], [null, null]);
    assert.equal(express.typesPackage, '@types/express');
    assert.match(express.version, /^4\./); // the types of that major version
    assert.match(express.types, /^\/\/ index\.d\.ts\n[^]*declare function e\(\)/);
    assert.match(zod.types, /^\/\/ index\.d\.cts\n[^]*\n\/\/ v4\/classic\/external\.d\.cts\n/);
    assert.ok(zod.leftOut.length > 0 && zod.types.length < 30_000, `${zod.types.length}`); // a ninth of what there is for all
    assert.match(is.types, /^\/\/ distribution\/index\.d\.ts\n/); // its package.json names it in exports alone
    assert.equal(is.typesPackage, null);
    assert.equal(babel.typesPackage, '@types/babel__core');
    assert.deepEqual([ms.typesPackage, alias.typesPackage, alias.types], ['@types/ms', '@types/ms', ms.types]);
    assert.equal(old.version, '3.22.4');
    assert.match(range.reason, /ms: the registry has no version that suits "\^99"/);
    assert.ok(seen.some((m) => /^\d of 9 packages: /.test(m)), JSON.stringify(seen));
  });

  test('the types are TypeScript: the compiler of an agent would take them', async () => {
    const [ms] = await ask(s, [{ name: '@types/ms' }]);
    assert.match(ms.types, /export = ms;\n$/);
    assert.deepEqual(ms.leftOut, []);
  });
});

describe('types of a registry on loopback', limit, () => {
  test('entry first, what it names behind it, and what is too long left out', async (t) => {
    const long = `export const long: '${'x'.repeat(70_000)}';\n`;
    const registry = await serve(t, {
      deep: pack({ 'lib/a.d.mts': `import './b.mjs';\n${'// a line\n'.repeat(10)}`, 'lib/b.d.mts': `export * from '../c/index.js';\nimport './long.mjs'`, 'lib/long.d.mts': long,
        'c/index.d.ts': 'export {};\n', 'unused.d.ts': 'nobody', 'index.d.ts': 'wrong' }, { exports: { '.': { import: { default: './lib/a.mjs', types: './lib/a.d.mts' }, require: './x.cjs' } } }),
      big: pack({ 'index.d.ts': `export const first: 1;\n${long}` }),
      own: pack({ 'index.d.ts': `export * from '#parts/a.js';\nexport * from './sub';\n`, 'parts/a.d.ts': 'export const a: 1;\n', 'dist/s.d.ts': 'export const s: 1;\n',
        'sub/package.json': JSON.stringify({ types: '../dist/s.d.ts' }), 'test/package.json': '{' }, { imports: { '#parts/*': './parts/*' } }),
      none: pack({ 'index.js': '' }), stub: pack({ 'index.js': '' }), '@types%2fstub': pack({ 'README.md': 'has its own' }),
      '@types%2fs__n': pack({ 'index.d.ts': 'export const mangled: 1;\n' }), '@s%2fn': pack({ 'index.js': '' }),
      Capitals: pack({ 'index.js': '' }), '@types%2fcapitals': pack({ 'index.d.ts': '/// <reference types="./more" />\n', 'more.d.ts': 'declare const more: 1;\n' }),
    });
    const s = await serverOf(t, registry.url);
    const [deep, big, own, none, stub, scoped, capitals] = await ask(s, ['deep', 'big', 'own', 'none', 'stub', '@s/n', 'Capitals'].map((name) => ({ name })));
    assert.match(deep.types, /^\/\/ lib\/a\.d\.mts\nimport [^]*\n\/\/ lib\/b\.d\.mts\n[^]*\n\/\/ c\/index\.d\.ts\nexport \{\};\n$/);
    assert.deepEqual(deep.leftOut, [`lib/long.d.mts (${long.length} bytes)`]);
    assert.equal(big.types, '// index.d.ts\nexport const first: 1;\n');
    assert.match(big.leftOut[0], /^index\.d\.ts \(only the first 23 of \d+ bytes\)$/);
    assert.equal(own.types.replaceAll(/^export .*\n/gm, ''), '// index.d.ts\n\n// parts/a.d.ts\n\n// dist/s.d.ts\n'); // names of the package, and a directory's package.json
    assert.match(none.reason, /^the package has no type declarations of its own, and @types\/none is not in the registry$/);
    assert.match(stub.reason, /and @types\/stub has none either$/);
    assert.deepEqual([scoped.typesPackage, scoped.types], ['@types/s__n', '// index.d.ts\nexport const mangled: 1;\n']);
    assert.deepEqual([capitals.typesPackage, capitals.types], ['@types/capitals', '// index.d.ts\n/// <reference types="./more" />\n\n// more.d.ts\ndeclare const more: 1;\n']);
    const before = registry.tarballs().length;
    await ask(s, ['deep', 'big', '@s/n'].map((name) => ({ name })));
    assert.equal(registry.tarballs().length, before); // by its hash, in the store
  });

  test('hostile and broken packages: a sentence each, the others unharmed', async (t) => {
    const member = (m) => ({ '1.0.0': { tarball: tgz({ name: 'package/package.json', content: '{}' }, { name: 'package/index.d.ts' }, m) } });
    const header = tarMember({ name: 'package/zeros' }).subarray(0, 512);
    header.write('80000000000000028000000000', 124, 12, 'hex'); // 10 GiB, in base 256
    header.fill(' ', 148, 156).write(`${header.reduce((a, b) => a + b, 0).toString(8).padStart(6, '0')}\0 `, 148);
    const zeros = gzipSync(Buffer.alloc(64 << 20));
    const many = gzipSync(Buffer.concat(Array.from({ length: 10_000 }, (_, i) => tarMember({ name: `package/${i}` }))));
    const longNames = gzipSync(Buffer.concat(Array.from({ length: 100 }, (_, i) =>
      Buffer.concat([tarMember({ name: 'long', type: 'L', content: `package/${'x'.repeat(4000)}${i}.d.ts` }), tarMember({ name: 'package/x' })]))));
    const hostile = {
      symlink: [member({ name: 'package/x', type: '2', link: '/etc/passwd' }), /"package\/x": it is neither a file nor a directory/],
      hardlink: [member({ name: 'package/x', type: '1', link: '/etc/passwd' }), /neither a file nor a directory/],
      dots: [member({ name: 'package/../../evil.d.ts' }), /its name leads out of the package/],
      absolute: [member({ name: '/tmp/evil.d.ts' }), /its name is absolute/],
      zeros: [{ '1.0.0': { tarball: Buffer.concat([gzipSync(header), ...Array(160).fill(zeros)]) } }, /"package\/zeros": the package is too large/],
      million: [{ '1.0.0': { tarball: Buffer.concat(Array(100).fill(many)) } }, /the package has too many files/],
      names: [{ '1.0.0': { tarball: Buffer.concat(Array(100).fill(longNames)) } }, /the names of its files are too long/],
      garbage: [{ '1.0.0': { tarball: Buffer.from('hello') } }, /damaged/],
      cut: [{ '1.0.0': { tarball: tgz({ name: 'package/index.d.ts', content: 'x'.repeat(9999) }).subarray(0, 40) } }, /damaged/],
      json: [pack({ 'package.json': '{', 'index.d.ts': '' }), /its package.json is missing, or not JSON/],
      nojson: [{ '1.0.0': { tarball: tgz({ name: 'package/index.d.ts' }) } }, /its package.json is missing, or not JSON/],
      hash: [{ '1.0.0': { tarball: tgz({ name: 'package/index.d.ts' }), integrity: sha512('other') } }, /sha512 is not the one/],
    };
    const registry = await serve(t, { good: pack({ 'index.d.ts': 'export {};\n' }), ...Object.fromEntries(Object.entries(hostile).map(([name, [release]]) => [name, release])) });
    const s = await serverOf(t, registry.url, 'stdio, modern');
    const names = [...Object.keys(hostile), 'unknown', '../up', 'good'];
    const packages = await ask(s, [...names.map((name) => ({ name })), { name: 'good', version: 'file:../x' }, { name: 'good', version: '^2' }, { name: 'good', version: 'no-such-tag' }]);
    for (const [i, [name, [, sentence]]] of Object.entries(hostile).entries()) assert.match(packages[i].reason, sentence, name);
    const [unknown, up, good, file, range, tag] = packages.slice(names.length - 3);
    assert.match(unknown.reason, /unknown: the registry does not have it/);
    assert.match(up.reason, /no name of an npm package/);
    assert.equal(good.types, '// index.d.ts\nexport {};\n');
    assert.match(file.reason, /is refused/);
    for (const p of [range, tag]) assert.match(p.reason, /no version that suits/);
    refused(await s.call('get_dependency_types', { dependencies: [{ version: '1' }] }), /^The dependencies are not valid: /);
    for (const dependencies of [[], Array(21).fill({ name: 'good' }), 'good']) assert.equal((await s.call('get_dependency_types', { dependencies })).isError, true);
    assert.deepEqual(s.errors, []);
  });

  test('documents that a registry cut, and one that is small on the wire and large in memory', async (t) => {
    const bomb = gzipSync(`{"versions":[${'{},'.repeat(10 << 20)}{}]}`);
    const packages = { cut: pack({ 'index.d.ts': 'export {};\n' }) };
    const registry = await serve(t, packages, (req, res) => {
      if (req.url.startsWith('/-/v1/search')) res.end('{"objects":[{"package":{"name":"cut","description":"cut \\ud83d"}}]}');
      else if (req.url === '/cut') res.end(JSON.stringify({ ...tagged('cut', packages.cut), description: 'nothing \0', readme: '# cut \ud83d' }));
      else if (req.url === '/bomb') res.writeHead(200, { 'content-encoding': 'gzip' }).end(bomb);
      else return false;
      return true;
    });
    const s = await serverOf(t, registry.url);
    const [cut, large] = await ask(s, [{ name: 'cut' }, { name: 'bomb' }]);
    assert.equal(cut.types, '// index.d.ts\nexport {};\n');
    assert.match(large.reason, /bomb: the registry's answer has too many values$/);
    const { structuredContent } = await s.call('search_npm_packages', { searchTerm: 'cut' });
    assert.deepEqual(structuredContent.packages, [{ name: 'cut', description: 'cut \ufffd', readmeSnippet: '# cut \ufffd' }]);
  });

  test('a registry that is down', async (t) => {
    const s = await serverOf(t, 'http://127.0.0.1:1');
    for (const p of await ask(s, [{ name: 'a' }, { name: 'b' }])) assert.match(p.reason, /the registry cannot be reached/);
    refused(await s.call('search_npm_packages', { searchTerm: 'a' }), /^The search failed: the registry cannot be reached: .*: try again later/);
    const without = await connectFor(t, { ...variants['stdio, legacy'], lacks: 'jerboa-fetch' });
    assert.match((await ask(without, [{ name: 'a' }]))[0].reason, /jerboa-fetch/);
  });

  test('side by side, some at a time; a cancel ends all of it at once', async (t) => {
    const held = [];
    const registry = await serve(t, {}, (req, res) => Boolean(held.push(res)));
    const s = await serverOf(t, registry.url);
    for (const [tool, args, count] of [['get_dependency_types', { dependencies: Array.from({ length: 20 }, (_, i) => ({ name: `p${i}` })) }, 8], ['search_npm_packages', { searchTerm: 'a' }, 1]]) {
      const controller = new AbortController(), before = held.length;
      const call = s.call(tool, args, { signal: controller.signal });
      await until(() => held.length === before + count, () => `${held.length}`);
      assert.equal(fetchers(s).length, count);
      assert.equal(lines(s).length, count);
      controller.abort();
      await assert.rejects(call);
      await until(() => fetchers(s).length === 0 && lines(s).length === 0, 'they still run');
      assert.equal(held.length, before + count); // those that waited never began
    }
    assert.deepEqual(s.errors, []);
  });

  test('a call that waits for twenty slow packages does not make others wait', async (t) => {
    const held = [];
    const registry = await serve(t, {}, (req, res) => Boolean(req.url.startsWith('/-/v1/search') ? res.end('{"objects":[]}') : held.push(res)));
    const s = await serverOf(t, registry.url);
    const controller = new AbortController();
    const slow = assert.rejects(s.call('get_dependency_types', { dependencies: Array.from({ length: 20 }, (_, i) => ({ name: `p${i}` })) }, { signal: controller.signal }));
    await until(() => held.length === 8, () => `${held.length}`);
    assert.equal(text(await s.call('search_npm_packages', { searchTerm: 'a' })), 'No packages found.'); // within ten seconds, or it says that it was not
    assert.equal(held.length, 8);
    controller.abort();
    await slow;
  });

  /** How long a process had a processor: the same on a machine that has others to serve. */
  const workedMs = (pid) => +fs.readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ')[0] / 1e6;

  /** A registry of its own process, so that this one has nothing to do but to ask: all it has is a document of more than 20 MB and its tarball. */
  async function serveLarge(t) {
    const release = pack({ 'index.d.ts': 'export {};\n' });
    const script = `const [document, tarball] = JSON.parse(process.argv[1]);
      for (let i = 0; i < 200_000; i++) document.versions['0.0.' + i] = { name: 'large', version: '0.0.' + i, description: 'x'.repeat(40) };
      const body = Buffer.from(JSON.stringify(document));
      const server = require('node:http').createServer((req, res) => res.end(req.url.endsWith('.tgz') ? Buffer.from(tarball, 'base64') : body));
      server.listen(0, '127.0.0.1', () => console.log(body.length, server.address().port, 'up'))`;
    const child = start(['-e', script, JSON.stringify([tagged('large', release), release['1.0.0'].tarball.toString('base64')])], { program: process.execPath, seconds: 110 });
    t.after(() => { child.kill('SIGKILL'); return child.ended; });
    await printed(child, 'up');
    const [size, port] = child.text('stdout').split(' ');
    assert.ok(size > 20e6, size);
    return { url: `http://127.0.0.1:${port}/` };
  }

  // A server that parsed such a document would work for a second before it answers; one that waited for the fetcher would answer only when
  // that is done. Neither measure depends on how much else runs here.
  test('documents of 20 MB do not hold up others: a ping costs no more than ever, and none waits for the documents', async (t) => {
    const registry = await serveLarge(t);
    const s = await serverOf(t, registry.url);
    const pings = [];
    let over = false;
    await ask(s, [{ name: '../up' }]); // so that the client has compiled the tool's schema, and itself
    for (let i = 0; i < 50; i++) await s.client.ping();
    const began = performance.now();
    const call = ask(s, [{ name: 'large' }, { name: 'large', version: '1' }]).finally(() => { over = true; });
    while (!over) {
      const worked = workedMs(s.pid), asked = performance.now();
      await s.client.ping();
      pings.push({ worked: workedMs(s.pid) - worked, clock: performance.now() - asked });
      await new Promise((resolve) => { setTimeout(resolve, 5); });
    }
    const all = performance.now() - began, longest = (what) => Math.max(...pings.map((p) => p[what]));
    for (const p of await call) assert.equal(p.types, '// index.d.ts\nexport {};\n');
    const said = `${pings.length} pings, the longest took ${longest('clock').toFixed(1)} of ${all.toFixed(0)} ms, ${longest('worked').toFixed(1)} ms of work`;
    t.diagnostic(said);
    assert.ok(pings.length > 10 && longest('worked') < 50 && longest('clock') < all / 2, said);
  });
});

describe('search', limit, () => {
  /** A canned answer of a registry, as npm's gives it. */
  const canned = (...rows) => ({ objects: rows.map(([name, popularity, monthly = 0]) => ({ downloads: { monthly }, score: { detail: { popularity } },
    package: { name, version: '1.0.0', description: `what ${name} does` } })) });
  const readme = (text) => pack({ 'README.md': text });

  test('a canned answer (not of a real registry): five, by popularity, then downloads; READMEs of documents and tarballs', async (t) => {
    const long = `# ${'ü'.repeat(600)}`;
    const packages = { a: readme('# a'), b: pack({ readme: 'plain', 'lib/README.md': 'not this' }), c: pack({ 'index.js': '' }), d: readme(long), f: readme('never asked for') };
    const registry = await serve(t, packages, (req, res) => {
      if (req.url.startsWith('/-/v1/search')) res.end(JSON.stringify(canned(['f', 0.1], ['c', 0.5, 10], ['b', 0.5, 20], ['a', 0.9], ['e', 0.4], ['d', 0.4])));
      else if (req.url === '/a') res.end(JSON.stringify({ ...tagged('a', packages.a), readme: ' \n' })); // says nothing, so its tarball is asked
      else if (req.url === '/b' && req.headers.accept === 'application/json') res.end(JSON.stringify({ ...tagged('b', packages.b), readme: 'of a document that is too large', pad: 'x'.repeat(33 << 20) }));
      else if (req.url === '/e') res.end(JSON.stringify({ ...tagged('e', {}), readme: `\n\n${'0123456789'.repeat(60)}` }));
      else return false;
      return true;
    });
    const s = await serverOf(t, registry.url);
    const seen = [];
    const r = await s.call('search_npm_packages', { searchTerm: 'some+words', qualifiers: { author: 'jo', scope: '@vue', keywords: 'x+y,z', not: 'unstable', is: 'insecure', maintainer: 'al', boostExact: 'false' } },
      { onprogress: (p) => seen.push(p.message) });
    const { packages: found } = r.structuredContent;
    assert.deepEqual(JSON.parse(text(r)), found);
    assert.deepEqual(found.map((p) => [p.name, p.description]), ['a', 'b', 'c', 'e', 'd'].map((name) => [name, `what ${name} does`]));
    assert.deepEqual(found.map((p) => p.readmeSnippet), ['# a', 'plain', 'README not available.', '0123456789'.repeat(50), long.slice(0, 500)]);
    const url = new URL(registry.requests[0], registry.url);
    assert.equal(url.searchParams.get('text'), 'some words author:jo maintainer:al scope:vue keywords:x+y,z not:unstable is:insecure boost-exact:false');
    assert.deepEqual([url.searchParams.get('size'), url.searchParams.get('popularity')], ['20', '1.0']);
    assert.equal(seen[0], 'searching');
    assert.ok(!registry.requests.includes('/f'));
  });

  test('a real registry finds what was published', async (t) => {
    const dir = tempDir(t);
    const verdaccio = await startVerdaccio(dir, 'search');
    t.after(() => verdaccio.stop());
    const token = await makeToken(verdaccio.url);
    const tarball = (name) => pack({ 'README.md': `# ${name} of the tarball`, 'index.d.ts': `export const ${name.replaceAll(/\W/g, '_')}: 1;\n` }, { name, version: '1.0.0' })['1.0.0'].tarball;
    for (const name of ['gerbil-one', 'gerbil-two', '@desert/gerbil', 'other'])
      await publish(verdaccio.url, token, name, tarball(name), { description: `${name} digs` });
    const s = await serverOf(t, verdaccio.url, 'HTTP, legacy');
    const r = await s.call('search_npm_packages', { searchTerm: 'gerbil' });
    assert.ok(!r.isError, text(r));
    const { packages } = r.structuredContent;
    assert.deepEqual(packages.map((p) => p.name).sort(), ['@desert/gerbil', 'gerbil-one', 'gerbil-two']);
    for (const p of packages) assert.deepEqual([p.description, p.readmeSnippet], [`${p.name} digs`, `# ${p.name} of the tarball`]);
    const [types] = await ask(s, [{ name: '@desert/gerbil' }]);
    assert.equal(types.types, '// index.d.ts\nexport const _desert_gerbil: 1;\n');
    const none = await s.call('search_npm_packages', { searchTerm: 'nobody-has-published-this' });
    assert.deepEqual([none.content, none.structuredContent], [[{ type: 'text', text: 'No packages found.' }], { packages: [] }]);
  });

  test('registries without search, words that are none', async (t) => {
    const missing = await serve(t, {}), other = await serve(t, {}, (req, res) => Boolean(res.end('{"hello":1}'))), html = await serve(t, {}, (req, res) => Boolean(res.end('<html>')));
    refused(await (await serverOf(t, missing.url)).call('search_npm_packages', { searchTerm: 'a' }),
      /^Packages cannot be searched here: the registry http:\/\/127\.0\.0\.1:\d+\/ has no search \(HTTP status 404\): name packages that you know: get_dependency_types/);
    for (const status of [405, 501]) {
      const lacking = await serve(t, {}, (req, res) => Boolean(res.writeHead(status).end()));
      refused(await (await serverOf(t, lacking.url)).call('search_npm_packages', { searchTerm: 'a' }), new RegExp(`has no search \\(HTTP status ${status}\\): name packages`));
    }
    refused(await (await serverOf(t, other.url)).call('search_npm_packages', { searchTerm: 'a' }), /^Packages cannot be searched here: .* has no search/);
    const s = await serverOf(t, html.url);
    refused(await s.call('search_npm_packages', { searchTerm: 'a' }), /^The search failed: the registry's answer is not JSON/);
    const asked = html.requests.length;
    for (const args of [{ searchTerm: 'a b' }, { searchTerm: '+' }, { searchTerm: 'a', qualifiers: { author: '' } }, { searchTerm: 'a', qualifiers: { author: 'a b' } },
      { searchTerm: 'a', qualifiers: { unknown: 'x' } }, { searchTerm: 'a', qualifiers: { boostExact: 'maybe' } }, { searchTerm: 'a', qualifiers: { scope: 1 } }])
      refused(await s.call('search_npm_packages', args), /^The search is not valid: /);
    assert.equal(html.requests.length, asked);
  });

  test('ten seconds in all', async (t) => {
    const stuck = await serve(t, { a: readme('# a') }, (req, res) => {
      if (req.url.startsWith('/-/v1/search')) return Boolean(res.end(JSON.stringify(canned(['a', 1], ['b', 0.5]))));
      return req.url === '/b'; // never answered
    });
    const silent = await serve(t, {}, () => true);
    const began = performance.now();
    const [slow, never] = await Promise.all([stuck, silent].map(async ({ url }) => (await serverOf(t, url)).call('search_npm_packages', { searchTerm: 'a' })));
    const ms = performance.now() - began;
    assert.deepEqual(slow.structuredContent.packages.map((p) => p.readmeSnippet), ['# a', 'README not available.']);
    refused(never, /^The search failed: the registry did not answer within 10 s/);
    assert.ok(ms > 9_000, `${ms}`);
  });
});
