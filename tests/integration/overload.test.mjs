// More calls than a server's limits allow: they wait, owners in turns, for a bounded time; then they are told to try again. Nobody starves.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { describe, test } from 'node:test';
import { descendants, engine, isRoot, keepers, limit, nothingAhead, start, tempDir, until } from './jerboa.mjs';
import { modern } from './mcp.mjs';
import { connectTo, inside, serveHttp, serveStdio, text, tokenOf, tokensFile } from './serving.mjs';

nothingAhead();

const names = ['ada', 'bob', 'eve', 'joe'];
const kinds = { ada: { mode: { pin: modern } }, bob: { mode: { pin: modern } }, eve: { mode: 'legacy' }, joe: { sdk: 1 } };

/** A server, and a client of each name. */
const serve = (t, ...args) => serveIn(t, [], ...args);

async function serveIn(t, wrap, ...args) {
  const files = tempDir(t);
  const server = await serveHttp(t, ['--tokens', tokensFile(t, names), '--files', files, ...args], { wrap });
  const clients = await Promise.all(names.map((name) => connectTo(server.url, { ...kinds[name], token: tokenOf(name) })));
  t.after(() => Promise.all(clients.map(({ client }) => client.close())));
  return { ...server, files, ...Object.fromEntries(names.map((name, i) => [name, clients[i]])) };
}

/** A call that has to wait: its answer, and the moment in which it was told so. */
function waits(who, tool = 'run_js_ephemeral', args = { code: 'console.log("ran")' }, options = {}) {
  const told = [];
  let answer;
  const waiting = new Promise((resolve, reject) => {
    answer = who.call(tool, args, { timeout: 170_000, resetTimeoutOnProgress: true, ...options, onprogress: (p) => {
      told.push(p);
      if (/^waiting for a sandbox, \d+ s: /.test(p.message)) resolve(p.message);
    } });
    answer.then((r) => reject(new Error(`it did not wait: ${JSON.stringify(r)}`)), reject);
  });
  waiting.catch(() => {});
  return { answer, waiting, told };
}

const sandbox = async (who) => {
  const r = await who.call('sandbox_initialize');
  assert.ok(!r.isError, text(r));
  return text(r);
};
const stop = (who, container_id) => who.call('sandbox_stop', { container_id });
const ran = (r) => assert.equal(text(r), 'Node.js process output:\nran\n');
function refused(r, sentence) {
  assert.equal(r.isError, true, JSON.stringify(r));
  assert.equal(r.content.length, 1);
  assert.match(text(r), sentence);
}
/** A run that goes on until `end`, in a server whose folder is `files`; resolves when it runs. */
async function blocks(s, name) {
  const dir = path.join(s.files, name), end = path.join(dir, 'end');
  const answer = s[name].call('run_js_ephemeral', { code: `import fs from 'node:fs'; fs.writeFileSync('files/runs', '');
    while (!fs.existsSync('files/end')) await new Promise((resolve) => setTimeout(resolve, 20)); console.log('ran')` });
  await until(() => fs.existsSync(path.join(dir, 'runs')), 'it does not run');
  return { answer, end: () => fs.writeFileSync(end, '') };
}

