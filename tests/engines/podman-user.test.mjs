// Podman of an ordinary user, who has no right of root's: started by root (run.mjs), in namespaces in which there is such a user (podman.mjs).
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { copyPrograms, judged, limit, printed, read, start, tempDir, until } from '../integration/jerboa.mjs';
import { podmanUser } from './podman.mjs';

const skip = process.env.JERBOA_TEST_ENGINE !== 'podman' && 'of podman alone';
const cgroup = fs.existsSync('/sys/fs/cgroup/cgroup.controllers') ? [] : ['cgroup'];

describe('podman of an ordinary user', { ...limit, skip }, () => {
  const { name, uid } = podmanUser;
  let dir, env, jerboa;
  const asUser = (argv, options) => start(['--reuid', `${uid}`, '--regid', `${uid}`, '--clear-groups', '--inh-caps=-all', ...argv], { program: 'setpriv', env, cwd: dir, ...options });
  const run = (...args) => asUser([jerboa, 'run', '--json', ...args]).ended;

  async function podman(args, options) {
    const r = await asUser(['podman', ...args], options).ended;
    assert.equal(r.status, 0, r.stderr);
    return r.stdout.trim();
  }

  before(async () => {
    dir = tempDir();
    jerboa = copyPrograms(dir);
    for (const place of ['', 'home', 'run', 'files', 'store']) {
      fs.mkdirSync(path.join(dir, place), { recursive: true, mode: 0o700 });
      fs.chownSync(path.join(dir, place), uid, uid);
    }
    fs.writeFileSync(path.join(dir, 'containers.conf'), '[engine]\ncgroup_manager = "cgroupfs"\nevents_logger = "none"\n');
    env = { HOME: path.join(dir, 'home'), USER: name, XDG_RUNTIME_DIR: path.join(dir, 'run'), JERBOA_HOME: path.join(dir, 'store'),
      CONTAINERS_CONF: path.join(dir, 'containers.conf'), CONTAINERS_STORAGE_CONF: undefined };
    const image = fs.openSync(process.env.JERBOA_TEST_IMAGE); // where he may not look
    await podman(['import', '-', 'node:lts-slim'], { stdio: [image, 'pipe', 'pipe'], seconds: 120 });
    fs.closeSync(image);
  });
  after(() => podman(['system', 'migrate'])); // ends the process that keeps his namespaces

  test('root inside is he, without a right, and what is missing is told', async () => {
    const r = await run('-e', `import fs from 'node:fs'; const read = (name) => fs.readFileSync('/proc/self/' + name, 'utf8');
      console.log(JSON.stringify({ uid: process.getuid(), outside: +read('uid_map').split(/\\s+/)[2], capabilities: /^CapBnd:\\t(.*)$/m.exec(read('status'))[1],
        devices: read('net/dev').match(/\\w+(?=:)/g), home: fs.statSync(process.env.HOME).uid }))`);
    assert.equal(r.status, 0, r.stderr);
    assert.deepEqual(JSON.parse(r.stdout), { uid: 0, outside: uid, capabilities: '0000000000000000', devices: ['lo'], home: 0 });
    assert.deepEqual(judged(r).walls.missing, [...cgroup, 'uid-range', 'landlock']);
  });

  test('files are his', async () => {
    const r = await run('--files', path.join(dir, 'files'), '-e', `import fs from 'node:fs'; fs.writeFileSync('files/x', 'y')`);
    assert.equal(r.status, 0, r.stderr);
    const { uid: owner, gid } = fs.statSync(path.join(dir, 'files', 'x'));
    assert.deepEqual([owner, gid], [uid, uid]);
  });

  test('doctor shows that it works, and leaves no process; one that was there stays', async () => {
    const his = () => fs.readdirSync('/proc').filter((pid) => new RegExp(`^Uid:\\t${uid}\\t`, 'm').test(read(`/proc/${pid}/status`)));
    const row = async () => JSON.parse((await asUser([jerboa, 'doctor', '--json']).ended).stdout).checks.find((check) => check.name === 'podman');
    await podman(['system', 'migrate']);
    await until(() => his().length === 0, () => `he has ${his()} already`);
    assert.equal((await row()).state, 'on');
    await until(() => his().length === 0, () => `left: ${his().map((pid) => read(`/proc/${pid}/comm`))}`, 2);
    assert.equal(await podman(['ps', '--all', '--quiet']), ''); // and goes on, with a process that keeps his namespaces
    const kept = his();
    assert.equal(kept.length, 1);
    assert.equal((await row()).state, 'on');
    assert.deepEqual(his(), kept);
  });

  test('nothing is left after a kill', async () => {
    const child = asUser([jerboa, 'run', '-e', 'console.log("up"); setInterval(() => {}, 1000)']);
    await printed(child, 'up');
    assert.notEqual(await podman(['ps', '--quiet']), '');
    child.kill('SIGKILL');
    await until(async () => (await podman(['ps', '--all', '--quiet'])) === '', () => 'a container is left');
  });
});
