// npm and TLS in a sandbox: registries of the user's configuration, one on the host's loopback too (verdaccio), and whom he trusts.
// No token and no key goes in.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { jerboa, limit, nativeOnly, start, tempDir, writeFiles } from './jerboa.mjs';
import { makeNetwork } from './network.mjs';
import { tgz } from './registry.mjs';
import { makeCertificate, makeToken, publish, startVerdaccio } from './verdaccio.mjs';

const packageOf = (name) => tgz({ name: 'package/package.json', content: JSON.stringify({ name, version: '1.0.0' }) },
  { name: 'package/index.js', content: `module.exports = '${name} is here';\n` });
const store = path.resolve(execFileSync(jerboa, ['pull'], { encoding: 'utf8' }).trim(), '../..');
const secret = 'hush-hush-secret-of-the-test';
let four, six, tls, token, dir;

before(async () => {
  dir = tempDir();
  makeCertificate(dir, 'IP:127.0.0.1,DNS:localhost,IP:::1');
  four = await startVerdaccio(dir, 'four');
  token = await makeToken(four.url);
  for (const name of ['open-thing', '@open/thing', '@secret/thing']) await publish(four.url, token, name, packageOf(name));
  six = await startVerdaccio(dir, 'six', { address: '::1' });
  tls = await startVerdaccio(dir, 'tls', { https: true });
}, { timeout: 120_000 });
after(async () => { for (const server of [four, six, tls]) await server?.stop(); });

/** A user with this .npmrc and nothing of whoever runs the tests; the store has its Node already. */
function userWith(t, npmrc, more = {}) {
  const home = writeFiles(tempDir(t), { '.npmrc': npmrc });
  const others = Object.keys(process.env).filter((name) => /^npm_config_|^(NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|CURL_CA_BUNDLE)$/i.test(name));
  return { ...Object.fromEntries(others.map((name) => [name, undefined])), HOME: home, JERBOA_HOME: store, ...more };
}

/** `sh -c COMMAND` in a sandbox: its result, and how long it took. */
async function shell(command, args, env, via = start) {
  const script = `import { spawnSync } from 'node:child_process';
    const r = spawnSync('/bin/sh', ['-c', ${JSON.stringify(command)}], { stdio: ['ignore', 'inherit', 'inherit'] }); process.exitCode = r.status;`;
  const began = performance.now();
  const result = await via(['run', '--timeout', '50s', ...args, '-e', script], { env, input: '', seconds: 55 }).ended;
  return { ...result, ms: performance.now() - began };
}

const install = (name, options = '') => `npm install --no-audit --no-fund ${options} ${name} >&2 && node -p "require('${name}')"`;

function assertInstalled(result, name) {
  assert.deepEqual([result.status, result.stdout], [0, `${name} is here\n`], result.stderr);
}

// ---- registries ----

for (const [what, url, args] of [
  ['by address, policy internet', () => four.url, []],
  ['by address, policy npm', () => four.url, ['--network', 'npm']],
  ['by name, policy internet', () => `http://localhost:${four.port}`, []],
  ['by name, policy npm', () => `http://localhost:${four.port}/`, ['--network', 'npm']],
  ['by name, listening at IPv6 alone, policy npm', () => `http://localhost:${six.port}`, ['--network', 'npm']],
  ['by address, allowed by a rule', () => four.url, () => ['--allow', four.host]],
  ['by name, allowed by a rule', () => `http://localhost:${six.port}`, () => ['--allow', `localhost:${six.port}`]],
  ['by address, policy host', () => four.url, ['--network', 'host']],
])
  test(`npm install from a registry on this machine's loopback: ${what}`, limit, async (t) => {
    const result = await shell(install('open-thing'), typeof args === 'function' ? args() : args, userWith(t, `registry=${url()}\n`));
    assertInstalled(result, 'open-thing');
  });

/** npm itself would try for more than a minute. */
const AT_ONCE_MS = 40_000;

