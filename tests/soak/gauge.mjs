// gauge.mjs: what a server holds, read from /proc, from the cgroups and from its store: a sample now and then, and a look at rest.
//
// What can be counted (`counts`) must be at rest, after all work, exactly what it was at rest before it. Memory moves, since malloc keeps what it has:
// it is judged by its trend (`growth`).
import path from 'node:path';
import { descendants, descriptors, list, ownCgroups, read } from '../integration/jerboa.mjs';

const below = (dir) => list(dir).filter((name) => name.startsWith('jerboa')).map((name) => path.join(dir, name));
/** Groups of sandboxes and, in them, of runs. */
const cgroups = () => ownCgroups().flatMap(below).flatMap((dir) => [dir, ...below(dir)]).length;

/** What a store holds besides entries: names of files on their way begin with a dot. */
const onTheirWay = (home) => ['', 'runtimes', 'tools', 'layers', 'downloads'].flatMap((dir) => list(path.join(home, dir))).filter((name) => name.startsWith('.')).length;

const watches = (pid) => list(`/proc/${pid}/fdinfo`).map((fd) => read(`/proc/${pid}/fdinfo/${fd}`).match(/^inotify wd:/gm)?.length ?? 0).reduce((a, b) => a + b, 0);
const kib = (text, name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1]);

/** Of a server, and of the places that it shares with those beside it. */
export function gauge(pid, home) {
  const memory = read(`/proc/${pid}/smaps_rollup`), below = descendants(pid);
  return {
    fds: descriptors(pid),
    watches: watches(pid),
    threads: list(`/proc/${pid}/task`).length,
    jails: below.filter((p) => p.name === 'jerboa-jail').length,
    children: below.length,
    cgroups: cgroups(),
    mounts: read('/proc/self/mountinfo').split('\n').length - 1,
    'store temps': onTheirWay(home),
    residentKiB: kib(memory, 'Rss'),
    heapKiB: kib(memory, 'Anonymous'),
  };
}

/** Somebody is connected to a port of this machine. */
export const isConnected = (port) => new RegExp(`^ *\\d+: 0100007F:${Number(port).toString(16).padStart(4, '0')} \\S+ 01 `, 'mi').test(read('/proc/net/tcp'));

export const counts = ['fds', 'watches', 'threads', 'jails', 'children', 'cgroups', 'mounts', 'store temps'];
export const sameCounts = (a, b) => counts.every((name) => a[name] === b[name]);
export const difference = (a, b) => counts.filter((name) => a[name] !== b[name]).map((name) => `${name}: ${a[name]}, then ${b[name]}`).join('; ');

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const between = (samples, from, to) => samples.slice(Math.floor(samples.length * from), Math.max(Math.ceil(samples.length * to), 1));

/** KiB by which memory of its own grew from a fifth of the time on: the median of that tenth, and of the last. */
export function growth(samples) {
  const of = (from, to) => median(between(samples, from, to).map((s) => s.heapKiB));
  const early = of(0.2, 0.3), late = of(0.9, 1);
  return { early, late, grown: late - early };
}

/** Samples of servers, {name: {pid}}, each `ms`, until it is stopped. */
export function watch(servers, home, ms) {
  const began = performance.now(), samples = Object.fromEntries(Object.keys(servers).map((name) => [name, []]));
  const look = () => {
    for (const [name, { pid }] of Object.entries(servers)) samples[name].push({ seconds: Math.round(performance.now() - began) / 1000, ...gauge(pid, home) });
  };
  const timer = setInterval(look, ms);
  return { samples, stop: () => clearInterval(timer) };
}
