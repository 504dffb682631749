// What the server reaches inside a real sandbox, with real Node servers there: ports, files, directories.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import readline from 'node:readline';
import { before, test } from 'node:test';
import { assertGone, build, code, jerboa, start, until } from './jerboa.mjs';

const limit = { timeout: 180_000 };
let runtime;
before(() => { runtime = execFileSync(jerboa, ['pull'], { encoding: 'utf8' }).trim(); });

/** A sandbox with this function as its program. `ask` sends a command and gives its answer. */
function enter(t, fn, ...args) {
  const child = start([runtime, code(fn, ...args)], { program: path.join(build, 'reach'), seconds: 55 });
  const waiting = new Map();
  let number = 0;
  readline.createInterface({ input: child.stdout }).on('line', (line) => {
    const [n, value] = JSON.parse(line);
    assert.ok(waiting.has(n), `an answer to nothing: ${line}`);
    waiting.get(n)(value);
    waiting.delete(n);
  });
  child.ended.then((r) => { for (const [n, resolve] of waiting) resolve({ lost: n, stderr: r.stderr }); });
  const ask = (command) => new Promise((resolve) => {
    waiting.set(++number, resolve);
    child.stdin.write(`${number} ${command}\n`);
  });
  const leave = async () => {
    child.stdin.end();
    const r = await child.ended;
    assert.deepEqual([r.status, r.signal], [0, null], r.stderr);
    return r;
  };
  t.after(async () => { child.kill('SIGKILL'); t.diagnostic((await child.ended).stderr); });
  return { ask, leave, child };
}

const request = (port, more = {}) => new Promise((resolve, reject) => {
  http.request({ host: '127.0.0.1', port, agent: false, ...more }, (res) => {
    const pieces = [];
    res.on('data', (d) => pieces.push(d)).on('error', reject).on('end', () => resolve({ status: res.statusCode, body: Buffer.concat(pieces) }));
  }).on('error', reject).end(more.body);
});

/** A connection to a port of ours; `text` collects what comes, `over` is 'end' or the error's code. */
function dial(port) {
  const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.setEncoding('latin1');
  socket.text = '';
  socket.on('data', (d) => { socket.text += d; });
  socket.over = new Promise((resolve) => { socket.on('end', () => resolve('end')).on('error', (e) => resolve(e.code)); });
  return socket;
}

test('HTTP through a port, several at once, and large bodies both ways', limit, async (t) => {
  const { ask, leave } = enter(t, async () => {
    const http = await import('node:http');
    http.createServer(async (req, res) => {
      if (req.url === '/large') return res.end(Buffer.alloc(20_000_000, 7));
      let size = 0;
      for await (const piece of req) size += piece.length;
      res.end(`${req.method} ${req.url} ${size}`);
    }).listen(3000);
  });
  assert.equal(await ask('wait 3000 20000'), true);
  const port = await ask('open 3000');
  assert.equal(String((await request(port, { path: '/a' })).body), 'GET /a 0');
  const large = await request(port, { path: '/large' });
  assert.equal(large.body.length, 20_000_000);
  assert.ok(large.body.every((b) => b === 7));
  const sent = await request(port, { path: '/b', method: 'POST', body: Buffer.alloc(20_000_000) });
  assert.equal(String(sent.body), 'POST /b 20000000');
  const all = await Promise.all(Array.from({ length: 150 }, (_, i) => request(port, { path: `/${i}` }))); // more than at once
  assert.deepEqual(all.map((r) => String(r.body)), all.map((_, i) => `GET /${i} 0`));
  await leave();
  await assertGone();
});

