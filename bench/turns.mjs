// turns.mjs: who is measured when. A round lets everybody do each of its works once, so that noise hits all alike; each round begins with
// another one. Before each work there is a pause, as an agent makes between its calls: back to back would measure throughput.
import { setTimeout as pause } from 'node:timers/promises';

/**
 * Takes turns for some rounds; a turn is { who, run(time) }, and time(key, work) measures one work. The first round is discarded, nothing
 * else. Returns { samples: key -> who -> [ms], reasons: who -> why it could not }. Who cannot is left out from then on, unless it `must`. An aborted `signal` ends it all.
 */
export async function takeTurns(turns, { rounds, pauseMs, signal, told = () => {} }) {
  const samples = {}, reasons = {};
  for (let round = 0; round <= rounds; round++) {
    told(round);
    for (let i = 0; i < turns.length; i++) {
      const { who, must, run } = turns[(i + round) % turns.length];
      if (reasons[who]) continue;
      const time = async (key, work) => {
        await pause(pauseMs, undefined, { signal });
        const began = performance.now(), answer = await work(), ms = performance.now() - began;
        if (round > 0) ((samples[key] ??= {})[who] ??= []).push(ms);
        return answer;
      };
      try {
        await run(time);
      } catch (error) {
        if (must || signal?.aborted) throw error;
        reasons[who] = error.message.trim().split('\n')[0].slice(0, 160);
      }
    }
  }
  return { samples, reasons };
}

const rank = (values, part) => values.toSorted((a, b) => a - b)[Math.ceil(part * values.length) - 1];
export const median = (values) => rank(values, 0.5);
/** Of fewer than a hundred it is the slowest. */
export const p99 = (values) => rank(values, 0.99);
