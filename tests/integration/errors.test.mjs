// Every row of the table of errors (docs/errors.md), provoked: what an agent reads is the text and what to do.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { after, before, describe, test } from 'node:test';
import { engine, fill, start, tempDir, until } from './jerboa.mjs';
import { connect, connectFor, freePort, limit, texts, variants } from './tools.mjs';

const modern = variants['stdio, modern'];
const { stdout } = await start(['errors']).ended;
const rows = [...stdout.matchAll(/^\| `(\w+)` \| (.*) \| (.*) \|$/gm)].map(([, name, text, remedy]) => ({ name, text, remedy }));
const pattern = (words) => words.split('…').map(RegExp.escape).join('.+');

const files = tempDir();
let s, id;
before(async () => {
  s = await connect(modern, ['--files', files, '--memory', '128m', '--disk', '32m', '--pids', '40', '--files-quota', '4m', '--timeout', '20s']);
  id = await s.sandbox();
});
after(() => s.close());

/** Stops a sandbox while one call runs in it and another one waits; both answers. */
async function stopped() {
  const container_id = await s.sandbox(), started = path.join(files, 'started');
  const answers = [s.run(container_id, `import fs from 'node:fs'; fs.writeFileSync('files/started', ''); setInterval(() => {}, 1000)`), s.run(container_id, '1')];
  await until(() => fs.existsSync(started), 'it did not start');
  fs.rmSync(started);
  await s.call('sandbox_stop', { container_id });
  return Promise.all(answers);
}

/** What a failing read says. */
const unread = (read) => read.then(() => assert.fail('it was read'), (e) => ({ isError: true, content: [{ type: 'text', text: e.message.replace(/^MCP error -?\d+: /, '') }] }));

