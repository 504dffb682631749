// A row of the escape tests (probes.mjs): what the code of a package gets hold of, while it is installed and when it is
// imported. Its control is npm on the bare host, with the same configuration. `deps.test.mjs` looks at more.
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { createServer } from 'node:http';
import path from 'node:path';
import { sha512, tgz } from '../integration/registry.mjs';
import { jerboa } from './host.mjs';

/** The package's own code: where it finds the word, and a mark in every cache that it may write. */
const look = (home, halves) => `const fs = require('node:fs'), word = ${JSON.stringify(halves)}.join(''), env = process.env;
const reads = (file) => { try { return fs.readFileSync(file, 'latin1').includes(word); } catch { return false; } };
const homes = [env.HOME, env.INIT_CWD, '/root', ${JSON.stringify(home)}];
const files = [env.npm_config_userconfig, env.npm_config_globalconfig, '/etc/npmrc', ...homes.map((dir) => dir + '/.npmrc'),
  ...fs.readdirSync('/proc').filter((name) => +name).map((pid) => '/proc/' + pid + '/environ')];
for (const cache of [env.npm_config_cache, ...homes.flatMap((dir) => [dir + '/.npm', dir + '/store/cache', dir + '/.bun/install/cache'])])
  try { fs.writeFileSync(cache + '/poisoned', ''); } catch {}
module.exports = [...Object.keys(env).filter((name) => env[name].includes(word)), ...files.filter((file) => file && reads(file))];
`;

/** One package, for who has the token. */
async function startRegistry(host, halves) {
  const manifest = { name: 'thief', version: '1.0.0', scripts: { postinstall: 'node install.js' } };
  const tarball = tgz(
    { name: 'package/package.json', content: JSON.stringify(manifest) },
    { name: 'package/look.js', content: look(host.home, halves) },
    { name: 'package/install.js', content: `require('node:fs').writeFileSync(__dirname + '/found.json', JSON.stringify(require('./look.js')))` },
    { name: 'package/index.js', content: `module.exports = [...require('./found.json'), ...require('./look.js')]` });
  const server = createServer((req, res) => {
    const dist = { tarball: `http://${req.headers.host}/thief/-/thief-1.0.0.tgz`, integrity: sha512(tarball) };
    if (req.headers.authorization !== `Bearer ${host.secret}`) res.writeHead(401).end('{"error":"who are you?"}');
    else if (req.url.endsWith('.tgz')) res.end(tarball);
    else res.end(JSON.stringify({ name: 'thief', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': { ...manifest, hasInstallScript: true, dist } } }));
  }).listen(0, '127.0.0.1');
  host.after(() => { server.closeAllConnections(); server.close(); });
  await once(server, 'listening');
  return `127.0.0.1:${server.address().port}`;
}

export const packages = {
  name: 'tokens and caches, by a package', walls: null, why: 'scripts run in a sandbox of their own, without npmrc, environment and cache',
  ready: async (host) => {
    const runtime = execFileSync(jerboa, ['pull'], { encoding: 'utf8' }).trim();
    host.home = fs.mkdtempSync(path.join(host.dir, 'home-'));
    host.after(() => fs.rmSync(host.home, { recursive: true }));
    host.npm = path.join(runtime, 'lib/node_modules/npm/bin/npm-cli.js');
    for (const dir of ['store', '.npm', 'project']) fs.mkdirSync(path.join(host.home, dir));
    fs.symlinkSync(path.dirname(runtime), path.join(host.home, 'store/runtimes'));
    // npm asks for consent to scripts, which it gets
    fs.writeFileSync(path.join(host.home, 'project/package.json'), JSON.stringify({ dependencies: { thief: '1.0.0' }, allowScripts: { 'thief@1.0.0': true } }));
    host.registry = await startRegistry(host, [host.secret.slice(0, 5), host.secret.slice(5)]);
    fs.writeFileSync(path.join(host.home, '.npmrc'), `//${host.registry}/:_authToken=${host.secret}\n`);
  },
  env: (host) => ({ HOME: host.home, JERBOA_HOME: path.join(host.home, 'store'), JERBOA_INSTALLER: 'npm', NPM_TOKEN: host.secret,
    npm_config_registry: `http://${host.registry}/`, npm_config_cache: path.join(host.home, '.npm'), no_proxy: '127.0.0.1' }),
  command: (host, code, leftOut) => (leftOut === null
    ? ['/bin/sh', '-c', '"$0" "$1" install --no-audit --no-fund >&2 && exec "$0" -p "JSON.stringify(require(\'thief\'))"', process.execPath, host.npm]
    : [host.jerboa, 'run', '--dep', 'thief', '-e', 'console.log(JSON.stringify((await import("thief")).default))']),
  cwd: (host) => path.join(host.home, 'project'),
  arrived: (host, r, leftOut) => {
    if (r.status !== 0) throw new Error(`nothing was installed: ${r.stderr}`);
    const found = JSON.parse(r.stdout), npmrc = path.join(host.home, '.npmrc');
    const poisoned = fs.readdirSync(host.home, { recursive: true }).some((name) => path.basename(name) === 'poisoned');
    return leftOut === null ? found.includes('NPM_TOKEN') && found.includes(npmrc) && poisoned : found.length > 0 || poisoned;
  },
};
