// programs.mjs: other programs: run to their end, or ended with us.
import { spawn } from 'node:child_process';
import { once } from 'node:events';

const live = new Set();

/** Starts it; `endPrograms` ends it if nobody else did. */
export function begin(file, args, options) {
  const child = spawn(file, args, options);
  live.add(child);
  child.once('close', () => live.delete(child)).once('error', () => live.delete(child));
  return child;
}

/** Runs it, and throws unless it ends well and, if `prints` is given, prints just that. Returns what it printed. */
export async function run(file, args, { env, cwd, prints } = {}) {
  const child = begin(file, args, { env: { ...process.env, ...env }, cwd, stdio: ['ignore', 'pipe', 'pipe'] });
  const out = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) child[name].setEncoding('utf8').on('data', (text) => { out[name] = (out[name] + text).slice(-65536); });
  const [status, signal] = await once(child, 'close'); // it rejects when the program could not be started
  if (status !== 0) throw new Error(`${file} ${args[0]}: ${signal ?? `status ${status}`}: ${out.stderr.trim().split('\n').at(-1)}`);
  if (prints !== undefined && out.stdout !== prints) throw new Error(`${file} ${args[0]} printed ${JSON.stringify(out.stdout)}`);
  return out.stdout;
}

/** Ends what runs: servers take their sandboxes along. */
export function endPrograms() {
  for (const child of live) child.kill('SIGTERM');
}
