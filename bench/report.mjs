// report.mjs: what was measured, as one value, which is build/bench.json, and as a table.
import { cpus, release, totalmem } from 'node:os';

import { keeps, limitOf } from './table.mjs';
import { median, p99 } from './turns.mjs';
import { rows, unit } from './work.mjs';

const hasBound = ({ most, least }) => (most ?? least) !== undefined;

/** Everything that is told, from samples: key -> who -> [ms]. */
export function report({ samples, peers, figures, rounds, pauseMs, version, load }) {
  const series = (key, who) => samples[key]?.[who] && { median: median(samples[key][who]), p99: p99(samples[key][who]), samples: samples[key][who] };
  const bare = series(unit.key, 'node');
  return {
    date: new Date().toISOString().slice(0, 10),
    machine: { cpu: cpus()[0].model.trim(), cores: cpus().length, kernel: release(), memoryGiB: Math.round(totalmem() / 2 ** 30), loadBefore: load },
    version, rounds, pauseMs, unit: { ...unit, ...bare }, peers,
    rows: rows.map(({ peers: elsewhere = {}, ...row }) => {
      const of = Object.fromEntries(['jerboa', ...Object.keys(peers)].map((who) => [who, series(elsewhere[who] ?? row.key, who)]).filter(([, s]) => s));
      const ratio = row.nodes && row.nodes / (of.jerboa.median / bare.median);
      return { ...row, of, ratio, overDocker: of.docker && of.docker.median / of.jerboa.median };
    }),
    figures,
  };
}

/** Who, or what of it, could not be measured: sentences. */
export const absent = ({ peers, rows }) => Object.values(peers).flatMap(({ name, reason, reasons = {} }) => [
  ...(reason ? [`${name} could not run: ${reason}`] : []),
  ...Object.entries(reasons).map(([key, why]) => `${name}, ${rows.find((row) => row.key === key)?.name ?? key}: ${why}`),
]);

export const missed = ({ rows, figures }) =>
  [...rows.filter(({ ratio, bar }) => bar && ratio < bar), ...figures.filter((f) => hasBound(f) && !keeps(f, f.value))].map(({ name }) => name);

// ---- as text ----

const ms = (value) => value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
const times = (value) => `${value.toFixed(value < 10 ? 1 : 0)}x`;

/** Markdown, which a terminal shows as well. */
function table(head, lines) {
  const all = [head, ...lines], widths = head.map((_, i) => Math.max(...all.map((line) => line[i].length)));
  const text = (line) => `| ${line.map((cell, i) => (i ? cell.padStart(widths[i]) : cell.padEnd(widths[i]))).join(' | ')} |`;
  return [text(head), `|${widths.map((w, i) => (i ? `${'-'.repeat(w + 1)}:` : '-'.repeat(w + 2))).join('|')}|`, ...lines.map(text)].join('\n');
}

const figureText = (value, unit) => value === undefined ? 'none' : `${Number.isInteger(value) ? value : ms(value)} ${unit}`.trim();

export function toText(r) {
  const whos = Object.entries(r.peers).filter(([, { reason }]) => !reason);
  const cell = (s) => (s ? `${ms(s.median)} / ${ms(s.p99)}` : '');
  const lines = r.rows.map((row) => [row.name, cell(row.of.jerboa), ...whos.map(([who]) => cell(row.of[who])),
    row.ratio ? times(row.ratio) : '', row.bar ? `${row.bar}x` : '', row.bar ? (row.ratio >= row.bar ? 'ok' : 'NOT OK') : '',
    row.overDocker ? times(row.overDocker) : '']);
  const bounds = r.figures.map((f) => [f.name, figureText(f.value, f.unit),
    hasBound(f) ? limitOf(f, (value) => figureText(value, f.unit)) : '', !hasBound(f) ? '' : keeps(f, f.value) ? 'ok' : 'NOT OK']);
  return [
    `${r.date}, ${r.machine.cores} cores (${r.machine.cpu}), ${r.machine.memoryGiB} GiB, Linux ${r.machine.kernel}, Node ${r.peers.node.version}, jerboa ${r.version}; load before ${r.machine.loadBefore.toFixed(1)}.`,
    `Milliseconds, median / p99 of ${r.rounds} rounds, ${r.pauseMs} ms of pause before each call; one ${r.unit.name} is ${ms(r.unit.median)} ms here.`,
    '',
    table(['', 'jerboa', ...whos.map(([, { name, version }]) => (name === 'bare node' ? name : `${name} ${version}`)), 'to predecessor', 'bar', '', 'to docker'], lines),
    ...absent(r).map((text) => `\n${text}`),
    '',
    table(['', 'measured', 'bar', ''], bounds),
  ].join('\n');
}
