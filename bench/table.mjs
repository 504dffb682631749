// table.mjs: bounds, and the table that `bench/run BUILD parts` prints: one line a figure beside its bound.
import { availableParallelism, loadavg } from 'node:os';

const widths = [56, 14, 14];
let missed = 0;

function row(...cells) {
  console.log(cells.map((c, i) => (i ? c.padStart(widths[i] ?? 0) : c.padEnd(widths[0]))).join('  '));
}

/** A bound is { most } or { least }. What could not be measured keeps none. */
export const keeps = ({ most, least }, value) => value !== undefined && (most === undefined ? value >= least : value <= most);
export const limitOf = ({ most, least }, show) => (most === undefined ? `>= ${show(least)}` : `<= ${show(most)}`);

/** One line: a figure, and whether it keeps its bound. Without a bound it is only told. */
export function figure(name, value, unit = '', bound = undefined) {
  const text = (v) => `${Number.isInteger(v) ? v : v.toFixed(2)} ${unit}`.trim();
  const kept = !bound || keeps(bound, value);
  if (!kept) missed++;
  row(name, text(value), bound ? limitOf(bound, text) : '', !bound ? '' : kept ? 'ok' : 'NOT OK');
}

export function beginTable() {
  row('figure', 'measured', 'bound', '');
  figure(`load before, of ${availableParallelism()} processors: above 1, times say little`, loadavg()[0]);
}

/** Exit status 1 when a bound was missed. */
export function endTable() {
  process.exit(missed > 0 ? 1 : 0);
}
