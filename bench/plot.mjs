// plot.mjs: the picture of a report (report.mjs), as SVG.
//
// A lane a row, one line in it for each of those who were measured, on a logarithmic axis: a mark at the median, a whisker to p99. The
// predecessor was measured elsewhere: its mark is hollow and stands where its bare-node units are on this machine. The dotted line is
// the bar. The picture brings its own background, light or dark as the reader's system is.
import { absent } from './report.mjs';

const WIDTH = 960, LEFT = 240, RIGHT = 214, TOP = 124, LINE = 9, GAP = 16;
const PLOT = WIDTH - LEFT - RIGHT;

/** Light and dark colours, apart for the colour-blind too; shapes differ as well. Each shape has its centre at 0,0. */
const marks = {
  jerboa: { name: 'jerboa', light: '#c2410c', dark: '#fb923c', shape: '<circle r="5.2"/>' },
  onDocker: { name: 'jerboa on docker', light: '#8a6100', dark: '#e0b03c', shape: '<circle r="3.6"/>' },
  node: { name: 'bare node', light: '#57606a', dark: '#a3adb8', shape: '<path d="M-1.6-4.4h3.2v8.8h-3.2z"/>' },
  bwrap: { name: 'bubblewrap', light: '#0969a8', dark: '#58b4f0', shape: '<path d="M-3.6-3.6h7.2v7.2h-7.2z"/>' },
  srt: { name: 'sandbox-runtime', light: '#a0368c', dark: '#e48fd0', shape: '<path d="M0-4.6l4.6 8h-9.2z"/>' },
  docker: { name: 'docker sequence', light: '#0b7a5c', dark: '#3fcf9f', shape: '<path d="M0-5.2l5.2 5.2-5.2 5.2-5.2-5.2z"/>' },
};
const predecessor = '<path class="ghost" d="M0-4.8l4.8 4.8-4.8 4.8-4.8-4.8z"/>';

const style = (tone) => tone === 'light'
  ? `.card{fill:#fffdf9}.text{fill:#24292f}.soft{fill:#656d76}.grid{stroke:#e6e1d8}.lane{fill:#f7f2e9}.ghost{fill:#fffdf9;stroke:#656d76}text.label{stroke:#fbf8f1}`
  : `.card{fill:#16181d}.text{fill:#e8eaed}.soft{fill:#9aa4af}.grid{stroke:#2b3038}.lane{fill:#1c2027}.ghost{fill:#16181d;stroke:#9aa4af}text.label{stroke:#191c22}`;
const colours = (tone) => Object.entries(marks).map(([who, mark]) => `.${who}{fill:${mark[tone]};stroke:${mark[tone]}}`).join('');

const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const text = (x, y, words, kind = 'text', more = '') => `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" class="${kind}" ${more}>${escape(words)}</text>`;
const at = (x, y, shape, kind) => `<g class="${kind}" transform="translate(${x.toFixed(1)} ${y.toFixed(1)})">${shape}</g>`;
const number = (ms) => (ms < 10 ? Number(ms.toPrecision(2)) : Math.round(ms).toLocaleString('en'));
const times = (ratio) => `${ratio < 10 ? ratio.toFixed(1) : Math.round(ratio)}×`;
const duration = (ms) => (ms < 1000 ? `${number(ms)} ms` : `${Number((ms / 1000).toPrecision(2))} s`);

/** From what is fastest, with room for its label, to what is slowest; ticks at decades. */
function axis({ rows, unit }) {
  const all = rows.flatMap((row) => [...Object.values(row.of).flatMap((s) => [s.median, s.p99]), ...(row.nodes ? [row.nodes * unit.median, row.nodes / row.bar * unit.median] : [])]);
  const low = Math.log10(Math.min(...all)) - 0.75, high = Math.log10(Math.max(...all)) + 0.15;
  const decades = Array.from({ length: 12 }, (_, i) => 10 ** (i - 4)).filter((ms) => Math.log10(ms) > low && Math.log10(ms) < high);
  return { x: (ms) => LEFT + (Math.log10(ms) - low) / (high - low) * PLOT, decades };
}

