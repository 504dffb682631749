// Every way out of probes.mjs: it is closed in the programs as they are installed; it is open where its walls are left out (or
// on the bare host), or the probe would show nothing; and of several walls each closes it alone.
// On another engine (tests/engines/run.mjs) nothing can be left out: there it must be closed, and that it can be open is shown here.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { test } from 'node:test';
import { limit, root } from '../integration/jerboa.mjs';
import { attempt, bytesOf, engine, isRoot, jails, symbolsOf } from './host.mjs';
import { probes } from './probes.mjs';

const told = (how, r) => `${how}: exit status ${r.status}: ${r.said.slice(0, 500)}`;

/** A program that is not found, or does not start, gets nowhere either. */
const began = (r) => !/spawnSync \S+ E|ENOENT.*\/probe/.test(r.said);

if (engine)
  for (const row of probes)
    test(`escape: ${row.name}`, { ...limit, skip: row.elsewhere ?? row.lacks ?? false }, async (t) => {
      const real = await attempt(row);
      assert.ok(!real.arrived, told('it got out', real));
      assert.ok(real.status !== 125 && began(real), told('no sandbox was there to get out of', real));
      t.diagnostic(`${row.name} | ${real.said.split('\n').at(-1).slice(0, 80)}`);
    });
else for (const row of probes)
  test(`escape: ${row.name}`, { ...limit, skip: row.root && !isRoot ? 'its control takes rights that only root has' : row.lacks ?? false }, async (t) => {
    const { walls } = row;
    const control = await attempt(row, walls);
    assert.ok(control.arrived, told(walls ? `without ${walls.join(', ')} it should arrive` : 'on the bare host it should arrive', control));
    const real = await attempt(row);
    assert.ok(!real.arrived, told('it got out', real));
    assert.ok(real.status !== 125, told('no sandbox was there to get out of', real));
    for (const wall of walls?.length > 1 && !row.apart ? walls : []) {
      const alone = await attempt(row, walls.filter((other) => other !== wall));
      assert.ok(!alone.arrived, told(`'${wall}' alone does not hold it`, alone));
      assert.ok(alone.status !== 125, told(`'${wall}' alone: no sandbox`, alone));
    }
    t.diagnostic(`${row.name} | ${walls ? `each ${row.apart ? 'its own part' : 'alone'} holds: ${walls.join(', ')}` : `holds: ${row.why}; control: the bare host`} | ${real.said.split('\n').at(-1).slice(0, 80)}`);
  });

test('SECURITY.md names each probe', () => {
  const text = fs.readFileSync(`${root}/SECURITY.md`, 'utf8');
  assert.deepEqual(probes.map(({ name }) => name).filter((name) => !text.includes(`*${name.replaceAll('*', '\\*')}*`)), []);
});

test('the jail that is installed can leave nothing out', limit, async () => {
  const names = ['left-out', 'escape-jail'];
  const found = async (program) => {
    const bytes = await bytesOf(program), symbols = await symbolsOf(program);
    return [...names.filter((name) => bytes.includes(name)), ...['jail_leaves_out', 'jail_filter'].filter((name) => symbols.includes(` ${name}\n`))];
  };
  assert.deepEqual(await found(jails.open), ['left-out', 'escape-jail', 'jail_leaves_out', 'jail_filter']); // they can be found
  assert.deepEqual(await found(jails.installed), []);
});
