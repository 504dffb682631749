// What does not run on another engine, file by file, with the reason. Every other file of the integration and escape tests runs on every engine: run.mjs
// takes it by itself. A single test says nativeOnly(reason), a probe of the escape tests `elsewhere`.
import fs from 'node:fs';
import path from 'node:path';

const tests = path.resolve(import.meta.dirname, '..');
const noSandbox = 'no sandbox is started';
const jail = 'what a jail does and shows';

export const native = {
  'engines/remote': 'a daemon of its own: run.mjs remote',
  'integration/attach': `${jail}: layers that are mounted into sandboxes that run`,
  'integration/bare': `${jail}: no cgroup can be written`,
  'integration/death': `${jail}, and its cgroups, when somebody dies; the chaos test kills servers, clients, shims and inits of containers`,
  'integration/deps': 'packages are installed by sandboxes of the native engine for all; tools-dependencies shows that they arrive',
  'integration/deps-network': 'packages are installed by sandboxes of the native engine for all',
  'integration/doctor': `${jail} on machines that lack something`,
  'integration/fetch': noSandbox,
  'integration/gc': 'a Node of the store; elsewhere it is of the image',
  'integration/hostile': 'an init that breaks the protocol, beside a jail; what comes from a container is read by the same code',
  'integration/mcp-clients': noSandbox,
  'integration/mcp-peers': noSandbox,
  'integration/mcp-tasks': noSandbox,
  'integration/npm-config': noSandbox,
  'integration/npm-semver': noSandbox,
  'integration/refuse': `${jail} on machines that lack something`,
  'integration/store': noSandbox,
  'integration/tools-npm': noSandbox,
  'integration/upgrade': 'a jail of another version than its server; an init is asked by the version of its pipe, on every engine',
  'integration/walls': `${jail}; those of a container are looked at by the escape tests`,
  'escape/installer': 'packages are installed by sandboxes of the native engine for all',
  'escape/programs': 'a program outside of sandboxes',
};

/** The files of another engine; a row of the table that names no file is a mistake. */
export function filesOf() {
  const all = ['engines', 'integration', 'escape'].flatMap((dir) => fs.readdirSync(path.join(tests, dir)).filter((name) => name.endsWith('.test.mjs')).map((name) => `${dir}/${name.slice(0, -'.test.mjs'.length)}`));
  const unknown = Object.keys(native).filter((name) => !all.includes(name));
  if (unknown.length > 0) throw new Error(`tests/engines/native.mjs names what is not there: ${unknown}`);
  return all.filter((name) => !native[name]).map((name) => path.join(tests, `${name}.test.mjs`));
}
