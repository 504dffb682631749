// Puts the tree that comes on stdin (deps/pack.c) in the place that is named, whatever was there; or some paths of it, beside what is there.
const fs = require('node:fs');
const place = process.argv[1], isAll = process.argv[2] === 'all', buffer = Buffer.alloc(1 << 16);
const beside = `${place.slice(0, place.lastIndexOf('/'))}/.jerboa-arriving`;
let from = 0, to = 0;
function more() {
  from = 0;
  to = fs.readSync(0, buffer, 0, buffer.length);
  if (to === 0) throw new Error('the tree is not whole');
}
function each(size, take) {
  while (size > 0) {
    if (from === to) more();
    const n = Math.min(size, to - from);
    take(buffer.subarray(from, from + n));
    from += n;
    size -= n;
  }
}
function bytes(size) {
  const parts = [];
  each(size, (part) => parts.push(Buffer.from(part)));
  return Buffer.concat(parts);
}
function make(kind, mode, path, size) {
  if (kind === 'd') return fs.mkdirSync(path, { mode });
  if (kind === 'l') return fs.symlinkSync(bytes(size), path);
  const fd = fs.openSync(path, 'wx', mode);
  each(size, (part) => { for (let n = 0; n < part.length;) n += fs.writeSync(fd, part, n); });
  fs.closeSync(fd);
}
function clear(path) {
  fs.rmSync(path, { recursive: true, force: true });
}
function forget(path) {
  try {
    fs.unlinkSync(path);
  } catch (e) {
    if (e.code === 'ENOSPC' || e.code === 'EIO') throw e; // else there is no such file, which is what is wanted
  }
}
// It appears whole, so that who reads it meanwhile sees the old one or the new one. Paths are bytes. What is left when we are killed lies outside of
// the place, and the next one clears it.
function replace(kind, mode, path, size) {
  if (kind === 'x') return forget(path);
  fs.mkdirSync(path.subarray(0, path.lastIndexOf('/')), { recursive: true });
  try {
    make(kind, mode, beside, size);
    if (fs.lstatSync(path, { throwIfNoEntry: false })?.isDirectory()) clear(path);
    fs.renameSync(beside, path);
  } catch (e) {
    clear(beside);
    throw e;
  }
}
clear(isAll ? place : beside);
for (;;) {
  const head = bytes(17), kind = String.fromCharCode(head[0]);
  if (kind === '.') break;
  const name = bytes(head.readUInt32LE(5));
  (isAll ? make : replace)(kind, head.readUInt32LE(1), Buffer.concat([Buffer.from(place), name]), Number(head.readBigUInt64LE(9)));
}
