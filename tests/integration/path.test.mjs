// What the answer of a call waits for, and what it does not.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { freeze, inside, keepers, limit, nativeOnly, nothingAhead, tempDir, until } from './jerboa.mjs';
import { serveStdio, text } from './serving.mjs';

nothingAhead();

const jails = (s) => keepers(s.child.pid).map((p) => p.pid);
const sleepers = (s) => inside(s.child.pid).filter((p) => p.name === 'sleep');
const apart = nativeOnly('elsewhere what ends a group is init, and who stops that stops the answers');

async function serve(t, args) {
  const s = serveStdio(t, args);
  await s.open();
  return s;
}

/** None of them does anything meanwhile. They go on before whoever waits for their end does. */
async function whileStopped(pids, work) {
  const signal = (name) => pids.forEach((pid) => { try { process.kill(pid, name); } catch { /* it has gone */ } });
  await Promise.all(pids.map(freeze));
  try {
    return await work();
  } finally {
    signal('SIGCONT');
  }
}

/** A command that leaves something running, and is answered while the jail, which ends its group and tells its counters, does nothing. */
async function leave(t, more = []) {
  const files = tempDir(t), s = await serve(t, ['--files', files, ...more]);
  const container_id = text(await s.call('sandbox_initialize', {}));
  const exec = (...commands) => s.call('sandbox_exec', { container_id, commands });
  const first = exec('setsid sleep 1006 >/dev/null 2>&1 & until grep -q sleep /proc/$!/comm; do sleep 0.01; done; touch files/began; until [ -e files/go ]; do sleep 0.01; done; echo one');
  await until(() => fs.existsSync(path.join(files, 'began')), 'it does not begin');
  const answeredWhileStopped = (work) => whileStopped(jails(s), async () => {
    fs.writeFileSync(path.join(files, 'go'), '');
    let answer;
    first.then((r) => { answer = r; });
    await until(() => answer, 'it is not answered');
    assert.equal(text(answer), 'one\n');
    return work();
  });
  return { s, container_id, exec, answeredWhileStopped };
}

describe('sandbox_exec', () => {
  test('is answered when its last command has said all; what that left running ends before the next call', { ...limit, ...apart }, async (t) => {
    const { s, exec, answeredWhileStopped } = await leave(t);
    const second = await answeredWhileStopped(() => {
      assert.equal(sleepers(s).length, 1);
      return { answer: exec('cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " " | grep -c "sl[e]ep"') }; // of what is dead it is empty
    });
    assert.deepEqual((await second.answer).structuredContent.commands, [{ stdout: '0\n', stderr: '', exitCode: 1 }]);
  });

  test('is in the audit log as it was answered, though its sandbox is stopped in that moment', { ...limit, ...apart }, async (t) => {
    const log = path.join(tempDir(t), 'log'), { s, container_id, answeredWhileStopped } = await leave(t, ['--audit', log]);
    await answeredWhileStopped(() => s.call('sandbox_stop', { container_id }));
    const ended = () => fs.readFileSync(log, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line)).filter((line) => line.event === 'run_ended');
    await until(() => ended().length > 0, 'it does not end');
    assert.deepEqual(ended().map(({ program, verdict, exitCode }) => [program, verdict, exitCode]), [['command', 'ok', 0]]);
  });

  test('a command that fails, or is not the last, is waited for to its very end', limit, async (t) => {
    const s = await serve(t);
    const container_id = text(await s.call('sandbox_initialize', {}));
    for (const last of ['exit 3', 'true']) {
      const leave = (n) => `setsid sleep ${n} >/dev/null 2>&1 &`;
      await s.call('sandbox_exec', { container_id, commands: [leave(1007), 'cat /proc/[0-9]*/comm | grep -c sleep > seen; true', `${leave(1008)} ${last}`] });
      const { structuredContent: { commands: [{ stdout }] } } = await s.call('sandbox_exec', { container_id, commands: ['cat seen'] });
      assert.equal(stdout, '0\n');
      assert.deepEqual(sleepers(s), []);
    }
  });
});

describe('sandbox_stop', () => {
  test('is answered before anything is torn down; while 64 are, a new sandbox waits', { ...limit, ...nativeOnly('so many containers are the daemon\'s matter') }, async (t) => {
    const most = 64, s = await serve(t, ['--sandboxes', '100']);
    const ids = await Promise.all(Array.from({ length: most + 1 }, async () => text(await s.call('sandbox_initialize', {}))));
    const old = new Set(jails(s));
    assert.equal(old.size, most + 1);
    const next = await whileStopped([...old], async () => { // for three seconds; then each is killed
      for (const r of await Promise.all(ids.map((container_id) => s.call('sandbox_stop', { container_id })))) assert.match(text(r), /^Container \S+ removed\.$/);
      const answer = s.call('sandbox_initialize', {});
      await until(() => jails(s).some((pid) => !old.has(pid)), 'no new one starts', 30);
      const left = jails(s).filter((pid) => old.has(pid)).length;
      assert.ok(left < most, `${left} were being torn down when it started`);
      return { answer };
    });
    assert.match(text(await next.answer), /^js-sbx-/);
  });
});
