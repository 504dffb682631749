// The real jerboa and jail around an init that breaks the protocol: one sentence, 125, no crash, nothing left.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import { assertGone, copyPrograms, processes, root, start, tempDir, until, withoutNotice } from './jerboa.mjs';

let hostile; // the program without a mode
before(() => {
  const file = path.join(tempDir(), 'hostile-init');
  execFileSync('musl-gcc', ['-std=gnu17', '-D_GNU_SOURCE', '-Wall', '-Werror', '-Os', '-static', '-s', `-I${root}/src`,
    '-o', file, `${root}/tests/programs/hostile-init.c`]);
  hostile = fs.readFileSync(file);
});

/** Programs in a directory of their own, init being the hostile one in this mode. */
function prepare(t, mode) {
  const dir = tempDir(t);
  const program = copyPrograms(dir, ['jerboa', 'jerboa-jail', 'jerboa-fetch']);
  fs.writeFileSync(path.join(dir, 'jerboa-init'), Buffer.concat([hostile, Buffer.from(`\n${mode}`)]), { mode: 0o755 });
  return { dir, program };
}

const begin = (program, args, seconds) => start(['run', ...args, '-e', '0'], { program, seconds, stdio: ['ignore', 'pipe', 'pipe'] });

/** One printable line and 125. */
function assertSentence(r, sentence) {
  assert.deepEqual({ signal: r.signal, stderr: r.stderr.replace(/[^\n]/g, '') }, { signal: null, stderr: '\n' }, r.stderr);
  assert.match(r.stderr, /^jerboa: \S/);
  assert.doesNotMatch(r.stderr, /[\0-\x09\x0b-\x1f\x7f-\x9f\ufffd]/, JSON.stringify(r.stderr));
  assert.match(r.stderr, sentence);
  assert.equal(r.status, 125);
}

const hidden = /owned.* one.two.* end/; // what put_error of the program says, without its control codes
const refused = {
  'quit': /the sandbox ended/, 'close-stdout': /the sandbox ended/, 'quit-greeted': /the sandbox ended/, 'close-stdout-greeted': /the sandbox ended/,
  'no-hello': /did not begin with one hello/, 'hello-twice': /did not begin with one hello/, 'wrong-magic': /magic/,
  'wrong-version': /version 77, expected/, 'short-hello': /hello frame of 4 bytes/, 'garbage': /frame/,
  'unknown-type': /unknown type 200/, 'type-zero': /unknown type 0/, 'spawn-type': /spawn frame from a peer that may not/,
  'write-file-type': /write-file frame from a peer/, 'plan-type': /plan frame from a peer/, 'group-make-type': /group-make frame from a peer/,
  'oversize': /data frame of 4294967295 bytes/, 'oversize-data': /data frame of 65537 bytes/, 'empty-data': /data frame of 0 bytes/,
  'bad-stream': /bad header/, 'reserved': /bad header/,
  'cut-payload': /middle of a frame/, 'cut-header': /middle of a frame/, 'cut-and-live': /middle of a frame/,
  'error-at-once': hidden, 'error-on-0': hidden,
  'file-error': hidden, 'file-error-unterminated': /./, 'file-data': /fits no file/, 'file-exited': /fits no file/,
  'file-started': /fits no file/, 'file-credit': /fits no file/,
  'process-done': /a beginning/, 'process-error': hidden, 'process-error-unterminated': /malformed error frame/,
  'started-twice': /./, 'data-on-stdin': /past its end or its window/, 'data-after-end': /past its end or its window/,
  'credit-on-stdout': /credit/, 'credit-too-large': /credit/, 'credit-by-one': /credit/,
  'exited-malformed': /exit twice or wrongly/, 'exited-bad-flag': /exit twice or wrongly/, 'exited-twice': /exit twice or wrongly/,
  'exited-code-256': /./, 'exited-signal-128': /./, 'exited-neither': /./, 'error-started': /a beginning/,
};

// An init that goes on for ever is bounded by the run's deadline, and before there is one by 30 s for the start.
const endless = {
  'never-hello': [[], [125]], 'silent-greeted': [[], [125]], 'flood': [[], [125]], 'silent-spawned': [[], [125]],
  'silent-started': [['--timeout', '1s'], [124, 125]], 'started-forever': [['--timeout', '1s'], [124, 125]], 'exited-without-end': [['--timeout', '1s'], [124, 125]],
};

// Those wait for half a minute and do next to nothing: the others go on meanwhile.
describe('hostile', { concurrency: 2, timeout: 300_000 }, () => {
  test('an init that goes on for ever', { timeout: 60_000, concurrency: true }, async (t) => {
    await Promise.all(Object.entries(endless).map(([mode, [args, statuses]]) => t.test(mode, { timeout: 50_000 }, async (t) => {
      const { dir, program } = prepare(t, mode);
      const r = await begin(program, args, 40).ended;
      assert.equal(r.signal, null, 'it did not end');
      assert.match(r.stderr, /^jerboa: \S[^\n]+\n$/);
      assert.ok(statuses.includes(r.status), `status ${r.status}`);
      await assertGone(dir);
    })));
  });

  for (const [mode, sentence] of Object.entries(refused))
    test(mode, { timeout: 20_000 }, async (t) => {
      const { dir, program } = prepare(t, mode);
      const r = await begin(program, [], 10).ended;
      assertSentence(r, sentence);
      if (!mode.startsWith('data')) assert.equal(r.stdout, '');
      await assertGone(dir);
    });

  test('past-window, while nobody reads', { timeout: 20_000 }, async (t) => {
    const { dir, program } = prepare(t, 'past-window');
    const child = start(['run', '-e', '0'], { program, seconds: 15, stdio: ['ignore', 'pipe', 'pipe'], keep: false });
    await once(child.stdout, 'readable'); // takes the first bytes and no more
    await until(() => processes(dir).every((p) => p.name === 'jerboa'), 'the sandbox outlived its broken window');
    const said = [];
    child.stdout.resume();
    child.stderr.on('data', (d) => said.push(d));
    const { status, signal } = await child.ended;
    assertSentence({ status, signal, stderr: withoutNotice(Buffer.concat(said).toString()) }, /past its end or its window/);
    await assertGone(dir);
  });

  test('data on a channel that is not open is dropped', { timeout: 20_000 }, async (t) => {
    const { dir, program } = prepare(t, 'data-unknown-channel');
    const r = await begin(program, [], 10).ended;
    assert.deepEqual([r.status, r.stdout, r.stderr], [0, '', '']);
    await assertGone(dir);
  });
});
