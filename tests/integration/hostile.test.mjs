// The real jerboa and jail around an init that breaks the protocol: one sentence, 125, no crash, nothing left.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import path from 'node:path';
import { before, describe, test } from 'node:test';
import { assertGone, copyPrograms, descriptors, processes, root, start, tempDir, until, withoutNotice } from './jerboa.mjs';
import { legacy } from './mcp.mjs';

let hostile; // the program without a mode
let states, types, mutations; // its tables
before(() => {
  const file = path.join(tempDir(), 'hostile-init');
  execFileSync('musl-gcc', ['-std=gnu17', '-D_GNU_SOURCE', '-Wall', '-Werror', '-Os', '-static', '-s', `-I${root}/src`,
    '-o', file, `${root}/tests/programs/hostile-init.c`]);
  hostile = fs.readFileSync(file);
  [states, types, mutations] = execFileSync(file, ['tables'], { encoding: 'utf8' }).trim().split('\n').map((line) => line.split(' '));
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
const alone = () => describe('jerboa run', { concurrency: 2 }, () => {
  test('an init that goes on for ever', { timeout: 180_000, concurrency: true }, async (t) => {
    await Promise.all(Object.entries(endless).map(([mode, [args, statuses]]) => t.test(mode, { timeout: 180_000 }, async (t) => {
      const { dir, program } = prepare(t, mode);
      const r = await begin(program, args, 120).ended;
      assert.equal(r.signal, null, 'it did not end');
      assert.match(r.stderr, /^jerboa: \S[^\n]+\n$/);
      assert.ok(statuses.includes(r.status), `status ${r.status}`);
      await assertGone(dir);
    })));
  });

  for (const [mode, sentence] of Object.entries(refused))
    test(mode, { timeout: 90_000 }, async (t) => {
      const { dir, program } = prepare(t, mode);
      const r = await begin(program, [], 60).ended;
      assertSentence(r, sentence);
      if (!mode.startsWith('data')) assert.equal(r.stdout, '');
      await assertGone(dir);
    });

  test('past-window, while nobody reads', { timeout: 90_000 }, async (t) => {
    const { dir, program } = prepare(t, 'past-window');
    const child = start(['run', '-e', '0'], { program, seconds: 60, stdio: ['ignore', 'pipe', 'pipe'], keep: false });
    await once(child.stdout, 'readable'); // takes the first bytes and no more
    await until(() => processes(dir).every((p) => p.name === 'jerboa'), 'the sandbox outlived its broken window');
    const said = [];
    child.stdout.resume();
    child.stderr.on('data', (d) => said.push(d));
    const { status, signal } = await child.ended;
    assertSentence({ status, signal, stderr: withoutNotice(Buffer.concat(said).toString()) }, /past its end or its window/);
    await assertGone(dir);
  });

  test('data on a channel that is not open is dropped', { timeout: 90_000 }, async (t) => {
    const { dir, program } = prepare(t, 'data-unknown-channel');
    const r = await begin(program, [], 60).ended;
    assert.deepEqual([r.status, r.stdout, r.stderr], [0, '', '']);
    await assertGone(dir);
  });
});

// ---- jerboa serve: every type of frame, changed in every way, in every state of a sandbox ----

// With s states, case (type t, mutation m) is tried in state (t + m + SHIFT) mod s: so each type meets each mutation, and each of both meets
// each state. SHIFT=0 to s-1 are all triples. Whatever the hostile one does: each call is answered once, by its result or one sentence, while
// another sandbox of the same server goes on; and when it is over, the server has the children and descriptors that it had before.
const shift = +(process.env.SHIFT ?? 0);

/** A server on stdio that counts answers, a sandbox in it with the real init, and from then on a hostile one for each that is made. */
async function serve(t, args) {
  const dir = tempDir(t), program = copyPrograms(dir), init = path.join(dir, 'jerboa-init');
  const child = start(['serve', '--pool', '0', '--network', 'none', '--sandboxes', '100', ...args], { program, seconds: 880 });
  t.after(() => child.kill('SIGKILL'));
  const answers = new Map(), waiting = new Map();
  let id = 0, rest = '';
  const decoder = new TextDecoder();
  child.stdout.on('data', (piece) => {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = lines.pop();
    for (const m of lines.map((line) => JSON.parse(line)).filter((m) => m.id !== undefined)) {
      answers.set(m.id, (answers.get(m.id) ?? 0) + 1);
      waiting.get(m.id)?.(m);
    }
  });
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  const ask = (method, params) => new Promise((resolve, reject) => {
    const own = ++id;
    child.ended.then((r) => reject(new Error(`the server ended: ${JSON.stringify([r.status, r.signal])} ${r.stderr.slice(-2000)}`)));
    waiting.set(own, resolve);
    send({ id: own, method, params });
  });
  const call = async (name, more) => {
    const { result, error } = await ask('tools/call', { name, arguments: more });
    return result ?? assert.fail(JSON.stringify(error));
  };
  await ask('initialize', { protocolVersion: legacy, capabilities: {}, clientInfo: { name: 'test', version: '1' } });
  send({ method: 'notifications/initialized' });
  const good = (await call('sandbox_initialize', {})).content[0].text;
  const others = async (word) => assert.equal((await call('sandbox_exec', { container_id: good, commands: [`echo ${word}`] })).content[0].text, `${word}\n`);
  await others('first');
  const has = () => [descriptors(child.pid), fs.readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim()];
  const before = has();
  return {
    call, others,
    /** The next sandbox has this init. */
    become(line) {
      fs.writeFileSync(`${init}.new`, Buffer.concat([hostile, Buffer.from(`\n${line}`)]), { mode: 0o755 });
      fs.renameSync(`${init}.new`, init);
    },
    same: () => until(() => JSON.stringify(has()) === JSON.stringify(before), () => `${JSON.stringify(before)} became ${JSON.stringify(has())}`, 20),
    async end() {
      await others('last');
      child.stdin.end();
      const r = await child.ended;
      assert.deepEqual([r.status, r.signal], [0, null], r.stderr.slice(-2000));
      assert.doesNotMatch(r.stderr, /Sanitizer|runtime error|Assertion/);
      assert.deepEqual([...answers.values()].filter((n) => n !== 1), [], 'a call was answered twice');
      assert.equal(answers.size, id, 'a call was not answered');
      await assertGone(dir);
    },
  };
}

/** A result, or one printable sentence in front. */
function assertAnswered(r, what) {
  if (!r.isError) return;
  // Of commands, what they printed stands in front, and behind the sentence.
  const texts = r.content.map((c) => c.text), command = texts.find((words) => /^(Command |Error during execution: )/.test(words));
  const text = command?.replace(/:\n[^]*$/, '.') ?? texts[0];
  assert.match(text, /^[^\n]+\.$/, what);
  assert.doesNotMatch(text, /[\0-\x1f\x7f-\x9f]/, what);
}

/** What is asked of the hostile sandbox, so that it comes into its state, with `more` arguments. */
const asked = {
  stop: (s, container_id) => s.call('sandbox_stop', { container_id }),
  command: (s, container_id, more) => s.call('sandbox_exec', { container_id, commands: ['true', 'true'], ...more }),
  dial: (s, container_id, more) => s.call('run_js', { container_id, code: '1', listenOnPort: 3000, ...more }),
};
asked.dialled = asked.dial;
const runs = (s, container_id, more) => s.call('run_js', { container_id, code: '1', ...more });

/** A sandbox from its beginning to its end. */
async function meet(s, line, more) {
  const [state] = line.split(' ');
  s.become(line);
  const made = await s.call('sandbox_initialize', {});
  assertAnswered(made, line);
  if (made.isError) return made;
  const container_id = made.content[0].text, r = await (asked[state] ?? runs)(s, container_id, more);
  assertAnswered(r, line);
  assertAnswered(await s.call('sandbox_stop', { container_id }), line); // what a frame that was dropped has left
  return r;
}

const isHeld = (state) => ['gate', 'held', 'released'].includes(state);
const everything = () => types.flatMap((type, t) => mutations.map((mutation, m) => `${states[(t + m + shift) % states.length]} ${type} ${mutation}`));

const besideOthers = () => describe('jerboa serve', { concurrency: true }, () => {
  const workers = { 'one half': (line, i) => !isHeld(line.split(' ')[0]) && i % 2 === 0, 'the other': (line, i) => !isHeld(line.split(' ')[0]) && i % 2 === 1, 'at the gate': (line) => isHeld(line.split(' ')[0]) };
  for (const [name, wanted] of Object.entries(workers))
    test(`types of frames and mutations, ${name}`, async (t) => {
      const s = await serve(t, name === 'at the gate' ? ['--hold', '300s'] : ['--hold', '0']);
      const lines = everything().filter(wanted);
      for (const line of lines) {
        await Promise.all([meet(s, line), s.others('meanwhile')]).catch((e) => { e.message = `${line}: ${e.message}`; throw e; });
        await s.same().catch((e) => { e.message = `${line}: ${e.message}`; throw e; });
      }
      await s.end();
      t.diagnostic(`${lines.length} cases`);
      assert.ok(lines.length > 100);
    });

  test('no type of frame is missing', () => {
    const named = fs.readFileSync(`${root}/docs/pipe.md`, 'utf8').match(/(?<=^### ).+$/gm);
    assert.deepEqual(named.filter((name) => !types.includes(name)), []);
    assert.ok(named.length > 20);
  });

  test('silence in each state', async (t) => {
    const s = await serve(t, ['--hold', '0']);
    const answers = [];
    for (const state of states.filter((name) => !isHeld(name) && name !== 'before-hello')) {
      s.become(`${state} silent`);
      const container_id = (await s.call('sandbox_initialize', {})).content[0].text; // it has said hello
      answers.push((asked[state] ?? runs)(s, container_id, { timeoutMs: 1000 }).then((r) => { assertAnswered(r, state); return s.call('sandbox_stop', { container_id }); }));
    }
    s.become('before-hello silent');
    answers.push(s.call('sandbox_initialize', {}));
    await s.others('meanwhile');
    for (const r of await Promise.all(answers)) assertAnswered(r, 'silence');
    await s.same();
    await s.end();
  });
});

// Half of both is waiting.
describe('hostile', { concurrency: true, timeout: 900_000 }, () => {
  alone();
  besideOthers();
});
