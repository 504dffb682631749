// Where probes run: in a sandbox of the programs as they are installed, in one whose jail leaves walls out, or on the bare host.
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { build, childEnv, copyPrograms, engine, inside as processesInside, isRoot, jerboa, printed, start, tempDir } from '../integration/jerboa.mjs';

export { engine, processesInside as inside, isRoot, jerboa, printed, start };
export const probe = path.join(build, 'tests/escape-probe');
export const jails = { installed: path.join(build, 'jerboa-jail'), open: path.join(build, 'tests/escape-jail') };

const dir = tempDir(), files = path.join(dir, 'files'), shown = path.join(dir, 'shown'), programs = path.join(dir, 'programs');
const owner = isRoot ? [1000, 1000] : null; // FILES_DIR is seldom root's
fs.chmodSync(dir, 0o755);
for (const place of [files, shown, programs]) fs.mkdirSync(place);
if (owner) for (const place of [files, shown]) fs.chownSync(place, ...owner);
fs.copyFileSync(probe, path.join(shown, 'probe'));
const openJerboa = copyPrograms(programs);
fs.copyFileSync(path.join(build, 'layers'), path.join(programs, 'layers'));
fs.chmodSync(path.join(programs, 'layers'), 0o755);
fs.copyFileSync(jails.open, path.join(programs, 'jerboa-jail'));

const prelude = `import fs from 'node:fs'; import net from 'node:net'; import { spawnSync } from 'node:child_process';\n`;
const inside = { files: '/workspace/files', shown: '/workspace/dir', probe: '/workspace/dir/probe' };
const bare = { files, shown, probe };

/** One run of a row's probe: whether it arrived, and what it said. `leftOut`: null for the bare host, undefined for the installed programs. */
export async function attempt(row, leftOut) {
  const undo = [];
  const options = (leftOut ?? []).filter((wall) => wall.startsWith('option ')).flatMap((wall) => wall.split(' ').slice(1));
  const host = {
    dir, files, shown, shows: shown, owner, jerboa: leftOut ? openJerboa : jerboa, options: [...(row.args ?? []), ...options],
    secret: randomBytes(12).toString('hex'), after: (deed) => undo.push(deed),
  };
  if (leftOut) fs.writeFileSync(path.join(programs, 'left-out'), [...leftOut, ...(row.also ?? [])].join('\n'));
  try {
    await row.ready?.(host);
    if (owner) for (const place of [files, shown]) for (const name of fs.readdirSync(place)) fs.lchownSync(path.join(place, name), ...owner);
    const code = prelude + (row.code ?? (() => ''))({ ...host, host: dir, ...(leftOut === null ? bare : inside) });
    const command = row.command ? row.command(host, code, leftOut)
      : leftOut === null ? [process.execPath, '--input-type=module', '-e', code]
      : [host.jerboa, 'run', '--files', files, '--dir', host.shows, '--network', 'none', ...host.options, '-e', code];
    const [program, ...args] = [...(row.via?.(host) ?? []), ...command];
    const r = await start(args, { program, env: row.env?.(host), cwd: row.cwd?.(host), stdio: row.stdio?.(host), input: '', seconds: 90 }).ended;
    return { arrived: row.arrived ? await row.arrived(host, r, leftOut) : r.stdout.includes(host.secret), said: `${r.stdout}${r.stderr}`.trim(), status: r.status };
  } finally {
    for (const deed of undo.reverse()) await deed();
  }
}

/** What a program of ours consists of, without what debuggers read. */
export async function bytesOf(program) {
  const stripped = path.join(dir, 'stripped');
  await promisify(execFile)('strip', ['-o', stripped, program], { env: childEnv() });
  return fs.readFileSync(stripped, 'latin1');
}
export const symbolsOf = async (program) => (await promisify(execFile)('nm', [program], { maxBuffer: 64 << 20 })).stdout;
