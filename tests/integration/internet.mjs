// internet.mjs ROLE DIR: all servers of the network that the egress tests make (see network.mjs), until stdin ends.
// ROLE tells what an answer is signed with: `internet` answers on every address there is, `host` is the machine itself.
//   8080 HTTP and WebSocket, 8443 HTTPS, 53 DNS by UDP and TCP (internet only), 9001… behaviours of TCP (below)
import { createHash } from 'node:crypto';
import dgram from 'node:dgram';
import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import path from 'node:path';
import { tgz } from './registry.mjs';

const [role, dir] = process.argv.slice(2);
const plain = (address) => address.replace(/^::ffff:(?=\d+\.)/, '');
/** Which server was reached, and at which address: what a probe tells. */
const signed = (socket) => `${role} ${plain(socket.localAddress)}`;

// ---- HTTP, HTTPS, WebSocket ----

/** For npm: one package, whose only file is the signature. */
function packument(request) {
  const tarball = `http${request.socket.encrypted ? 's' : ''}://${request.headers.host}/probe/-/probe-1.0.0.tgz`;
  return JSON.stringify({ name: 'probe', 'dist-tags': { latest: '1.0.0' }, versions: { '1.0.0': { name: 'probe', version: '1.0.0', dist: { tarball } } } });
}

const paths = {
  '/probe': packument,
  '/probe/-/probe-1.0.0.tgz': (request) => tgz({ name: 'package/package.json', content: '{"name":"probe","version":"1.0.0"}' },
    { name: 'package/signed', content: signed(request.socket) }),
  /** For git: one reference. */
  '/repository/info/refs?service=git-upload-pack': (request) => `a9993e364706816aba3e25717850c26c9cd0d89d\trefs/heads/${signed(request.socket).replace(' ', '-')}\n`,
};

function answer(request, response) {
  response.writeHead(200, { connection: 'close' });
  response.end((paths[request.url] ?? (() => signed(request.socket)))(request));
}

function upgrade(request, socket) {
  const key = createHash('sha1').update(`${request.headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64');
  const text = Buffer.from(signed(socket));
  socket.on('error', () => {});
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${key}\r\n\r\n`);
  socket.end(Buffer.concat([Buffer.from([0x81, text.length]), text, Buffer.from([0x88, 0])]));
}

const tls = { key: fs.readFileSync(path.join(dir, 'key.pem')), cert: fs.readFileSync(path.join(dir, 'cert.pem')) };
const servers = [[http.createServer(answer).on('upgrade', upgrade), 8080], [https.createServer(tls, answer), 8443]];

// ---- behaviours of TCP, for the tests of streams ----

const told = new Map(); // what a server saw of a connection, for its client to ask about at port 9000
const behaviours = {
  9000: (socket) => socket.once('data', (name) => socket.end(JSON.stringify(told.get(String(name).trim()) ?? null))),
  /** Reads to the end, then says how much it was: half-close of the client. */
  9001: (socket) => {
    let size = 0;
    const hash = createHash('sha256');
    socket.on('data', (piece) => { size += piece.length; hash.update(piece); });
    socket.on('end', () => socket.end(`${size} ${hash.digest('hex')}`));
  },
  /** Ends at once, then still reads: half-close of the server. */
  9002: (socket) => {
    let text = '';
    socket.end('that is all');
    socket.on('data', (piece) => { text += piece; });
    socket.on('end', () => told.set('9002', text));
  },
  /** Resets as soon as something came. */
  9003: (socket) => socket.once('data', () => socket.resetAndDestroy()),
  /** Tells how a connection ended. */
  9004: (socket) => {
    socket.on('error', (e) => told.set('9004', e.code));
    socket.on('end', () => told.set('9004', 'end'));
    socket.resume();
  },
  /** Never reads. */
  9005: (socket) => socket.pause(),
  /** Writes 64 MiB, as fast as they are taken. */
  9006: (socket) => {
    const piece = Buffer.alloc(1 << 16, 'x');
    let left = 1024;
    const more = () => { while (left-- > 0) if (!socket.write(piece)) return; socket.end(); };
    socket.on('drain', more).resume();
    more();
  },
  /** Sends back what comes. */
  9007: (socket) => socket.pipe(socket),
};
if (role === 'internet') servers.push([net.createServer(answerDnsStream), 53]);
for (const [port, serve] of Object.entries(behaviours))
  servers.push([net.createServer({ allowHalfOpen: true, noDelay: true }, (socket) => { socket.on('error', () => {}); serve(socket); }), +port]);

// ---- DNS ----

/** Names and their addresses; what is not here does not exist. A name below rebind.example has a public address when it
 *  is asked for the first time, and a private one from then on. */
