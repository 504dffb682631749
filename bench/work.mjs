// work.mjs: what everybody is asked to do, and the rows that it makes.
//
// `nodes` is what the predecessor (a Node server that runs the docker CLI for each step) needed for the same, in units of one bare
// `node -e 0` on its machine; so a ratio compares our units with its, and the machine does not count. `bar` is the least that the ratio
// should be. The predecessor knew no layers: what it needed with express is the measure for a new layer, too.
export const scripts = {
  hello: { code: `console.log('hello');\n`, prints: 'hello\n', dependencies: [] },
  lodash: { code: `import _ from 'lodash';\nconsole.log(_.chunk([1, 2, 3, 4], 2).length);\n`, prints: '2\n', dependencies: [{ name: 'lodash', version: '^4' }] },
  express: { code: `import express from 'express';\nconsole.log(typeof express());\n`, prints: 'function\n', dependencies: [{ name: 'express', version: '^4' }] },
};

export const echo = { command: 'echo hello', prints: 'hello\n' };

export const rows = [
  { key: 'start', name: 'start to initialize answered', nodes: 25.1, bar: 60 },
  { key: 'initialize', name: 'sandbox_initialize', nodes: 5.4, bar: 100 },
  { key: 'run_js', name: 'run_js hello', nodes: 8.1, bar: 40 },
  { key: 'exec', name: 'sandbox_exec echo', nodes: 3.6, bar: 50 },
  { key: 'stop', name: 'sandbox_stop', nodes: 4.1, bar: 50 },
  { key: 'hello', name: 'run_js_ephemeral hello', nodes: 13.6, bar: 50 },
  { key: 'lodash', name: '… with lodash, known layer', nodes: 68.5, bar: 150 },
  { key: 'express', name: '… with express, known layer', nodes: 190, bar: 80 },
  { key: 'layer', name: '… with express, new layer', nodes: 190, bar: 20, peers: { docker: 'express' } },
  { key: 'cold', name: 'jerboa run hello.js, no server', peers: { bwrap: 'hello', srt: 'hello' } },
];

/** The unit. */
export const unit = { key: 'unit', name: 'node -e 0' };

/** What is not a time of a call. */
export const bars = {
  cold: { name: 'jerboa run hello.js: more than bare node', unit: 'ms', most: 8 },
  burst: { name: '100 run_js_ephemeral of one client', unit: '/s', least: 30 },
  errors: { name: '8 clients at once: errors', unit: '', most: 0 },
  resident: { name: 'server: resident, idle, without children', unit: 'MiB', most: 12 },
  gated: { name: 'a ready sandbox with its Node held, of ten: PSS', unit: 'MiB', most: 14 },
  ungated: { name: 'a ready sandbox without a Node, of ten: PSS', unit: 'MiB', most: 1 },
  live: { name: 'live sandboxes of one server', unit: '', least: 200 },
};

/** The same of the docker engine, beside the commands of the same daemon. */
export const dockerBars = {
  ready: { name: 'on docker: sandbox_initialize, one is ready', unit: 'ms', most: 3 },
  exec: { name: 'on docker: docker exec echo ÷ sandbox_exec', unit: 'x', least: 10 },
  run: { name: 'on docker: docker exec node ÷ run_js', unit: 'x', least: 10 },
  left: { name: 'on docker: the longest that a killed server left a container, of 20', unit: 's', most: 5 },
};
