// Clients that nobody here wrote, against the conformance server: the official TypeScript SDK 1.x and 2.x,
// on stdio and HTTP, in both eras, and the Inspector's command line.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { assertNotWaitedFor, call, legacy, limit, load, modern, packagesDirectory, patiently, program, startHttp } from './mcp.mjs';

const info = { name: 'jerboa-tests', version: '1.0.0' };
const capabilities = { elicitation: {}, sampling: {}, roots: {} };
const answers = {
  'elicitation/create': () => ({ action: 'accept', content: { username: 'jerboa', email: 'j@example.org', name: 'Ada' } }),
  'sampling/createMessage': () => ({ role: 'assistant', model: 'none', content: { type: 'text', text: 'Paris' } }),
  'roots/list': () => ({ roots: [{ uri: 'file:///work', name: 'work' }] }),
};

const one = await load('@modelcontextprotocol/sdk/client/index.js');
const oneStdio = await load('@modelcontextprotocol/sdk/client/stdio.js');
const oneHttp = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
const oneTypes = await load('@modelcontextprotocol/sdk/types.js');
const two = await load('@modelcontextprotocol/client');
const twoStdio = await load('@modelcontextprotocol/client/stdio');

/** SDK 1.x names what it handles by schemas. */
function makeOne() {
  const client = new one.Client(info, { capabilities });
  client.setRequestHandler(oneTypes.ElicitRequestSchema, answers['elicitation/create']);
  client.setRequestHandler(oneTypes.CreateMessageRequestSchema, answers['sampling/createMessage']);
  client.setRequestHandler(oneTypes.ListRootsRequestSchema, answers['roots/list']);
  const notifications = {
    'notifications/resources/updated': oneTypes.ResourceUpdatedNotificationSchema,
    'notifications/tools/list_changed': oneTypes.ToolListChangedNotificationSchema,
    'notifications/message': oneTypes.LoggingMessageNotificationSchema,
  };
  return {
    client,
    call: (params, options) => client.callTool(params, undefined, options),
    on: (method, handler) => client.setNotificationHandler(notifications[method], handler),
  };
}

/** SDK 2.x names them by method. */
function makeTwo(mode) {
  const client = new two.Client(info, { capabilities, versionNegotiation: { mode } });
  for (const [method, answer] of Object.entries(answers)) client.setRequestHandler(method, answer);
  return {
    client,
    call: (params, options) => client.callTool(params, options),
    on: (method, handler) => client.setNotificationHandler(method, handler),
  };
}

const stdioOptions = { command: program, args: ['--stdio'] };
const variants = {
  'SDK 1.x, stdio': { make: makeOne, transport: () => new oneStdio.StdioClientTransport(stdioOptions), version: legacy },
  'SDK 1.x, HTTP': { make: makeOne, http: oneHttp.StreamableHTTPClientTransport, version: legacy },
  'SDK 2.x, stdio, legacy': { make: () => makeTwo('legacy'), transport: () => new twoStdio.StdioClientTransport(stdioOptions), version: legacy },
  'SDK 2.x, stdio, modern': { make: () => makeTwo({ pin: modern }), transport: () => new twoStdio.StdioClientTransport(stdioOptions), version: modern },
  'SDK 2.x, HTTP, legacy': { make: () => makeTwo('legacy'), http: two.StreamableHTTPClientTransport, version: legacy },
  'SDK 2.x, HTTP, which finds the modern era': { make: () => makeTwo('auto'), http: two.StreamableHTTPClientTransport, version: modern },
};

/** A connected client that goes with the test. */
async function connect(t, variant, ...options) {
  const made = variant.make();
  const errors = [];
  made.client.onerror = (error) => errors.push(error);
  const server = variant.http ? await startHttp(t, ...options) : null;
  let requests = 0;
  const counting = (...args) => (requests++, fetch(...args));
  const transport = variant.http ? new variant.http(new URL(server.url), { fetch: counting }) : variant.transport();
  await made.client.connect(transport);
  t.after(() => made.client.close());
  return { ...made, server, errors, requests: () => requests };
}

const text = (result) => result.content[0].text;

