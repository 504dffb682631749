// What a client asks, as data: lists of calls that follow each other. A seed fixes them; how many of them a client comes to, its server's speed.
//
// A call is {tool, args, expect, file, visit, kept}: `expect` stands in the answer if all is well; `file` is [name, content] that is in FILES_DIR then; with `visit`
// the server that was started is asked for a page; `kept` is [text, times], the whole of an output that is too long to be shown, which is read then. `$box` is the
// id that the call before it gave, `$n` the number of the turn.

const once = (random) => {
  const n = random.below(1e6);
  return [{ tool: 'run_js_ephemeral', args: { code: `console.log(${n} * 2)` }, expect: `\n${n * 2}\n` }];
};

const withPackage = (random, who) => {
  const name = random.below(3) === 0 ? 'pkg-usual' : `pkg-${who}-$n`; // most have to be installed first
  return [{ tool: 'run_js_ephemeral', args: { code: `import it from '${name}'; console.log('got', it)`, dependencies: [{ name, version: '^1' }] }, expect: `got ${name}\n` }];
};

const file = (random, who) => {
  const name = `${who}-$n.txt`, content = `${random.below(1e9)} of ${who}`.repeat(random.between(1, 200));
  return [{ tool: 'run_js_ephemeral', args: { code: `import fs from 'node:fs'; fs.writeFileSync('files/${name}', ${JSON.stringify(content)}); console.log('written')` }, expect: 'written\n', file: [name, content] }];
};

const much = (random) => {
  const line = `${random.between(1e8, 1e9)}\n`, times = 30_000; // 300 KB: what is more than 48 KiB goes to a file in the store (src/sandbox/keep.c)
  return [{ tool: 'run_js_ephemeral', args: { code: `process.stdout.write(${JSON.stringify(line)}.repeat(${times}))` }, expect: ' bytes left out', kept: [line, times] }];
};

const box = (random, who) => {
  const port = random.between(20_000, 29_000), word = `word${random.below(1e6)}`; // fetch refuses some lower ones
  const steps = [
    { tool: 'run_js', args: { container_id: '$box', code: `console.log('${word}'.toUpperCase())` }, expect: word.toUpperCase() },
    { tool: 'sandbox_exec', args: { container_id: '$box', commands: [`echo ${word} > it`, 'cat it', 'ls /proc | head -n 1'] }, expect: word },
    { tool: 'run_js', args: { container_id: '$box', code: `import http from 'node:http'; http.createServer((q, s) => s.end('${word}')).listen(${port})`, listenOnPort: port }, expect: '', visit: word },
    { tool: 'run_js', args: { container_id: '$box', code: `import it from 'pkg-usual'; console.log(it)`, dependencies: [{ name: 'pkg-usual', version: '^1' }] }, expect: 'pkg-usual' },
  ];
  return [{ tool: 'sandbox_initialize', args: {}, expect: '', opens: true }, ...random.shuffled(steps).slice(0, random.between(1, 4)),
    { tool: 'sandbox_stop', args: { container_id: '$box' }, expect: '' }];
};

const types = (random, who) => [{ tool: 'get_dependency_types', args: { dependencies: [{ name: `typed-${who}-$n` }, { name: 'typed-usual' }] }, expect: `typed-${who}-$n` }];
const search = () => [{ tool: 'search_npm_packages', args: { searchTerm: 'anything' }, expect: 'pkg-found' }];

const kinds = { once, withPackage, file, much, box, types, search };

/** Whether an installer runs for it. Seen by what it asks for, so that no kind of call can forget to say so. */
const installs = ({ tool, args }) => args.dependencies !== undefined && tool !== 'get_dependency_types';

/** Lines of one client; those that a disaster needs come in between the others, and none installs anything where an installer `mayHang`. */
export function planFor(random, who, needs = [], mayHang = false) {
  const names = [...random.shuffled(Object.keys(kinds)), ...Array.from({ length: 4 }, () => random.of(['once', 'file', 'box']))];
  const mixed = needs.length > 0 ? names.flatMap((name) => [random.of(needs), name]) : names;
  const lines = mixed.map((name) => kinds[name](random, who));
  return mayHang ? lines.map((line) => line.filter((call) => !installs(call))).filter((line) => line.length > 0) : lines;
}
