// picture.mjs FILE: asks a real `jerboa serve` what an agent would ask, and draws questions and answers as a terminal would show them.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { load } from '../tests/integration/mcp.mjs';

const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');

const WIDTH = 94, LINE = 18, CHARACTER = 8.43, MARGIN = 22; // in characters; in pixels
const colours = { prompt: '#8ec07c', code: '#ebdbb2', answer: '#bdae93', error: '#fb8b73', note: '#7c8f9f' };
const rows = []; // { text, kind } or { image }

const say = (kind, text) => {
  for (const line of text.replace(/\n$/, '').split('\n')) {
    let rest = line;
    while (rest.length > WIDTH) { // broken at a space, and what follows is indented
      const at = rest.lastIndexOf(' ', WIDTH);
      rows.push({ kind, text: rest.slice(0, at) });
      rest = `  ${rest.slice(at + 1)}`;
    }
    rows.push({ kind, text: rest });
  }
};

// ---- the session ----

const files = fs.mkdtempSync(path.join(os.tmpdir(), 'jerboa-picture-'));
const transport = new StdioClientTransport({
  command: path.join(process.env.JERBOA_BUILD, 'jerboa'), args: ['serve', '--files', files, '--network', 'npm'], env: { ...process.env }, stderr: 'ignore' });
const client = new Client({ name: 'picture', version: '1.0.0' });
await client.connect(transport);
await client.listTools();

/** What is shown of an answer: its texts without the telemetry, its pictures. */
function show(r) {
  for (const block of r.content) {
    if (block.type === 'image') rows.push({ image: `data:${block.mimeType};base64,${block.data}` });
    if (block.type !== 'text' || block.text.startsWith('Telemetry:')) continue;
    say(r.isError ? 'error' : 'answer', block.text);
  }
}

async function call(name, args) {
  const { code, ...others } = args;
  say('prompt', `▸ ${name}${Object.keys(others).length ? ` ${JSON.stringify(others)}` : ''}`);
  if (code) say('code', code.trim().replaceAll(/^/gm, '  '));
  const began = performance.now();
  const r = await client.callTool({ name, arguments: args });
  const ms = performance.now() - began;
  show(r);
  say('note', `  ${ms.toFixed(ms < 10 ? 1 : 0)} ms`);
}

const qrcode = [{ name: 'qrcode', version: '^1.5' }];
await client.callTool({ name: 'run_js_ephemeral', arguments: { code: '', dependencies: qrcode } }); // installed once; not the first time is shown
say('note', `jerboa serve --network npm (${client.getServerVersion().version}), asked by an MCP client`);
await call('run_js_ephemeral', { code: 'console.log(process.version, Math.hypot(3, 4))' });
await call('run_js_ephemeral', {
  code: `import QRCode from 'qrcode';\nawait QRCode.toFile('files/code.png', 'It runs in a sandbox', { width: 132, margin: 1 });`,
  dependencies: qrcode,
});
await call('run_js_ephemeral', { code: `await fetch('http://169.254.169.254/').catch((e) => console.log(e.message));` });
await call('run_js_ephemeral', { code: 'for (;;);', timeoutMs: 200 });

await client.close();
fs.rmSync(files, { recursive: true });

// ---- the picture ----

const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
const IMAGE = 132;
let y = MARGIN + 22;
const parts = rows.map(({ text, kind, image }) => {
  if (image) {
    y += IMAGE + 10;
    return `<image x="${MARGIN + 16}" y="${y - IMAGE - 18}" width="${IMAGE}" height="${IMAGE}" href="${image}"/>`;
  }
  if (text.startsWith('▸')) y += 8;
  y += LINE;
  return `<text x="${MARGIN}" y="${y - LINE}" fill="${colours[kind]}"${kind === 'prompt' ? ' font-weight="bold"' : ''}>${escape(text)}</text>`;
});
const width = Math.ceil(WIDTH * CHARACTER + 2 * MARGIN), height = y + 6;
fs.writeFileSync(process.argv[2], `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">
<title>A session of jerboa serve with an MCP client</title>
<rect width="${width}" height="${height}" rx="8" fill="#1d2021"/>
<g font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="14" xml:space="preserve">
${parts.join('\n')}
</g>
</svg>
`);
