// peers.mjs: what else runs JavaScript on this machine. Each peer is made by a function that gives its turn, or throws the reason why it
// cannot run here. They do the works of work.mjs in a directory of each script, with node_modules beside it where there are any.
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { startDocker } from './docker.mjs';
import { onDocker } from './engine.mjs';
import { run } from './programs.mjs';
import { echo, scripts } from './work.mjs';

/** DIR/hello, DIR/lodash, DIR/express: what the peers run. `modules` finds the node_modules of a dependency. */
export function writeScripts(dir, modules) {
  for (const [key, { code, dependencies: [dependency] }] of Object.entries(scripts)) {
    const to = path.join(dir, key);
    mkdirSync(to, { recursive: true });
    writeFileSync(path.join(to, 'index.js'), code);
    writeFileSync(path.join(to, 'package.json'), JSON.stringify({ type: 'module', dependencies: dependency && { [dependency.name]: dependency.version } }));
    const beside = path.join(to, 'node_modules');
    if (dependency && !existsSync(beside)) cpSync(modules(dependency), beside, { recursive: true, verbatimSymlinks: true });
  }
}

/** Runs every script, and the echo, each in a new process; `wrap` makes a command that runs in a directory of one that would run bare. */
async function runAll(time, { dir, node, env }, wrap) {
  for (const [key, { prints }] of Object.entries(scripts)) {
    const cwd = path.join(dir, key), [file, ...args] = wrap(cwd, [node, 'index.js']);
    await time(key, () => run(file, args, { cwd, env, prints }));
  }
  const cwd = path.join(dir, 'hello'), [file, ...args] = wrap(cwd, ['/bin/sh', '-c', echo.command]);
  await time('exec', () => run(file, args, { cwd, env, prints: echo.prints }));
}

// ---- nothing around it ----

function bareNode({ dir, node }) {
  return {
    version: execFileSync(node, ['--version'], { encoding: 'utf8' }).trim(), must: true,
    async run(time) {
      await time('unit', () => run(node, ['-e', '0']));
      await runAll(time, { dir, node }, (_, command) => command);
    },
  };
}

// ---- bubblewrap: all namespaces, the system read-only, the directory writable ----

function bubblewrap({ dir, node }) {
  const version = execFileSync('bwrap', ['--version'], { encoding: 'utf8' }).trim().split(' ').at(-1);
  const runtime = path.dirname(path.dirname(node));
  const wrap = (cwd, command) => ['bwrap', '--unshare-all', '--die-with-parent', '--ro-bind', '/usr', '/usr',
    ...['bin', 'lib', 'lib64'].flatMap((name) => ['--symlink', `usr/${name}`, `/${name}`]),
    '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', '--ro-bind', runtime, runtime, '--bind', cwd, '/workspace', '--chdir', '/workspace', ...command];
  return { version, run: (time) => runAll(time, { dir, node }, wrap) };
}

// ---- Anthropic's sandbox-runtime, by its command srt ----

function sandboxRuntime({ build, dir, node }) {
  const top = path.resolve(import.meta.dirname, '..');
  const modules = path.resolve(top, execFileSync('tools/npm-ci', [path.relative(top, build), 'bench/peers'], { cwd: top, encoding: 'utf8' }).trim(), 'node_modules');
  const settings = path.join(dir, 'srt.json'), srt = path.join(modules, '@anthropic-ai/sandbox-runtime');
  writeFileSync(settings, JSON.stringify({
    network: { allowedDomains: [], deniedDomains: [] }, filesystem: { denyRead: [], allowWrite: ['.'], denyWrite: [] },
  }));
  const cli = execFileSync(node, ['-p', 'require(process.argv[1]).bin.srt', path.join(srt, 'package.json')], { encoding: 'utf8' }).trim();
  const wrap = (_, command) => [node, path.join(srt, cli), '--settings', settings, '--', ...command];
  const version = execFileSync(node, ['-p', 'require(process.argv[1]).version', path.join(srt, 'package.json')], { encoding: 'utf8' }).trim();
  const temporary = mkdtempSync(path.join(tmpdir(), 'srt-')); // it leaves sockets there, whose paths have to be short
  return {
    version,
    run: (time) => runAll(time, { dir, node, env: { TMPDIR: temporary } }, wrap),
    end: () => rmSync(temporary, { recursive: true, force: true }),
  };
}

// ---- the predecessor's sequence of docker commands, without its server ----

async function docker(machine) {
  const { build, dir, node, npmEnv } = machine, name = 'bench';
  machine.daemon = await startDocker(build, path.dirname(path.dirname(node)), { tags: ['node:lts-slim'] });
  const { version, docker, end } = machine.daemon;
  const make = () => docker('run', '-d', '--network', 'host', '--memory', '512m', '--cpus', '1', '--workdir', '/workspace',
    '--label', 'bench=true', ...npmEnv.flatMap((pair) => ['-e', pair]), '--name', name, 'bench', 'tail', '-f', '/dev/null');
  const remove = () => docker('rm', '-f', name);
  const script = async (key) => {
    const { prints, dependencies } = scripts[key], from = path.join(dir, 'docker', key);
    await docker('cp', `${from}/.`, `${name}:/workspace`);
    if (dependencies.length > 0) await docker('exec', name, '/bin/sh', '-c', 'npm install --omit=dev --no-audit --no-fund --loglevel=error');
    const printed = await docker('exec', name, 'node', 'index.js');
    if (printed !== prints) throw new Error(`docker exec printed ${printed}`);
  };
  for (const key of Object.keys(scripts)) // the same without node_modules: it installs them each time
    cpSync(path.join(dir, key), path.join(dir, 'docker', key), { recursive: true, filter: (file) => path.basename(file) !== 'node_modules' });

  return {
    version, end,
    async run(time) {
      await time('initialize', make);
      await time('run_js', () => script('hello'));
      await time('exec', () => docker('exec', name, '/bin/sh', '-c', echo.command));
      await time('exec node', () => docker('exec', name, 'node', 'index.js'));
      await time('stop', remove);
      for (const key of Object.keys(scripts))
        await time(key, async () => {
          try {
            await make();
            await script(key);
          } finally {
            await remove();
          }
        });
    },
  };
}

/** In the order of the table; the last one is in the daemon of the one before. */
export const peers = {
  node: { name: 'bare node', make: bareNode },
  bwrap: { name: 'bubblewrap', make: bubblewrap },
  srt: { name: 'sandbox-runtime', make: sandboxRuntime },
  docker: { name: 'docker sequence', make: docker },
  onDocker: { name: 'jerboa on docker', make: onDocker },
};
