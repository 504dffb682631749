// Layers of dependencies in sandboxes that run: what code sees, what the layer keeps, and what hostile code gains.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { assertGone, build, copyPrograms, isRoot, jerboa, limit, printed, root, start, tempDir, writeFiles } from './jerboa.mjs';

const runtime = execFileSync(jerboa, ['pull'], { encoding: 'utf8' }).trim();
const DISK = 32 << 20;
const names = ['jerboa-jail', 'jerboa-init', 'layers'];

const begin = (words, { program = path.join(build, 'layers'), disk = DISK, ...more } = {}) =>
  start([runtime, `${disk}`, ...words], { program, ...more });

/** What each word came to. */
async function live(words, more) {
  const r = await begin(words, { input: '', ...more }).ended;
  assert.deepEqual([r.status, r.signal, r.stderr], [0, null, '']);
  return r.stdout.trim().split('\n').map((line) => JSON.parse(line));
}

const ok = (line) => { assert.equal(line.verdict, 'ok', JSON.stringify(line)); return line.stdout.trim(); };
const attached = (line) => assert.deepEqual([line.attached, line.error], [true, '']);

/** A layer like an installer's: two packages, one of them deep, commands, odd rights. */
function makeLayer(t, more = {}) {
  const dir = writeFiles(tempDir(t), {
    'node_modules/a/index.js': 'module.exports = "a";', 'node_modules/a/lib/deep/x.js': 'x', 'node_modules/b/index.js': 'module.exports = "b";', ...more });
  fs.chmodSync(path.join(dir, 'node_modules/b/index.js'), 0o755);
  fs.symlinkSync('../b/index.js', path.join(dir, 'node_modules/a/bin'));
  fs.chmodSync(dir, 0o755);
  return dir;
}

/** Every name, right, time and byte. */
function picture(dir) {
  const h = createHash('sha256');
  for (const name of fs.readdirSync(dir, { recursive: true }).sort()) {
    const file = path.join(dir, name), s = fs.lstatSync(file, { bigint: true });
    h.update(JSON.stringify([name, `${s.mode} ${s.uid} ${s.gid} ${s.mtimeNs} ${s.ctimeNs} ${s.ino}`]));
    if (s.isFile()) h.update(fs.readFileSync(file));
  }
  return h.digest('hex');
}

const overlays = `awk '/ - overlay /{print $5, $6}' /proc/self/mountinfo`;

test('code sees a layer, writes on top of it, and changes nothing of it', limit, async (t) => {
  const layer = makeLayer(t), before = picture(layer);
  const seen = await live([
    'attach', layer,
    'sh', `node -p 'require("a") + require("b")'`,
    'sh', 'echo "module.exports += 1" >> node_modules/a/index.js && chmod 600 node_modules/b/index.js && touch node_modules/new && mkdir node_modules/c && stat -c %a node_modules/b/index.js && node -p \'require("a")\'',
    'sh', 'rm -r node_modules/a && mkdir node_modules/a && ls -A node_modules/a | wc -l && mv node_modules/b node_modules/moved && ls node_modules',
    'sh', 'rm -rf node_modules/* && ls -A node_modules | wc -l',
    'sh', overlays,
  ]);
  attached(seen[0]);
  assert.deepEqual(seen.slice(1, 5).map(ok), ['ab', '600\na1', '0\na\nc\nmoved\nnew', '0']);
  assert.match(ok(seen[5]), /^\/workspace\/node_modules \S*\bnosuid,nodev\b\S*$/);
  assert.equal(picture(layer), before);
});

test('a program that runs already sees it', limit, async (t) => {
  const layer = makeLayer(t);
  const seen = await live([
    'sh', 'mkdir node_modules',
    'meanwhile', `node -e 'setInterval(() => { try { require("fs").writeFileSync("seen", require("a")) } catch { require("fs").writeFileSync("missed", "") } }, 2)'`,
    'sh', 'until [ -e missed ]; do sleep 0.01; done',
    'attach', layer,
    'sh', 'until [ -s seen ]; do sleep 0.01; done; cat seen',
  ]);
  attached(seen[2]);
  assert.equal(ok(seen[3]), 'a');
});

