// What agents read before their first call: every tool's definition whole, short, and true for this server.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { start } from './jerboa.mjs';
import { connect, connectFor, limit, variants } from './tools.mjs';

const size = (value) => JSON.stringify(value).length;
const all = (tools) => tools.map((tool) => `${tool.description}\n${JSON.stringify(tool.inputSchema)}`).join('\n');

/** A schema types what it names and requires all of it, down to the leaves. */
function assertWhole(schema, where) {
  assert.ok(schema.type, `${where} has no type`);
  if ([schema.type].flat().includes('object')) {
    assert.deepEqual([...schema.required].sort(), Object.keys(schema.properties).sort(), where);
    for (const [name, inner] of Object.entries(schema.properties)) assertWhole(inner, `${where}.${name}`);
  }
  if (schema.type === 'array') assertWhole(schema.items, `${where}[]`);
}

describe('definitions', limit, () => {
  let s;
  before(async () => { s = await connect(variants['stdio, modern']); });
  after(() => s.close());

  test('every tool has all that a definition can have', () => {
    for (const tool of s.tools) {
      assert.match(tool.description, /^[A-Z][a-z]+ .*Returns .*\.$/s, tool.name); // a verb first, and what comes back
      assert.match(tool.description, /run_js_ephemeral|sandbox_initialize/, `${tool.name} does not say which other tool to use`);
      assert.match(tool.description, /error|isError/i, `${tool.name} does not say what an error looks like`);
      assert.ok(tool.title && tool.annotations.title === tool.title, tool.name);
      for (const hint of ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'])
        assert.equal(typeof tool.annotations[hint], 'boolean', `${tool.name}: ${hint}`);
    }
  });

  test('every parameter is described, with its default when it may be left out', () => {
    for (const { name, inputSchema } of s.tools) {
      assert.equal(inputSchema.type, 'object');
      assert.equal(inputSchema.additionalProperties, false, name);
      for (const [parameter, schema] of Object.entries(inputSchema.properties)) {
        const where = `${name}.${parameter}`;
        assert.ok(schema.type, where);
        assert.match(schema.description ?? '', /^[A-Za-z].{19,}[.)]$/s, where);
        if (schema.type === 'integer') assert.ok(schema.minimum >= 1 && schema.maximum > schema.minimum, where);
        if (schema.type === 'array') assert.ok(schema.items?.type && schema.maxItems > 0, where);
        if (schema.type === 'object') {
          assert.equal(schema.additionalProperties, false, where);
          for (const [member, inner] of Object.entries(schema.properties)) assert.ok(inner.type, `${where}.${member}`);
        }
        if (!inputSchema.required?.includes(parameter)) assert.match(schema.description, /default|\(\d+\)/i, where);
      }
    }
  });

  test('what can be searched by', () => {
    const { properties } = s.tools.find((tool) => tool.name === 'search_npm_packages').inputSchema.properties.qualifiers;
    assert.deepEqual(Object.entries(properties).map(([name, { type }]) => `${name} ${type}`), ['author string', 'maintainer string', 'scope string', 'keywords string', 'not string',
      'is string', 'boostExact boolean']);
  });

  test('every result is typed', () => {
    for (const tool of s.tools) assertWhole(tool.outputSchema, tool.name);
  });

  test('short enough: seven tools must fit', async () => {
    const missing = 7 - s.tools.length;
    const definitions = s.tools.map(({ name, description, inputSchema }) => name.length + description.length + size(inputSchema)).reduce((a, b) => a + b);
    assert.ok(definitions <= 10_000 - 700 * missing, `${definitions}`);
    const asked = [{ id: 1, method: 'initialize', params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'x', version: '1' } } },
      { method: 'notifications/initialized' }, { id: 2, method: 'tools/list' }];
    const { stdout } = await start(['serve'], { input: asked.map((m) => `${JSON.stringify({ jsonrpc: '2.0', ...m })}\n`).join('') }).ended;
    const { id, result } = JSON.parse(stdout.trimEnd().split('\n').at(-1));
    assert.equal(id, 2);
    assert.equal(result.tools.length, s.tools.length);
    const list = size(result);
    assert.ok(list <= 14_000 - 1_200 * missing, `${list}`);
  });

  test('the same for every client', async (t) => {
    for (const variant of ['stdio, legacy', 'HTTP, modern']) {
      const other = await connectFor(t, variants[variant]);
      assert.deepEqual(other.tools, s.tools, variant);
    }
  });
});

describe('what they say is what this server does', limit, () => {
  const told = async (s) => all(s.tools) + JSON.stringify(await s.client.getPrompt({ name: 'run-node-js-script', arguments: { prompt: 'x' } }));

  test('limits of the operator', async (t) => {
    const s = await connectFor(t, variants['stdio, modern'], ['--memory', '300m', '--cpus', '0.5', '--pids', '77', '--disk', '40m', '--timeout', '7s', '--age', '90m',
      '--idle', '5m', '--sandboxes', '9', '--network', 'npm', '--image', 'node:22']);
    const text = await told(s);
    for (const words of ['300 MiB memory', '0.500 CPU', '77 processes', '40 MiB disk', 'Limits: 7 s', '(7000)', 'at an age of 90 min', 'when unused for 5 min', 'at most 9 exist', 'npm registries only', 'node:22 (default)'])
      assert.ok(text.includes(words), `${words} is not told`);
    for (const words of ['512 MiB', 'Limits: 30 s', '(30000)', '64 exist', 'public internet, ', 'lts-slim (default)'])
      assert.ok(!text.includes(words), `${words} is told, and not true`);
    assert.doesNotMatch(text, /\{[a-zA-Z]+\}/);
  });

  test('defaults', async (t) => {
    const text = await told(await connectFor(t, variants['HTTP, legacy']));
    for (const words of ['512 MiB memory', '1 CPU', '512 processes', '256 MiB disk', 'Limits: 30 s', '(30000)', 'at an age of 1 h', 'at most 64 exist', 'never the host\'s or private addresses'])
      assert.ok(text.includes(words), `${words} is not told`);
    assert.doesNotMatch(text, /\{[a-zA-Z]+\}/);
  });

  test('what has no end', async (t) => {
    const text = await told(await connectFor(t, variants['stdio, legacy'], ['--timeout', '0', '--age', '0', '--network', 'host']));
    for (const words of ['Limits: no limit', '(no limit)', 'with your session;', 'network: the host\'s own.'])
      assert.ok(text.includes(words), `${words} is not told`);
  });
});
