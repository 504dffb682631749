// A registry on loopback that has every package of a few patterns, answers slowly enough to be met in mid-transfer, and can drop everybody.
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { sha512, tgz } from '../integration/registry.mjs';

const noise = randomBytes(96 << 10).toString('base64'); // so that a tarball is more than one write
const known = /^\/((?:pkg|typed)-[\w-]+?)(?:\/-\/\1-1\.0\.0\.tgz)?$/;

/** The files of a package, name by name. */
export const filesOf = (name) => ({
  'package.json': JSON.stringify({ name, version: '1.0.0', types: 'index.d.ts' }),
  'index.js': `module.exports = ${JSON.stringify(name)}`,
  'index.d.ts': `declare const name: '${name}';\nexport = name;\n`,
  'noise.txt': noise,
});

const tarballs = new Map();
function tarballOf(name) {
  if (!tarballs.has(name)) tarballs.set(name, tgz(...Object.entries(filesOf(name)).map(([file, content]) => ({ name: `package/${file}`, content }))));
  return tarballs.get(name);
}

export async function startRegistry() {
  let url, isDropping = false, met;

  const document = (name) => {
    const bytes = tarballOf(name);
    const dist = { tarball: `${url}/${name}/-/${name}-1.0.0.tgz`, integrity: sha512(bytes), shasum: createHash('sha1').update(bytes).digest('hex') };
    return { name, readme: `# ${name}`, 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': { name, version: '1.0.0', types: 'index.d.ts', dist } } };
  };
  const answerOf = (req) => {
    const [, name] = known.exec(req.url) ?? [];
    if (req.url.startsWith('/-/v1/search')) return JSON.stringify({ objects: [{ package: { name: 'pkg-found', description: 'found' }, score: { detail: { popularity: 1 } } }] });
    if (!name) return null;
    return req.url.endsWith('.tgz') ? tarballOf(name) : JSON.stringify(document(name));
  };

  const server = createServer(async (req, res) => {
    res.on('error', () => {});
    const answer = answerOf(req);
    if (answer === null) return res.writeHead(404).end('{"error":"not found"}');
    const bytes = Buffer.from(answer);
    res.writeHead(200, { 'content-type': req.url.endsWith('.tgz') ? 'application/octet-stream' : 'application/json', 'content-length': bytes.length });
    res.write(bytes.subarray(0, bytes.length >> 1));
    await pause(20);
    if (isDropping) {
      met?.();
      res.socket?.destroy();
    } else {
      res.end(bytes.subarray(bytes.length >> 1));
    }
  });
  server.on('connection', (socket) => { socket.on('error', () => {}); });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${server.address().port}`;
  return {
    url, port: server.address().port,
    /** From now on every answer ends in its middle; resolves when one has. */
    drop: () => new Promise((resolve) => { met = resolve; isDropping = true; }),
    mend: () => { isDropping = false; },
    close: () => { server.closeAllConnections(); server.close(); },
  };
}
