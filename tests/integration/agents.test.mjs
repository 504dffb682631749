// Five agents at one server, each with its own name, all at once: nobody sees anything of anybody else, and nothing is left.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { assertGone, engine, someAhead, start, tempDir } from './jerboa.mjs';
import { modern } from './mcp.mjs';
import { answers, connectTo, ownStore, programs, serveHttp, storeFiles, text, tokenOf, tokensFile } from './serving.mjs';

someAhead();

const CALLS = engine ? 20 : 200;
const kinds = [{ sdk: 1 }, { mode: 'legacy' }, { mode: { pin: modern } }, { sdk: 1 }, { mode: { pin: modern } }];
const names = ['ada', 'bob', 'eve', 'joe', 'zoë'];
const server = (word) => `import http from 'node:http'; console.log('up ${word}'); http.createServer((q, s) => s.end('${word}')).listen(4000)`;

/** One agent: its calls, counted, and what it has seen that should be its own alone. */
class Agent {
  calls = 0;
  ids = [];
  ports = [];

  constructor(name, c, files) {
    Object.assign(this, { name, c, dir: path.join(files, name) });
  }

  word(what) { return `${this.name}-${what}-${this.calls}`; }

  async call(tool, args) {
    this.calls++;
    const r = await this.c.call(tool, args);
    assert.ok(!r.isError, `${this.name}: ${tool}: ${JSON.stringify(r.content)}`);
    return r;
  }

  async prints(tool, args, word, output) {
    const r = await this.call(tool, { ...args, code: `${args.code ?? ''}; console.log('${word}')` });
    assert.equal(text(r), `Node.js process output:\n${output ?? ''}${word}\n`);
    return r;
  }

  async initialize() {
    const id = text(await this.call('sandbox_initialize', {}));
    this.ids.push(id);
    return id;
  }

  async exec(container_id, command, output) {
    const r = await this.call('sandbox_exec', { container_id, commands: [command] });
    assert.equal(text(r), output);
  }

  /** A file of a sandbox is in the agent's own folder and as a resource, and nothing but his is there. */
  async writes(container_id) {
    const word = this.word('file'), file = `${word}.txt`;
    const code = `import fs from 'node:fs'; fs.writeFileSync('files/${file}', '${word}'); console.log(fs.readdirSync('files').filter((n) => !n.startsWith('${this.name}-')).length)`;
    const r = await this.prints('run_js', { container_id, code }, word, '0\n');
    assert.deepEqual(r.structuredContent.files.filter((f) => f.path === file).map((f) => f.change), ['created']);
    assert.equal(fs.readFileSync(path.join(this.dir, file), 'utf8'), word);
    assert.equal((await this.c.read(r.structuredContent.files.find((f) => f.path === file).uri)).text, word);
  }

  /** All ask for the same port; each gets his own server. */
  async serves(container_id) {
    const word = this.word('server');
    const { server: { url, log } } = (await this.call('run_js', { container_id, code: server(word), listenOnPort: 4000 })).structuredContent;
    this.ports.push(+new URL(url).port);
    assert.equal(await (await fetch(url, { headers: { Connection: 'close' } })).text(), word);
    assert.equal((await this.c.read(`sandbox://${container_id}/output.log`)).text, `up ${word}\n`, log);
    const { resources } = await this.c.client.listResources();
    assert.ok(resources.some((r) => r.uri === `sandbox://${container_id}/output.log`));
    const mine = encodeURI(`file://${this.dir}/`);
    assert.deepEqual(resources.filter((r) => !r.uri.startsWith(mine) && !this.ids.some((id) => r.uri.startsWith(`sandbox://${id}/`))), []);
  }

  /** Twenty calls: a sandbox from its beginning to its end, and others beside it. */
  async round() {
    const id = await this.initialize();
    await this.exec(id, `echo ${this.name} > mine; cat mine; ls -A`, `${this.name}\nfiles\nmine\npackage.json\n`);
    await this.writes(id);
    await this.serves(id);
    await Promise.all([0, 1, 2, 3].map((i) => this.prints('run_js', { container_id: id }, this.word(`queued${i}`))));
    await Promise.all([0, 1, 2, 3].map((i) => this.prints('run_js_ephemeral', {}, this.word(`once${i}`))));
    for (let i = 0; i < 5; i++) await this.exec(id, `cat mine; echo ${i}`, `${this.name}\n${i}\n`);
    await this.prints('run_js_ephemeral', { code: `import isOdd from 'is-odd'; console.log(isOdd(3))`, dependencies: [{ name: 'is-odd', version: '3.0.1' }] },
      this.word('dependency'), 'true\n');
    await this.exec(id, 'cat mine', `${this.name}\n`);
    await this.call('sandbox_stop', { container_id: id });
  }

  async work() {
    while (this.calls < CALLS) await this.round();
  }
}

/** A client of a busy daemon may have been given up; then the next start looks whether anything came of it, and one after a minute forgets the run. */
async function settle(home) {
  for (const run of storeFiles(home).filter((name) => /^runs\/[\w-]+\/[0-9a-f]{32}$/.test(name)))
    for (let i = 0; i < 2; i++) {
      const r = await start(['pull', '--engine', engine, 'node:24'], { env: { JERBOA_HOME: home } }).ended;
      assert.equal(r.status, 0, r.stderr);
      if (fs.existsSync(path.join(home, run))) fs.utimesSync(path.join(home, run), 0, 0);
    }
}

test(`five agents at once, ${CALLS} calls each`, { timeout: 300_000 }, async (t) => {
  const files = tempDir(t), home = ownStore(t);
  const { url, stop } = await serveHttp(t, ['--files', files, '--tokens', tokensFile(t, names)], { env: { JERBOA_HOME: home }, seconds: 300 });
  const agents = await Promise.all(names.map(async (name, i) => new Agent(name, await connectTo(url, { ...kinds[i], token: tokenOf(name) }), files)));
  const began = performance.now();
  await Promise.all(agents.map((agent) => agent.work()));
  t.diagnostic(`${agents.reduce((n, a) => n + a.calls, 0)} calls in ${((performance.now() - began) / 1000).toFixed(1)} s`);
  for (const agent of agents) assert.equal(agent.calls, CALLS);

  const ids = agents.flatMap((a) => a.ids);
  assert.equal(new Set(ids).size, ids.length);
  assert.deepEqual(fs.readdirSync(files).sort(), [...names].sort());
  for (const { c } of agents) await c.client.close();
  assert.equal((await stop()).status, 0);
  await assertGone(programs);
  for (const port of new Set(agents.flatMap((a) => a.ports))) assert.equal(await answers(port), false, `port ${port} is still open`);
  if (engine) await settle(home);
  const left = storeFiles(home).filter((name) => !/^(runtimes|tools|layers|downloads|cache|runs)(\/(node-|bun-)[\w.-]+|\/[0-9a-f]{64})?$/.test(name));
  assert.deepEqual(left, []);
});