test('an upgraded connection stays open both ways', limit, async (t) => {
  const { ask, leave } = enter(t, async () => {
    const http = await import('node:http');
    http.createServer().on('upgrade', (req, socket) => {
      socket.write('HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n');
      socket.pipe(socket);
    }).listen(3000, '::1'); // on IPv6 alone
  });
  assert.equal(await ask('wait 3000 20000'), true);
  const socket = dial(await ask('open 3000'));
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nUpgrade: echo\r\nConnection: Upgrade\r\n\r\n');
  await until(() => socket.text.endsWith('\r\n\r\n'));
  for (let i = 0; i < 50; i++) {
    socket.text = '';
    socket.write(`message ${i}`);
    await until(() => socket.text === `message ${i}`);
  }
  socket.end();
  assert.equal(await socket.over, 'end');
  await leave();
});

test('half closes and resets travel both ways', limit, async (t) => {
  const { ask, leave } = enter(t, async () => {
    const net = await import('node:net');
    let how = 'none';
    net.createServer({ allowHalfOpen: true }, (s) => { // all of what comes, then the answer
      let text = '';
      s.on('data', (d) => { text += d; if (text === 'reset') s.resetAndDestroy(); });
      s.on('end', () => s.end(`${text.length} ${text.slice(0, 9)}`));
      s.on('error', (e) => { how = e.code; });
    }).listen(3000);
    net.createServer((s) => s.end(how)).listen(3001);
    net.createServer((s) => { s.write('early'); s.end(); }).listen(3002);
  });
  for (const inside of [3000, 3001, 3002]) assert.equal(await ask(`wait ${inside} 20000`), true);
  const [a, b, c] = [await ask('open 3000'), await ask('open 3001'), await ask('open 3002')];
  let socket = dial(a);
  socket.end('something');
  assert.equal(await socket.over, 'end');
  assert.equal(socket.text, '9 something');
  socket = dial(a);
  socket.write('reset');
  assert.equal(await socket.over, 'ECONNRESET');
  socket = dial(c); // its end comes first, ours later
  assert.equal(await socket.over, 'end');
  assert.equal(socket.text, 'early');
  socket.end();
  socket = dial(a);
  socket.write('x');
  await once(socket, 'ready');
  socket.resetAndDestroy();
  await until(async () => {
    const look = dial(b);
    look.end();
    await look.over;
    return look.text === 'ECONNRESET';
  });
  await leave();
});

test('nobody listens: reset at once; the wait ends in time, by an answer, or by a death', limit, async (t) => {
  const { ask, leave } = enter(t, async () => {
    const net = await import('node:net');
    setTimeout(() => net.createServer((s) => s.write('no handler for errors here')).listen(3000), 700);
  });
  const port = await ask('open 3999');
  assert.equal(await dial(port).over, 'ECONNRESET');
  assert.equal(await ask('wait 3999 300'), false);
  assert.equal(await ask('give-up 3999'), true);
  assert.equal(await ask('wait 3000 20000'), true); // whose knock did not end it:
  assert.equal(await ask('wait 3000 20000'), true);
  const again = dial(await ask('open 3000'));
  await until(() => again.text === 'no handler for errors here');
  again.end();
  const late = ask('wait 3998 20000');
  assert.equal(await ask('stop'), true);
  assert.equal(await late, false);
  await leave();
});

test('slow readers on either side hold a window, and memory stays', limit, async (t) => {
  const { ask, leave } = enter(t, async () => {
    const net = await import('node:net');
    net.createServer((s) => { const more = () => { while (s.write(Buffer.alloc(65536))); }; s.on('drain', more).on('error', () => {}); more(); }).listen(3000);
    net.createServer((s) => s.pause().on('error', () => {})).listen(3001);
  });
  for (const inside of [3000, 3001]) assert.equal(await ask(`wait ${inside} 20000`), true);
  const [gives, takes] = [await ask('open 3000'), await ask('open 3001')];
  const before = await ask('memory');
  const slow = Array.from({ length: 20 }, () => net.connect({ port: gives, host: '127.0.0.1' }).pause());
  let offered = 0;
  const fast = Array.from({ length: 20 }, () => net.connect({ port: takes, host: '127.0.0.1' }));
  await Promise.all([...slow, ...fast].map((s) => once(s, 'connect')));
  for (const s of fast)
    for (let i = 0; i < 200; i++, offered += 65536) s.write(Buffer.alloc(65536)); // 262 MB, of which Node here keeps most
  let last = 0;
  await until(() => { // until the kernels are full as well
    const now = fast.reduce((sum, s) => sum + s.bytesWritten - s.writableLength, 0);
    const still = now === last && now > 0;
    last = now;
    return still;
  });
  const during = await ask('memory');
  t.diagnostic(`resident KiB: ${before}, then ${during}; ${offered} bytes offered`);
  assert.ok(during - before < (40 * 2 * 256 + 24_000), `${before} ${during}`);
  for (const s of [...slow, ...fast]) s.destroy();
  await leave();
});

