// turns.mjs: who is measured when. A round lets everybody do each of its works once, so that noise hits all alike; each round begins with
// another one. Before each work there is a pause, as an agent makes between its calls: back to back would measure throughput.
import { setTimeout as pause } from 'node:timers/promises';

import { run } from './programs.mjs';

/** The first line of what went wrong, for a table. */
export const reasonOf = (error) => error.message.trim().split('\n')[0].slice(0, 160);

/** What the one before wrote is on the disk: thousands of files of one would else be paid for by the next. */
export const settle = () => run('sync', []);

/**
 * Takes turns for some rounds; a turn is { who, run(time) }, and time(key, work) measures one work. The first round is discarded, nothing
 * else. Returns { samples: key -> who -> [ms], reasons: who -> key -> why it could not }. What somebody cannot do is left out from then on,
 * unless it `must`. An aborted `signal` ends it all.
 */
export async function takeTurns(turns, { rounds, pauseMs, signal, told = () => {} }) {
  const samples = {}, reasons = {};
  async function measure({ who, must }, round, key, work) {
    if (reasons[who]?.[key]) return undefined;
    await pause(pauseMs, undefined, { signal });
    try {
      const began = performance.now(), answer = await work(), ms = performance.now() - began;
      if (round > 0) ((samples[key] ??= {})[who] ??= []).push(ms);
      return answer;
    } catch (error) {
      if (must || signal?.aborted) throw error;
      (reasons[who] ??= {})[key] = reasonOf(error);
      delete samples[key]?.[who];
      return undefined;
    }
  }
  for (let round = 0; round <= rounds; round++) {
    told(round);
    for (let i = 0; i < turns.length; i++) {
      const turn = turns[(i + round) % turns.length];
      await settle();
      await turn.run((key, work) => measure(turn, round, key, work));
    }
  }
  return { samples, reasons };
}

const rank = (values, part) => values.toSorted((a, b) => a - b)[Math.ceil(part * values.length) - 1];
export const median = (values) => rank(values, 0.5);
/** How much more one takes than the other, who was measured beside it each time. */
export const medianMore = (one, other) => median(one.map((ms, i) => ms - other[i]));
/** Of fewer than a hundred it is the slowest. */
export const p99 = (values) => rank(values, 0.99);