for (const [name, variant] of Object.entries(variants)) {
  describe(name, limit, () => {
    test('lists', async (t) => {
      const { client, errors } = await connect(t, variant);
      const { tools } = await client.listTools();
      assert.equal(tools[0].name, 'test_simple_text');
      assert.equal(tools[0].annotations.readOnlyHint, true);
      assert.deepEqual((await client.listResources()).resources.map((r) => r.uri),
        ['test://static-text', 'test://static-binary', 'test://watched-resource',
          ...[123, 124, 200].map((id) => `test://template/${id}/data`)]); // those are made when asked for
      assert.deepEqual((await client.listResourceTemplates()).resourceTemplates.map((r) => r.uriTemplate),
        ['test://template/{id}/data']);
      assert.equal((await client.listPrompts()).prompts[0].name, 'test_simple_prompt');
      assert.equal(client.getServerVersion().name, 'conformance-server');
      assert.match(client.getInstructions(), /server for tests/);
      assert.deepEqual(errors, []);
    });

    test('calls', async (t) => {
      const { call, client, errors } = await connect(t, variant);
      await client.listTools(); // from then on results are held against their output schemas
      assert.match(text(await call({ name: 'test_simple_text' })), /simple text/);
      assert.equal((await call({ name: 'test_image_content' })).content[0].mimeType, 'image/png');
      assert.equal((await call({ name: 'test_audio_content' })).content[0].mimeType, 'audio/wav');
      assert.deepEqual((await call({ name: 'test_resource_link' })).content[0],
        { type: 'resource_link', uri: 'test://static-text', name: 'text' });
      assert.deepEqual((await call({ name: 'test_structured_content' })).structuredContent, { answer: 42, unit: 'none' });
      assert.equal(text(await call({ name: 'greet', arguments: { name: 'Zoë' } })), 'Hello, Zoë!');
      assert.deepEqual((await call({ name: 'test_multiple_content_types' })).content.map((c) => c.type), ['text', 'image', 'resource']);
      assert.deepEqual(errors, []);
    });

    test('errors', async (t) => {
      const { call, client } = await connect(t, variant);
      assert.equal((await call({ name: 'test_error_handling' })).isError, true);
      const bad = await call({ name: 'slow_compute', arguments: { seconds: 'many' } });
      assert.equal(bad.isError, true);
      assert.equal(text(bad), 'arguments.seconds must be a whole number');
      await assert.rejects(call({ name: 'no_such_tool' }), { code: -32602 });
      await assert.rejects(client.readResource({ uri: 'test://nowhere' }), { code: variant.make === makeOne ? -32002 : -32602 });
      await assert.rejects(client.getPrompt({ name: 'test_prompt_with_arguments', arguments: { arg1: 'a' } }), { code: -32602 });
    });

    test('progress', async (t) => {
      const { call } = await connect(t, variant);
      const seen = [];
      await call({ name: 'test_tool_with_progress' }, { onprogress: ({ progress, total }) => seen.push([progress, total]) });
      assert.deepEqual(seen, [[0, 100], [50, 100], [100, 100]]);
    });

    test('cancels', async (t) => {
      await assertNotWaitedFor(async () => {
        const { call, server, requests } = await connect(t, variant, ...patiently);
        const controller = new AbortController();
        const slow = call({ name: 'slow_compute', arguments: { seconds: 50 } }, { signal: controller.signal });
        setTimeout(() => controller.abort(), 100);
        await assert.rejects(slow);
        assert.match(text(await call({ name: 'test_simple_text' })), /simple text/);
        if (!server) return 0;
        const asked = requests(); // a client must not come back again and again for what is over
        await sleep(2500);
        assert.ok(requests() - asked <= 2, `${requests() - asked} more requests after a cancel`);
        const began = Date.now();
        await server.stop();
        return Date.now() - began;
      });
    });

    test('resources, prompts, completion', async (t) => {
      const { client, errors } = await connect(t, variant);
      assert.match((await client.readResource({ uri: 'test://static-text' })).contents[0].text, /static text/);
      assert.ok((await client.readResource({ uri: 'test://static-binary' })).contents[0].blob);
      assert.match((await client.readResource({ uri: 'test://template/7/data' })).contents[0].text, /"id":"7"/);
      const prompt = await client.getPrompt({ name: 'test_prompt_with_arguments', arguments: { arg1: 'x', arg2: 'y' } });
      assert.match(prompt.messages[0].content.text, /arg1='x', arg2='y'/);
      const complete = async (ref, argument) => (await client.complete({ ref, argument })).completion.values;
      assert.deepEqual(await complete({ type: 'ref/prompt', name: 'test_prompt_with_arguments' }, { name: 'arg1', value: 'par' }),
        ['paris', 'park', 'party']);
      assert.deepEqual(await complete({ type: 'ref/resource', uri: 'test://template/{id}/data' }, { name: 'id', value: '12' }),
        ['123', '124']);
      assert.deepEqual(errors, []);
    });

    test('is asked back', async (t) => {
      const { call, client, errors } = await connect(t, variant);
      assert.match(text(await call({ name: 'test_elicitation', arguments: { message: 'Who?' } })), /"username":"jerboa"/);
      assert.match(text(await call({ name: 'test_sampling', arguments: { prompt: 'Where?' } })), /Paris/);
      if (variant.version === modern) {
        assert.equal(text(await call({ name: 'test_input_required_result_multi_round' })), 'Both steps are done');
        assert.equal(text(await call({ name: 'test_input_required_result_multiple_inputs' })), 'All inputs were received');
        assert.equal(text(await call({ name: 'test_input_required_result_request_state' })), 'state-ok');
        assert.equal((await client.getPrompt({ name: 'test_input_required_result_prompt' })).messages.length, 1);
      }
      assert.deepEqual(errors, []);
    });

    test('hears of changes', async (t) => {
      const { call, client, on, errors } = await connect(t, variant);
      const updated = new Promise((resolve) => on('notifications/resources/updated', resolve));
      const changed = new Promise((resolve) => on('notifications/tools/list_changed', resolve));
      if (variant.version === modern)
        await client.listen({ toolsListChanged: true, resourceSubscriptions: ['test://watched-resource'] });
      else
        await client.subscribeResource({ uri: 'test://watched-resource' });
      await call({ name: 'test_trigger_resource_change' });
      await call({ name: 'test_trigger_tool_change' });
      assert.equal((await updated).params.uri, 'test://watched-resource');
      await changed;
      assert.deepEqual(errors, []);
    });

    test('ends by its deadline, and its work too', async (t) => {
      const { call, client, on } = await connect(t, variant);
      const updated = new Promise((resolve) => on('notifications/resources/updated', resolve));
      if (variant.version === modern) await client.listen({ resourceSubscriptions: ['test://watched-resource'] });
      else await client.subscribeResource({ uri: 'test://watched-resource' });
      const result = await call({ name: 'test_deadline' });
      assert.deepEqual([result.isError, text(result)], [true, 'timed out']);
      await updated;
    });

    if (variant.version === legacy)
      test('logs', async (t) => {
        const { call, client, on } = await connect(t, variant);
        const seen = [];
        on('notifications/message', ({ params }) => seen.push(params.data));
        await call({ name: 'test_tool_with_logging' });
        assert.equal(seen.length, 3);
        await client.setLoggingLevel('warning');
        await call({ name: 'test_tool_with_logging' });
        assert.equal(seen.length, 3);
      });

    test('many calls at once', async (t) => {
      const { call } = await connect(t, variant);
      const results = await Promise.all(Array.from({ length: 50 }, (_, i) =>
        call(i % 2 ? { name: 'test_tool_with_logging' } : { name: 'greet', arguments: { name: `${i}` } })));
      for (const [i, result] of results.entries())
        assert.equal(text(result), i % 2 ? 'Tool with logging executed successfully' : `Hello, ${i}!`);
    });
  });
}

