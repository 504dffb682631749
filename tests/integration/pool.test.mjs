// Sandboxes made ahead: how many, for whom, that nobody gets a used or an outdated one, and that losing them costs nobody a call.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { assertGone, descendants, engine, freeze, inits, inside, keepers, limit, list, nativeOnly, roomFor, someAhead, tempDir, until } from './jerboa.mjs';
import { connectTo, programs, serveHttp, serveStdio, text, tokenOf, tokensFile } from './serving.mjs';

someAhead();

const jails = (pid) => keepers(pid).map((p) => p.pid);
const initOf = (jail) => (engine ? inits(programs) : descendants(jail))[0].pid; // of the only one
const commandLine = (pid) => { try { return fs.readFileSync(`/proc/${pid}/cmdline`, 'latin1'); } catch { return ''; } }; // it has just gone
const link = (file) => { try { return fs.readlinkSync(file); } catch { return ''; } };
const held = (pid) => inside(pid).filter((p) => commandLine(p.pid).includes('/.jerboa/gate.cjs')).map((p) => p.pid);
const filled = (s, n) => until(() => jails(s.child.pid).length === n && held(s.child.pid).length === n, () => `${jails(s.child.pid).length} of ${n} sandboxes`);
const says = (r, words) => assert.equal(text(r), `Node.js process output:\n${words}\n`, JSON.stringify(r));
const run = (s, code, more = {}) => s.call('run_js_ephemeral', { code, ...more });

function replaceInit() {
  const init = path.join(programs, 'jerboa-init');
  fs.copyFileSync(init, `${init}-new`);
  fs.chmodSync(`${init}-new`, 0o755);
  fs.renameSync(`${init}-new`, init);
}

async function serve(t, args = [], more) {
  const s = serveStdio(t, args, more);
  await s.open();
  return s;
}

async function end(s) {
  s.child.stdin.end();
  assert.equal((await s.child.ended).status, 0, s.child.text('stderr'));
  await assertGone(programs);
}

describe('how many', () => {
  test('two, each with a Node; the next ones are made behind; with the server they are gone', limit, async (t) => {
    const s = await serve(t);
    await filled(s, 2);
    const first = jails(s.child.pid);
    says(await run(s, 'console.log(process.ppid === 1)'), !engine); // else a leader is between (init/leader.h)
    await filled(s, 2);
    assert.equal(jails(s.child.pid).filter((pid) => first.includes(pid)).length, 1); // the other one still waits
    await end(s);
  });

  test('none, if so wanted', limit, async (t) => {
    const s = await serve(t, ['--pool', '0', '--hold', '0']);
    says(await run(s, 'console.log(1)'), 1);
    const id = text(await s.call('sandbox_initialize', {}));
    says(await s.call('run_js', { container_id: id, code: 'console.log(2)' }), 2);
    if (engine) await until(() => jails(s.child.pid).length < 2, 'two are there'); // a client is there until its container is removed
    assert.equal(jails(s.child.pid).length, 1);
    assert.deepEqual(held(s.child.pid), []);
    await end(s);
  });

  test('more under load, never more than fit into the memory; who finds none waits for his own', limit, async (t) => {
    const s = await serve(t, ['--pool', '1', '--pool-memory', roomFor(4)]);
    await filled(s, 1);
    const answers = await Promise.all(Array.from({ length: 12 }, (_, i) => run(s, `console.log(${i})`)));
    answers.forEach((r, i) => says(r, i));
    await filled(s, 4);
    await end(s);
  });

  test('calls that follow each other closely do not put off the next ones', { ...limit, ...nativeOnly('its sandboxes are not children of the server') }, async (t) => {
    const s = await serve(t);
    await filled(s, 2);
    const { pid } = s.child, children = () => fs.readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').trim().split(' ').length;
    const others = children() - 2;
    let asked = 0, answered = 0, ahead = 0;
    for (; asked < 60 && ahead < 1; await pause(10)) { // ms: far less than from a call to the next sandbox
      if (asked - answered < 6) s.call('sandbox_initialize', {}).catch(() => {}).finally(() => answered++), asked++;
      if (asked > 4) ahead = children() - others - asked;
    }
    assert.ok(ahead > 0, 'none was made while they came');
    await end(s);
  });

  test('a name has its own folder: they are made for who has asked', limit, async (t) => {
    const files = tempDir(t), s = await serveHttp(t, ['--files', files, '--tokens', tokensFile(t, ['ann', 'bob'])]);
    const [ann, bob] = await Promise.all(['ann', 'bob'].map((name) => connectTo(s.url, { token: tokenOf(name) })));
    assert.deepEqual(jails(s.pid), []);
    const write = (who, name) => who.call('run_js_ephemeral', { code: `import fs from 'node:fs'; fs.writeFileSync('files/${name}', ''); console.log(fs.readdirSync('files').sort())` });
    assert.match(text(await write(ann, 'a')), /\[ 'a' \]/);
    await until(() => jails(s.pid).length === 1 && held(s.pid).length === 1, 'none is made for her'); // and the one she had is gone
    const [ready] = jails(s.pid);
    assert.match(text(await write(bob, 'b')), /\[ 'b' \]/);
    assert.ok(jails(s.pid).includes(ready), 'he got hers');
    assert.match(text(await write(ann, 'c')), /\[ 'a', 'c' \]/);
    await until(() => !jails(s.pid).includes(ready), 'she did not get hers');
    await ann.client.close();
    await bob.client.close();
  });
});

