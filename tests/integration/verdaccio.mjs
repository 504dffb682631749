// A real registry (verdaccio) for tests, with users and packages of its own.
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { tempDir } from './jerboa.mjs';
import { packagesDirectory } from './mcp.mjs';
import { sha512, tgz } from './registry.mjs';

/** A free port, for a program that cannot tell which one it took. */
async function freePort(address) {
  const server = createServer().listen(0, address);
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

const answers = (port, address) => new Promise((resolve) => {
  const socket = connect(port, address, () => { socket.destroy(); resolve(true); }).on('error', () => resolve(false));
});

/** key.pem and cert.pem, which is its own authority, in `dir`. */
export function makeCertificate(dir, alternatives) {
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2',
    '-subj', '/CN=jerboa test', '-addext', `subjectAltName=${alternatives}`, '-keyout', `${dir}/key.pem`, '-out', `${dir}/cert.pem`], { stdio: 'ignore' });
}

/** Servers of one `dir` share packages and users. With `https` it wants the certificate there. Packages of @secret need a token. */
export async function startVerdaccio(dir, name, { https = false, address = '127.0.0.1', port } = {}) {
  port ??= await freePort(address);
  const config = path.join(dir, `${name}.yaml`);
  const host = `${address.includes(':') ? `[${address}]` : address}:${port}`, url = `${https ? 'https' : 'http'}://${host}`;
  await writeFile(config, `
storage: ${dir}/storage
auth: { htpasswd: { file: ${dir}/htpasswd, max_users: 10 } }
packages:
  '@secret/*': { access: $authenticated, publish: $authenticated }
  '**': { access: $all, publish: $authenticated }
log: { type: file, path: ${dir}/${name}.log, format: json, level: warn }
${https ? `https: { key: ${dir}/key.pem, cert: ${dir}/cert.pem }` : ''}
`);
  const child = spawn(process.execPath, [path.join(packagesDirectory(), 'node_modules/verdaccio/bin/verdaccio'), '--config', config, '--listen', url],
    { cwd: dir, stdio: ['ignore', 'ignore', 'pipe'], env: { PATH: process.env.PATH, HOME: dir } });
  let complaints = '';
  child.stderr.on('data', (piece) => { complaints += piece; });
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  for (let i = 0; i < 400; i++) {
    if (child.exitCode !== null) throw new Error(`verdaccio: ${complaints}`);
    if (await answers(port, address)) return { stop, host, url, port };
    await new Promise((resolve) => { setTimeout(resolve, 100); });
  }
  await stop();
  throw new Error(`verdaccio does not listen: ${complaints}`);
}

/** A new user's token. */
export async function makeToken(url) {
  const user = await fetch(`${url}/-/user/org.couchdb.user:jo`, { method: 'PUT', headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'jo', password: `p-${randomBytes(8).toString('hex')}` }) });
  const { token } = await user.json();
  assert.ok(token, `verdaccio gave no token: ${user.status}`);
  return token;
}

/** Version 1.0.0 of a package; `more` is what its manifest says besides. */
export async function publish(url, token, name, tarball, more = {}) {
  const file = `${name.split('/').at(-1)}-1.0.0.tgz`;
  const manifest = { ...more, name, version: '1.0.0', dist: { integrity: sha512(tarball), tarball: `${url}/${name}/-/${file}` } };
  const published = await fetch(`${url}/${name.replace('/', '%2f')}`, { method: 'PUT',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
    body: JSON.stringify({ _id: name, name, 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': manifest },
      _attachments: { [file]: { content_type: 'application/octet-stream', data: tarball.toString('base64'), length: tarball.length } } }) });
  assert.equal(published.status, 201, await published.text());
}

/** The address of one that goes with the test and has these packages, {NAME: {files, more}}; `more` is what their package.json says besides. */
export async function registryWith(t, packages) {
  const v = await startVerdaccio(tempDir(t), 'own');
  t.after(() => v.stop());
  const token = await makeToken(v.url);
  for (const [name, { files, more = {} }] of Object.entries(packages)) {
    const all = { 'package.json': JSON.stringify({ name, version: '1.0.0', ...more }), ...files };
    await publish(v.url, token, name, tgz(...Object.entries(all).map(([file, content]) => ({ name: `package/${file}`, content }))), more);
  }
  return v.url;
}