describe('all sandboxes are in use', { timeout: 300_000 }, () => {
  test('a call waits, is told so, and goes on when one has ended; what it tells counts on', limit, async (t) => {
    const s = await serve(t, '--sandboxes', '1', '--wait', '10m');
    for (const [tool, who] of [['run_js_ephemeral', s.bob], ['run_js_ephemeral', s.joe], ['sandbox_initialize', s.eve]]) {
      const id = await sandbox(s.ada), call = waits(who, tool, tool === 'run_js_ephemeral' ? undefined : {});
      assert.match(await call.waiting, /: all are in use$/);
      await stop(s.ada, id);
      const r = await call.answer;
      if (tool === 'run_js_ephemeral') ran(r);
      else await stop(who, text(r));
      assert.ok(call.told.every((p, i) => i === 0 || p.progress > call.told[i - 1].progress), JSON.stringify(call.told));
      if (tool === 'run_js_ephemeral') assert.ok(call.told.some((p) => p.message === 'running'), JSON.stringify(call.told));
    }
  });

  for (const [wait, words] of [['1s', '1 s'], ['0', '0 s']])
    test(`for its time, then it is told to try again: ${words}`, limit, async (t) => {
      const s = await serve(t, '--sandboxes', '1', '--wait', wait), id = await sandbox(s.ada);
      for (const [tool, args] of [['run_js_ephemeral', { code: '1' }], ['sandbox_initialize', {}]])
        refused(await s.bob.call(tool, args), new RegExp(`^All 1 sandboxes of this server are in use, and it was not your turn within ${words}: try again in \\d+ s, or [^\\n]+\\.$`));
      refused(await s.bob.call('run_js_ephemeral', { code: '1', image: engine ? '--privileged' : 'python:3' }), /is not a version/); // that is said first
      await stop(s.ada, id);
      ran(await s.bob.call('run_js_ephemeral', { code: 'console.log("ran")' }));
    });

  test('by the caller alone, and they stay: nobody but he can end one, so he is told at once', limit, async (t) => {
    const s = await serve(t, '--sandboxes', '2', '--sandboxes-each', '2', '--wait', '10m');
    const ids = [await sandbox(s.ada), await sandbox(s.ada)];
    refused(await s.ada.call('sandbox_initialize'), /^You have 2 sandboxes, as many as this server allows: stop one with sandbox_stop\.$/);
    const call = waits(s.bob), both = [];
    await call.waiting;
    refused(await s.ada.call('run_js_ephemeral', { code: '1' }), /^You have 2 sandboxes/);
    both.push(stop(s.ada, ids[0]));
    ran(await call.answer);
    await Promise.all(both);
  });

  test('who has as many as he may have waits for his own, and holds nobody up', limit, async (t) => {
    const s = await serve(t, '--sandboxes', '2', '--wait', '10m'); // with tokens, half of them
    const first = await blocks(s, 'ada'), second = waits(s.ada);
    assert.match(await second.waiting, /: you have as many as you may$/);
    for (let i = 0; i < 3; i++) ran(await s.bob.call('run_js_ephemeral', { code: 'console.log("ran")' }));
    first.end();
    ran(await first.answer);
    ran(await second.answer);
  });

  test('who cancels, and who is gone, leaves the line; the next one has his place', limit, async (t) => {
    const s = await serve(t, '--sandboxes', '1', '--wait', '10m');
    const id = await sandbox(s.ada), cancel = new AbortController();
    const cancelled = waits(s.bob, undefined, undefined, { signal: cancel.signal });
    await cancelled.waiting;
    const gone = waits(s.eve); // its session
    await gone.waiting;
    const last = waits(s.joe);
    await last.waiting;
    cancel.abort();
    await assert.rejects(cancelled.answer);
    gone.answer.catch(() => {});
    await s.eve.transport.terminateSession();
    await stop(s.ada, id);
    ran(await last.answer);
    await assert.doesNotReject(s.bob.call('run_js_ephemeral', { code: '1' }));
  });

  test('the server stops while somebody waits', limit, async (t) => {
    const s = await serve(t, '--sandboxes', '1', '--wait', '10m');
    await sandbox(s.ada);
    const call = waits(s.bob);
    await call.waiting;
    call.answer.catch(() => {});
    assert.equal((await s.stop()).status, 0);
  });

  test('one client on stdio: his runs wait for each other, as many as he has open', limit, async (t) => {
    const s = serveStdio(t, ['--sandboxes', '2', '--wait', '10m']);
    await s.open();
    const answers = await Promise.all(Array.from({ length: 16 }, (_, i) => s.call('run_js_ephemeral', { code: `console.log(${i})` })));
    answers.forEach((r, i) => assert.equal(text(r), `Node.js process output:\n${i}\n`));
  });
});

