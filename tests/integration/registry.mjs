// A registry on loopback for tests of the store, and what such tests need besides.
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';

export const program = path.resolve(process.env.JERBOA_BUILD ?? 'build', 'jerboa-fetch');
export const arch = process.arch;
export const nodePackage = `node-linux-${arch}`;

/** A store that goes with the test. */
export async function makeStore(t) {
  const dir = await mkdtemp(path.join(tmpdir(), 'jerboa-fetch-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** Environment of a child: no registry, proxy or npmrc of whoever runs the tests. */
export function storeEnv(store, registry) {
  const env = { ...process.env, JERBOA_HOME: store, HOME: store, no_proxy: '127.0.0.1' };
  for (const key of Object.keys(env)) if (/^npm_config_/i.test(key)) delete env[key];
  if (registry) env.npm_config_registry = registry;
  return env;
}

/** Runs a program to its end: {status, stdout, stderr}. */
export function runProgram(file, args, env) {
  return new Promise((resolve) => {
    execFile(file, args, { env, timeout: 50_000, maxBuffer: 1 << 24 }, (error, stdout, stderr) =>
      resolve({ status: error ? (error.code ?? error.signal) : 0, stdout, stderr }));
  });
}

export const fetchRuntime = (store, registry, image = 'node:lts-slim', ...options) =>
  runProgram(program, [...options, 'runtime', image], storeEnv(store, registry));

/** Promise.withResolvers, which Node 20 lacks. */
export function deferred() {
  let resolve;
  const promise = new Promise((r) => { resolve = r; });
  return { promise, resolve };
}

/** Where the beginning of a tarball is kept. */
export const partOf = (tarball) => `downloads/.${createHash('sha512').update(tarball).digest('hex').slice(0, 64)}.part`;

/** Everything in the store but the two directories that hold nothing. */
export async function storeLeftovers(store) {
  const names = await readdir(store, { recursive: true });
  return names.filter((name) => name !== 'runtimes' && name !== 'downloads');
}

/** One tar header and its content; `type` as in ustar: 0 file, 1 hard link, 2 symlink, 5 directory. */
export function tarMember({ name, content = '', mode = 0o644, type = '0', link = '' }) {
  const header = Buffer.alloc(512);
  const body = Buffer.from(content);
  header.write(name, 0);
  header.write(`${mode.toString(8).padStart(7, '0')}\0`, 100);
  header.write('0000000\0', 108);
  header.write('0000000\0', 116);
  header.write(`${body.length.toString(8).padStart(11, '0')}\0`, 124);
  header.write('00000000000\0', 136);
  header.write('        ', 148);
  header.write(type, 156);
  header.write(link, 157);
  header.write('ustar\x0000', 257);
  const sum = header.reduce((a, b) => a + b, 0);
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return Buffer.concat([header, body, Buffer.alloc((512 - (body.length % 512)) % 512)]);
}

export const tgz = (...members) => gzipSync(Buffer.concat([...members.map(tarMember), Buffer.alloc(1024)]));
export const sha512 = (bytes) => `sha512-${createHash('sha512').update(bytes).digest('base64')}`;

export const nodeTgz = tgz({ name: 'package/bin/node', content: '#!/bin/sh\necho fake node\n', mode: 0o755 },
  { name: 'package/include/node/node.h', content: '/* */\n' });
export const npmTgz = tgz({ name: 'package/bin/npm-cli.js', content: '#!/usr/bin/env node\n' },
  { name: 'package/bin/npx-cli.js', content: '#!/usr/bin/env node\n' });

/** The two packages of a sound registry: {name: {version: {tarball, integrity, engines}}}. */
export const soundPackages = () => ({
  [nodePackage]: {
    '24.1.0': { tarball: nodeTgz },
    '24.0.9': { tarball: nodeTgz },
    '26.0.0': { tarball: nodeTgz },
    '24.2.0-rc.1': { tarball: nodeTgz },
  },
  npm: {
    '11.0.0': { tarball: npmTgz, engines: { node: '>=20' } },
    '12.0.0': { tarball: npmTgz, engines: { node: '>=26' } },
    '13.0.0-rc.1': { tarball: npmTgz },
  },
});

export function packument(name, releases) {
  const versions = {};
  for (const [version, { tarball, integrity = sha512(tarball), engines }] of Object.entries(releases)) {
    // another host, as in documents of a mirror: it must not be asked
    const url = `http://original.invalid/${name}/-/${name}-${version}.tgz`;
    versions[version] = { name, version, engines, dist: { integrity, tarball: url } };
    if (integrity === null) delete versions[version].dist.integrity;
  }
  return { name, 'dist-tags': { latest: 'nonsense' }, versions };
}

/** A registry on loopback; `answer(req, res)` may take a request by returning true. */
export async function serve(t, packages, answer = () => false) {
  const requests = [];
  const server = createServer((req, res) => {
    requests.push(req.url);
    if (answer(req, res)) return;
    const [, name, version] = /^\/([^/]+)(?:\/-\/\1-(.+)\.tgz)?$/.exec(req.url) ?? [];
    const release = packages[name]?.[version];
    if (release) res.end(release.tarball);
    else if (packages[name] && !version) res.end(JSON.stringify(packument(name, packages[name])));
    else res.writeHead(404).end('{"error":"not found"}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const tarballs = () => requests.filter((url) => url.endsWith('.tgz'));
  return { url: `http://127.0.0.1:${server.address().port}`, requests, tarballs };
}
