// What a server allows, and what it refuses: ages, numbers, images, machines that lack something, words that try to be commands.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { nativeOnly, nothingAhead, tempDir, until } from './jerboa.mjs';
import { connect, connectFor, descendants, failed, inside, limit, printed, refused, text, texts, variants } from './tools.mjs';

nothingAhead();

describe('limits', limit, () => {
  test('age', async (t) => {
    const s = await connectFor(t, variants['stdio, modern'], ['--age', '4s']);
    const container_id = await s.sandbox();
    printed(await s.run(container_id, 'console.log(1)'), '1\n');
    const r = failed(await s.run(container_id, 'console.log("still"); setInterval(() => {}, 1000)'), 'sandbox_lost', /reached its age/);
    assert.equal(r.structuredContent.stdout, 'still\n');
    refused(await s.run(container_id, '1'), /is unknown or has expired/);
    await until(() => descendants(s.pid).length === 0, 'something is left');
  });

  test('idle', async (t) => {
    const s = await connectFor(t, variants['HTTP, modern'], ['--idle', '3s']);
    const container_id = await s.sandbox();
    for (let i = 0; i < 3; i++) {
      await sleep(1200);
      assert.ok(!(await s.exec(container_id, 'true')).isError); // each use counts
    }
    printed(await s.run(container_id, 'await new Promise((resolve) => setTimeout(resolve, 4000)); console.log("busy")'), 'busy\n');
    await until(() => descendants(s.pid).length === 0, 'it is still there');
    refused(await s.exec(container_id, 'true'), /is unknown or has expired/);
  });

  test('a number of sandboxes', async (t) => {
    const s = await connectFor(t, variants['stdio, legacy'], ['--sandboxes', '2']);
    const [first] = [await s.sandbox(), await s.sandbox()];
    for (const r of [await s.call('sandbox_initialize'), await s.once('1')])
      refused(r, /^You have 2 sandboxes, as many as this server allows: stop one with sandbox_stop/);
    await s.call('sandbox_stop', { container_id: first });
    await s.sandbox();
  });

  test('an ephemeral one leaves nothing', async (t) => {
    const s = await connectFor(t, variants['stdio, legacy'], ['--sandboxes', '1']);
    for (let i = 0; i < 4; i++) printed(await s.once(`console.log(${i})`), `${i}\n`);
    await until(() => descendants(s.pid).length === 0, 'something is left');
  });

  test('a network of its own', async (t) => {
    const s = await connectFor(t, variants['stdio, modern']);
    const container_id = await s.sandbox({ network: 'none' });
    const r = await s.run(container_id, `try { await fetch('http://203.0.113.7:81/'); } catch (e) { console.log('refused'); }`);
    assert.equal(r.structuredContent.stdout, 'refused\n');
    assert.equal(r.structuredContent.refused.length, 1);
    assert.partialDeepStrictEqual(r.structuredContent.refused[0], { host: '203.0.113.7', port: 81 });
    assert.ok(texts(r).some((block) => block.startsWith('Refused connections:\n- 203.0.113.7:81: ')), JSON.stringify(texts(r)));
    const shell = await s.exec(container_id, `node -e "fetch('http://203.0.113.8:82/').catch(() => console.log('refused'))"`);
    assert.equal(text(shell), 'refused\n');
    assert.match(texts(shell)[1], /^Refused connections:\n- 203\.0\.113\.8:82: [^\n]+$/);
    const later = await s.run(container_id, 'console.log(1)'); // told once
    assert.deepEqual(later.structuredContent.refused, []);
  });
});

describe('images', limit, () => {
  let s;
  before(async () => { s = await connect(variants['stdio, modern']); });
  after(() => s.close());

  test('another Node', nativeOnly('the daemon of these tests has one image'), async () => {
    printed(await s.once('console.log(process.versions.node.split(".")[0])', { image: 'node:22' }), '22\n');
  });

  test('images that are none', async () => {
    const marker = path.join(tempDir(), 'marker');
    for (const image of ['python:3', 'node:', 'node:99.99.99', '../../etc', '/bin/sh', '--help', `node:22; touch ${marker}`, `$(touch ${marker})`, 'node:22\n', 'node:22 ', '`id`', '%s%n', 'x'.repeat(200)])
      for (const r of [await s.call('sandbox_initialize', { image }), await s.once('1', { image })]) {
        refused(r, /./);
        assert.doesNotMatch(text(r), /call sandbox_initialize/, image);
      }
    refused(await s.call('sandbox_initialize', { image: 'python:3' }), /python:3.*leave image out/);
    assert.ok(!fs.existsSync(marker));
    assert.deepEqual(descendants(s.pid).filter((p) => !/^(jerboa-fetch|fetch-)/.test(p.name)), []);
  });
});