describe('nobody starves', limit, () => {
  test('one asks for sixty runs at once, others for one after the other', limit, async (t) => {
    const s = await serve(t, '--sandboxes', '2', '--sandboxes-each', '2', '--wait', '10m');
    const MANY = 60, FEW = 4, BETWEEN = 12; // two run, two are next, some answers are on their way
    let answered = 0;
    const once = async (who) => ran(await who.call('run_js_ephemeral', { code: 'console.log("ran")' }, { timeout: 170_000 }));
    const greedy = Array.from({ length: MANY }, () => once(s.ada).then(() => { answered++; }));
    const between = [];
    await Promise.all([s.bob, s.eve, s.joe].map(async (who) => {
      for (let i = 0; i < FEW; i++) {
        const before = answered;
        await once(who);
        between.push(answered - before);
      }
    }));
    assert.ok(answered < MANY, 'the greedy one was served first');
    t.diagnostic(`answers to the greedy one between: ${between.join(' ')}`);
    assert.ok(Math.max(...between) <= BETWEEN, between.join(' '));
    await Promise.all(greedy); // nor does he
  });

  test('nor does one fill the line, nor do all who have many in it: of them goes who would come last', limit, async (t) => {
    const OF_ONE = 128, IN_ALL = 1024, crowd = Array.from({ length: 9 }, (_, i) => `crowd${i}`);
    const server = await serveHttp(t, ['--tokens', tokensFile(t, [...crowd, 'ada', 'bob']), '--sandboxes', '1', '--wait', '10m']);
    const clientOf = (name) => connectTo(server.url, { mode: { pin: modern }, token: tokenOf(name) });
    const ada = await clientOf('ada'), bob = await clientOf('bob'), clients = await Promise.all(crowd.map(clientOf));
    const id = await sandbox(ada);
    const once = (who) => who.call('run_js_ephemeral', { code: 'console.log("ran")' }, { timeout: 170_000 });
    let away = 0;
    const many = (who, n) => { for (let i = 0; i < n; i++) once(who).then(note, () => {}); };
    const note = (r) => {
      refused(r, /^There are \d+ calls that wait for a sandbox, as many as this server lets wait: try again in \d+ s, [^\n]+\.$/);
      away++;
    };
    many(clients[0], OF_ONE + 10);
    await until(() => away === 10, () => `${away} were sent away`);
    for (const who of clients.slice(1)) many(who, OF_ONE);
    await until(() => away === 10 + crowd.length * OF_ONE - IN_ALL, () => `${away} were sent away`);
    const modest = waits(bob), before = away;
    await modest.waiting;
    await until(() => away === before + 1, () => `${away - before} had to go for him`);
    for (const { client } of clients) client.close(); // what is left of them leaves the line, or it would be served before the server stops
    await stop(ada, id);
    ran(await modest.answer);
    await Promise.all([ada.client.close(), bob.client.close()]);
  });
});

/** A memory cgroup of the test's own below its own, with a limit: how to start something in it, and how much is left. */
function memoryGroup(bytes) {
  const own = /^\d+:memory:(.*)$/m.exec(fs.readFileSync('/proc/self/cgroup', 'utf8'))[1];
  const dir = path.join('/sys/fs/cgroup/memory', own, `overload-${process.pid}`);
  const number = (file, word = '') => +/\d+/.exec(fs.readFileSync(path.join(dir, file), 'utf8').split(word && `\n${word} `).slice(word ? 1 : 0).join(''))[0];
  fs.mkdirSync(dir);
  fs.writeFileSync(path.join(dir, 'memory.limit_in_bytes'), `${bytes}`);
  return {
    wrap: ['sh', '-c', `echo $$ >${dir}/tasks; exec "$@"`, 'sh'],
    left: () => bytes - number('memory.usage_in_bytes') + number('memory.stat', 'total_inactive_file') + number('memory.stat', 'total_active_file'),
    kills: () => number('memory.oom_control', 'oom_kill'),
    remove: () => until(() => { try { fs.rmdirSync(dir); return true; } catch { return false; } }, `${dir} is not empty`),
  };
}

/** Something in a group that eats until so many bytes are left; with `end` they are all there again. After the test both are gone. */
function startHog(t, group) {
  const [command, ...before] = [...group.wrap, process.execPath];
  const hog = start([...before, '-e', `let n = 0; const kept = []; process.stdin.on('data', (d) => { kept.push(Buffer.alloc(+d, 1)); console.log(++n); })`], { program: command, seconds: 120 });
  let pieces = 0;
  const fillTo = async (left) => {
    hog.stdin.write(`${group.left() - left}`);
    pieces++;
    await until(() => hog.text('stdout').includes(`${pieces}\n`), 'the hog does not eat');
  };
  const end = () => {
    hog.kill('SIGKILL');
    return hog.ended;
  };
  t.after(async () => {
    await end();
    await group.remove(); // hooks run in their order: the server is gone
  });
  return { fillTo, end };
}

const nodesOf = (s) => inside(s.pid).filter((name) => /^node|^MainThread/.test(name)).length;