const zone = {
  'public.example': ['93.184.216.34', '2606:2800:220:1::1'], 'www.public.example': ['93.184.216.35'], 'six.example': ['2606:2800:220:1::2'],
  'a.wild.example': ['93.184.216.36'], 'wild.example': ['93.184.216.37'], 'other.example': ['93.184.216.38'],
  'private.example': ['10.1.2.3'], 'private6.example': ['fd00::5'], 'loop.example': ['127.0.0.1'], 'loop6.example': ['::1'],
  'metadata.example': ['169.254.169.254'], 'mapped.example': ['::ffff:10.1.2.3'], 'nat64.example': ['64:ff9b::a01:203'],
  'both.example': ['10.1.2.3', '93.184.216.39'], 'registry.example': ['10.9.9.9'], 'silent.example': ['93.184.216.99'],
  'large.example': ['93.184.216.34'],
  ...Object.fromEntries(Array.from({ length: 1100 }, (_, i) => [`n${i}.many.example`, ['93.184.216.40']])),
};
const asked = new Map();

function addressesOf(name) {
  if (!name.endsWith('.rebind.example')) return zone[name];
  return asked.get(name) > 1 ? ['10.1.2.3'] : ['93.184.216.34'];
}

function bytesOf(address) {
  if (!address.includes(':')) return Buffer.from(address.split('.').map(Number));
  const text = address.replace(/(\d+)\.(\d+)\.(\d+)\.(\d+)$/, (_, a, b, c, d) => `${(a << 8 | b).toString(16)}:${(c << 8 | d).toString(16)}`);
  const [head, tail = ''] = text.split('::').map((half) => half.split(':').filter(Boolean));
  const groups = text.includes('::') ? [...head, ...Array(8 - head.length - tail.length).fill('0'), ...tail] : head;
  return Buffer.from(groups.map((g) => g.padStart(4, '0')).join(''), 'hex');
}

const record = (type, data) => {
  const fixed = Buffer.alloc(12);
  fixed.writeUInt16BE(0xc00c, 0);
  fixed.writeUInt16BE(type, 2);
  fixed.writeUInt16BE(1, 4); // TTL stays 0
  fixed.writeUInt16BE(data.length, 10);
  return Buffer.concat([fixed, data]);
};

/** As the bytes of a TXT record have it: pieces of at most 255. */
const textOf = (text) => Buffer.concat(text.match(/.{1,255}/g).map((piece) => Buffer.concat([Buffer.from([piece.length]), Buffer.from(piece)])));
/** What a datagram for this query may hold: EDNS stands at its end. */
const mostOf = (query) => (query.readUInt16BE(10) ? Math.max(512, query.readUInt16BE(query.length - 8)) : 512);

/** `most`: bytes; a larger answer is truncated. */
function answerDns(query, most) {
  const labels = [];
  let at = 12;
  for (; query[at]; at += query[at] + 1) labels.push(query.subarray(at + 1, at + 1 + query[at]).toString());
  const name = labels.join('.').toLowerCase(), type = query.readUInt16BE(at + 1);
  if (type === 1) asked.set(name, (asked.get(name) ?? 0) + 1);
  const known = addressesOf(name);
  const records = (known ?? []).flatMap((address) =>
    type === (address.includes(':') ? 28 : 1) ? [record(type, bytesOf(address))] : []);
  if (known && type === 16) records.push(record(16, textOf(name === 'large.example' ? 'large '.repeat(1000) : 'text of a txt')));
  if (known && type === 15) records.push(record(15, Buffer.from('\0\x0a\x04mail\xc0\x0c', 'latin1')));
  const head = Buffer.from(query.subarray(0, at + 5));
  const code = name === 'broken.example' ? 2 : known ? 0 : 3;
  head.writeUInt16BE(0x8180 | code, 2);
  head.writeUInt16BE(records.length, 6);
  head.writeUInt32BE(0, 8);
  const whole = Buffer.concat([head, ...records]);
  if (whole.length <= most) return whole;
  head.writeUInt16BE(0x8380, 2);
  head.writeUInt16BE(0, 6);
  return head;
}

/** One query a connection. */
function answerDnsStream(socket) {
  let got = Buffer.alloc(0);
  socket.on('error', () => {}).on('data', (piece) => {
    got = Buffer.concat([got, piece]);
    if (got.length < 2 || got.length < 2 + got.readUInt16BE(0)) return;
    const answer = answerDns(got.subarray(2), 65535), length = Buffer.alloc(2);
    length.writeUInt16BE(answer.length);
    socket.end(Buffer.concat([length, answer]));
  });
}

function serveDns() {
  const socket = dgram.createSocket('udp4');
  socket.on('message', (query, from) => socket.send(answerDns(query, mostOf(query)), from.port, from.address));
  return new Promise((resolve) => { socket.bind(53, '0.0.0.0', resolve); });
}

await Promise.all([...servers.map(([server, port]) => new Promise((resolve) => { server.listen(port, '::', resolve); })),
  ...(role === 'internet' ? [serveDns()] : [])]);
console.log('up');
process.stdin.resume().on('end', () => process.exit());
