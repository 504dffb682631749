// registry.mjs: a registry of container images on loopback. Each name has an image that a daemon has already, and one layer on top that none has.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';

const types = {
  manifest: 'application/vnd.docker.distribution.manifest.v2+json',
  config: 'application/vnd.docker.container.image.v1+json',
  layer: 'application/vnd.docker.image.rootfs.diff.tar',
};

function blob(bytes, mediaType) {
  return { bytes, mediaType, size: bytes.length, digest: `sha256:${createHash('sha256').update(bytes).digest('hex')}` };
}

const described = ({ mediaType, size, digest }) => ({ mediaType, size, digest });

/**
 * `archive` is what `docker save` wrote; `dir` is for its parts. All names have the tag `1` alone. `asked` are the paths that were asked for; while
 * `hold` is true, layers wait, and `waiting` are the answers that do.
 */
export async function startRegistry(archive, dir) {
  execFileSync('tar', ['-C', dir, '-xf', archive]);
  const [saved] = JSON.parse(fs.readFileSync(path.join(dir, 'manifest.json')));
  const config = JSON.parse(fs.readFileSync(path.join(dir, saved.Config)));
  const below = saved.Layers.map((file) => blob(fs.readFileSync(path.join(dir, file)), types.layer));
  const registry = { asked: [], hold: false, waiting: new Set() }, images = new Map();

  function makeImage(name) {
    fs.writeFileSync(path.join(dir, name), `${name} ${process.pid}`);
    const own = blob(execFileSync('tar', ['-C', dir, '-c', name]), types.layer), layers = [...below, own];
    const rootfs = { ...config.rootfs, diff_ids: [...config.rootfs.diff_ids, own.digest] };
    const told = blob(Buffer.from(JSON.stringify({ ...config, rootfs, history: undefined })), types.config);
    const manifest = { schemaVersion: 2, mediaType: types.manifest, config: described(told), layers: layers.map(described) };
    return { manifest: blob(Buffer.from(JSON.stringify(manifest)), types.manifest), blobs: [told, ...layers] };
  }

  function imageOf(name) {
    if (!images.has(name)) images.set(name, makeImage(name));
    return images.get(name);
  }

  function send(response, { mediaType, bytes, digest }, isHead) {
    response.writeHead(200, { 'Content-Type': mediaType, 'Content-Length': bytes.length, 'Docker-Content-Digest': digest });
    response.end(isHead ? undefined : bytes);
  }

  const server = http.createServer((request, response) => {
    registry.asked.push(request.url);
    if (request.url === '/v2/') return response.end('{}');
    const [, name, kind, which] = request.url.match(/^\/v2\/(\w+)\/(manifests|blobs)\/(.+)$/) ?? [], isHead = request.method === 'HEAD';
    const { manifest, blobs } = name ? imageOf(name) : { blobs: [] };
    if (kind === 'manifests' && (which === '1' || which === manifest.digest)) return send(response, manifest, isHead);
    const wanted = kind === 'blobs' && blobs.find(({ digest }) => digest === which);
    if (!wanted) return response.writeHead(404, { 'Content-Type': 'application/json' }).end('{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}');
    if (!registry.hold || wanted.mediaType !== types.layer) return send(response, wanted, isHead);
    registry.waiting.add(response);
    response.on('close', () => registry.waiting.delete(response));
    response.release = () => send(response, wanted, isHead);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  registry.host = `127.0.0.1:${server.address().port}`;
  registry.release = () => { registry.hold = false; for (const response of registry.waiting) response.release(); };
  registry.end = () => { server.closeAllConnections(); server.close(); };
  return registry;
}
