// The installer of dependencies, taken over: a registry whose bun is a program of the test's, and a package whose install script is. What they
// try succeeds where the named walls of the jail are left out, or on the bare host; in the sandboxes that jerboa-layer makes it must not.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { before, test } from 'node:test';
import { copyPrograms, jerboa, root, start, tempDir } from '../integration/jerboa.mjs';
import { packument, serve, storeEnv, tgz } from '../integration/registry.mjs';
import { jails } from './host.mjs';

const limit = { timeout: 120_000 };
const landlock = 'step landlock', arch = process.arch === 'arm64' ? 'aarch64' : 'x64';

// It fails in any case: of an install script that does not, npm tells nothing.
const prelude = `const fs = require('node:fs'), net = require('node:net'); process.exitCode = 1; process.on('uncaughtException', (e) => { console.log('in vain: ' + e.code); process.exit(1); });\n`;
const read = (at, inside) => `console.log(fs.readFileSync(${JSON.stringify(`${inside ? '/..' : ''}${at.dir}/secret`)}, 'utf8'))`;
const write = (at, inside) => `fs.writeFileSync(${JSON.stringify(`${inside ? '/..' : ''}${at.dir}/open/planted`)}, 'x'); console.log('written')`;
const connect = (at) => `net.connect(${at.port}, '127.0.0.1').on('data', (d) => { console.log(String(d)); process.exit(1); })`;

// who: the installer itself, or a package's install script. walls null: the control is the bare host.
const rows = [
  { name: 'a secret, by the installer', who: 'bun', walls: ['old root', landlock], code: read },
  { name: 'a directory that all may write, by the installer', who: 'bun', walls: ['old root', landlock], code: write, seen: (at) => fs.existsSync(`${at.dir}/open/planted`) },
  { name: 'a port of this machine that is no registry\'s, by the installer', who: 'bun', walls: null, code: connect },
  { name: 'a secret, by an install script', who: 'script', walls: ['old root', landlock], code: read },
  { name: 'a port of this machine that is no registry\'s, by an install script', who: 'script', walls: null, code: connect },
];

let runtime, version, ours;
before(() => {
  ours = execFileSync(jerboa, ['--version'], { encoding: 'utf8' }).trim().split(' ').at(-1);
  runtime = execFileSync(jerboa, ['pull'], { encoding: 'utf8' }).trim();
  version = execFileSync(path.join(runtime, 'bin/node'), ['-p', 'process.versions.node'], { encoding: 'utf8' }).trim();
});

/** What a registry has for it: a bun that is none, or a package. */
const packagesOf = (who, code) => (who === 'bun'
  ? { [`@oven%2fbun-linux-${arch}`]: { '1.0.0': { tarball: tgz({ name: 'package/bin/bun', content: `#!/opt/node/bin/node\n${prelude}${code}`, mode: 0o755 }) } } }
  : { hostile: { '1.0.0': { tarball: tgz({ name: 'package/package.json', content: JSON.stringify({ name: 'hostile', version: '1.0.0', scripts: { postinstall: 'node attack.cjs' } }) },
    { name: 'package/attack.cjs', content: prelude + code }) } } });

/** As registries have it of packages with scripts; npm believes it. */
function document(packages) {
  const whole = packument('hostile', packages.hostile);
  for (const release of Object.values(whole.versions)) Object.assign(release, { hasInstallScript: true, scripts: { postinstall: 'node attack.cjs' } });
  return whole;
}

async function attempt(t, { who, code, seen }, leftOut) {
  const dir = tempDir(t), programs = path.join(dir, 'programs'), word = randomBytes(12).toString('hex');
  const server = createServer((socket) => socket.on('error', () => {}).end(word)).listen(0, '127.0.0.1');
  t.after(() => server.close());
  await once(server, 'listening');
  const at = { dir, port: server.address().port };
  fs.chmodSync(dir, 0o755);
  for (const place of ['store', 'programs', 'open']) fs.mkdirSync(path.join(dir, place));
  fs.chmodSync(path.join(dir, 'open'), 0o777);
  fs.writeFileSync(path.join(dir, 'secret'), word, { mode: 0o644 });
  let r;
  if (leftOut === null)
    r = await start(['-e', prelude + code(at, false)], { program: process.execPath, input: '' }).ended;
  else {
    copyPrograms(programs);
    if (leftOut) fs.copyFileSync(jails.open, path.join(programs, 'jerboa-jail'));
    fs.writeFileSync(path.join(programs, 'left-out'), (leftOut ?? []).join('\n'));
    const packages = packagesOf(who, code(at, true));
    const registry = await serve(t, packages, (req, res) => who === 'script' && req.url === '/hostile' && Boolean(res.end(JSON.stringify(document(packages)))));
    const request = { version: ours, dependencies: { hostile: '1.0.0' }, key: 'a'.repeat(64), installer: who === 'bun' ? 'bun' : 'npm', identity: 'test', nodeVersion: version, runtimeDir: runtime };
    r = await start([], { program: path.join(programs, 'jerboa-layer'), input: JSON.stringify(request), env: storeEnv(path.join(dir, 'store'), registry.url), seconds: 60 }).ended;
  }
  const said = `${r.stdout}${r.stderr}`;
  return { arrived: said.includes(word) || Boolean(seen?.(at)), came: said.includes('in vain: '), said };
}

for (const row of rows)
  test(`taken over: ${row.name}`, limit, async (t) => {
    const control = await attempt(t, row, row.walls);
    assert.ok(control.arrived, `without ${row.walls ?? 'a sandbox'} it should arrive: ${control.said}`);
    const real = await attempt(t, row, undefined);
    assert.ok(!real.arrived, `it got out: ${real.said}`);
    assert.ok(real.came, `it did not even try: ${real.said}`);
    t.diagnostic(`${row.name} | ${row.walls?.join(', ') ?? 'the bare host'} | ${/in vain: \w+/.exec(real.said)?.[0]}`);
  });

test('SECURITY.md names each way of the installer', () => {
  const text = fs.readFileSync(`${root}/SECURITY.md`, 'utf8');
  assert.deepEqual(rows.map(({ name }) => name).filter((name) => !text.includes(`*${name}*`)), []);
});
