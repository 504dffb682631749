// programs.mjs: other programs, run to their end.
import { spawn } from 'node:child_process';
import { once } from 'node:events';

const live = new Set();

/** Runs it, and throws unless it ends well and, if `prints` is given, prints just that. Returns what it printed. */
export async function run(file, args, { env, cwd, prints, input } = {}) {
  const child = spawn(file, args, { env: { ...process.env, ...env }, cwd, stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'] });
  const out = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr']) child[name].setEncoding('utf8').on('data', (text) => { out[name] = (out[name] + text).slice(-65536); });
  live.add(child);
  child.stdin?.end(input);
  try {
    const [status, signal] = await once(child, 'close'); // it rejects when the program could not be started
    if (status !== 0) throw new Error(`${file} ${args[0]}: ${signal ?? `status ${status}`}: ${out.stderr.trim().split('\n').at(-1)}`);
  } finally {
    live.delete(child);
  }
  if (prints !== undefined && out.stdout !== prints) throw new Error(`${file} ${args[0]} printed ${JSON.stringify(out.stdout)}`);
  return out.stdout;
}

/** Ends what runs. */
export function endPrograms() {
  for (const child of live) child.kill('SIGKILL');
}