const provoke = {
  AUDIT: async (t) => { // the log's directory is gone
    const dir = path.join(tempDir(t), 'logs');
    fs.mkdirSync(dir);
    const strict = await connectFor(t, modern, ['--audit', path.join(dir, 'log'), '--audit-strict']);
    fs.renameSync(dir, `${dir}-elsewhere`);
    return strict.once('1');
  },
  UNKNOWN_SANDBOX: () => s.exec('js-sbx-00000000-0000-4000-8000-000000000000', 'true'),
  BAD_IMAGE: () => s.once('1', { image: engine ? '--privileged' : 'python:3' }),
  NO_RUNTIME: () => s.once('1', { image: 'node:99' }),
  TOO_MANY: async (t) => {
    const few = await connectFor(t, modern, ['--sandboxes', '1']);
    await few.sandbox();
    return few.once('1');
  },
  OWN_BUSY: async (t) => { // his own run will end by itself, but not yet
    const few = await connectFor(t, modern, ['--sandboxes', '1', '--wait', '0']);
    few.once('setInterval(() => {}, 1000)').catch(() => {});
    return few.once('1');
  },
  BUSY: async (t) => { // nobody knows whose it is
    const few = await connectFor(t, variants['HTTP, modern'], ['--sandboxes', '1', '--wait', '0']);
    await few.sandbox();
    return few.once('1');
  },
  LONG_LINE: async (t) => { // of one owner
    const few = await connectFor(t, variants['HTTP, legacy'], ['--sandboxes', '1', '--wait', '10m']);
    const calls = Array.from({ length: 140 }, () => few.once('await new Promise((resolve) => setTimeout(resolve, 300))').catch(() => {}));
    return Promise.race(calls.map((call) => call.then((r) => r?.isError ? r : new Promise(() => {}))));
  },
  LOW_MEMORY: async (t) => (await connectFor(t, modern, ['--reserve', '100000g', '--wait', '0'])).once('1'),
  CANNOT_START: async (t) => (await connectFor(t, { ...modern, lacks: engine ? 'jerboa-init' : 'jerboa-jail' })).call('sandbox_initialize'),
  STOPPED: async () => (await stopped())[1],
  PORT: async (t) => {
    const foreign = net.createServer().listen(0, '127.0.0.1');
    await once(foreign, 'listening');
    t.after(() => foreign.close());
    return s.call('sandbox_initialize', { port: foreign.address().port });
  },
  NETWORK: () => s.call('sandbox_initialize', { network: 'host' }),
  FILES: async (t) => { // each name has its own folder, but there is a file
    const dir = tempDir(t), tokens = path.join(tempDir(t), 'tokens'), token = 'a-token-that-nobody-guesses';
    fs.writeFileSync(path.join(dir, 'alice'), '');
    fs.writeFileSync(tokens, `alice ${token}\n`, { mode: 0o600 });
    return (await connectFor(t, { ...variants['HTTP, modern'], token }, ['--files', dir, '--tokens', tokens])).call('sandbox_initialize');
  },
  BAD_DEPENDENCY: () => s.run(id, '1', { dependencies: [{ name: '../lodash', version: '1' }] }),
  INSTALL: () => s.run(id, '1', { dependencies: [{ name: 'jerboa-has-no-such-package', version: '1' }] }),
  BAD_SEARCH: () => s.call('search_npm_packages', { searchTerm: 'two words' }),
  NO_SEARCH: async (t) => { // a registry that has nothing
    const registry = http.createServer((request, response) => response.writeHead(404).end()).listen(0, '127.0.0.1');
    await once(registry, 'listening');
    t.after(() => registry.close());
    return (await connectFor(t, modern, [], { npm_config_registry: `http://127.0.0.1:${registry.address().port}/` })).call('search_npm_packages', { searchTerm: 'a' });
  },
  SEARCH: async (t) => // nobody listens there
    (await connectFor(t, modern, [], { npm_config_registry: `http://127.0.0.1:${await freePort()}/` })).call('search_npm_packages', { searchTerm: 'a' }),
  BAD_COMMAND: () => s.exec(id, 'true', ''),
  COMMAND: () => s.exec(id, 'true', 'echo why >&2; exit 3', 'echo never'),
  RUN_LOST: async () => (await stopped())[0],
  RUN_TIMEOUT: () => s.run(id, 'for (;;);', { timeoutMs: 200 }),
  RUN_OUTPUT: () => s.run(id, `const line = Buffer.alloc(1 << 20, 'x'), next = () => process.stdout.write(line, next); next()`),
  RUN_OOM: () => s.run(id, fill),
  RUN_PIDS: () => s.run(id, `import { spawn } from 'node:child_process'; for (let i = 0; i < 60; i++) spawn('sleep', ['1008'], { stdio: 'ignore' })`),
  RUN_DISK: () => s.once(`import fs from 'node:fs'; fs.writeFileSync('large', Buffer.alloc(64 << 20))`),
  RUN_NO_ROOM: async () => {
    const full = await s.sandbox();
    await s.exec(full, 'cat /dev/zero > full; true');
    return s.run(full, '1');
  },
  RUN_QUOTA: () => s.run(id, `import fs from 'node:fs';
    for (let i = 0; i < 4000; i++) { fs.appendFileSync('files/growing', Buffer.alloc(1 << 16)); await new Promise((resolve) => setTimeout(resolve, 2)); }`),
  RUN_ERROR: () => s.run(id, 'throw new Error("why")'),
  SERVER_DIED: async () => s.run(id, 'process.exit(3)', { listenOnPort: await freePort() }),
  SERVER_SILENT: async () => s.run(id, 'setInterval(() => {}, 1000)', { listenOnPort: await freePort(), timeoutMs: 300 }),
  LARGE_RESOURCE: async () => {
    const large = path.join(files, 'large');
    fs.writeFileSync(large, '');
    fs.truncateSync(large, 17 << 20);
    return unread(s.read(`${pathToFileURL(large)}`));
  },
  LOST_OUTPUT: async (t) => { // no file of the server grows beyond a mebibyte
    const small = await connectFor(t, { ...modern, wrap: ['sh', '-c', `ulimit -f 2048; exec "$@"`, 'sh'] });
    const r = await small.once(`console.log('x'.repeat(3_000_000))`);
    assert.equal(r.structuredContent.truncated.stdoutBytes, 3_000_001);
    return unread(small.read(r.structuredContent.truncated.uri));
  },
};

describe('errors', limit, () => {
  test('each has a way to be provoked', () => {
    assert.deepEqual(Object.keys(provoke), rows.map(({ name }) => name));
  });

  for (const { name, text, remedy } of rows)
    test(name, async (t) => {
      const r = await provoke[name](t);
      const found = texts(r);
      // A command's own words stand where the remedy points to.
      const expected = name === 'COMMAND' ? `${pattern(text)}:\nwhy\n` : `${pattern(text)}: ${pattern(remedy)}\\.`;
      assert.equal(r.isError, true, JSON.stringify(r));
      assert.match(found[name === 'COMMAND' ? 1 : 0], new RegExp(`^${expected}$`));
      assert.ok(found.every((block) => !/\(null\)|%[a-z]/.test(block)), JSON.stringify(found));
    });

  test('arguments that do not fit are named', async () => {
    for (const [tool, args, sentence] of [
      ['run_js', { container_id: id }, 'arguments.code is missing'],
      ['sandbox_initialize', { port: 70000 }, /^arguments\.port must be .*65535/],
      ['sandbox_exec', { container_id: id, commands: 'ls' }, /^arguments\.commands must be /],
      ['sandbox_stop', { container_id: id, force: true }, /^arguments has no member 'force'/],
    ]) {
      const r = await s.call(tool, args);
      assert.equal(r.isError, true);
      assert.match(texts(r)[0], typeof sentence === 'string' ? new RegExp(`^${RegExp.escape(sentence)}`) : sentence);
    }
  });
});
