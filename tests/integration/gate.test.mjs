// A Node that was held and released says what `node index.js` says: the same scripts at a server that holds and at one that does not (docs/gate.md).
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { until } from './jerboa.mjs';
import { cases, differences } from './gate-cases.mjs';
import { connect, inside, limit, printed, text, variants } from './tools.mjs';

const gate = '/.jerboa/gate.cjs';
const sides = { held: { args: [] }, plain: { args: ['--pool', '0', '--hold', '0'] } };
const { held, plain } = sides;

before(async () => {
  for (const side of Object.values(sides)) {
    side.server = await connect(variants['stdio, modern'], side.args);
    side.sandbox = await side.server.sandbox();
    side.namespace = text(await side.server.exec(side.sandbox, 'readlink /proc/self/ns/pid')).trim();
    assert.match(side.namespace, /^pid:\[\d+\]$/);
  }
}, limit);
after(async () => { for (const side of Object.values(sides)) await side.server?.close(); });

const commandLine = (pid) => { try { return fs.readFileSync(`/proc/${pid}/cmdline`, 'latin1').split('\0'); } catch { return []; } };

/** Nodes that wait at the gate in a side's sandbox, not those in sandboxes that are ready for others. */
const isIn = (pid, namespace) => { try { return fs.readlinkSync(`/proc/${pid}/ns/pid`) === namespace; } catch { return false; } };
const waiting = ({ server, namespace }) => inside(server.pid).map(({ pid }) => pid).filter((pid) => commandLine(pid).includes(gate) && isIn(pid, namespace));

/** What is seen of a run, without numbers that no two runs share. */
function seen({ structuredContent: { stdout, stderr, exitCode, signal, verdict, truncated } }) {
  const all = JSON.stringify({ stdout, stderr, exitCode, signal, verdict, truncated });
  return JSON.parse(all.replace(/\(node:\d+\)/g, '(node:PID)').replace(/output:\/\/[0-9a-f]+/g, 'output://ID'));
}

/** One script on both sides, in sandboxes that have run those before it. The held side has a Node at the gate, and has used it up afterwards. */
async function both(code) {
  const ready = await until(() => waiting(held)[0], 'no Node is held');
  const results = await Promise.all(Object.values(sides).map((side) => side.server.run(side.sandbox, code)));
  const [one, other] = results.map(seen);
  assert.ok(!waiting(held).includes(ready), 'the Node that was held still is');
  return { held: one, plain: other };
}

const gated = `import fs from 'node:fs'; console.log(fs.readFileSync('/proc/self/cmdline', 'utf8').split('\\0').includes('${gate}'))`;

describe('held and plain', () => { // each case has its own minute: there are a hundred
  const isGated = async () => {
    const r = await both(gated);
    assert.deepEqual([r.held.stdout, r.plain.stdout], ['true\n', 'false\n']);
    assert.deepEqual(waiting(plain), []);
  };

  test('one side is held, the other is not', limit, isGated);

  for (const [name, code] of Object.entries(cases))
    test(name, limit, async () => {
      const r = await both(code);
      assert.deepEqual(r.held, r.plain);
    });

  test('one side still is held, the other is not', limit, isGated);
});

describe('what cannot be hidden', () => {
  for (const [name, code] of Object.entries(differences))
    test(name, limit, async () => {
      const r = await both(code);
      for (const { verdict, stderr } of Object.values(r)) assert.deepEqual([verdict, stderr], ['ok', '']);
      assert.notEqual(r.held.stdout, r.plain.stdout);
    });
});

describe('what comes after the boot', () => {
  test('a package of a layer', limit, async () => {
    const dependencies = [{ name: 'ms', version: '^2.1.3' }];
    for (const [side, answer] of [[held, 'true'], [plain, 'false']]) {
      const container_id = await side.server.sandbox();
      const code = `import ms from 'ms'; import { createRequire } from 'node:module'; ${gated}; console.log(ms('1s'), createRequire(import.meta.url)('ms') === ms);`;
      printed(await side.server.run(container_id, code, { dependencies }), `${answer}\n1000 true\n`);
    }
  });
});