test('many dependencies at once: four are installed at a time, the others wait and are told so', limit, async (t) => {
  let answer; // of the registry, which has the installers wait
  const answers = new Promise((resolve) => { answer = resolve; });
  const registry = http.createServer(async (req, res) => { await answers; res.writeHead(404).end('{}'); }).listen(0, '127.0.0.1');
  await once(registry, 'listening');
  t.after(() => { registry.closeAllConnections(); registry.close(); });
  const s = await serveIn(t, ['env', `npm_config_registry=http://127.0.0.1:${registry.address().port}/`], '--reserve', '0');
  const layers = () => descendants(s.pid).filter((p) => p.parent === s.pid && p.name === 'jerboa-layer').length; // below it, who has not become a jail yet is called so, too
  let waiting = 0;
  const onprogress = ({ message }) => { waiting += message === 'waiting: other dependencies are being installed'; };
  const install = (who, name) => who.call('run_js_ephemeral', { code: '1', dependencies: [{ name, version: '1' }] }, { timeout: 170_000, onprogress });
  const calls = ['a', 'b', 'c', 'd', 'e', 'f'].map((name) => install(s.ada, `jerboa-none-${name}`)).concat(install(s.bob, 'jerboa-none-g'));
  await until(() => waiting === 3, () => `${waiting} wait`);
  await until(() => layers() === 4, () => `${layers()} are installed`);
  answer();
  for (const r of await Promise.all(calls)) refused(r, /^The dependencies could not be installed: /);
  await until(() => layers() === 0, 'installers live on');
});

describe('memory is short', limit, () => {
  const skip = !isRoot ? 'only root makes a cgroup around the server' : !process.env.CI && !fs.existsSync('/sys/fs/cgroup/memory/tasks') && 'the cgroup around the server would be of v1, which is not here';
  const MiB = 1 << 20;

  test('what was made ahead goes first, new sandboxes wait, the kernel has to kill nobody; then all comes back', { ...limit, skip }, async (t) => {
    const group = memoryGroup(1024 * MiB);
    const s = await serveIn(t, group.wrap, '--reserve', '200m', '--wait', '10m', '--pool', '2', '--pool-memory', '64m', '--hold', '10m', '--idle', '0');
    const nodes = () => nodesOf(s);
    const id = await sandbox(s.ada); // it holds one; and its folder's kind has spares from now on
    ran(await s.ada.call('run_js', { container_id: id, code: 'console.log("ran")' }));
    await until(() => nodes() >= 2, () => `${nodes()} Nodes wait: ${inside(s.pid)}`);
    const hog = startHog(t, group);
    await hog.fillTo(250 * MiB);
    await until(() => nodes() === 0, () => `still held: ${inside(s.pid)}`);
    ran(await s.ada.call('run_js', { container_id: id, code: 'console.log("ran")' })); // who has one goes on
    await hog.fillTo(120 * MiB);
    const call = waits(s.bob);
    assert.match(await call.waiting, /: the server's machine has too little memory left$/);
    assert.equal(nodes(), 0);
    await hog.end();
    ran(await call.answer);
    await until(() => nodes() >= 1, 'nothing is made ahead any more');
    assert.equal(group.kills(), 0);
    assert.match(s.log(), /memory is short, \d+ MiB are left/);
  });

  test('who finds none made ahead then does not make more of them later', { ...limit, skip }, async (t) => {
    const group = memoryGroup(1024 * MiB);
    const s = await serveIn(t, group.wrap, '--reserve', '200m', '--wait', '10m', '--pool', '2', '--pool-memory', '64m', '--hold', '10m', '--idle', '0');
    const once = async () => ran(await s.ada.call('run_js_ephemeral', { code: 'console.log("ran")' }));
    const jails = () => keepers(s.pid).length;
    await once(); // from now on there is one of its kind
    await until(() => nodesOf(s) === 1, () => `${nodesOf(s)} Nodes wait: ${inside(s.pid)}`);
    const hog = startHog(t, group);
    await hog.fillTo(250 * MiB);
    await until(() => jails() === 0, () => `still there: ${inside(s.pid)}`);
    for (let i = 0; i < 3; i++) await once();
    await until(() => jails() === 0, () => `still there: ${inside(s.pid)}`);
    await hog.end();
    await until(() => nodesOf(s) > 0, 'nothing is made ahead any more');
    assert.equal(jails(), 1); // two that are wanted are begun in one moment: with the first one's Node, the second would be there
  });

  test('who waits for it is told to try again', limit, async (t) => {
    const s = await serve(t, '--reserve', '100000g', '--wait', '1s');
    refused(await s.ada.call('sandbox_initialize'), /^The server's machine has \d+ MiB of memory left, too little for one more sandbox, and that did not change within 1 s: try again in \d+ s, [^\n]+\.$/);
  });

  test('when the kernel has to choose, it takes what runs in a sandbox', limit, async (t) => {
    const s = await serve(t, '--reserve', '0');
    const r = await s.ada.call('run_js_ephemeral', { code: `import fs from 'node:fs'; console.log(fs.readFileSync('/proc/self/oom_score_adj', 'utf8'))` });
    assert.ok(r.structuredContent.stdout.trim() >= 500, text(r));
    assert.ok(+fs.readFileSync(`/proc/${s.pid}/oom_score_adj`, 'utf8') < 500);
  });
});
