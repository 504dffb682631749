// What the answer of a call waits for, and what it does not.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { descendants, limit, nothingAhead, tempDir, until } from './jerboa.mjs';
import { serveStdio, text } from './serving.mjs';

nothingAhead();

const named = (s, name) => descendants(s.child.pid).filter((p) => p.name === name).map((p) => p.pid);

async function serve(t, args) {
  const s = serveStdio(t, args);
  await s.open();
  return s;
}

/** Nobody waits for it, whatever it is asked: it does not run. */
function stop(t, pid) {
  process.kill(pid, 'SIGSTOP');
  const go = () => { try { process.kill(pid, 'SIGCONT'); } catch { /* it has gone */ } };
  t.after(go);
  return go;
}

describe('sandbox_exec', () => {
  test('is answered when its last command has said all; what that left running ends before the next call', limit, async (t) => {
    const files = tempDir(t), s = await serve(t, ['--files', files]);
    const container_id = text(await s.call('sandbox_initialize', {}));
    const exec = (...commands) => s.call('sandbox_exec', { container_id, commands });
    const first = exec('setsid sleep 1006 >/dev/null 2>&1 & touch files/began; until [ -e files/go ]; do sleep 0.01; done; echo one');
    await until(() => fs.existsSync(path.join(files, 'began')), 'it does not begin');
    const go = stop(t, named(s, 'jerboa-jail')[0]); // who ends its group and tells its counters
    fs.writeFileSync(path.join(files, 'go'), '');
    assert.equal(text(await first), 'one\n');
    assert.equal(named(s, 'sleep').length, 1);
    const second = exec('cat /proc/[0-9]*/comm | grep -c sleep');
    go();
    assert.deepEqual((await second).structuredContent.commands, [{ stdout: '0\n', stderr: '', exitCode: 1 }]);
  });

  test('a command that fails, or is not the last, is waited for to its very end', limit, async (t) => {
    const s = await serve(t);
    const container_id = text(await s.call('sandbox_initialize', {}));
    for (const last of ['exit 3', 'true']) {
      const leave = (n) => `setsid sleep ${n} >/dev/null 2>&1 &`;
      await s.call('sandbox_exec', { container_id, commands: [leave(1007), 'cat /proc/[0-9]*/comm | grep -c sleep > seen; true', `${leave(1008)} ${last}`] });
      const { structuredContent: { commands: [{ stdout }] } } = await s.call('sandbox_exec', { container_id, commands: ['cat seen'] });
      assert.equal(stdout, '0\n');
      assert.deepEqual(named(s, 'sleep'), []);
    }
  });
});