describe('what is handed out', () => {
  test('is used once: the next one finds nothing of it', limit, async (t) => {
    const s = await serve(t);
    const code = `import fs from 'node:fs';
      const places = ['/workspace', '/tmp', '/root', '/dev/shm'];
      console.log(places.flatMap((p) => fs.readdirSync(p)).filter((n) => n === 'mark').length, globalThis.mark ?? 'none');
      places.forEach((p) => fs.writeFileSync(p + '/mark', ''));`;
    for (let i = 0; i < 6; i++) says(await run(s, code), '0 none');
    await end(s);
  });

  test('is what would be made now: a folder that was replaced, a program that was', limit, async (t) => {
    const files = path.join(tempDir(t), 'files');
    fs.mkdirSync(files);
    const s = await serve(t, ['--files', files]);
    await filled(s, 2);
    const first = jails(s.child.pid);
    fs.renameSync(files, `${files}-old`);
    fs.mkdirSync(files);
    fs.writeFileSync(path.join(files, 'new'), '');
    says(await run(s, `import fs from 'node:fs'; console.log(fs.readdirSync('files').join())`), 'new');
    await until(() => !jails(s.child.pid).some((pid) => first.includes(pid)), 'outdated ones are left');
    await filled(s, 2);
    const second = jails(s.child.pid);
    replaceInit();
    says(await run(s, 'console.log(1)'), 1);
    await until(() => !jails(s.child.pid).some((pid) => second.includes(pid)), 'those of the old program are left');
    await end(s);
  });

  test('… and what is not handed out goes by itself when it is outdated', limit, async (t) => {
    const s = await serve(t);
    await filled(s, 2);
    const first = jails(s.child.pid);
    replaceInit();
    await until(() => !jails(s.child.pid).some((pid) => first.includes(pid)), 'outdated ones wait for somebody to ask');
    await filled(s, 2);
    await end(s);
  });

  test('has the policy of who takes it, and only his', limit, async (t) => {
    const s = await serve(t);
    await filled(s, 2);
    for (const network of ['none', 'npm']) {
      const container_id = text(await s.call('sandbox_initialize', { network }));
      const r = await s.call('run_js', { container_id, code: `await fetch('http://example.com/').catch((e) => console.log(e.cause?.code))` });
      assert.equal(r.structuredContent.refused[0].rule, `network policy '${network}'`, JSON.stringify(r));
    }
    await end(s);
  });
});