test('a second layer replaces the first, with what was written on it', limit, async (t) => {
  const first = makeLayer(t), second = makeLayer(t, { 'node_modules/only/index.js': '' });
  const used = `df --output=used,iused /workspace | tail -1 | awk '{print ($1 < 2000) ($2 < 200)}'`; // KiB, and inodes
  const freed = `until [ "$(${used})" = 11 ]; do sleep 0.01; done`; // the layer is answered for before that
  const deep = `node -e 'const fs = require("fs"); process.chdir("node_modules"); for (let i = 0; i < 1500; i++) { fs.mkdirSync("d"); process.chdir("d") }'`;
  const seen = await live([
    'attach', first, 'sh', `head -c 8000000 /dev/zero > node_modules/big && mkdir -m 0 node_modules/closed && ${deep}`, 'sh', used,
    'attach', second, 'sh', 'ls node_modules', 'sh', freed, 'attach', first, 'sh', 'ls node_modules', 'sh', overlays,
  ]);
  assert.deepEqual([1, 2, 4, 5, 7].map((i) => ok(seen[i])), ['', '00', 'a\nb\nonly', '', 'a\nb']);
  assert.equal(ok(seen[8]).split('\n').length, 1);
});

test('what is written on a layer counts as disk', limit, async (t) => {
  const [, full, other] = await live(['attach', makeLayer(t), 'sh', 'head -c 9000000 /dev/zero > node_modules/big', 'sh', 'echo x > y'], { disk: 8 << 20 });
  assert.equal(full.verdict, 'disk');
  assert.equal(other.verdict, 'disk'); // one disk for all
});

test('a link or a file in the place of node_modules: an error, and nothing is mounted', limit, async (t) => {
  const layer = makeLayer(t), places = ['/tmp', '/root', '/usr', '/workspace/files', '/.jerboa/disk', 'nowhere', '/proc/self/cwd'];
  const words = places.flatMap((place) => ['sh', `rm -rf node_modules; mkdir -p real; ln -s ${place} node_modules`, 'attach', layer, 'sh', overlays]);
  const seen = await live([...words, 'sh', 'rm node_modules; echo > node_modules', 'attach', layer, 'sh', `${overlays}; ls /tmp /root`, 'sh', 'rm node_modules', 'attach', layer]);
  for (let i = 0; i < places.length + 1; i++) {
    assert.deepEqual([seen[3 * i + 1].attached, seen[3 * i + 1].error], [false, '/workspace/node_modules in the sandbox is no directory: remove it']);
    assert.match(ok(seen[3 * i + 2]), /^(\/root:\s+\/tmp:|\/tmp:\s+\/root:|)$/);
  }
  attached(seen.at(-1));
});

test('who swaps the place while a layer comes gets nothing but errors', limit, async (t) => {
  const layer = makeLayer(t), rounds = 40;
  const swap = `node -e 'const fs = require("fs"); for (;;) { try { fs.rmdirSync("node_modules") } catch {} try { fs.symlinkSync("/tmp", "node_modules") } catch {} try { fs.unlinkSync("node_modules") } catch {} try { fs.mkdirSync("node_modules") } catch {} fs.writeFileSync("swapped", "") }'`;
  const seen = await live(['meanwhile', swap, 'sh', 'until [ -e swapped ]; do sleep 0.01; done', ...Array.from({ length: rounds }, () => ['attach', layer, 'sh', `${overlays}; ls -A /tmp`]).flat()]);
  for (let i = 0; i < rounds; i++) {
    assert.match(ok(seen[2 * i + 2]), /^(\/workspace\/node_modules \S+)?$/);
    assert.ok(seen[2 * i + 1].attached || /\/workspace\/node_modules/.test(seen[2 * i + 1].error), seen[2 * i + 1].error);
  }
});

test('where layers lie cannot be reached from inside', limit, async (t) => {
  const tries = ['ls /.jerboa/disk', 'cd /.jerboa/disk', 'ls /.jerboa/disk/layers', 'chmod 755 /.jerboa/disk', 'umount /.jerboa/disk', 'touch /.jerboa/disk/x', 'cat /proc/1/root/.jerboa/disk/layers/1/upper/x',
    'ls /workspace/../.jerboa/disk', 'umount /workspace/node_modules', 'mv /workspace/node_modules /workspace/other', 'rmdir /workspace/node_modules'];
  const [, seen, still] = await live(['attach', makeLayer(t), 'sh', tries.map((command) => `(${command}) >/dev/null 2>&1 && echo '${command}'`).join('; ') + '; true', 'sh', 'ls node_modules']);
  assert.deepEqual([ok(seen), ok(still)], ['', 'a\nb']);
});

test('a layer that is not one: an error, and the sandbox lives on', limit, async (t) => {
  const dir = tempDir(t), layer = makeLayer(t);
  fs.symlinkSync('/etc', path.join(dir, 'node_modules'));
  const seen = await live(['attach', path.join(dir, 'missing'), 'attach', dir, 'attach', 'x'.repeat(9000), 'attach', layer, 'attach', path.join(dir, 'missing'), 'sh', 'ls node_modules']);
  assert.deepEqual(seen.slice(0, 3).map((line) => line.attached), [false, false, false]);
  assert.match(seen[0].error, /missing\/node_modules: open: No such file or directory$/);
  assert.match(seen[1].error, /node_modules: open: Not a directory$/);
  assert.equal(seen[2].error, 'the path of the layer is too long');
  attached(seen[3]);
  assert.equal(ok(seen[5]), 'a\nb'); // the one before stays
});