test('the end of the sandbox resets its connections; a port that was closed is nobody\'s', limit, async (t) => {
  const { ask, leave } = enter(t, async () => {
    const net = await import('node:net');
    net.createServer((s) => { s.on('error', () => {}).write('here'); }).listen(3000); // which outlives the first reset
  });
  assert.equal(await ask('wait 3000 20000'), true);
  const [first, second] = [await ask('open 3000'), await ask('open 3000')];
  const a = dial(first), b = dial(second);
  await until(() => a.text === 'here' && b.text === 'here');
  await ask(`close ${first}`);
  assert.equal(await a.over, 'ECONNRESET');
  assert.equal(await dial(first).over, 'ECONNREFUSED');
  assert.equal(await ask('stop'), true);
  assert.equal(await b.over, 'ECONNRESET');
  assert.equal(await dial(second).over, 'ECONNREFUSED');
  await leave();
  await assertGone();
});

const [INVALID, NOT_FOUND] = [1, 2]; // of base/err.h

test('files are read below the workspace, and nothing else is', limit, async (t) => {
  const { ask, leave } = enter(t, async () => {
    const fs = await import('node:fs');
    const { execFileSync } = await import('node:child_process');
    fs.mkdirSync('d e');
    fs.writeFileSync('d e/ü.txt', 'hello');
    fs.writeFileSync('large', Buffer.alloc(5_000_000, 'x'));
    fs.writeFileSync('empty', '');
    fs.writeFileSync('sparse', '');
    fs.truncateSync('sparse', 2 ** 34);
    for (const [name, to] of Object.entries({ 'passwd': '/etc/passwd', 'stdin': '/proc/self/fd/0', 'one': '/proc/1/environ', 'up': '..', 'here': 'd e/ü.txt' }))
      fs.symlinkSync(to, name);
    execFileSync('mkfifo', ['fifo']);
    fs.writeFileSync('grows', '');
    const fd = fs.openSync('grows', 'a');
    fs.writeFileSync('ready', '');
    setInterval(() => fs.writeSync(fd, Buffer.alloc(10_000, 'g')), 1);
  });
  await until(async () => !('error' in await ask('read 10 ready')));
  assert.deepEqual(await ask('read 1000 d e/ü.txt'), { text: 'hello', size: 5, whole: 5 });
  assert.deepEqual(await ask('read 3 d e/ü.txt'), { text: 'hel', size: 3, whole: 5 });
  assert.deepEqual(await ask('read 0 d e/ü.txt'), { text: '', size: 0, whole: 5 });
  assert.deepEqual(await ask('read 9 empty'), { text: '', size: 0, whole: 0 });
  assert.deepEqual(await ask('read 5000000 large'), { text: 'x'.repeat(100), size: 5_000_000, whole: 5_000_000 });
  const sparse = await ask('read 3000000 sparse');
  assert.deepEqual([sparse.size, sparse.whole], [3_000_000, 2 ** 34]);
  const grows = await ask('read 20000 grows');
  assert.ok(grows.size <= 20_000 && grows.whole >= grows.size);
  const kinds = {
    'missing': NOT_FOUND, 'large/x': NOT_FOUND, 'd e/none': NOT_FOUND, 'up/etc/passwd': NOT_FOUND,
    '../etc/passwd': INVALID, '/etc/passwd': INVALID, 'd e/../large': INVALID, './large': INVALID, '': INVALID, 'd e//ü.txt': INVALID,
  };
  for (const [name, kind] of Object.entries(kinds)) {
    const r = await ask(`read 1000 ${name}`);
    assert.equal(r.error?.[0], kind, `${name}: ${JSON.stringify(r)}`);
  }
  for (const name of ['passwd', 'stdin', 'one', 'up', 'here', 'fifo', 'd e', 'n'.repeat(4000)]) {
    const r = await ask(`read 1000 ${name}`);
    assert.ok(r.error?.[1], `${name}: ${JSON.stringify(r)}`);
  }
  await leave();
});