describe('what is lost', () => {
  test('is made again, and nobody notices', limit, async (t) => {
    const s = await serve(t, ['--pool-memory', roomFor(2)]);
    for (let round = 0; round < 3; round++) {
      await filled(s, 2);
      const victims = (round === 1 ? held : jails)(s.child.pid);
      victims.forEach((pid) => process.kill(pid, 'SIGKILL'));
      await until(() => !victims.some((pid) => fs.existsSync(`/proc/${pid}`)), 'they live');
      says(await run(s, `console.log(${round})`), round);
    }
    await filled(s, 2);
    await end(s);
  });

  test('a Node that is held ends before its time: the run has one of its own', limit, async (t) => {
    const s = await serve(t, ['--pool', '0']);
    const id = text(await s.call('sandbox_initialize', {}));
    for (let i = 0; i < 5; i++) {
      await until(() => held(s.child.pid).length === 1, 'no Node is held');
      const [victim] = held(s.child.pid);
      process.kill(victim, 'SIGKILL');
      await until(() => !fs.existsSync(`/proc/${victim}`), 'it lives');
      says(await s.call('run_js', { container_id: id, code: `console.log(${i})` }), i);
    }
    await end(s);
  });

  for (const what of ['the Node that is held for it', 'its sandbox'])
    test(`… while a run writes its files: ${what}`, limit, async (t) => {
      const s = await serve(t, ['--pool', '0', '--files', tempDir(t)]);
      const id = text(await s.call('sandbox_initialize', {}));
      await until(() => held(s.child.pid).length === 1, 'no Node is held');
      const [node] = held(s.child.pid), [jail] = jails(s.child.pid), init = initOf(jail);
      await freeze(init); // so no file arrives
      const code = `console.log(1); // ${'x'.repeat(3 << 20)}`;
      const answer = s.ask('tools/call', { name: 'run_js', arguments: { container_id: id, code }, _meta: { progressToken: 1 } });
      await until(() => s.seen.some(({ params }) => params?.message === 'running'), 'the run does not begin');
      process.kill(what === 'its sandbox' ? jail : node, 'SIGKILL');
      await until(() => held(s.child.pid).length === 0, 'it lives');
      if (what !== 'its sandbox') process.kill(init, 'SIGCONT');
      const { result = assert.fail(s.child.text('stderr')) } = await Promise.race([answer, s.child.ended]);
      if (what === 'its sandbox') assert.match(text(result), /lost/);
      else says(result, 1);
      says(await run(s, 'console.log(2)'), 2);
      await end(s);
    });
});

describe('what is lost as it is handed out', () => {
  for (const [who, victim] of Object.entries({ 'its jail': (jail) => jail, 'its init': initOf }))
    test(`${who}: the call has another one`, limit, async (t) => {
      const s = await serve(t, ['--pool', '1', '--pool-memory', roomFor(1)]);
      await filled(s, 1);
      const [jail] = jails(s.child.pid), pid = victim(jail), init = initOf(jail);
      await freeze(init); // so nothing of the call comes further than this
      const answer = s.ask('tools/call', { name: 'run_js_ephemeral', arguments: { code: 'console.log(1)' }, _meta: { progressToken: 1 } });
      await until(() => s.seen.some(({ params }) => params?.message === 'running'), 'the run does not begin');
      process.kill(pid, 'SIGKILL');
      says((await answer).result, 1);
      await until(() => !fs.existsSync(`/proc/${jail}`), 'it lives');
      await filled(s, 1);
      await end(s);
    });

  test('and others wait behind it: they still do', limit, async (t) => {
    const s = await serve(t, ['--pool', '1', '--pool-memory', roomFor(1)]);
    await filled(s, 1);
    const [jail] = jails(s.child.pid), container_id = text(await s.call('sandbox_initialize', {})), order = [];
    const init = initOf(jail);
    await freeze(init); // so nothing of the first call comes further than this
    const calls = [['run_js', { code: '1' }], ['sandbox_exec', { commands: ['true'] }], ['run_js', { code: '2' }]]
      .map(([tool, work], i) => s.call(tool, { container_id, ...work }).then((r) => { order.push(i); return r; }));
    await s.ask('ping'); // all of them have come
    process.kill(jail, 'SIGKILL');
    if (engine) process.kill(init, 'SIGCONT'); // it ends with its pipe
    for (const r of await Promise.all(calls)) assert.ok(!r.isError, text(r));
    assert.deepEqual(order, [0, 1, 2]);
    await s.call('sandbox_stop', { container_id });
    await filled(s, 1);
    await end(s);
  });

  test('and nothing has run in it: the next call finds another one under its id; later it is lost', limit, async (t) => {
    const s = await serve(t, ['--pool', '1', '--pool-memory', roomFor(1)]);
    for (const again of [1, 2]) {
      await filled(s, 1);
      const [jail] = jails(s.child.pid), container_id = text(await s.call('sandbox_initialize', {}));
      process.kill(jail, 'SIGKILL');
      await until(() => s.child.text('stderr').split('another is started').length > again, 'nobody notices');
      const exec = () => s.call('sandbox_exec', { container_id, commands: [`echo ${again}`] });
      assert.equal(text(await exec()), `${again}\n`);
      const mine = jails(s.child.pid).filter((pid) => engine || descendants(pid).length > 0);
      mine.forEach((pid) => process.kill(pid, 'SIGKILL'));
      await until(() => !mine.some((pid) => fs.existsSync(`/proc/${pid}`)), 'they live');
      assert.equal((await exec()).isError, true);
    }
    await end(s);
  });

  test('and what the lost call asked for: its policy stays, its packages are let go', { ...limit, ...nativeOnly('there init takes part in mounting packages') }, async (t) => {
    const s = await serve(t, ['--pool', '1', '--pool-memory', roomFor(1)]);
    await filled(s, 1);
    const [jail] = jails(s.child.pid), container_id = text(await s.call('sandbox_initialize', {}));
    const layers = () => list(`/proc/${s.child.pid}/fd`).filter((fd) => link(`/proc/${s.child.pid}/fd/${fd}`).includes('/layers/')).length;
    await freeze(initOf(jail)); // so nothing of the call runs
    const work = { code: '', network: 'none', dependencies: [{ name: 'ms', version: '2' }] };
    s.send({ id: 'lost', method: 'tools/call', params: { name: 'run_js', arguments: { container_id, ...work }, _meta: { progressToken: 1 } } });
    await until(() => s.seen.some(({ params }) => params?.message === 'running'), 'the run does not begin');
    assert.equal(layers(), 1);
    s.send({ method: 'notifications/cancelled', params: { requestId: 'lost' } });
    await s.ask('ping'); // so it has come
    process.kill(jail, 'SIGKILL');
    const r = await s.call('run_js', { container_id, code: `await fetch('http://example.com/').catch((e) => console.log(e.cause?.code))` });
    assert.match(s.child.text('stderr'), /another is started/);
    assert.equal(r.structuredContent.refused[0]?.rule, `network policy 'none'`, JSON.stringify(r));
    assert.equal(layers(), 0);
    await end(s);
  });
});

