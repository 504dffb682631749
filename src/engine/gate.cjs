/*
 * The gate: where a Node waits, booted, for the script it will run.
 *
 * Booting is most of what `node index.js` takes. A held Node has done it: it was started with `-r /.jerboa/gate.cjs /workspace/index.js` in `/`, with
 * a run's whole environment, and blocks here, before Node looks for its main script, reading its stdin. One byte lets it go; the end
 * without a byte makes it leave without a word. Then everything is as if `node index.js` had been started in /workspace with no stdin:
 * docs/gate.md says what is not, and tests/integration/gate.test.mjs compares.
 *
 * - Nothing below /workspace is touched before that byte: Node would remember what package.json said, or that a package was not there.
 * - The byte comes through stdin, because every other descriptor, variable or argument would have to be hidden from the script.
 * - Workers of the script load this file again, since they inherit `-r`, so it stays where it is. They only drop it from their execArgv.
 */
'use strict';

const Module = require('node:module');
const fs = require('node:fs');
const { isMainThread } = require('node:worker_threads');

/*
 * What the first console.log does for the first time, on stdout's pipe opened anew, which is closed again with nothing written: 1.6 ms less of 7. To
 * touch process.stdout itself would do the same, but then fd 1 would not block and be an open handle, and fs.writeSync(1, …) could fail; so
 * would pipe.destroy(), which looks at process.stderr. The loader of ES modules needs no such thing: Node's snapshot has it.
 */
function warm() {
  const { Socket } = require('node:net'); // not for workers
  const none = () => {};
  const pipe = new Socket({ fd: fs.openSync('/proc/self/fd/1', 'w'), readable: false, writable: true });
  pipe.once('error', none);
  pipe.write('', none);
  pipe.removeListener('error', none);
  process._tickCallback(); // so that nothing of it is left for the script's first tick
  pipe.unref();
  pipe._handle.close();
  pipe._handle = null;
  void fs.promises; // a getter that loads it: importing node:fs does so, and most scripts do; 1.5 ms less for them
  process.chdir('/'); // where it is: what will be called later is compiled now
}

/* Whether it was let go. A signal may interrupt the read; whatever else goes wrong is the end. */
function wait() {
  for (;;)
    try {
      return fs.readSync(0, Buffer.allocUnsafe(1)) === 1;
    } catch (error) {
      if (error.code !== 'EINTR') return false;
    }
}

const at = process.execArgv.findIndex((word, i, all) => word === '-r' && all[i + 1] === __filename);
if (at >= 0) process.execArgv.splice(at, 2);
if (at >= 0 && isMainThread) {
  warm();
  if (!wait()) process.exit();
  fs.closeSync(0);
  fs.openSync('/dev/null', 'r'); // the lowest free descriptor: 0
  process.chdir('/workspace');
}
delete require.cache[__filename];
for (const key of Object.keys(Module._pathCache)) if (Module._pathCache[key] === __filename) delete Module._pathCache[key];
