// npm's configuration: our reading of it against npm's own, and what it does, against a real registry (verdaccio).
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { connect } from 'node:net';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { makeStore, program, tgz } from './registry.mjs';
import { makeCertificate, makeToken, publish, startVerdaccio } from './verdaccio.mjs';

const limit = { timeout: 180_000 };
const jerboa = path.join(path.dirname(program), 'jerboa');
const npmPath = path.resolve(path.dirname(process.execPath), '../lib/node_modules/npm');

/** A home with a project in it. Files are written below it; nothing of whoever runs the tests is in the environment. */
async function makeHome(t, files = {}) {
  const home = await makeStore(t);
  await mkdir(path.join(home, 'project/deep'), { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    await mkdir(path.dirname(path.join(home, name)), { recursive: true });
    await writeFile(path.join(home, name), text);
  }
  const env = { HOME: home, JERBOA_HOME: path.join(home, 'store'), PATH: `${path.dirname(process.execPath)}:/usr/bin:/bin`,
    npm_config_globalconfig: path.join(home, 'global') };
  return { home, cwd: path.join(home, 'project'), env };
}

/** Runs to the end: {status, stdout, stderr}. */
function run(file, args, { env, cwd }) {
  return new Promise((resolve) => {
    execFile(file, args, { env, cwd, timeout: 50_000 }, (error, stdout, stderr) =>
      resolve({ status: error ? (error.code ?? error.signal) : 0, stdout, stderr }));
  });
}

const fetchPackage = (place, ...args) => run(jerboa, ['fetch', 'package', ...args], place);

/** npm's own configuration, by its own code, in a process of its own: {get: {key: value}, auth: {url: header}}. */
async function askNpm({ env, cwd }, keys, urls) {
  const script = `
    const { createRequire } = require('node:module');
    const need = createRequire(${JSON.stringify(path.join(npmPath, 'index.js'))});
    const Config = need('@npmcli/config');
    const { definitions, shorthands, flatten } = need('@npmcli/config/lib/definitions');
    const getAuth = need('npm-registry-fetch').getAuth;
    const config = new Config({ npmPath: ${JSON.stringify(npmPath)}, definitions, shorthands, flatten, argv: [] });
    config.load().then(() => {
      config.validate();
      const get = {}, auth = {};
      for (const key of ${JSON.stringify(keys)}) get[key] = config.get(key) ?? null;
      for (const url of ${JSON.stringify(urls)}) {
        const a = getAuth(url, config.flat);
        auth[url] = a.token ? 'Bearer ' + a.token : a.auth ? 'Basic ' + a.auth : null;
      }
      console.log(JSON.stringify({ get, auth }));
    });`;
  const { status, stdout, stderr } = await run(process.execPath, ['-e', script], { env, cwd });
  assert.equal(status, 0, stderr);
  return JSON.parse(stdout);
}

const text = (value) => (Array.isArray(value) ? value.join('\n\n') : String(value));

test('our reading of npmrc files is npm\'s', limit, async (t) => {
  const all = ['registry', '@a:registry', 'cafile', 'ca', 'proxy', 'https-proxy', 'noproxy', 'strict-ssl'];
  const cases = {
    'global alone': { files: { global: 'registry=https://global.test/\nproxy=http://p.test:1/\n' }, keys: ['registry', 'proxy'] },
    'user before global': { files: { global: 'registry=https://global.test/\n', '.npmrc': 'registry=https://user.test/\n' }, keys: ['registry'] },
    'project before user': { files: { '.npmrc': 'registry=https://user.test/\n', 'project/.npmrc': 'registry=https://project.test/\n' }, keys: ['registry'] },
    'environment before project': { files: { 'project/.npmrc': 'registry=https://project.test/\n' }, env: { npm_config_registry: 'https://env.test/' }, keys: ['registry'] },
    'an empty variable says nothing': { files: { '.npmrc': 'registry=https://user.test/\n' }, env: { npm_config_registry: '' }, keys: ['registry'] },
    'spellings of variables': { env: { NPM_CONFIG_HTTPS_PROXY: 'http://p.test/', Npm_Config_Strict_SSL: 'false', 'npm_config_@a:registry': 'https://a.test/' }, keys: ['https-proxy', 'strict-ssl', '@a:registry'] },
    'a user file elsewhere': { files: { 'other': 'registry=https://other.test/\n', '.npmrc': 'registry=https://user.test/\n' }, env: (home) => ({ npm_config_userconfig: `${home}/other` }), keys: ['registry'] },
    'a user file named with ~': { files: { 'other': 'registry=https://other.test/\n' }, env: { npm_config_userconfig: '~/other' }, keys: ['registry'] },
    'a global file below the prefix': { files: { 'prefix/etc/npmrc': 'registry=https://prefix.test/\n' }, env: (home) => ({ npm_config_globalconfig: '', npm_config_prefix: `${home}/prefix` }), keys: ['registry'] },
    'a prefix of the user\'s file': { files: { 'prefix/etc/npmrc': 'registry=https://prefix.test/\n', '.npmrc': 'prefix=~/prefix\n' }, env: { npm_config_globalconfig: '' }, keys: ['registry'] },
    'comments, quotes, blanks': { files: { '.npmrc': '; a\n# b\n registry = "https://q.test/"  \r\nproxy=\'http://p.test/\' \nnoproxy=a.test,b.test ; c\ncafile=/a\\;b.pem\n' }, keys: ['registry', 'proxy', 'noproxy', 'cafile'] },
    'the last one of a file': { files: { '.npmrc': 'registry=https://one.test/\nregistry=https://two.test/\n' }, keys: ['registry'] },
    'sections say nothing': { files: { '.npmrc': 'registry=https://one.test/\n[x]\nregistry=https://two.test/\n' }, keys: ['registry'] },
    'variables': { files: { '.npmrc': 'registry=https://${HOST}/${UNSET?}x/\n@a:registry=https://${UNSET}/\ncafile=${HOME}/ca.pem\n' }, env: { HOST: 'h.test' }, keys: ['registry', '@a:registry', 'cafile'] },
    'variables that are escaped': { files: { '.npmrc': '@a:registry=https://x.test/\\${HOST}/\\\\${HOST}\n' }, env: { HOST: 'h' }, keys: ['@a:registry'] },
    'variables in variables': { env: { HOST: 'h.test', npm_config_registry: 'https://${HOST}/' }, keys: ['registry'] },
    'variables in keys': { files: { '.npmrc': '${SCOPE}:registry=https://s.test/\n' }, env: { SCOPE: '@a' }, keys: ['@a:registry'] },
    'certificates': { files: { '.npmrc': 'ca[]="one\\ntwo"\nca[]="three"\n' }, keys: ['ca'] },
    'one certificate': { files: { '.npmrc': 'ca="one\\ntwo"\n' }, keys: ['ca'] },
    'null takes a setting back': { files: { global: 'proxy=http://p.test/\n', '.npmrc': 'proxy=null\nhttps-proxy=null\n' }, keys: ['proxy', 'https-proxy'] },
    'strict-ssl': { files: { global: 'strict-ssl=false\n' }, keys: ['strict-ssl'] },
    'strict-ssl taken back': { files: { global: 'strict-ssl=false\n', '.npmrc': 'strict-ssl=true\n' }, keys: ['strict-ssl'] },
    'a project further up': { files: { 'project/package.json': '{}', 'project/.npmrc': 'registry=https://up.test/\n', 'project/deep/.npmrc': 'registry=https://deep.test/\n' }, cwd: 'project/deep', keys: ['registry'] },
    'no project further up': { files: { 'project/.npmrc': 'registry=https://up.test/\n', 'project/deep/.npmrc': 'registry=https://deep.test/\n' }, cwd: 'project/deep', keys: ['registry'] },
    'node_modules make a project': { files: { 'project/node_modules/x': '', 'project/.npmrc': 'registry=https://up.test/\n' }, cwd: 'project/deep', keys: ['registry'] },
    'a workspace obeys its root': { files: { 'project/package.json': '{"name":"r","version":"1.0.0","workspaces":["packages/*"]}', 'project/.npmrc': 'registry=https://up.test/\n', 'project/packages/a/package.json': '{"name":"a","version":"1.0.0"}', 'project/packages/a/.npmrc': 'registry=https://a.test/\n' }, cwd: 'project/packages/a', keys: ['registry'] },
    'what is no workspace does not': { files: { 'project/package.json': '{"name":"r","version":"1.0.0","workspaces":["other/*"]}', 'project/.npmrc': 'registry=https://up.test/\n', 'project/packages/a/package.json': '{"name":"a","version":"1.0.0"}', 'project/packages/a/.npmrc': 'registry=https://a.test/\n' }, cwd: 'project/packages/a', keys: ['registry'] },
    'the user\'s file is no project\'s': { files: { 'package.json': '{}', '.npmrc': 'strict-ssl=false\n' }, cwd: '.', keys: ['strict-ssl'] },
  };
  for (const [name, { files, env, cwd = 'project', keys }] of Object.entries(cases))
    await t.test(name, async (t) => {
      const place = await makeHome(t, files);
      Object.assign(place.env, typeof env === 'function' ? env(place.home) : env);
      place.cwd = path.join(place.home, cwd);
      assert.ok(keys.every((key) => all.includes(key)));
      const npm = await askNpm(place, keys, []);
      for (const key of keys) {
        const ours = await run(jerboa, ['fetch', 'config', key], place);
        assert.equal(ours.status, 0, ours.stderr);
        assert.equal(ours.stdout, `${text(npm.get[key])}\n`, key);
      }
    });
  await t.test('and the npm program says the same', async (t) => {
    const place = await makeHome(t, { '.npmrc': 'registry=https://${HOST}/npm/\n' });
    place.env.HOST = 'cli.test';
    const npm = await run(process.execPath, [path.join(npmPath, 'bin/npm-cli.js'), 'config', 'get', 'registry'], place);
    assert.equal(npm.stdout, 'https://cli.test/npm/\n', npm.stderr);
    assert.equal((await run(jerboa, ['fetch', 'config', 'registry'], place)).stdout, npm.stdout);
  });
});

/** A server that notes who asked for what with which credentials. */
async function listen(t, answer) {
  const seen = [];
  const server = createServer((req, res) => {
    seen.push({ url: req.url, authorization: req.headers.authorization ?? null });
    answer(req, res);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { host: `127.0.0.1:${server.address().port}`, seen };
}

const notFound = (req, res) => res.writeHead(404).end();

test('credentials go where npm sends them', limit, async (t) => {
  const server = await listen(t, notFound);
  const { host } = server;
  const cases = {
    'token of the host': `//${host}/:_authToken=one`,
    'token without a slash': `//${host}:_authToken=one`,
    'token of the path': `//${host}/a/b/:_authToken=two\n//${host}/:_authToken=one`,
    'token of another path': `//${host}/b/:_authToken=no`,
    'token of a path that begins alike': `//${host}/a/bb/:_authToken=no\n//${host}/a/:_authToken=yes`,
    'token of another port': '//127.0.0.1:1/:_authToken=no\n//127.0.0.1/:_authToken=no',
    'token of another host': '//localhost/:_authToken=no',
    '_auth': `//${host}/:_auth=dXNlcjpwYXNz`,
    'user and password': `//${host}/:username=user\n//${host}/:_password=cGFzcw==`,
    'user without a password': `//${host}/:username=user`,
    'token before user and password': `//${host}/:username=user\n//${host}/:_password=cGFzcw==\n//${host}/:_authToken=one`,
    'a variable': `//${host}/:_authToken=\${TOKEN}`,
    'a quoted token': `//${host}/:_authToken="one=="`,
  };
  for (const [name, npmrc] of Object.entries(cases))
    await t.test(name, async (t) => {
      const place = await makeHome(t, { '.npmrc': `registry=http://${host}/a/b/\n${npmrc}\n` });
      place.env.TOKEN = 'of-the-environment';
      const url = `http://${host}/a/b/thing`;
      const npm = await askNpm(place, [], [url]);
      server.seen.length = 0;
      await fetchPackage(place, 'thing');
      assert.deepEqual(server.seen, [{ url: '/a/b/thing', authorization: npm.auth[url] }]);
    });
});

test('credentials do not follow a redirect', limit, async (t) => {
  const body = JSON.stringify({ versions: {} });
  const other = await listen(t, (req, res) => {
    const back = /^\/to\/(.*)/.exec(req.url)?.[1];
    if (back) res.writeHead(302, { location: `http://${back}/npm/thing` }).end();
    else res.end(body);
  });
  const home = await listen(t, (req, res) => {
    if (req.url === '/npm/away') res.writeHead(302, { location: `http://${other.host}/npm/thing` }).end();
    else if (req.url === '/npm/outside') res.writeHead(302, { location: '/elsewhere' }).end();
    else if (req.url === '/npm/inside') res.writeHead(307, { location: '/npm/deeper/thing' }).end();
    else if (req.url === '/npm/back') res.writeHead(302, { location: `http://${other.host}/to/${home.host}` }).end();
    else res.end(body);
  });
  const place = await makeHome(t, { '.npmrc': [`registry=http://${home.host}/npm/`, `//${home.host}/npm/:_authToken=mine`,
    `//${other.host}/:_authToken=others`, ''].join('\n') });
  for (const [name, first, second] of [
    ['away', home, [other, '/npm/thing', null]], // not even the other's own: it was not asked for
    ['outside', home, [home, '/elsewhere', null]],
    ['back', home, [home, '/npm/thing', null]], // a path that another chose
    ['inside', home, [home, '/npm/deeper/thing', 'Bearer mine']],
  ])
    await t.test(name, async () => {
      home.seen.length = other.seen.length = 0;
      const { stderr } = await fetchPackage(place, name);
      assert.match(stderr, /no version that suits/);
      assert.deepEqual(first.seen[0], { url: `/npm/${name}`, authorization: 'Bearer mine' });
      assert.deepEqual(second[0].seen.at(-1), { url: second[1], authorization: second[2] });
    });
});

test('a project\'s file is somebody else\'s', limit, async (t) => {
  const evil = await listen(t, notFound);
  const own = await listen(t, notFound);
  const make = (project) => makeHome(t, {
    '.npmrc': `registry=http://${own.host}/\n//${own.host}/:_authToken=mine\n`, 'project/.npmrc': project,
  });
  await t.test('it has no say in runtimes', async () => {
    const place = await make(`registry=http://${evil.host}/\n`);
    const { status } = await run(jerboa, ['fetch', 'runtime', 'node:24'], place);
    assert.equal(status, 1);
    assert.deepEqual(evil.seen, []);
    assert.equal(own.seen.length, 1);
  });
  await t.test('it names the registry of the project\'s packages, which gets no token of another', async () => {
    const place = await make(`registry=http://${evil.host}/\n`);
    await fetchPackage(place, 'thing');
    assert.deepEqual(evil.seen, [{ url: '/thing', authorization: null }]);
  });
  await t.test('it cannot send the environment away', async () => {
    evil.seen.length = 0;
    for (const project of [`registry=http://${evil.host}/\${SECRET}/\n`, `registry=http://${evil.host}/\n//${evil.host}/:_authToken=\${SECRET}\n`]) {
      const place = await make(project);
      place.env.SECRET = 'hush-hush';
      const { status, stderr } = await fetchPackage(place, 'thing');
      assert.equal(status, 1);
      assert.match(stderr, /^jerboa: npm package thing: .* in .*project\/\.npmrc holds a \$\{VARIABLE\}: that counts only for registries which your own npmrc names\n$/);
      assert.doesNotMatch(stderr, /hush-hush/);
    }
    assert.deepEqual(evil.seen, []);
  });
  await t.test('variables do count for a registry of the user\'s', async () => {
    own.seen.length = 0;
    const place = await make(`//${own.host}/:_authToken=\${SECRET}\n`);
    place.env.SECRET = 'hush-hush';
    await fetchPackage(place, 'thing');
    assert.deepEqual(own.seen, [{ url: '/thing', authorization: 'Bearer hush-hush' }]);
  });
  await t.test('it cannot name a proxy, and that is said', async () => {
    evil.seen.length = own.seen.length = 0;
    const place = await make(`https-proxy=http://${evil.host}/\nproxy=http://${evil.host}/\n`);
    const { stderr } = await fetchPackage(place, 'thing');
    assert.match(stderr, /^jerboa: https-proxy, proxy in .*project\/\.npmrc do not count: only your own npmrc may set them\n/);
    assert.deepEqual(evil.seen, []);
    assert.equal(own.seen.length, 1);
  });
  await t.test('all that does not count is said, each once', async () => {
    const settings = ['ca', 'cafile', 'strict-ssl', 'proxy', 'noproxy', 'https-proxy', 'userconfig', 'globalconfig', 'prefix'];
    const place = await make([...settings, ...settings].map((key) => `${key}=x\n`).join(''));
    const { stderr } = await fetchPackage(place, 'thing');
    assert.ok(stderr.startsWith(`jerboa: ${settings.join(', ')} in ${place.cwd}/.npmrc do not count: only your own npmrc may set them\n`), stderr);
    const one = await fetchPackage(await make('strict-ssl=false\n'), 'thing');
    assert.match(one.stderr, /^jerboa: strict-ssl in \S+ does not count: only your own npmrc may set it\n/);
  });
  await t.test('it cannot have a registry of the user\'s asked without TLS', async () => {
    const place = await make('registry=http://plain.test/\n');
    const { stderr } = await fetchPackage(place, 'thing');
    assert.match(stderr, /registry in .*project\/\.npmrc is not https: only your own npmrc may name such a registry/);
  });
});

test('credentials that are asked for, and configured by a variable that is not set', limit, async (t) => {
  const closed = await listen(t, (req, res) => res.writeHead(401).end());
  const place = await makeHome(t, { '.npmrc': `registry=http://${closed.host}/npm/\n//${closed.host}/npm/:_authToken=\${TOK}\n//elsewhere.test/:_authToken=\${OTHER}\n` });
  const { status, stderr } = await fetchPackage(place, 'thing');
  assert.equal(status, 1);
  assert.match(stderr, /wants credentials \(HTTP status 401\): those configured hold \$\{TOK\}, and that variable is not set\n$/);
  const none = await fetchPackage(await makeHome(t, { '.npmrc': `registry=http://${closed.host}/npm/\n//elsewhere.test/:_authToken=\${OTHER}\n` }), 'thing');
  assert.match(none.stderr, /wants credentials \(HTTP status 401\): set \/\/\S+\/:_authToken in your \.npmrc\n$/);
});

// ---- verdaccio ----

const tarball = tgz({ name: 'package/package.json', content: '{"name":"x","version":"1.0.0"}' });
let verdaccio; // {plain, tls, token, dir}

before(async () => {
  const cleanUp = [];
  const dir = await makeStore({ after: (f) => cleanUp.push(f) });
  makeCertificate(dir, 'IP:127.0.0.1');
  const plain = await startVerdaccio(dir, 'plain');
  const token = await makeToken(plain.url);
  for (const name of ['@secret/thing', 'open-thing']) await publish(plain.url, token, name, tarball);
  verdaccio = { dir, token, cleanUp, plain, tls: await startVerdaccio(dir, 'tls', { https: true }) };
}, { timeout: 120_000 });

after(async () => {
  for (const server of [verdaccio?.plain, verdaccio?.tls]) await server?.stop();
  for (const f of verdaccio?.cleanUp ?? []) await f();
});

/** It is there, it is the tarball, and the token is in nothing that was printed. */
async function assertFetched({ status, stdout, stderr }) {
  assert.equal(status, 0, stderr);
  assert.deepEqual(await readFile(stdout.trim()), tarball);
  assert.ok(!(stdout + stderr).includes(verdaccio.token));
}

/** One sentence that says this, and not the token. */
function assertRefused({ status, stdout, stderr }, sentence, ...secrets) {
  assert.equal(status, 1, stderr);
  assert.equal(stdout, '');
  assert.match(stderr, /^jerboa: [^\n]+\n$/);
  assert.match(stderr, sentence);
  for (const secret of [verdaccio.token, ...secrets]) assert.ok(!stderr.includes(secret), stderr);
}

test('verdaccio: a private package of a scope, with a token', limit, async (t) => {
  const { plain: { host }, token } = verdaccio;
  const scope = `registry=http://127.0.0.1:1/\n@secret:registry=http://${host}/\n`;
  await t.test('the token opens it', async (t) =>
    assertFetched(await fetchPackage(await makeHome(t, { '.npmrc': `${scope}//${host}/:_authToken=${token}\n` }), '@secret/thing', '^1.0.0')));
  await t.test('a token of the environment', async (t) => {
    const place = await makeHome(t, { 'global': `${scope}//${host}/:_authToken=\${NPM_TOKEN}\n` });
    place.env.NPM_TOKEN = token;
    await assertFetched(await fetchPackage(place, '@secret/thing'));
  });
  await t.test('the project names the registry, the user has the token', async (t) =>
    assertFetched(await fetchPackage(await makeHome(t, { 'project/.npmrc': `@secret:registry=http://${host}/\n`, '.npmrc': `//${host}/:_authToken=${token}\n` }), '@secret/thing')));
  await t.test('a wrong token', async (t) => {
    const wrong = 'wrong-token-of-the-test';
    assertRefused(await fetchPackage(await makeHome(t, { '.npmrc': `${scope}//${host}/:_authToken=${wrong}\n` }), '@secret/thing'),
      new RegExp(`npm package @secret/thing: the registry http://${host}/ refuses the credentials that npm's configuration has for it \\(HTTP status 40[13]\\)`), wrong);
  });
  await t.test('no token', async (t) =>
    assertRefused(await fetchPackage(await makeHome(t, { '.npmrc': scope }), '@secret/thing'),
      new RegExp(`the registry http://${host}/ wants credentials \\(HTTP status 401\\): set //${host}/:_authToken in your \\.npmrc`)));
  await t.test('a package without a scope goes to the other registry', async (t) => {
    const place = await makeHome(t, { '.npmrc': scope });
    const { status, stderr } = await fetchPackage(place, 'open-thing');
    assert.equal(status, 3);
    assert.match(stderr, /the registry cannot be reached/);
  });
});

test('verdaccio: a certificate that the system does not know', limit, async (t) => {
  const { tls: { host }, dir } = verdaccio;
  const registry = `registry=https://${host}/\n`;
  const pem = await readFile(`${dir}/cert.pem`, 'utf8');
  await t.test('is refused', async (t) =>
    assertRefused(await fetchPackage(await makeHome(t, { '.npmrc': registry }), 'open-thing'), /the registry cannot be trusted: .*certificate.* \(npm's setting cafile names the certificates to trust\)/));
  await t.test('cafile', async (t) =>
    assertFetched(await fetchPackage(await makeHome(t, { '.npmrc': `${registry}cafile=${dir}/cert.pem\n` }), 'open-thing')));
  await t.test('ca', async (t) =>
    assertFetched(await fetchPackage(await makeHome(t, { '.npmrc': `${registry}ca=${JSON.stringify(pem)}\n` }), 'open-thing')));
  await t.test('strict-ssl=false', async (t) =>
    assertFetched(await fetchPackage(await makeHome(t, { '.npmrc': `${registry}strict-ssl=false\n` }), 'open-thing')));
  await t.test('npm_config_strict_ssl=false', async (t) => {
    const place = await makeHome(t, { '.npmrc': registry });
    place.env.npm_config_strict_ssl = 'false';
    await assertFetched(await fetchPackage(place, 'open-thing'));
  });
  await t.test('a project cannot say so', async (t) => {
    const { status, stderr } = await fetchPackage(await makeHome(t, { '.npmrc': registry, 'project/.npmrc': `cafile=${dir}/cert.pem\nstrict-ssl=false\n` }), 'open-thing');
    assert.equal(status, 1);
    assert.match(stderr, /^jerboa: cafile, strict-ssl in \S+ do not count.*\n.*the registry cannot be trusted/);
  });
});

test('a registry with TLS does not lead to one without', limit, async (t) => {
  const { dir } = verdaccio;
  const plain = await listen(t, notFound);
  const [key, cert] = await Promise.all(['key', 'cert'].map((name) => readFile(`${dir}/${name}.pem`)));
  const server = createTlsServer({ key, cert }, (req, res) => res.writeHead(302, { location: `http://${plain.host}/x` }).end());
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const place = await makeHome(t, { '.npmrc': `registry=https://127.0.0.1:${server.address().port}/\ncafile=${dir}/cert.pem\n` });
  assertRefused(await fetchPackage(place, 'thing'), /redirects to an address that is not http, or no longer https/);
  assert.deepEqual(plain.seen, []);
});

test('verdaccio: through a proxy', limit, async (t) => {
  const { plain, tls, dir, token } = verdaccio;
  const seen = [];
  const proxy = createServer((req, res) => { // http: the whole address stands in the request
    seen.push({ method: req.method, url: req.url, authorization: req.headers['proxy-authorization'] });
    const { host } = new URL(req.url);
    fetch(`http://${host}${new URL(req.url).pathname}`).then(async (answer) => res.writeHead(answer.status).end(Buffer.from(await answer.arrayBuffer())));
  }).on('connect', (req, socket) => {
    seen.push({ method: 'CONNECT', url: req.url, authorization: req.headers['proxy-authorization'], token: req.headers.authorization });
    const [host, port] = req.url.split(':');
    const up = connect(port, host, () => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      up.pipe(socket).pipe(up);
    }).on('error', () => socket.destroy());
    socket.on('error', () => up.destroy());
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  t.after(() => {
    proxy.closeAllConnections();
    proxy.close();
  });
  const address = `http://jo:pw@127.0.0.1:${proxy.address().port}/`;
  const overTls = `registry=https://${tls.host}/\ncafile=${dir}/cert.pem\n//${tls.host}/:_authToken=${token}\n`;
  const overPlain = `registry=http://${plain.host}/\n`;
  const basic = `Basic ${Buffer.from('jo:pw').toString('base64')}`;
  for (const [name, npmrc, env, used] of [
    ['https-proxy', `${overTls}https-proxy=${address}\n`, {}, 'CONNECT'],
    ['proxy', `${overTls}proxy=${address}\n`, {}, 'CONNECT'],
    ['HTTPS_PROXY', overTls, { HTTPS_PROXY: address }, 'CONNECT'],
    ['proxy of plain http', `${overPlain}proxy=${address}\n`, {}, 'GET'],
    ['http_proxy', overPlain, { http_proxy: address }, 'GET'],
    ['noproxy', `${overTls}https-proxy=${address}\nnoproxy=127.0.0.1\n`, {}, null],
    ['NO_PROXY', `${overTls}https-proxy=${address}\n`, { NO_PROXY: '127.0.0.1' }, null],
  ])
    await t.test(name, async (t) => {
      seen.length = 0;
      const place = await makeHome(t, { '.npmrc': npmrc });
      Object.assign(place.env, env);
      await assertFetched(await fetchPackage(place, 'open-thing'));
      assert.deepEqual([...new Set(seen.map(({ method }) => method))], used ? [used] : []);
      for (const request of seen) {
        assert.equal(request.authorization, basic);
        assert.equal(request.token, undefined); // the registry's token is inside the tunnel
      }
    });
  await t.test('a proxy that does not answer, and its password', async (t) => {
    const { status, stderr } = await fetchPackage(await makeHome(t, { '.npmrc': `${overTls}https-proxy=http://jo:hush-hush@127.0.0.1:1/\n` }), 'open-thing');
    assert.equal(status, 3);
    assert.match(stderr, /the registry cannot be reached/);
    assert.doesNotMatch(stderr, /hush-hush/);
  });
  for (const [answer, status, sentence] of [
    ['502 Bad Gateway', 3, 'the proxy cannot reach the registry now (HTTP status 502)'],
    ['407 Proxy Authentication Required', 1, 'the proxy wants other credentials than the configured address has (HTTP status 407)'],
    ['403 Forbidden', 1, 'the proxy refuses to connect to the registry (HTTP status 403)'],
  ])
    await t.test(`a proxy that answers ${answer}`, async (t) => {
      const refusing = createServer().on('connect', (req, socket) => socket.end(`HTTP/1.1 ${answer}\r\nContent-Length: 0\r\n\r\n`)).listen(0, '127.0.0.1');
      await once(refusing, 'listening');
      t.after(() => refusing.close());
      const place = await makeHome(t, { '.npmrc': `${overTls}https-proxy=http://127.0.0.1:${refusing.address().port}/\n` });
      const r = await fetchPackage(place, 'open-thing');
      assert.deepEqual([r.status, r.stderr], [status, `jerboa: npm package open-thing: ${sentence}\n`]);
    });
  for (const bad of ['http://jo:hush-hush@127.0.0.1:99999', 'htp://jo:hush-hush@127.0.0.1:1', 'http://jo:hush-hush@[::bad', 'http://jo:hush-hush@x@127.0.0.1:1'])
    await t.test(`a proxy that is none: ${bad}`, async (t) => {
      const place = await makeHome(t, { '.npmrc': `${overTls}https-proxy=${bad}\n` });
      const { status, stderr } = await fetchPackage(place, 'open-thing');
      assert.doesNotMatch(stderr, /hush-hush/);
      assert.equal(status, 1); // wrong, not absent: no run falls back for it
      assert.match(stderr, /^jerboa: npm package open-thing: the configured proxy is no address of one: write [^\n]*\n$/);
      place.env.NO_PROXY = '127.0.0.1';
      await assertFetched(await fetchPackage(place, 'open-thing')); // nobody asks it
    });
});