function lane(row, y, whos, unit, x) {
  const parts = [text(LEFT - 18, y + 12, row.name, 'text', 'text-anchor="end"')];
  const lines = whos.filter((who) => row.of[who]);
  if (row.nodes) parts.push(`<path class="jerboa" stroke-width="1.2" stroke-dasharray="1.5 3" d="M${x(row.nodes / row.bar * unit.median).toFixed(1)} ${y - 4}v${LINE * 2 + 6}"/>`);
  lines.forEach((who, i) => {
    const { median, p99 } = row.of[who], line = y + 8 + i * LINE;
    parts.push(`<path class="${who}" stroke-width="${who === 'jerboa' ? 2.2 : 1.4}" stroke-linecap="round" d="M${x(median).toFixed(1)} ${line}H${x(p99).toFixed(1)}"/>`);
    parts.push(at(x(median), line, marks[who].shape, who));
    if (who === 'jerboa') parts.push(text(x(median) - 10, line + 4, duration(median), 'jerboa label', 'text-anchor="end" font-weight="700"'));
  });
  if (row.nodes) {
    parts.push(at(x(row.nodes * unit.median), y + 8, predecessor, 'ghost'));
    parts.push(text(WIDTH - RIGHT + 84, y + 14, times(row.ratio), 'text', 'text-anchor="end" font-size="17" font-weight="700"'));
    parts.push(text(WIDTH - RIGHT + 92, y + 14, `bar ${row.bar}×`, 'soft', 'font-size="11"'));
  }
  if (row.overDocker) parts.push(text(WIDTH - 24, y + 14, times(row.overDocker), 'docker word', 'text-anchor="end" font-weight="600"'));
  return { parts, height: 8 + Math.max(lines.length, 2) * LINE };
}

function legend(r, whos) {
  let x = 24, y = 80;
  const entries = [...whos.map((who) => [marks[who].shape, who, [marks[who].name, who !== 'node' && r.peers[who]?.version.replace(/\+.*/, '')].filter(Boolean).join(' ')]),
    [predecessor, 'ghost', 'predecessor, in units of bare node']];
  return entries.flatMap(([shape, kind, words]) => {
    const width = 34 + words.length * 6.5;
    if (x + width > WIDTH) [x, y] = [24, y + 20];
    const drawn = [at(x + 6, y, shape, kind), text(x + 18, y + 4, words, 'text', 'font-size="12"')];
    x += width;
    return drawn;
  });
}

export function draw(r) {
  const whos = Object.keys(marks).filter((who) => who === 'jerboa' || r.rows.some((row) => row.of[who]));
  const { x, decades } = axis(r), parts = [];
  let y = TOP;
  r.rows.forEach((row, i) => {
    const drawn = lane(row, y + GAP / 2, whos, r.unit, x);
    if (i % 2 === 0) parts.push(`<rect class="lane" x="12" y="${y}" width="${WIDTH - 24}" height="${drawn.height + GAP}" rx="5"/>`);
    parts.push({ lane: drawn.parts });
    y += drawn.height + GAP;
  });
  const bottom = y;
  const grid = decades.flatMap((ms) => [`<path class="grid" d="M${x(ms).toFixed(1)} ${TOP}V${bottom}"/>`,
    text(x(ms), bottom + 17, duration(ms), 'soft', 'text-anchor="middle" font-size="12"')]);
  const flat = [...parts.filter((p) => typeof p === 'string'), ...grid, ...parts.flatMap((p) => p.lane ?? [])];
  const notes = [
    `Marks: medians; whiskers: p99${r.rounds < 100 ? ', here the slowest' : ''}; dotted: the bar. ${r.rounds} rounds in turns, ${r.pauseMs} ms of pause before each. Logarithmic; less is better.`,
    `${r.date} · ${r.machine.cores} cores (${r.machine.cpu}) · Linux ${r.machine.kernel} · Node ${r.peers.node.version} · jerboa ${r.version} · one bare node: ${number(r.unit.median)} ms · load before: ${r.machine.loadBefore.toFixed(1)}`,
    ...absent(r).map((words) => words.slice(0, 150)),
  ];
  const height = bottom + 38 + notes.length * 17;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img">
<title>How long a call takes: Jerboa beside bare Node, bubblewrap, sandbox-runtime and docker</title>
<style>${style('light')}${colours('light')}@media(prefers-color-scheme:dark){${style('dark')}${colours('dark')}}.ghost{stroke-width:1.4}text.word{stroke:none}text.label{stroke-width:4;stroke-linejoin:round;paint-order:stroke}</style>
<rect class="card" width="${WIDTH}" height="${height}" rx="10"/>
<g font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="13">
${text(24, 36, 'How long a call takes', 'text', 'font-size="20" font-weight="700"')}
${text(24, 56, 'jerboa: from the request on stdio to its answer, every wall up; others: from the start of their commands to the end', 'soft')}
${text(WIDTH - RIGHT + 84, 103, 'predecessor', 'soft', 'text-anchor="end" font-size="12"')}
${text(WIDTH - RIGHT + 84, 117, '÷ jerboa', 'soft', 'text-anchor="end" font-size="12"')}
${text(WIDTH - 24, 103, 'docker', 'soft', 'text-anchor="end" font-size="12"')}
${text(WIDTH - 24, 117, '÷ jerboa', 'soft', 'text-anchor="end" font-size="12"')}
${[...legend(r, whos), ...flat, ...notes.map((words, i) => text(24, bottom + 44 + i * 17, words, 'soft', 'font-size="12"'))].join('\n')}
</g>
</svg>
`;
}
