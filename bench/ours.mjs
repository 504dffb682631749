// ours.mjs: what Jerboa does for each row: real calls to `jerboa serve`, and `jerboa run`.
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

/** The entry of the layer that has this package, and none of the others. */
function layerOf(home, name) {
  const layers = path.join(home, 'layers');
  return readdirSync(layers).map((key) => path.join(layers, key)).find((dir) => {
    const file = path.join(dir, 'package.json');
    return existsSync(file) && JSON.parse(readFileSync(file, 'utf8')).dependencies?.[name];
  });
}

export function nodeModules(home, name) {
  return path.join(layerOf(home, name), 'node_modules');
}

/** The layer has never been made; packages stay in the installer's cache. */
function forgetLayer(home, name) {
  const dir = layerOf(home, name), gone = path.join(home, 'gone');
  renameSync(dir, gone);
  rmSync(gone, { recursive: true });
}

function printed({ structuredContent }, prints) {
  if (structuredContent.stdout !== prints) throw new Error(`printed ${JSON.stringify(structuredContent.stdout)}`);
}

/** The turn of a server that lives as long as the rounds do. */
export async function ourTurn(program, home) {
  const env = { JERBOA_HOME: home };
  const server = start(program, [], env);
  await server.open();

  const ephemeral = async ({ code, prints, dependencies }) => printed(await server.call('run_js_ephemeral', { code, dependencies }), prints);
  await ephemeral(scripts.lodash); // the packages come from the registry once
  await ephemeral(scripts.express);

  return {
    who: 'jerboa', must: true, pid: server.pid,
    async run(time) {
      const another = await time('start', async () => {
        const one = start(program, [], env);
        await one.open();
        return one;
      });
      await another.close();

      const { content: [{ text: container_id }] } = await time('initialize', () => server.call('sandbox_initialize', {}));
      printed(await time('run_js', () => server.call('run_js', { container_id, code: scripts.hello.code })), scripts.hello.prints);
      const { structuredContent: { commands } } = await time('exec', () => server.call('sandbox_exec', { container_id, commands: [echo.command] }));
      if (commands[0].stdout !== echo.prints) throw new Error(`sandbox_exec printed ${commands[0].stdout}`);
      await time('stop', () => server.call('sandbox_stop', { container_id }));

      for (const key of ['hello', 'lodash', 'express']) await time(key, () => ephemeral(scripts[key]));
      forgetLayer(home, 'express');
      await time('layer', () => ephemeral(scripts.express));
    },
    end: () => server.close(),
  };
}

/** The turn of `jerboa run`, away from the server's: what that still does behind its last answer is not in it. */
export const coldTurn = (program, home, dir) => ({
  who: 'jerboa', must: true,
  run: (time) => time('cold', () => run(program, ['run', path.join(dir, 'hello/index.js')], { env: { JERBOA_HOME: home }, prints: scripts.hello.prints })),
});