test('rights of the layer hold', limit, async (t) => {
  const layer = makeLayer(t);
  fs.chmodSync(path.join(layer, 'node_modules/b/index.js'), 0o4755);
  const [, seen] = await live(['attach', layer, 'sh', 'stat -c %u node_modules/a node_modules/a/index.js; cp /usr/bin/id node_modules/id; chmod 4755 node_modules/id 2>/dev/null || echo refused; mknod node_modules/null c 1 3 2>/dev/null || echo refused; ls node_modules']);
  assert.equal(ok(seen), '0\n0\nrefused\nrefused\na\nb\nid');
});

test('a sandbox that is killed leaves no mount and no process', limit, async (t) => {
  const dir = tempDir(t), layer = makeLayer(t), before = picture(layer);
  copyPrograms(dir, names);
  for (const whom of ['server', 'jail']) {
    const child = begin(['attach', layer, 'sh', 'echo x > node_modules/a/index.js', 'attach', layer, 'sh', 'echo x > node_modules/a/index.js', 'wait', 'sh', 'true'], { program: path.join(dir, 'layers') });
    await printed(child, 'waiting');
    if (whom === 'server') child.kill('SIGKILL');
    else process.kill(+fs.readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim().split(' ')[0], 'SIGKILL');
    if (whom === 'jail') child.stdin.end('\n');
    await child.ended;
    await assertGone(dir);
  }
  assert.equal(picture(layer), before);
});

/** A kernel that answers one call with an error. */
function without(t, call, errno) {
  const deny = path.join(tempDir(t), 'deny'), number = { fsopen: 430, setxattr: process.arch === 'arm64' ? 5 : 188 }[call];
  execFileSync('gcc', ['-D_GNU_SOURCE', '-Wall', '-Werror', '-static', '-O1', '-o', deny, `${root}/tests/programs/deny.c`]);
  return (program, args) => start([`${number}`, `${errno}`, path.join(build, program), ...args], { program: deny, input: '' }).ended;
}

test('a kernel without overlays: one sentence, in the doctor too', limit, async (t) => {
  const layer = makeLayer(t), on = without(t, 'fsopen', 19);
  const sentence = 'this kernel has no overlay file system, which layers of dependencies need: as root: modprobe overlay';
  const [first, second] = (await on('layers', [runtime, `${DISK}`, 'attach', layer, 'sh', `ls -A; ${overlays}`])).stdout.trim().split('\n').map((line) => JSON.parse(line));
  assert.deepEqual([first.attached, first.error], [false, sentence]);
  assert.equal(ok(second), 'files\npackage.json');
  const report = JSON.parse((await on('jerboa', ['doctor', '--json'])).stdout), row = report.checks.find((check) => check.name === 'overlay');
  assert.equal(report.works, true);
  assert.equal(row.state, 'off');
  assert.equal(`${row.why}: as root: ${row.fix.replace(/^sudo /, '')}`, sentence);
});

// As Linux before 6.6, whose tmpfs has no attributes of users: all works but that a directory of the layer is removed and made anew.
test('a kernel whose tmpfs has no attributes: packages are read, changed, added and removed', limit, async (t) => {
  const layer = makeLayer(t), before = picture(layer), on = without(t, 'setxattr', 95);
  const words = 'cat node_modules/a/index.js && echo more >> node_modules/a/index.js && tail -n 1 node_modules/a/index.js && mkdir node_modules/new && echo x > node_modules/new/y && cat node_modules/new/y && rm node_modules/a/index.js && ! ls node_modules/a/index.js 2>/dev/null && echo removed';
  const [first, second] = (await on('layers', [runtime, `${DISK}`, 'attach', layer, 'sh', words])).stdout.trim().split('\n').map((line) => JSON.parse(line));
  attached(first);
  assert.match(ok(second), /more\nx\nremoved$/);
  assert.equal(picture(layer), before);
  assert.equal(JSON.parse((await on('jerboa', ['doctor', '--json'])).stdout).checks.find((check) => check.name === 'overlay').state, 'on');
});

test('it takes about a millisecond', limit, async (t) => {
  const layer = makeLayer(t);
  const seen = await live(Array.from({ length: 31 }, () => ['attach', layer]).flat());
  seen.forEach(attached);
  const us = seen.map((line) => line.us).slice(1).sort((a, b) => a - b);
  t.diagnostic(`median ${us[15]} us, best ${us[0]} us, as ${isRoot ? 'root' : 'an ordinary user'}`);
  assert.ok(us[0] < 10000, `${us}`);
});