for (const [what, url, args, rule] of [
  ['by address', () => four.url, ['--network', 'none'], () => `127.0.0.1, port ${four.port}: network policy 'none' (--allow ${four.host}, or --network internet)`],
  ['by name', () => `http://localhost:${four.port}`, ['--network', 'none'], () => `localhost, port ${four.port}: network policy 'none' (--allow localhost:${four.port}, or --network internet)`],
  ['elsewhere', () => 'http://registry.example/', ['--network', 'none'], () => `registry.example: network policy 'none' (--allow registry.example, or --network internet)`],
  ['that no rule names', () => four.url, ['--allow', 'else.example'], () => `127.0.0.1, port ${four.port}: network policy 'allow' (--allow ${four.host}, or --network internet)`],
])
  test(`npm install fails at once and with a sentence: a registry ${what}, ${args.join(' ')}`, limit, async (t) => {
    const result = await shell(install('open-thing'), [...args, '--json'], userWith(t, `registry=${url()}\n`));
    assert.notEqual(result.status, 0);
    assert.ok(result.ms < AT_ONCE_MS, `${result.ms} ms`);
    assert.match(result.stderr, /^npm error code (ENOTFOUND|ECONNRESET)$/m);
    assert.ok(result.stderr.includes(`\njerboa: network: ${rule()}\n`), result.stderr);
    const [refused] = JSON.parse(result.stderr.trimEnd().split('\n').at(-1)).refused;
    assert.match(refused.rule, /^network policy '(none|allow)'$/);
  });

test('of this loopback, only the registry is reached', limit, async (t) => {
  const servers = [];
  t.after(() => servers.forEach((server) => server.close()));
  /** Everything on the host says so; beside the registry's address and port, and at its port. */
  const places = [['127.0.0.2', four.port], ['127.0.0.1', 0], ['::1', 0], ['::1', four.port]];
  for (const place of places) {
    const server = http.createServer((_, response) => response.writeHead(200, { connection: 'close' }).end('the host'));
    servers.push(server.listen(place[1], place[0]));
    await once(server, 'listening');
    place[1] = server.address().port;
    assert.equal(await (await fetch(`http://${place[0].includes(':') ? `[${place[0]}]` : place[0]}:${place[1]}/`)).text(), 'the host');
  }
  const script = `const places = ${JSON.stringify([...places, ['127.0.0.1', four.port]])}, found = [];
    for (const [host, port] of places) found.push(await fetch('http://' + (host.includes(':') ? '[' + host + ']' : host) + ':' + port + '/-/ping').then((r) => r.json(), (e) => e.cause.code));
    console.log(JSON.stringify(found));`;
  for (const args of [[], ['--network', 'npm']]) {
    const result = await start(['run', ...args, '-e', script], { env: userWith(t, `registry=${four.url}\n`), input: '' }).ended;
    assert.deepEqual(JSON.parse(result.stdout), ['ECONNREFUSED', 'ECONNREFUSED', 'ECONNREFUSED', 'ECONNREFUSED', {}], result.stderr);
  }
  // by an IPv6 address, which npm itself does not understand
  const other = await start(['run', '--network', 'npm', '-e', `console.log(await (await fetch('${six.url}/-/ping')).text())`], { env: userWith(t, `registry=${six.url}\n`), input: '' }).ended;
  assert.equal(other.stdout.trim(), '{}', other.stderr);
  // without such a registry its place is the sandbox's own
  const result = await start(['run', '-e', script], { env: userWith(t, 'registry=http://registry.example/\n'), input: '' }).ended;
  assert.deepEqual(JSON.parse(result.stdout), Array(5).fill('ECONNREFUSED'), result.stderr);
});

test('scopes have their registries; tokens and passwords stay outside', limit, async (t) => {
  const npmrc = `registry=http://jo:${secret}@registry.example/\n@open:registry=${four.url}\n@secret:registry=http://jo:${secret}@${four.host}/\n` +
    `//${four.host}/:_authToken=${token}\n//registry.example/:_password=${Buffer.from(secret).toString('base64')}\n`;
  const env = userWith(t, npmrc, { npm_config__auth: secret });
  const open = await shell(install('@open/thing'), [], env);
  assertInstalled(open, '@open/thing');
  const closed = await shell(install('@secret/thing'), [], env);
  assert.notEqual(closed.status, 0);
  assert.match(closed.stderr, /npm error code E401/);
  // all that can be read inside and is not this machine's /usr, Node or a device
  const look = "env; cat \"${npm_config_globalconfig:-/etc/npmrc}\"; npm config list -l --json; find /etc /root /tmp /workspace /var /.jerboa -type f -exec cat {} +";
  const seen = await shell(look, [], env);
  assert.match(seen.stdout, new RegExp(`@open:registry="${four.url}/"`));
  assert.match(seen.stdout, /^npm_config_registry=http:\/\/registry\.example\/$/m);
  for (const word of [token, secret, Buffer.from(secret).toString('base64')])
    assert.ok(!(seen.stdout + seen.stderr).includes(word), `${word} is seen inside`);
});

// ---- certificates ----