describe('a machine that lacks something', limit, () => {
  test('no jail', nativeOnly('there is no jail'), async (t) => {
    const s = await connectFor(t, { ...variants['stdio, modern'], lacks: 'jerboa-jail' });
    for (const r of [await s.call('sandbox_initialize'), await s.once('console.log(1)')])
      refused(r, /^The sandbox could not be started: .*jerboa-jail.*'jerboa doctor'/);
  });

  test('no user namespaces', nativeOnly('they are the daemon\'s'), async (t) => {
    const s = await connectFor(t, { ...variants['HTTP, legacy'], wrap: ['unshare', '-Ur', 'sh', '-ec', 'echo 0 > /proc/sys/user/max_user_namespaces; exec "$@"', 'sh'] });
    for (const r of [await s.call('sandbox_initialize'), await s.once('console.log(1)')])
      refused(r, /^The sandbox could not be started: .*namespaces are forbidden; as root: sysctl -w user\.max_user_namespaces=\d+.*'jerboa doctor'/);
  });
});

describe('words that try to be commands', limit, () => {
  const marker = path.join(tempDir(), 'marker');
  const words = [`$(touch ${marker})`, `\`touch ${marker}\``, `; touch ${marker} #`, `| touch ${marker}`, `' && touch ${marker} '`, '../../../../etc/passwd', '--version', '-e', '%s%s%n', '\u0000', 'a\nb', '\u202e', '{{7*7}}', '__proto__', 'x'.repeat(128)];
  let s;
  before(async () => { s = await connect(variants['stdio, modern'], ['--files', tempDir()]); });
  after(() => s.close());
  after(() => assert.ok(!fs.existsSync(marker), 'a word was a command'));

  /** A refusal, whether by the tool or by the protocol. */
  const answer = (call) => call.catch((e) => ({ isError: true, content: [{ type: 'text', text: `${e.code}.` }] }));

  test('ids', async () => {
    const real = await s.sandbox();
    for (const container_id of [...words, ` ${real}`, `${real} `, real.toUpperCase(), `${real}\u0000`, real.slice(0, -1), '', 'x'.repeat(129)])
      for (const r of [await answer(s.run(container_id, '1')), await answer(s.exec(container_id, 'true')), await answer(s.call('sandbox_stop', { container_id }))])
        assert.ok(r.isError && r.content.length === 1 && r.structuredContent === undefined, JSON.stringify([container_id, r]));
    await until(() => inside(s.pid).length === 0, 'something runs');
    printed(await s.run(real, 'console.log("untouched")'), 'untouched\n');
  });

  test('commands are for the sandbox\'s shell, and only for it', async () => {
    const container_id = await s.sandbox();
    for (const word of words.filter((w) => !w.includes('\u0000'))) await answer(s.exec(container_id, word));
    for (const commands of [[], [''], ['true', ''], ['a\u0000b'], [1], [null], 'ls', [['ls']], Array(101).fill('true')])
      assert.ok((await answer(s.call('sandbox_exec', { container_id, commands }))).isError, JSON.stringify(commands).slice(0, 50));
    assert.equal(text(await s.exec(container_id, `printf '%s' "a b"; echo '$HOME' \\$x "q\\"q"`)), 'a b$HOME $x q"q\n');
  });

  test('code is code, whatever is in it', async () => {
    const code = `console.log(${JSON.stringify(words.join(' '))})`;
    printed(await s.once(code), `${words.join(' ').replaceAll('\u0000', '\u2400')}\n`);
    printed(await s.once(''), '');
    printed(await s.once(`console.log(${JSON.stringify('x'.repeat(1000))}.length) // ${'y'.repeat(4 << 20)}`.slice(0, 4 << 20)), '1000\n');
    assert.ok((await answer(s.once(' '.repeat((4 << 20) + 1)))).isError);
  });

  test('arguments of another kind', async () => {
    const container_id = await s.sandbox();
    const bad = { port: [0, 65536, -1, 1.5, '80', true], image: [1, '', {}], network: ['host', 'allow', '', '$(id)'] };
    for (const [name, values] of Object.entries(bad))
      for (const value of values) assert.ok((await answer(s.call('sandbox_initialize', { [name]: value }))).isError, `${name} ${JSON.stringify(value)}`);
    for (const more of [{ listenOnPort: 0 }, { listenOnPort: 70000 }, { listenOnPort: '80' }, { timeoutMs: 0 }, { timeoutMs: -1 }, { timeoutMs: 1e12 }, { code: 1 }, { code: null }, { dependencies: {} }, { dependencies: 'ms' }])
      assert.ok((await answer(s.run(container_id, 'console.log("ran")', more))).isError, JSON.stringify(more));
    assert.ok((await answer(s.call('run_js', { container_id }))).isError);
    await until(() => inside(s.pid).length === 0, 'something runs');
  });
});