test('directories are listed within their bounds, links are not followed', limit, async (t) => {
  const { ask, leave } = enter(t, async () => {
    const fs = await import('node:fs');
    fs.mkdirSync('tree/a/b', { recursive: true });
    fs.writeFileSync('tree/a/b/line\nbreak', '12345');
    fs.symlinkSync('/', 'tree/root');
    fs.symlinkSync('..', 'tree/a/up');
    fs.mkdirSync('many');
    for (let i = 0; i < 20_000; i++) fs.writeFileSync(`many/${i}`, '');
    fs.mkdirSync('secret');
    fs.writeFileSync('secret/x', '');
    fs.chmodSync('secret', 0);
    let deep = 'deep';
    for (let i = 0; i < 300; i++) fs.mkdirSync(deep += '/d', { recursive: true });
    fs.writeFileSync('ready', '');
    (await import('node:http')).createServer((q, s) => s.end('quick')).listen(3000);
  });
  assert.equal(await ask('wait 3000 30000'), true);
  const [FILE, DIR, LINK] = [0, 1, 2];
  const tree = await ask('list 100 10 5000 tree');
  assert.deepEqual(tree.rows.map(([p, k, s]) => (k === FILE ? [p, k, s] : [p, k])).sort(), [
    ['tree/a', DIR], ['tree/a/b', DIR], ['tree/a/b/line\nbreak', FILE, 5], ['tree/a/up', LINK], ['tree/root', LINK]]);
  assert.equal(tree.cut, false);
  const top = await ask('list 100 1 5000 ');
  assert.ok(top.rows.every(([p]) => !p.includes('/')) && top.rows.some(([p]) => p === 'many'), JSON.stringify(top));
  const port = await ask('open 3000');
  const [all, quick] = await Promise.all([ask('list 30000 9 20000 many'), request(port)]); // others go on meanwhile
  assert.deepEqual([all.rows.length, all.cut, String(quick.body)], [20_000, false, 'quick']);
  const cut = await ask('list 500 9 5000 many');
  assert.deepEqual([cut.rows.length, cut.cut], [500, true]);
  const late = await ask('list 30000 9 1 many');
  assert.ok(late.cut && late.rows.length < 20_000);
  const deep = await ask('list 1000 50 5000 deep');
  assert.deepEqual([deep.rows.length, deep.cut], [50, false]);
  const closed = await ask('list 100 5 5000 secret');
  assert.ok(closed.error, JSON.stringify(closed));
  for (const name of ['tree/root', 'tree/a/up', 'ready', '..', '/etc', 'missing'])
    assert.ok((await ask(`list 10 3 5000 ${name}`)).error, name);
  await leave();
});

test('a cancelled run is gone', limit, async (t) => {
  const { ask, leave } = enter(t, async () => {
    const { spawn } = await import('node:child_process');
    for (let i = 0; i < 5; i++) spawn('setsid', ['sleep', '1000'], { detached: true });
    (await import('node:http')).createServer().listen(3000);
  });
  assert.equal(await ask('wait 3000 20000'), true);
  const ms = await ask('cancel');
  t.diagnostic(`${ms} ms`); // tools.test.mjs has a bound for it
  await leave();
  await assertGone();
});