test('what may be kept, and for how long', limit, async (t) => {
  const { url } = await startHttp(t);
  const read = async (uri) => (await call(url, 'resources/read', { uri })).result;
  assert.partialDeepStrictEqual(await read('test://static-text'), { ttlMs: 60_000, cacheScope: 'public' });
  assert.partialDeepStrictEqual(await read('test://watched-resource'), { ttlMs: 0, cacheScope: 'private' });
});

describe('Inspector', limit, () => {
  const launcher = () => path.join(packagesDirectory(), 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js');

  async function inspect(t, ...args) {
    const home = await mkdtemp(path.join(tmpdir(), 'inspector-'));
    t.after(() => rm(home, { recursive: true, force: true }));
    const options = { env: { ...process.env, HOME: home }, timeout: 120_000 };
    return new Promise((resolve, reject) => {
      execFile(process.execPath, [launcher(), '--cli', ...args, '--format', 'json', '--quiet'], options,
        (error, stdout, stderr) => (error ? reject(new Error(`${error.message}\n${stderr}`)) : resolve(JSON.parse(stdout).result)));
    });
  }

  test('tasks', async (t) => {
    const { url } = await startHttp(t);
    const ask = (...args) => inspect(t, url, '--transport', 'http', '--protocol-era', 'modern', '--method', 'tools/call', '--tool-name', ...args);
    assert.equal(text(await ask('slow_compute', '--tool-arg', 'seconds=1')), 'slow_compute: done after 1 s');
    await assert.rejects(ask('failing_job'), /returned isError/); // which no client without tasks can call
    await assert.rejects(ask('protocol_error_job'), /broke down/);
  });

  for (const era of ['legacy', 'modern']) {
    test(`HTTP, ${era}`, async (t) => {
      const { url } = await startHttp(t);
      const ask = (...args) => inspect(t, url, '--transport', 'http', '--protocol-era', era, '--method', ...args);
      const { tools } = await ask('tools/list', '--strict');
      assert.equal(tools[0].name, 'test_simple_text');
      assert.equal(text(await ask('tools/call', '--tool-name', 'greet', '--tool-arg', 'name=Ada')), 'Hello, Ada!');
      assert.equal((await ask('resources/list')).resources.length, 6);
      assert.match((await ask('resources/read', '--uri', 'test://static-text')).contents[0].text, /static text/);
      assert.ok((await ask('prompts/list')).prompts.length >= 4);
      const prompt = await ask('prompts/get', '--prompt-name', 'test_prompt_with_arguments', '--prompt-args', 'arg1=x', 'arg2=y');
      assert.match(prompt.messages[0].content.text, /arg1='x'/);
    });

    test(`stdio, ${era}`, async (t) => {
      const ask = (...args) => inspect(t, program, '--stdio', '--protocol-era', era, '--method', ...args);
      assert.equal((await ask('tools/list')).tools[0].name, 'test_simple_text');
      assert.equal((await ask('tools/call', '--tool-name', 'test_tool_with_progress')).content.length, 1);
    });
  }
});

describe('schemas', limit, () => {
  for (const variant of ['SDK 2.x, stdio, legacy', 'SDK 2.x, stdio, modern'])
    test(`are JSON Schema 2020-12: ${variant}`, async (t) => {
      const { default: { default: Ajv = undefined, Ajv2020 = Ajv } } = await load('ajv/dist/2020.js');
      // The suite's own schema requires in one branch what another declares; ajv itself does not know its $anchor.
      const ajv = new Ajv2020({ strict: true, strictRequired: false, allErrors: true });
      for (const keyword of ['x-mcp-header', '$anchor']) ajv.addKeyword({ keyword, schemaType: 'string' });
      const { client, call } = await connect(t, variants[variant]);
      const { tools } = await client.listTools();
      assert.ok(tools.length > 15);
      for (const tool of tools) {
        assert.equal(tool.inputSchema.type, 'object');
        assert.ok(ajv.compile(tool.inputSchema), tool.name);
        if (tool.outputSchema) ajv.compile(tool.outputSchema);
      }
      const { outputSchema } = tools.find((tool) => tool.name === 'test_structured_content');
      const { structuredContent } = await call({ name: 'test_structured_content' });
      assert.equal(ajv.validate(outputSchema, structuredContent), true);
      const contact = ajv.compile(tools.find((tool) => tool.name === 'json_schema_2020_12_tool').inputSchema);
      assert.equal(contact({ contactMethod: 'phone', phone: '1' }), true);
      assert.equal(contact({ contactMethod: 'phone', email: 'a@b' }), false);
    });
});
