// engine.mjs: Jerboa on the docker engine, in the daemon that the docker peer is measured with.
import { setTimeout as pause } from 'node:timers/promises';

import { start } from './client.mjs';
import { aSandbox, aScript } from './ours.mjs';
import { median } from './turns.mjs';
import { dockerBars, scripts } from './work.mjs';

const LEFT_MS = 30_000;

/** Seconds until the daemon shows nothing of a server that had a sandbox, its pool, and was killed. */
async function secondsLeft(open, docker) {
  const server = await open();
  await server.call('sandbox_initialize', {});
  server.kill();
  const began = performance.now();
  while (await docker('ps', '--all', '--quiet') !== '') {
    if (performance.now() - began > LEFT_MS) throw new Error(`containers of a killed server are left after ${LEFT_MS / 1e3} s`);
    await pause(10);
  }
  return (performance.now() - began) / 1e3;
}

export async function onDocker({ program, home, daemon }) {
  if (!daemon) throw new Error('there is no daemon');
  const open = async () => {
    const server = start(program, ['--engine', 'docker'], { JERBOA_HOME: home, DOCKER_HOST: `unix://${daemon.socket}` });
    await server.open();
    return server;
  };
  const server = await open();
  for (const key of ['hello', 'lodash', 'express']) await aScript(server, scripts[key]);

  return {
    version: daemon.version, end: server.close,
    async run(time) {
      await aSandbox(server, time);
      for (const key of ['hello', 'lodash', 'express']) await time(key, () => aScript(server, scripts[key]));
    },
    /** What bars are about, once the rounds are over. */
    async figures({ initialize, exec, run_js, 'exec node': node }) {
      const ratio = (theirs, ours) => theirs && ours && median(theirs) / median(ours); // one of them may have failed
      await server.close();
      const left = [];
      for (let i = 0; i < 20; i++) left.push(await secondsLeft(open, daemon.docker));
      return [
        { ...dockerBars.ready, value: initialize.onDocker && median(initialize.onDocker) },
        { ...dockerBars.exec, value: ratio(exec.docker, exec.onDocker) },
        { ...dockerBars.run, value: ratio(node?.docker, run_js.onDocker) },
        { ...dockerBars.left, value: Math.max(...left) },
      ];
    },
  };
}
