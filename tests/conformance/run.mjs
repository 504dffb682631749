// run.mjs BUILD SUITE: runs the official suite against BUILD/tests/conformance-server. Stricter than
// the suite itself: every scenario of a requirement set must have run, also those that are not
// scored, and must have neither failures nor warnings. Results stay in BUILD/conformance.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, readFile, rm } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';

const [build, suite] = process.argv.slice(2);
const program = path.join(suite, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const results = path.join(build, 'conformance');

/** How many scenarios each set has: fewer than that were not run. */
const sets = [
  { revision: '2025-11-25', scored: 30, unscored: 3 },
  { revision: '2026-07-28', scored: 37, unscored: 13 },
];
const stubs = ['tasks-status-notifications']; // the suite itself has nothing there yet

function run(...args) {
  const options = { timeout: 300_000, maxBuffer: 1 << 26 };
  return new Promise((resolve) => {
    execFile(process.execPath, [program, ...args], options, (error, stdout, stderr) =>
      resolve({ failed: error !== null, output: stdout + stderr }));
  });
}

function startServer() {
  const server = spawn(path.join(build, 'tests/conformance-server'), ['--http', '127.0.0.1:0'],
    { stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = once(server, 'exit');
  return new Promise((resolve, reject) => {
    exited.then(() => reject(new Error('the server did not start')));
    createInterface({ input: server.stderr }).on('line', (line) => {
      const url = line.match(/^listening on (\S+)/)?.[1];
      if (url) resolve({ server, exited, url });
      else console.log(line); // a sanitizer, say
    });
  });
}

/** The names in `list --requirements`: "  - name" are scored, "    - name [server]" are not. */
async function listScenarios(revision) {
  const { output } = await run('list', '--requirements', revision);
  const servers = output.slice(output.indexOf('Server scenarios'), output.indexOf('Client scenarios'));
  return {
    scored: [...servers.matchAll(/^ {2}- (\S+)$/gm)].map((m) => m[1]),
    unscored: [...output.matchAll(/^ {4}- (\S+) \[server\]$/gm)].map((m) => m[1]),
  };
}

/** What is wrong with one scenario, as a list of lines. */
async function judge(root, directories, name) {
  let checks;
  try {
    checks = JSON.parse(await readFile(path.join(root, directories.get(name), 'checks.json'), 'utf8'));
  } catch {
    return [`${name}: did not run to its end`];
  }
  const allowed = ['SUCCESS', 'INFO', ...(stubs.includes(name) ? ['SKIPPED'] : [])];
  const bad = checks.filter((check) => !allowed.includes(check.status));
  if (checks.length === 0) return [`${name}: checked nothing`];
  return bad.map((check) => `${name}: ${check.status} ${check.id}: ${check.errorMessage ?? check.description}`);
}

async function runSet({ revision, ...expected }, url) {
  const began = Date.now();
  const root = path.join(results, revision);
  await mkdir(root, { recursive: true });
  const { failed, output } = await run('server', '--url', url, '--requirements', revision, '-o', root);
  const directories = new Map((await readdir(root)).map((name) =>
    [name.replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT.*$/, ''), name]));
  const scenarios = await listScenarios(revision);
  const figures = {};
  const complaints = [];
  for (const kind of ['scored', 'unscored']) {
    const names = scenarios[kind];
    if (names.length !== expected[kind])
      complaints.push(`${names.length} ${kind} scenarios are listed instead of ${expected[kind]}`);
    figures[kind] = 0;
    for (const name of names) {
      const found = await judge(root, directories, name);
      complaints.push(...found);
      if (found.length === 0) figures[kind]++;
    }
  }
  if (failed && complaints.length === 0) complaints.push(`the suite itself failed:\n${output.slice(-2000)}`);
  for (const line of complaints) console.log(line);
  const total = expected.scored + expected.unscored;
  const passed = complaints.length === 0 ? total : Math.min(figures.scored + figures.unscored, total - 1);
  console.log(`${revision}: scored ${figures.scored}/${expected.scored}, others ` +
    `${figures.unscored}/${expected.unscored}, ${((Date.now() - began) / 1000).toFixed(1)} s`);
  return { passed, failed: total - passed };
}

await rm(results, { recursive: true, force: true });
const { server, exited, url } = await startServer();
let passed = 0, failed = 0;
for (const set of sets) {
  const counts = await runSet(set, url);
  passed += counts.passed;
  failed += counts.failed;
}
server.kill('SIGTERM');
const [status, signal] = await exited;
if (status !== 0) {
  console.log(`the server ended with ${signal ?? status}`);
  failed++;
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
