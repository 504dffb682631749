// What packages' install scripts reach: the configured registries, and nothing else. Each destination answers the same probe outside of a sandbox first.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { jerboa, printed, tempDir, writeFiles } from './jerboa.mjs';
import { here, makeNetwork } from './network.mjs';

const limit = { timeout: 240_000 };

/** What answers, by whom. The first two are registries: npm's own, and one of a scope. */
const scoped = 'registry.example:8080';
const elsewhere = { 'public.example:8080': 'internet 93.184.216.34', '93.184.216.34:8080': 'internet 93.184.216.34', '[2606:2800:220:1::1]:8080': 'internet 2606:2800:220:1::1',
  'private.example:8080': 'internet 10.1.2.3', '10.1.2.3:8080': 'internet 10.1.2.3', 'metadata.example:8080': 'internet 169.254.169.254',
  '169.254.169.254:8080': 'internet 169.254.169.254', 'loop.example:8080': 'host 127.0.0.1', '127.0.0.1:8080': 'host 127.0.0.1', [`${here}:8080`]: `host ${here}` };

/** Asks all places and writes {place: answer, or an error's code} to a file. CommonJS: it is a package's script, too. */
const probe = (places) => `
const ask = (place) => fetch('http://' + place + '/', { signal: AbortSignal.timeout(10_000) }).then((r) => r.text(), (e) => 'error ' + (e.cause?.code ?? e.name));
Promise.all(${JSON.stringify(places)}.map(async (place) => [place, await ask(place)]))
  .then((rows) => require('node:fs').writeFileSync(__dirname + '/report.json', JSON.stringify(Object.fromEntries(rows))));
`;

/** A registry of one package, whose script is the probe. */
const registryCode = `
import { createServer } from 'node:http';
import { sha512, tgz } from ${JSON.stringify(path.join(import.meta.dirname, 'registry.mjs'))};
const probe = ${probe};
const server = createServer((req, res) => {
  if (req.url === '/') return res.end('registry');
  const url = 'http://' + req.headers.host, scripts = { postinstall: 'node probe.cjs' };
  const bytes = tgz({ name: 'package/package.json', content: JSON.stringify({ name: 'spy', version: '1.0.0', scripts }) },
    { name: 'package/probe.cjs', content: probe([...JSON.parse(process.argv[1]), req.headers.host]) }, { name: 'package/index.js', content: 'module.exports = require("./report.json")' });
  if (req.url.endsWith('.tgz')) return res.end(bytes);
  res.setHeader('content-type', 'application/json').end(JSON.stringify({ name: 'spy', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': { name: 'spy', version: '1.0.0', scripts, hasInstallScript: true,
    dist: { tarball: url + '/spy/-/spy-1.0.0.tgz', integrity: sha512(bytes) } } } }));
});
server.listen(0, '127.0.0.1', () => console.log('127.0.0.1:' + server.address().port + ' is ready'));
process.stdin.on('end', () => process.exit()).resume();
`;

let network, registry, host;
before(async () => {
  network = await makeNetwork(['public.example']);
  registry = network.start([process.execPath, '--input-type=module', '-e', registryCode, JSON.stringify([...Object.keys(elsewhere), scoped])], { seconds: 110 });
  await printed(registry, 'is ready');
  [host] = registry.text('stdout').split(' ');
}, limit);
after(async () => {
  registry?.stdin.end();
  await registry?.ended;
  await network?.close();
});

/** With a runtime and bun: nothing can be fetched from here. */
function makeStore(t) {
  const store = tempDir(t), of = (...args) => execFileSync(jerboa, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  for (const dir of [of('pull'), of('fetch', 'tool', 'bun')]) {
    const part = path.join(store, path.basename(path.dirname(dir)));
    fs.mkdirSync(part);
    execFileSync('cp', ['-a', '--reflink=auto', dir, part]);
  }
  return writeFiles(store, { '.npmrc': `@mine:registry=http://${scoped}/\n` });
}

test('install scripts reach the registries, and nothing else', limit, async (t) => {
  const outside = writeFiles(tempDir(t), { 'probe.cjs': probe([...Object.keys(elsewhere), scoped, host]) });
  const { status, stderr } = await network.start([process.execPath, path.join(outside, 'probe.cjs')], { input: '' }).ended;
  assert.equal(status, 0, stderr);
  const registries = { [scoped]: 'internet 10.9.9.9', [host]: 'registry' };
  assert.deepEqual(JSON.parse(fs.readFileSync(path.join(outside, 'report.json'))), { ...elsewhere, ...registries });

  const store = makeStore(t), env = { JERBOA_HOME: store, HOME: store, npm_config_registry: `http://${host}/`, JERBOA_ENV: undefined };
  for (const installer of ['bun', 'npm']) {
    const run = await network.start([jerboa, 'run', '--network', 'internet', '--installer', installer, '--dep', 'spy', '-e', 'import spy from "spy"; console.log(JSON.stringify(spy))'],
      { input: '', seconds: 100, env }).ended;
    assert.equal(run.status, 0, run.stderr);
    const { [scoped]: one, [host]: other, ...rest } = JSON.parse(run.stdout);
    assert.deepEqual({ [scoped]: one, [host]: other }, registries);
    assert.deepEqual(Object.keys(rest), Object.keys(elsewhere));
    for (const [place, answer] of Object.entries(rest)) assert.match(answer, /^error (E|UND_ERR)/, `${place}: ${answer}`);
  }
});
