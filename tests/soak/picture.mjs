// picture.mjs: memory of the servers over time, and what they have open, as SVG: a panel for each part of the soak.
//
// Lines are resident memory and, of it, memory of its own (heap and stacks, which nobody shares); below them open descriptors and cgroups.
// The picture brings its own background, light or dark as the reader's system is.
const WIDTH = 960, LEFT = 70, RIGHT = 190, HIGH = 190, LOW = 90, GAP = 34, TOP = 74;

const servers = { runs: ['stdio', '#c2410c', '#fb923c'], stdio: ['stdio', '#c2410c', '#fb923c'], http: ['HTTP', '#0969a8', '#58b4f0'] };
const style = (tone) => (tone === 'light' ? '.card{fill:#fffdf9}.text{fill:#24292f}.soft{fill:#656d76}.grid{stroke:#e6e1d8}' : '.card{fill:#16181d}.text{fill:#e8eaed}.soft{fill:#9aa4af}.grid{stroke:#2b3038}')
  + Object.entries(servers).map(([name, [, light, dark]]) => `.${name}{stroke:${tone === 'light' ? light : dark}}text.${name}{stroke:none;fill:${tone === 'light' ? light : dark}}`).join('');

const escape = (words) => words.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const text = (x, y, words, kind = 'soft', more = 'font-size="12"') => `<text x="${x.toFixed(1)}" y="${y.toFixed(1)}" class="${kind}" ${more}>${escape(words)}</text>`;

/** A round number of which three or four fit below `most`. */
function step(most) {
  const unit = 10 ** Math.floor(Math.log10(most / 3));
  return [1, 2, 5, 10].map((n) => n * unit).find((n) => most / n <= 4.5);
}

/** At most 400 points: of each stretch the highest, since that is what a leak or a burst shows. */
function thin(points) {
  const each = Math.ceil(points.length / 400), kept = [];
  for (let i = 0; i < points.length; i += each) kept.push(points.slice(i, i + each).reduce((a, b) => (b[1] > a[1] ? b : a)));
  return kept;
}

/** One diagram: {title, height, lines: [{name, words, value, dashed}]} of samples by server. */
function diagram(samples, y, { title, height, unit, lines }) {
  const seconds = Math.max(...Object.values(samples).flat().map((s) => s.seconds));
  const most = Math.max(...lines.flatMap(({ name, value }) => samples[name].map(value))) * 1.08;
  const x = (s) => LEFT + s / seconds * (WIDTH - LEFT - RIGHT), up = (value) => y + height - value / most * height;
  const ticks = Array.from({ length: 6 }, (_, i) => i * step(most)).filter((value) => value <= most);
  const minutes = Array.from({ length: 8 }, (_, i) => i * step(seconds / 60)).filter((m) => m * 60 <= seconds);
  const ends = lines.map((line) => ({ ...line, at: up(line.value(samples[line.name].at(-1))) })).sort((a, b) => a.at - b.at);
  ends.forEach((line, i) => { if (i > 0) line.at = Math.max(line.at, ends[i - 1].at + 15); }); // labels side by side
  return [
    text(LEFT, y - 8, title, 'text', 'font-size="13" font-weight="600"'),
    ...ticks.flatMap((value) => [`<path class="grid" d="M${LEFT} ${up(value).toFixed(1)}H${WIDTH - RIGHT}"/>`, text(LEFT - 8, up(value) + 4, `${Number(value.toPrecision(3))}${unit}`, 'soft', 'font-size="12" text-anchor="end"')]),
    ...minutes.map((m) => text(x(m * 60), y + height + 16, `${Number(m.toPrecision(3))} min`, 'soft', 'font-size="12" text-anchor="middle"')),
    ...lines.map(({ name, value, dashed }) => `<path class="${name}" fill="none" stroke-width="1.5" ${dashed ? 'stroke-dasharray="4 3"' : ''} d="M${thin(samples[name].map((s) => [s.seconds, value(s)])).map(([s, v]) => `${x(s).toFixed(1)} ${up(v).toFixed(1)}`).join('L')}"/>`),
    ...ends.map(({ name, words, at }) => text(WIDTH - RIGHT + 8, at + 4, words, name)),
  ];
}

const MiB = 1024;
function panels(title, samples) {
  const names = Object.keys(samples), word = (name) => (names.length > 1 ? `${servers[name][0]}: ` : '');
  return [
    { title: `${title}: memory of the server`, height: HIGH, unit: ' MiB', lines: names.flatMap((name) => [
      { name, words: `${word(name)}resident`, value: (s) => s.residentKiB / MiB },
      { name, words: `${word(name)}its own`, value: (s) => s.heapKiB / MiB, dashed: true },
    ]) },
    { title: `${title}: open descriptors; cgroups of all sandboxes, dashed`, height: LOW, unit: '', lines: [
      ...names.map((name) => ({ name, words: `${word(name)}descriptors`, value: (s) => s.fds })),
      { name: names[0], words: 'cgroups', value: (s) => s.cgroups, dashed: true },
    ] },
  ].map((panel) => ({ samples, panel }));
}

/** The picture of a report of soak.mjs. */
export function draw(r) {
  let y = TOP;
  const parts = [];
  for (const { samples, panel } of [...panels(`${r.runs.runs.toLocaleString('en')} runs`, r.runs.samples), ...(r.mixed ? panels(`${r.mixed.minutes} minutes of mixed load`, r.mixed.samples) : [])]) {
    y += 20;
    parts.push(...diagram(samples, y, panel));
    y += panel.height + GAP;
  }
  const height = y + 24;
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${height}" viewBox="0 0 ${WIDTH} ${height}" role="img">
<title>Memory and open descriptors of jerboa serve over time</title>
<style>${style('light')}@media(prefers-color-scheme:dark){${style('dark')}}</style>
<rect class="card" width="${WIDTH}" height="${height}" rx="10"/>
<g font-family="system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif" font-size="13">
${text(24, 36, 'Does a server grow?', 'text', 'font-size="20" font-weight="700"')}
${text(24, 56, 'one jerboa serve and many runs, four at a time; then two with one store, and everything that clients do', 'soft', '')}
${parts.join('\n')}
${text(24, height - 14, `${r.date} · ${r.machine.cores} cores (${r.machine.cpu}) · Linux ${r.machine.kernel} · Node ${r.node} · ${r.version} · load before: ${r.machine.loadBefore.toFixed(1)}`)}
</g>
</svg>
`;
}
