'use strict';
// Loaded first by a Node that is held: warms it, then waits until stdin says that its script is there.
const fs = require('node:fs');
const { isMainThread } = require('node:worker_threads');
const at = process.execArgv.findIndex((word, i, all) => word === '-r' && all[i + 1] === __filename);
if (at >= 0) process.execArgv.splice(at, 2);
if (isMainThread && at >= 0) {
  process.stdout;
  process.stderr;
  try {
    require('./warm.mjs');
  } catch {}
  for (const name of Object.keys(require.cache)) delete require.cache[name];
  const byte = Buffer.alloc(1);
  if (fs.readSync(0, byte, 0, 1) !== 1) process.reallyExit(0);
  fs.closeSync(0);
  fs.openSync('/dev/null', 'r');
  process.chdir('/workspace');
}
delete require.cache[__filename];
