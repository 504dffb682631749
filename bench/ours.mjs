// ours.mjs: what Jerboa does for each row: real calls to `jerboa serve`, and `jerboa run`.
import { randomBytes } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import path from 'node:path';

import { start } from './client.mjs';
import { run } from './programs.mjs';
import { echo, scripts } from './work.mjs';

/**
 * A store of the bench's own, which it may change, with the runtime and the installers of the user's. The runtime is a copy: so no process
 * outside, this one included, shares its pages. It stays for the next time.
 */
function ownStore(build, runtime) {
  const home = path.join(build, 'bench/home'), from = path.dirname(path.dirname(runtime)), fresh = path.join(home, 'new');
  const tools = existsSync(path.join(from, 'tools')) ? readdirSync(path.join(from, 'tools')).map((name) => `tools/${name}`) : [];
  for (const entry of [`runtimes/${path.basename(runtime)}`, ...tools]) {
    const to = path.join(home, entry);
    if (existsSync(to)) continue;
    rmSync(fresh, { recursive: true, force: true });
    mkdirSync(path.dirname(to), { recursive: true });
    cpSync(path.join(from, entry), fresh, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true });
    renameSync(fresh, to);
  }
  return home;
}

/** What is measured, and where: the program, its store and its environment, the Node in that store, a directory for what peers run. */
export function place(build, runtime) {
  const home = ownStore(build, runtime);
  return { program: path.join(build, 'jerboa'), home, env: { JERBOA_HOME: home },
    node: path.join(home, 'runtimes', path.basename(runtime), 'bin/node'), dir: path.join(build, 'bench/work') };
}

/** The layers of this store, each with the ranges that it was made for. */
function layersIn(home) {
  const layers = path.join(home, 'layers');
  return readdirSync(layers).map((key) => path.join(layers, key)).filter((dir) => existsSync(path.join(dir, 'package.json')))
    .map((dir) => ({ dir, dependencies: JSON.parse(readFileSync(path.join(dir, 'package.json'), 'utf8')).dependencies ?? {} }));
}

/** Where the packages of one of the scripts are. */
export function nodeModules(home, { name, version }) {
  return path.join(layersIn(home).find(({ dependencies }) => dependencies[name] === version).dir, 'node_modules');
}

/**
 * A range that nobody has asked for and that means the same: its layer was never made, its packages are in the installer's cache. A layer
 * that was removed instead would be made where the file system has just freed as many inodes, which is another measure.
 */
const neverAsked = ({ name, version }) => ({ name, version: `${version} || 0.0.0-bench.x${randomBytes(6).toString('hex')}` });

function removeNeverAsked(home) {
  for (const { dir, dependencies } of layersIn(home))
    if (Object.values(dependencies).some((range) => range.includes('0.0.0-bench.'))) rmSync(dir, { recursive: true });
}

function printed({ structuredContent }, prints) {
  if (structuredContent.stdout !== prints) throw new Error(`printed ${JSON.stringify(structuredContent.stdout)}`);
}

/** A sandbox that is kept for some steps. */
export async function aSandbox(server, time) {
  const { content: [{ text: container_id }] } = await time('initialize', () => server.call('sandbox_initialize', {}));
  printed(await time('run_js', () => server.call('run_js', { container_id, code: scripts.hello.code })), scripts.hello.prints);
  const { structuredContent: { commands } } = await time('exec', () => server.call('sandbox_exec', { container_id, commands: [echo.command] }));
  if (commands[0].stdout !== echo.prints) throw new Error(`sandbox_exec printed ${commands[0].stdout}`);
  await time('stop', () => server.call('sandbox_stop', { container_id }));
}

/** A script in a sandbox of its own. */
export async function aScript(server, { code, prints, dependencies }) {
  printed(await server.call('run_js_ephemeral', { code, dependencies }), prints);
}

/** The turn of a server that lives as long as the rounds do. */
export async function ourTurn(program, home) {
  const env = { JERBOA_HOME: home };
  const server = start(program, [], env);
  await server.open();

  await aScript(server, scripts.lodash); // the packages come from the registry once
  await aScript(server, scripts.express);

  return {
    who: 'jerboa', must: true, pid: server.pid,
    async run(time) {
      const another = await time('start', async () => {
        const one = start(program, [], env);
        await one.open();
        return one;
      });
      await another.close();

      await aSandbox(server, time);
      for (const key of ['hello', 'lodash', 'express']) await time(key, () => aScript(server, scripts[key]));
      await time('layer', () => aScript(server, { ...scripts.express, dependencies: scripts.express.dependencies.map(neverAsked) }));
    },
    async end() {
      await server.close();
      removeNeverAsked(home);
    },
  };
}

/**
 * `jerboa run` and the bare Node that it is compared with, three times each, one after the other: a difference of some milliseconds is lost
 * between works that are seconds apart. Away from the server's turn: what that still does behind its last answer is not in it.
 */
export function coldTurns(program, home, dir, node) {
  const script = path.join(dir, 'hello/index.js'), { prints } = scripts.hello;
  const bare = { who: 'node', must: true, run: (time) => time('cold', () => run(node, [script], { prints })) };
  const ours = { who: 'jerboa', must: true, run: (time) => time('cold', () => run(program, ['run', script], { env: { JERBOA_HOME: home }, prints })) };
  return [bare, ours, bare, ours, bare, ours];
}
