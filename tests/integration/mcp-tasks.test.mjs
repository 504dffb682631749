// Tasks as the suite does not look at them: pushed changes, answers in parts, cancelling, and what
// becomes of a task when its client has left.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { call, limit, metadata, post, request, startHttp, startStdio, tasksExtension } from './mcp.mjs';

const capabilities = { ...tasksExtension, elicitation: {} };
const accept = (content) => ({ action: 'accept', content });

/** A server, and shorthand for its tools and tasks. */
async function start(t) {
  const { url } = await startHttp(t);
  return {
    url,
    create: async (name, args) => (await call(url, 'tools/call', { name, arguments: args }, { capabilities })).result,
    get: async (taskId) => (await call(url, 'tasks/get', { taskId }, { capabilities })).result,
    update: (taskId, inputResponses) => call(url, 'tasks/update', { taskId, inputResponses }, { capabilities }),
    cancel: (taskId) => call(url, 'tasks/cancel', { taskId }, { capabilities }),
  };
}

test('changes are pushed to who listens', limit, async (t) => {
  const { url, create, update } = await start(t);
  const { taskId } = await create('confirm_delete', { filename: 'a' });
  const { taskId: other } = await create('slow_compute', { seconds: 50 });
  const listen = request('me', 'subscriptions/listen', { notifications: { taskIds: [taskId, 'nothing'] } }, capabilities);
  const controller = new AbortController();
  t.after(() => controller.abort());
  const stream = await post(url, listen.body, listen.headers, { signal: controller.signal });
  const seen = [];
  const done = (async () => {
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of stream.body) {
      text += decoder.decode(chunk, { stream: true });
      for (let end; (end = text.indexOf('\n\n')) >= 0; text = text.slice(end + 2)) {
        const data = text.slice(0, end).match(/^data: (.*)$/m);
        if (data) seen.push(JSON.parse(data[1]));
        if (seen.at(-1)?.params?.status === 'completed') return;
      }
    }
  })();
  while (seen.length === 0) await sleep(5);
  assert.equal((await update(taskId, { confirm: accept({ confirm: true }) })).result.resultType, 'complete');
  await done;
  assert.deepEqual(seen[0].params.notifications, { taskIds: [taskId] });
  const pushed = seen.slice(1);
  assert.deepEqual(pushed.map((m) => [m.method, m.params.taskId, m.params.status]),
    [['notifications/tasks', taskId, 'working'], ['notifications/tasks', taskId, 'completed']]);
  for (const m of seen) assert.equal(m.params._meta['io.modelcontextprotocol/subscriptionId'], 'me');
  assert.equal(pushed[1].params.result.content[0].text, 'Deleted a');
  assert.notEqual(other, taskId);
});

test('answers come in parts; unknown and late ones are ignored, malformed ones refused', limit, async (t) => {
  const { create, get, update } = await start(t);
  const { taskId } = await create('multi_input');
  assert.deepEqual(Object.keys((await get(taskId)).inputRequests), ['first', 'second']);
  for (const bad of [undefined, null, [], { first: 7 }])
    assert.equal((await update(taskId, bad)).error.code, -32602, JSON.stringify(bad));
  assert.equal((await update(taskId, { third: accept({}) })).status, 200);
  await update(taskId, { second: accept({ value: 'b' }) });
  assert.deepEqual(Object.keys((await get(taskId)).inputRequests), ['first']);
  await update(taskId, { second: accept({ value: 'c' }), first: accept({ value: 'a' }) });
  const ended = await get(taskId);
  assert.equal(ended.status, 'completed');
  assert.ok(!('inputRequests' in ended));
  assert.equal((await update(taskId, { first: accept({ value: 'd' }) })).status, 200);
  assert.deepEqual(await get(taskId), ended);
});

test('cancelling, while it runs and while it asks', limit, async (t) => {
  const { create, get, cancel, update } = await start(t);
  for (const [name, args] of [['slow_compute', { seconds: 1 }], ['confirm_delete', {}], ['failing_job', {}]]) {
    const { taskId } = await create(name, args);
    assert.equal((await cancel(taskId)).result.resultType, 'complete');
    const ended = await get(taskId);
    assert.equal(ended.status, 'cancelled', name);
    assert.equal((await cancel(taskId)).status, 200);
    await update(taskId, { confirm: accept({ confirm: true }) });
    await sleep(1200);
    assert.deepEqual(await get(taskId), ended);
  }
});

test('a task of stdio lives as long as its process', limit, async (t) => {
  const server = startStdio(t);
  const send = (id, method, params) => server.request({ id, method, params: { ...params, _meta: metadata(capabilities) } });
  const { taskId } = (await send(1, 'tools/call', { name: 'slow_compute', arguments: { seconds: 1 } })).result;
  server.send({ method: 'notifications/cancelled', params: { requestId: 1, _meta: metadata() } }); // its request, not the task
  let task;
  do task = (await send(2, 'tasks/get', { taskId })).result;
  while (task.status === 'working');
  assert.equal(task.result.content[0].text, 'slow_compute: done after 1 s');
  await send(3, 'tools/call', { name: 'slow_compute', arguments: { seconds: 50 } });
});