describe('a Node that is held', () => {
  test('that was let go and is killed before it began: the run has one of its own', limit, async (t) => {
    const s = await serve(t, ['--pool', '0']), id = text(await s.call('sandbox_initialize', {}));
    const [victim] = await until(() => held(s.child.pid).length === 1 && held(s.child.pid), 'no Node is held');
    const written = async () => (await s.ask('resources/read', { uri: `sandbox://${id}/index.js` })).result?.contents[0].text;
    await freeze(victim);
    const answer = s.call('run_js', { container_id: id, code: 'console.log(1)' });
    await until(async () => await written() === 'console.log(1)' && await written(), 'the script does not come'); // and then its byte has
    process.kill(victim, 'SIGKILL');
    says(await answer, 1);
    await end(s);
  });

  test('and that is killed while the files of its run are written: there is another one, or the run says by what it ended', limit, async (t) => {
    const s = await serve(t, ['--pool', '0']);
    const id = text(await s.call('sandbox_initialize', {}));
    for (let i = 0; i < 30; i++) {
      await until(() => held(s.child.pid).length === 1, 'no Node is held');
      await s.call('sandbox_exec', { container_id: id, commands: ['pkill -f index.js'] }); // itself, too: so its answer comes first
      assert.match(text(await s.call('run_js', { container_id: id, code: `console.log(${i})` })), new RegExp(`:\\n${i}\\n$|SIGTERM`));
    }
    await end(s);
  });

  test('is let go when its sandbox is unused for long, and comes back with the next run', limit, async (t) => {
    const s = await serve(t, ['--pool', '0', '--hold', '3s']);
    const id = text(await s.call('sandbox_initialize', {})), once = () => s.call('run_js', { container_id: id, code: 'console.log(1)' });
    says(await once(), 1);
    await until(() => held(s.child.pid).length === 1, 'no Node is held');
    await until(() => held(s.child.pid).length === 0, 'it is held for ever');
    says(await once(), 1);
    await until(() => held(s.child.pid).length === 1, 'no Node is held again');
    await end(s);
  });

  test('that others kill at each end of a command is not started for ever', limit, async (t) => {
    const s = await serve(t, ['--pool', '0']);
    const id = text(await s.call('sandbox_initialize', {}));
    const killer = `import { spawn } from 'node:child_process'; import http from 'node:http';
      setInterval(() => spawn('pkill', ['-9', '-f', 'gate.cjs']), 20); http.createServer((q, a) => a.end()).listen(8123)`;
    await s.call('run_js', { container_id: id, code: killer, listenOnPort: 8123 });
    await until(() => held(s.child.pid).length === 0, 'it lives');
    const seen = new Set();
    for (let i = 0; i < 100; i++) {
      held(s.child.pid).forEach((pid) => seen.add(pid));
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    assert.ok(seen.size <= 3, `${seen.size} were started`);
    await end(s);
  });
});
