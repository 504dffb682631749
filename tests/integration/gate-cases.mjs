// Scripts that tell what they see of Node. Each is run by a Node that was held and by one that was not; both must say the same.
const raw = String.raw;

export const cases = {
  'one line': 'console.log("hello")',
  'nothing at all': '',

  // what the process is
  'arguments': 'console.log(process.argv, process.argv0, process.execArgv, process.execPath, process.title)',
  'environment': 'console.log(process.env, Object.keys(process.env))',
  'working directory': 'console.log(process.cwd(), process.env.PWD); process.chdir("/"); console.log(process.cwd())',
  'ids and masks': 'console.log(process.getuid(), process.getgroups(), process.umask(), process.ppid === 1)',
  'more memory than there is': 'console.log("before"); const all = []; for (;;) all.push(Buffer.alloc(16 << 20, 1));',
  'limits of memory': raw`
    import v8 from 'node:v8';
    const { heap_size_limit, malloced_memory } = v8.getHeapStatistics();
    console.log(heap_size_limit, malloced_memory > 0, process.constrainedMemory(), process.config.variables.v8_enable_i18n_support);`,
  'processors': 'import os from "node:os"; console.log(os.availableParallelism(), os.getPriority())',
  'what proc says': raw`
    import fs from 'node:fs';
    const status = fs.readFileSync('/proc/self/status', 'utf8');
    console.log(status.match(/^(Name|Umask|Seccomp|NoNewPrivs|CapEff|SigBlk|SigIgn|SigCgt|SigPnd|Threads|Uid|Gid):.*$/mg));
    console.log(fs.readFileSync('/proc/self/limits', 'utf8'), fs.readFileSync('/proc/self/cgroup', 'utf8').replace(/\d+/g, 'N'), fs.readFileSync('/proc/self/oom_score_adj', 'utf8'));`,
  'open descriptors': raw`
    import fs from 'node:fs';
    console.log('now there are streams');
    const names = fs.readdirSync('/proc/self/fd').map((fd) => { try { return (fd < 3 ? fd : '') + fs.readlinkSync('/proc/self/fd/' + fd).replace(/\d+/g, 'N'); } catch { return ''; } });
    console.log(names.sort());`,
  'descriptors before the first line is written': raw`
    import fs from 'node:fs';
    const flags = [0, 1, 2].map((fd) => fs.readFileSync('/proc/self/fdinfo/' + fd, 'utf8').match(/flags:\s+(\d+)/)[1]);
    console.log(flags);`,
  'names of globals': 'console.log(Object.getOwnPropertyNames(globalThis), Reflect.ownKeys(process).filter((key) => typeof key === "string"))',
  'versions, features, configuration': 'console.log(process.versions, process.features, process.release, process.allowedNodeEnvironmentFlags.size, process.permission)',
  'a title': 'console.log(process.title); process.title = "mine"; console.log(process.title)',

  // modules
  'import.meta': 'console.log(import.meta, import.meta.main, import.meta.resolve("./x.js"), typeof require, typeof module)',
  'this, strictness, source url': 'console.log(this, (function () { return this; })(), new Error("here").stack)',
  'import of everything': raw`
    import fs, { readFileSync } from 'node:fs';
    import { createRequire, builtinModules, isBuiltin } from 'node:module';
    import * as path from 'path';
    console.log(fs.readFileSync === readFileSync, builtinModules.length, isBuiltin('node:sea'), path.default === createRequire(import.meta.url)('path'));`,
  'CommonJS': raw`
    import fs from 'node:fs';
    fs.writeFileSync('one.cjs', 'exports.seen = [require.main, module.id, module.parent && module.parent.id, module.paths, module.children.length, module.loaded, __filename, __dirname, Object.keys(require.cache), this === exports]; exports.again = require("./two.cjs");');
    fs.writeFileSync('two.cjs', 'module.exports = [module.id, module.parent.id, module.children, process.mainModule, typeof arguments[1]]; process.nextTick(() => console.log("tick")); Promise.resolve().then(() => console.log("promise"));');
    const { seen, again } = (await import('./one.cjs')).default;
    console.log(seen, again);`,
  'createRequire': raw`
    import { createRequire } from 'node:module';
    import Module from 'node:module';
    import fs from 'node:fs';
    const require = createRequire(import.meta.url);
    fs.writeFileSync('data.json', '{"a":1}');
    fs.writeFileSync('esm.mjs', 'export const b = 2; export default import.meta.main; export const url = import.meta.url;');
    console.log(require('./data.json'), require('./esm.mjs'), Object.keys(require.cache), Object.keys(Module._cache), Object.keys(Module._pathCache), Module.globalPaths, require.resolve.paths('x'), require.main);
    try { require('nothing-of-that-name'); } catch (error) { console.log(error.code, error.message); }`,
  'JSON, and a dynamic import': raw`
    import fs from 'node:fs';
    fs.writeFileSync('data.json', '{"a":1}');
    console.log((await import('./data.json', { with: { type: 'json' } })).default, await import('data:text/javascript,export default 1'));
    await import('./missing.js').catch((error) => console.log(error.code, error.message));
    await import('nothing-of-that-name').catch((error) => console.log(error.code, error.message));`,
  'a cycle, with top-level await': raw`
    import fs from 'node:fs';
    fs.writeFileSync('a.js', 'import { b } from "./b.js"; await null; export const a = "a" + b;');
    fs.writeFileSync('b.js', 'import * as a from "./a.js"; export const b = "b"; setTimeout(() => console.log(a), 1);');
    console.log(await import('./a.js'));`,
  'a package made by the script': raw`
    import fs from 'node:fs';
    fs.mkdirSync('node_modules/own-one', { recursive: true });
    fs.writeFileSync('node_modules/own-one/package.json', '{"type":"module","exports":{".":{"import":"./m.js","require":"./c.cjs"},"./sub":"./m.js"}}');
    fs.writeFileSync('node_modules/own-one/m.js', 'export default "import"');
    fs.writeFileSync('node_modules/own-one/c.cjs', 'module.exports = "require"');
    const { createRequire } = await import('node:module');
    console.log((await import('own-one')).default, (await import('own-one/sub')).default, createRequire(import.meta.url)('own-one'));
    await import('own-one/none').catch((error) => console.log(error.code));
    fs.rmSync('node_modules/own-one', { recursive: true });`,
  'hooks of modules': raw`
    import { register, registerHooks } from 'node:module';
    registerHooks({ resolve: (name, context, next) => name === 'made:up' ? { url: 'made:up', shortCircuit: true, format: 'module' } : next(name, context), load: (url, context, next) => url === 'made:up' ? { source: 'export default 7', format: 'module', shortCircuit: true } : next(url, context) });
    console.log((await import('made:up')).default);
    register('data:text/javascript,export async function resolve(n, c, next) { return n === "asked" ? { url: "data:text/javascript,export default 8", shortCircuit: true } : next(n, c); }');
    console.log((await import('asked')).default);`,
  'TypeScript that the script imports': raw`
    import fs from 'node:fs';
    fs.writeFileSync('typed.ts', 'export const x: number = 3;');
    console.log((await import('./typed.ts')).x);`,
  'an error in syntax': 'console.log("never");\nlet x = ;',
  'an error in syntax, imported': 'import fs from "node:fs"; fs.writeFileSync("bad.js", "export const = 1"); await import("./bad.js");',
  'a name that is not exported': 'import { nothing } from "node:fs"; console.log(nothing)',
  'require in a module': 'console.log("first"); require("fs");',
  'virtual machines': raw`
    import vm from 'node:vm';
    console.log(vm.runInNewContext('a + 1', { a: 1 }), vm.runInThisContext('typeof require'), Object.getOwnPropertyNames(vm.createContext()).length);
    vm.runInThisContext('throw new Error("inside")', 'named.js');`,

  // order of things
  'order': raw`
    import fs from 'node:fs';
    fs.stat('.', () => { setTimeout(() => console.log('timeout'), 0); setImmediate(() => console.log('immediate')); process.nextTick(() => console.log('tick of a callback')); });
    process.nextTick(() => console.log('tick'));
    queueMicrotask(() => console.log('microtask'));
    Promise.resolve().then(() => console.log('promise')).then(() => process.nextTick(() => console.log('tick of a promise')));
    await null;
    console.log('after await');
    process.nextTick(() => console.log('tick'));
    Promise.resolve().then(() => console.log('promise'));`,
  'time that passes': raw`
    import { setTimeout as sleep } from 'node:timers/promises';
    const from = [Date.now(), performance.now(), process.hrtime.bigint()];
    await sleep(60);
    const passed = [Date.now() - from[0], performance.now() - from[1], Number(process.hrtime.bigint() - from[2]) / 1e6];
    console.log(passed.map((ms) => ms > 50 && ms < 5000));
    console.log(Math.abs(performance.timeOrigin + performance.now() - Date.now()) < 1000, process.uptime() > 0);`,
  'marks and measures': raw`
    import { PerformanceObserver, performance, monitorEventLoopDelay } from 'node:perf_hooks';
    new PerformanceObserver((list) => console.log(list.getEntries().map((e) => [e.name, e.entryType]))).observe({ entryTypes: ['mark', 'measure'] });
    performance.mark('a'); performance.mark('b'); performance.measure('m', 'a', 'b');
    console.log(performance.getEntries().length, Object.keys(performance.nodeTiming.toJSON()), typeof monitorEventLoopDelay);`,
  'context across callbacks': raw`
    import { AsyncLocalStorage, AsyncResource, executionAsyncResource } from 'node:async_hooks';
    const store = new AsyncLocalStorage();
    console.log(store.getStore(), Object.keys(executionAsyncResource()));
    await store.run(1, async () => { await null; setTimeout(() => console.log(store.getStore()), 1); process.nextTick(() => console.log(store.getStore())); });
    new AsyncResource('mine').runInAsyncScope(() => console.log(store.getStore()));`,
  'hooks of asynchrony': raw`
    import fs from 'node:fs';
    import async_hooks from 'node:async_hooks';
    const seen = [];
    const known = new Map();
    const name = (id) => known.get(id) ?? 'unknown';
    async_hooks.createHook({ init(id, type) { known.set(id, type); seen.push('init ' + type); }, before(id) { seen.push('before ' + name(id)); }, destroy(id) { seen.push('destroy ' + name(id)); } }).enable();
    fs.stat('.', () => setImmediate(() => { fs.writeSync(1, seen.filter((line) => !/PROMISE|destroy unknown/.test(line)).join('\n')); }));`,
  'channels of diagnostics': raw`
    import channel from 'node:diagnostics_channel';
    channel.subscribe('mine', (message, name) => console.log(name, message));
    channel.channel('mine').publish({ a: 1 });
    console.log(channel.hasSubscribers('module.import.start'));
    channel.subscribe('module.import.start', (message) => console.log(message.url));
    await import('node:zlib');`,
  'what keeps it alive': raw`
    const before = [process.getActiveResourcesInfo(), process._getActiveHandles().length, process._getActiveRequests().length];
    console.log(before);
    setTimeout(() => {}, 1);
    console.log(process.getActiveResourcesInfo(), process._getActiveHandles().map((handle) => handle.constructor.name + handle.fd));`,
  'listeners': 'console.log(process.eventNames(), process.rawListeners("warning").length, process.listenerCount("exit"), process.getMaxListeners(), process.stdout.eventNames(), process.stderr.eventNames())',
  'what is collected': raw`
    const registry = new FinalizationRegistry((name) => console.log(name));
    console.log(new WeakRef(registry).deref() === registry, typeof gc, structuredClone(new Map([[1, { a: 1n }]])));`,

  // the end
  ...Object.fromEntries([0, 1, 3, 13, 127, 128, 255, 256, -1].map((code) => [`exit code ${code}`, `console.log("out"); process.exit(${code}); console.log("never")`])),
  'exit code by property': 'process.exitCode = 42; process.on("exit", (code) => { console.log(code, process.exitCode); process.exitCode = 43; });',
  'nothing left to wait for': 'console.log("waiting"); await new Promise(() => {}); console.log("never")',
  'events of the end': raw`
    let again = 2;
    process.on('beforeExit', (code) => { console.log('beforeExit', code); if (again-- > 0) setTimeout(() => console.log('more'), 1); });
    process.on('exit', (code) => { console.log('exit', code); setTimeout(() => console.log('never'), 0); Promise.resolve().then(() => console.log('never')); });`,
  'an exception': 'console.log("before");\nfunction deep() { throw new TypeError("thrown", { cause: new Error("why") }); }\ndeep();',
  'an exception later': 'setTimeout(function later() { throw new Error("later"); }, 1);',
  'an exception in a tick': 'process.nextTick(function tick() { throw new RangeError("tick"); });',
  'something that is no error': 'throw { code: 7, text: "an object" };',
  'null thrown': 'throw null',
  'a rejection': 'console.log("before"); Promise.reject(new Error("rejected")); setTimeout(() => console.log("never"), 1000);',
  'a rejection without an error': 'Promise.reject(7);',
  'a rejection at the top': 'await Promise.reject(new Error("awaited"));',
  'an exception that is caught': raw`
    process.on('uncaughtException', (error, origin) => console.log('caught', error.message, origin));
    process.on('uncaughtExceptionMonitor', (error, origin) => console.log('seen', error.message, origin));
    setTimeout(() => { throw new Error('one'); }, 1);
    setTimeout(() => { Promise.reject(new Error('two')); }, 5);
    setTimeout(() => console.log('end'), 10);`,
  'an exception at the top that is caught': 'process.on("uncaughtException", (error, origin) => console.log("caught", error.message, origin)); throw new Error("top");',
  'a rejection that is caught': raw`
    process.on('unhandledRejection', (reason, promise) => console.log('unhandled', reason.message, promise));
    process.on('rejectionHandled', (promise) => console.log('handled', promise));
    const p = Promise.reject(new Error('late'));
    setTimeout(() => p.catch(() => {}), 5); setTimeout(() => {}, 10);`,
  'an exception in the exit event': 'process.on("exit", () => { throw new Error("at exit"); });',
  'an error event': 'import { EventEmitter } from "node:events"; new EventEmitter().emit("error", new Error("event"));',
  'a stack that overflows': 'function down() { return down() + 1; } try { down(); } catch (error) { console.log(error.message); } down();',
  'stacks': raw`
    console.log(new Error('plain').stack);
    Error.stackTraceLimit = 50;
    (function a() { (function b() { console.log(new Error('fifty').stack); })(); })();
    await (async () => { await null; console.log(new Error('async').stack); })();
    Error.prepareStackTrace = (error, sites) => sites.map((site) => site.getFileName() + ':' + site.getLineNumber() + ':' + site.getColumnNumber() + ' ' + site.getFunctionName()).join('\n');
    console.log(new Error('prepared').stack);
    setTimeout(() => console.log(new Error('timer').stack), 1);`,
  'stacks of CommonJS': raw`
    import fs from 'node:fs';
    import { createRequire } from 'node:module';
    fs.writeFileSync('throws.cjs', 'Error.stackTraceLimit = 50;\nconsole.log(new Error("at").stack);\nthrow new Error("from a file");');
    createRequire(import.meta.url)('./throws.cjs');`,
  'a source map': raw`
    import fs from 'node:fs';
    process.setSourceMapsEnabled(true);
    fs.writeFileSync('mapped.js', 'export function f() { throw new Error("mapped"); }\n//# sourceMappingURL=data:application/json;base64,' + Buffer.from(JSON.stringify({ version: 3, sources: ['original.ts'], names: [], mappings: 'AAEA' })).toString('base64'));
    (await import('./mapped.js')).f();`,
  'abort': 'import { spawnSync } from "node:child_process"; console.log(spawnSync(process.execPath, ["-e", "process.abort()"]).signal); process.exit(9)',

  // signals
  ...Object.fromEntries(['SIGTERM', 'SIGKILL', 'SIGINT', 'SIGHUP', 'SIGABRT', 'SIGSEGV', 'SIGUSR2'].map((name) => [`${name} to itself`, `console.log("out"); setTimeout(() => { process.kill(process.pid, "${name}"); setTimeout(() => console.log("never"), 10_000); }, 20);`])),
  'signals that are handled': raw`
    setInterval(() => {}, 1000);
    for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR2', 'SIGCHLD', 'SIGWINCH']) process.on(name, (got, number) => console.log(got, number));
    for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGUSR2', 'SIGWINCH']) { const handled = new Promise((resolve) => process.once(name, resolve)); process.kill(process.pid, name); await handled; }
    process.exit(5);`,
  'SIGPIPE': raw`
    import net from 'node:net';
    import { spawn } from 'node:child_process';
    const child = spawn('true'); child.stdin.on('error', (error) => console.log(error.code));
    child.on('close', () => child.stdin.write('x'.repeat(1e6), () => console.log('written')));`,

  // standard streams
  'stdin as a stream': raw`
    console.log(process.stdin.constructor.name, process.stdin.isTTY, process.stdin.fd, process.stdin.readable);
    process.stdin.on('end', () => console.log('end')).on('close', () => console.log('close')).on('data', (data) => console.log(data.length)).resume();`,
  'stdin, all at once': 'import fs from "node:fs"; console.log(fs.readFileSync(0).length, fs.readFileSync("/dev/stdin").length, fs.readlinkSync("/proc/self/fd/0"), fs.fstatSync(0).isCharacterDevice())',
  'stdin by lines': raw`
    import readline from 'node:readline/promises';
    const lines = readline.createInterface({ input: process.stdin, output: process.stdout });
    lines.on('close', () => console.log('closed'));
    for await (const line of lines) console.log(line);
    console.log('over');`,
  'stdin for await': 'for await (const chunk of process.stdin) console.log(chunk); console.log("over")',
  'what stdout is': 'for (const s of [process.stdout, process.stderr]) console.log(s.constructor.name, s._type, s.isTTY, s.fd, s.writableHighWaterMark, s.getColorDepth, s._handle?.constructor.name, s.destroyed, s.bytesWritten, s.bytesRead, s.readable, s.timeout)',
  'much output': 'process.stdout.write("x".repeat(3e5) + "\\n"); console.error("y".repeat(1e5));',
  'much output, then the end': 'process.stdout.write("x".repeat(60_000)); process.exit(3)',
  'written by descriptor': raw`
    import fs from 'node:fs';
    for (let i = 0; i < 40; i++) fs.writeSync(1, String(i % 10).repeat(65536)); // more than a pipe holds: it must wait
    fs.writeFileSync('/dev/stderr', 'by its name\n');`,
  'console': raw`
    console.table([{ a: 1, b: 2 }]); console.dir({ a: { b: { c: { d: 1 } } } }, { depth: 0 }); console.group('g'); console.info('in'); console.groupEnd();
    console.count(); console.assert(false, 'no'); console.warn('%s is %d and %o', 'x', 1, [1]); console.trace('here'); console.debug(Symbol('s'), 1n, -0, [,1], new Map([[1, 2]]));
    console.log(Object.keys(console), console.log.name, util.inspect(console).length);
    import util from 'node:util';`,
  'another stdout': 'import { Console } from "node:console"; new Console(process.stderr).log("there"); process.stdout.end("last\\n");',
  'stdout that is closed': 'import fs from "node:fs"; fs.closeSync(1); fs.writeSync(2, "still\\n"); process.exitCode = 4;',

  // warnings
  'warnings': raw`
    process.on('warning', (w) => console.log(w.name, w.message, w.code));
    process.emitWarning('careful', { code: 'MINE', detail: 'more' }); process.emitWarning('old', 'DeprecationWarning', 'DEP0'); process.emitWarning('new', 'ExperimentalWarning');
    Buffer(1); new (await import('node:events')).EventEmitter().setMaxListeners(0);`,
  'too many listeners': 'for (let i = 0; i < 12; i++) process.on("x", () => {});',
  'process.binding': 'process.binding("fs"); console.log("bound")',
  'experimental parts': 'const { DatabaseSync } = await import("node:sqlite"); const db = new DatabaseSync(":memory:"); console.log(db.prepare("select 1 + 1 as two").get()); const { WASI } = await import("node:wasi"); console.log(new WASI({ version: "preview1" }).wasiImport !== undefined)',

  // workers and children
  'a worker': raw`
    import { Worker, isMainThread, threadId, resourceLimits } from 'node:worker_threads';
    console.log(isMainThread, threadId, resourceLimits);
    const code = 'const w = require("worker_threads"); w.parentPort.postMessage([w.workerData, process.execArgv, process.argv, process.env, process.cwd(), w.threadId, w.isMainThread, Object.keys(require.cache), Object.keys(module.constructor._pathCache), module.id, process.stdin.constructor.name]); process.exitCode = 6';
    new Worker(code, { eval: true, workerData: { a: 1 }, argv: ['x'] }).on('message', (m) => console.log(m)).on('exit', (c) => console.log('exit', c));`,
  'workers of files, in one another': raw`
    import fs from 'node:fs';
    import { Worker } from 'node:worker_threads';
    fs.writeFileSync('worker.mjs', 'import { Worker, workerData } from "node:worker_threads"; console.log(workerData, process.execArgv, import.meta.main, import.meta.url); if (workerData > 0) new Worker(new URL("./worker.mjs", import.meta.url), { workerData: workerData - 1, stdin: true });');
    new Worker('./worker.mjs', { workerData: 2 });`,
  'a worker with its own arguments of Node': raw`
    import { Worker } from 'node:worker_threads';
    new Worker('console.log(process.execArgv, process.env); Buffer(1)', { eval: true, execArgv: ['--no-warnings'], env: { ONLY: '1' } });`,
  'a worker that throws': 'import { Worker } from "node:worker_threads"; new Worker("process.on(`exit`, (c) => console.log(c)); throw new Error(`in a worker`)", { eval: true })',
  'a fork': raw`
    import { fork } from 'node:child_process';
    if (process.argv[2]) { process.send([process.argv.slice(2), process.execArgv, process.env.NODE_CHANNEL_FD !== undefined, process.connected]); process.disconnect(); }
    else fork(import.meta.filename, ['child']).on('message', (m) => console.log(m)).on('exit', (...end) => console.log(end));`,
  'children with our streams': raw`
    import { spawnSync, execSync, execFileSync } from 'node:child_process';
    console.log(spawnSync('sh', ['-c', 'echo out; echo err >&2; readlink /proc/self/fd/0; cat; ls -l /proc/self/fd | wc -l; exit 3'], { stdio: 'inherit' }).status);
    console.log(execSync('cat; pwd').toString(), execFileSync(process.execPath, [...process.execArgv, '-p', 'process.execArgv']).toString());
    console.log(spawnSync('head', ['-c', '3000000', '/dev/zero'], { stdio: ['ignore', 'pipe', 'inherit'], maxBuffer: 1e7 }).stdout.length);`,
  'a child that writes much to our stdout': 'import { spawn } from "node:child_process"; spawn("sh", ["-c", "yes abcdefg | head -c 2500000"], { stdio: "inherit" }).on("exit", (c) => console.error(c));',
  'another program in our place': 'process.execve("/bin/sh", ["sh", "-c", "cat; readlink /proc/self/fd/0; echo $0 replaced; exit 8"], process.env)',
  'a cluster': raw`
    import cluster from 'node:cluster';
    import { createServer, get } from 'node:http';
    if (cluster.isPrimary) {
      console.log(cluster.settings);
      cluster.fork(); cluster.on('listening', (w, { port }) => get({ port, host: '127.0.0.1' }, (r) => r.on('data', (d) => console.log(String(d))).on('end', () => w.kill())));
      cluster.on('exit', (w, code, signal) => console.log(code, signal, cluster.settings.execArgv, cluster.settings.exec));
    } else createServer((q, a) => a.end(JSON.stringify([process.execArgv, process.argv.length]))).listen(0, '127.0.0.1');`,
  'node:test': raw`
    import test from 'node:test';
    import assert from 'node:assert';
    test('passes', () => {}); test('fails', () => assert.equal(1, 2)); test('skipped', { skip: true }, () => {});
    process.on('exit', (code) => process.stderr.write('code ' + code));
    const write = process.stdout.write; process.stdout.write = (text, ...more) => write.call(process.stdout, String(text).replace(/duration_ms[^\n]*/g, '').replace(/\(\d[\d.]*ms\)/g, ''), ...more);`,
  'a child with --test': raw`
    import fs from 'node:fs';
    import { spawnSync } from 'node:child_process';
    fs.mkdirSync('t', { recursive: true });
    fs.writeFileSync('t/one.test.mjs', 'import test from "node:test"; test("a", () => {}); test("b", () => { throw new Error("no"); });');
    const r = spawnSync(process.execPath, ['--test', '--test-reporter=tap', 't/one.test.mjs']);
    console.log(r.status, r.signal, String(r.stdout).replace(/duration_ms.*/g, ''), String(r.stderr));`,

  // the rest of the library
  'network': raw`
    import http from 'node:http';
    import net from 'node:net';
    const server = http.createServer((q, a) => a.end(q.url)).listen(0, '127.0.0.1', async () => {
      const { port } = server.address();
      console.log(await (await fetch('http://127.0.0.1:' + port + '/path')).text());
      const socket = net.connect(port, '127.0.0.1', () => { console.log(socket.remoteAddress); socket.destroy(); server.close(); server.closeAllConnections(); });
    });`,
  'a refused connection': 'await fetch("http://127.0.0.1:9/").catch((error) => { console.log(error.message, error.cause.code); })',
  'WebAssembly': 'const bytes = new Uint8Array([0,97,115,109,1,0,0,0,1,7,1,96,2,127,127,1,127,3,2,1,0,7,7,1,3,97,100,100,0,0,10,9,1,7,0,32,0,32,1,106,11]); const { instance } = await WebAssembly.instantiate(bytes); console.log(instance.exports.add(2, 3))',
  'dates and languages': raw`
    console.log(new Date(0).toString(), Intl.DateTimeFormat().resolvedOptions(), (1234.5).toLocaleString('de'));
    process.env.TZ = 'Asia/Tokyo';
    console.log(new Date(0).toString(), new Date(0).getTimezoneOffset(), Intl.DateTimeFormat().resolvedOptions().timeZone);`,
  'cryptography': raw`
    import crypto from 'node:crypto';
    console.log(crypto.createHash('sha256').update('x').digest('hex'), crypto.randomBytes(8).length, crypto.getHashes().length, (await crypto.subtle.digest('SHA-1', Buffer.from('x'))).byteLength);`,
  'streams and compression': raw`
    import { pipeline } from 'node:stream/promises';
    import zlib from 'node:zlib';
    import fs from 'node:fs';
    await pipeline(async function* () { yield 'a'.repeat(1e5); }, zlib.createGzip(), zlib.createGunzip(), fs.createWriteStream('out.txt'));
    console.log(fs.statSync('out.txt').size);`,
  'the inspector': raw`
    import inspector from 'node:inspector/promises';
    const session = new inspector.Session(); session.connect();
    console.log(inspector.url(), (await session.post('Runtime.evaluate', { expression: '1 + 1' })).result);
    await session.post('Debugger.enable'); session.disconnect();`,
  'a report': raw`
    const { header, javascriptStack, libuv, workers } = process.report.getReport();
    console.log(header.cwd, header.nodejsVersion, Object.keys(header), javascriptStack.message, libuv.filter((h) => h.is_active && h.is_referenced).map((h) => h.type), workers);`,
  'the file system': raw`
    import fs from 'node:fs/promises';
    await fs.mkdir('d/e', { recursive: true }); await fs.writeFile('d/e/f', 'text'); console.log(await fs.readdir('d', { recursive: true }), await fs.readFile('d/e/f', 'utf8'));
    const watcher = (await import('node:fs')).watch('d', (kind, name) => { console.log(kind, name); watcher.close(); }); await fs.writeFile('d/new', '');
    await fs.rm('d', { recursive: true });`,
  'names of the network': 'import dns from "node:dns"; console.log(await dns.promises.lookup("localhost", { family: 4 }), dns.getDefaultResultOrder())',
  'storage and options': 'import { getDefaultAutoSelectFamily } from "node:net"; import { parseEnv, parseArgs } from "node:util"; console.log(getDefaultAutoSelectFamily(), parseEnv("A=1"), parseArgs({ strict: false }), process.sourceMapsEnabled)',
};

/** What a held Node cannot hide. Held and plain say different things; should they begin to agree, this list is too long. */
export const differences = {
  'the command line': 'import fs from "node:fs"; console.log(fs.readFileSync("/proc/self/cmdline", "utf8").includes("gate"))',
  'the command line in a report': 'console.log(process.report.getReport().header.commandLine)',
  'modules of Node that were loaded': 'console.log(process.moduleLoadList.includes("NativeModule net"))',
  'numbers of descriptors': 'import fs from "node:fs"; console.log(0); console.log(fs.openSync("/dev/null"))',
  'how long a title may be': 'process.title = "x".repeat(200); console.log(process.title.length)',
  'the end of the pipe that the gate tried': raw`
    import { createHook } from 'node:async_hooks';
    const known = new Set(), ended = [];
    createHook({ init: (id) => known.add(id), destroy: (id) => { if (!known.has(id)) ended.push(id); } }).enable();
    setTimeout(() => console.log(ended.length), 20);`,
  'ids of asynchrony': 'import { executionAsyncId, AsyncResource } from "node:async_hooks"; console.log(executionAsyncId(), new AsyncResource("x").asyncId())',
};