for (const [what, npmrc, more, works] of [
  ['nothing', () => '', {}, false],
  ['cafile', () => `cafile=${dir}/cert.pem\n`, {}, true],
  ['ca', () => `ca=${JSON.stringify(fs.readFileSync(`${dir}/cert.pem`, 'utf8'))}\n`, {}, true],
  ['strict-ssl=false', () => 'strict-ssl=false\n', {}, true],
  ['NODE_EXTRA_CA_CERTS', () => '', { NODE_EXTRA_CA_CERTS: () => `${dir}/cert.pem` }, true],
  ['SSL_CERT_FILE', () => '', { SSL_CERT_FILE: () => `${dir}/cert.pem` }, true],
])
  test(`npm install over TLS, trusted by ${what}`, limit, async (t) => {
    const env = Object.fromEntries(Object.entries(more).map(([name, value]) => [name, value()]));
    const result = await shell(install('open-thing', '--fetch-retries=0'), ['--network', 'npm'], userWith(t, `registry=${tls.url}\n${npmrc()}`, env));
    if (works) return assertInstalled(result, 'open-thing');
    assert.notEqual(result.status, 0);
    assert.match(result.stderr, /npm error code (DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_IN_CHAIN|UNABLE_TO_VERIFY_LEAF_SIGNATURE)/);
  });

/** Programs that speak TLS, each with its own way to find certificates. */
const speakers = {
  fetch: `node -e 'fetch("https://public.example:8443/").then((r) => r.text()).then(console.log)'`,
  https: `node -e 'require("https").get("https://public.example:8443/", (r) => r.pipe(process.stdout))'`,
  curl: 'curl -sS --max-time 10 https://public.example:8443/',
  python: `/usr/bin/python3 -c 'import urllib.request; print(urllib.request.urlopen("https://public.example:8443/", timeout=10).read().decode())'`,
  git: 'git ls-remote https://public.example:8443/repository',
  openssl: 'openssl s_client -connect public.example:8443 -servername public.example -verify_return_error -brief </dev/null && echo internet 93.184.216.34',
};

test('whom the host trusts, every program inside trusts', { timeout: 120_000, ...nativeOnly('the image has no curl, git, openssl and python') }, async (t) => {
  const network = await makeNetwork(['public.example']);
  t.after(() => network.close());
  const all = Object.entries(speakers).map(([name, command]) => `echo "${name} $(${command} 2>/dev/null | tr '\\n\\t' '  ')"`).join('; ');
  const nobody = { SSL_CERT_FILE: undefined, CURL_CA_BUNDLE: undefined, NODE_EXTRA_CA_CERTS: undefined };
  const look = async (more, expected) => {
    const env = { ...nobody, ...more };
    const result = await shell(all, [], env, (args, options) => network.start([jerboa, ...args], options));
    assert.equal(result.stdout.replaceAll(/ +$/gm, ''), Object.keys(speakers).map((name) => `${name} ${expected(name)}`.trimEnd()).join('\n') + '\n', result.stderr);
    return result;
  };
  const signed = (name) => (name === 'git' ? 'a9993e364706816aba3e25717850c26c9cd0d89d refs/heads/internet-93.184.216.34' : 'internet 93.184.216.34');
  const withKey = path.join(tempDir(t), 'both.pem'), key = fs.readFileSync(network.key, 'utf8');
  fs.writeFileSync(withKey, key + fs.readFileSync(network.certificate, 'utf8'));
  await look({}, () => '');
  await look({ SSL_CERT_FILE: network.certificate }, signed);
  await look({ NODE_EXTRA_CA_CERTS: network.certificate }, signed);
  await look({ NODE_EXTRA_CA_CERTS: withKey }, signed);
  await look({ npm_config_cafile: network.certificate }, signed);
  const gone = await look({ NODE_EXTRA_CA_CERTS: '/nowhere/x.pem' }, () => '');
  assert.match(gone.stderr, /^jerboa: warning: NODE_EXTRA_CA_CERTS \/nowhere\/x\.pem cannot be read: its certificates are not trusted$/m);
  for (const env of [{ ...nobody, NODE_EXTRA_CA_CERTS: withKey }, { ...nobody, SSL_CERT_FILE: withKey }, { ...nobody, npm_config_cafile: withKey }]) {
    const { stdout } = await shell('for f in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/pki/tls/cert.pem /etc/ssl/cert.pem /etc/ssl/ca-bundle.pem; do cat $f || exit 9; done',
      [], env, (args, options) => network.start([jerboa, ...args], options));
    assert.equal(stdout.split(fs.readFileSync(network.certificate, 'utf8').trim()).length, 6);
    assert.ok(!stdout.includes('PRIVATE'));
    assert.ok(!stdout.includes(key.split('\n')[1]));
  }
});
