// Versions and ranges: what we answer is what the npm package `semver` answers.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { build } from './jerboa.mjs';
import { load } from './mcp.mjs';

const { default: semver } = await load('semver');

const versions = ['0.0.0', '0.0.1', '0.0.2', '0.0.3', '0.1.0', '0.1.2', '0.2.0', '0.2.3', '0.2.9', '0.3.0', '0.9.9', '1.0.0', '1.0.0-0', '1.0.0-alpha', '1.0.0-alpha.1', '1.0.0-rc.1',
  '1.1.0', '1.2.0', '1.2.2', '1.2.3', '1.2.3-0', '1.2.3-beta.1', '1.2.3-beta.2', '1.2.3-beta.10', '1.2.3+build.5', '1.2.4', '1.2.4-rc.1', '1.3.0', '1.3.0-0', '1.3.0-rc.1', '1.9.9',
  '1.10.0', '2.0.0', '2.0.0-0', '2.0.0-rc.1', '2.0.1', '2.3.4', '2.3.5-pre', '3.0.0', '3.0.0-0', '4.5.6', '10.0.0', '9007199254740991.0.0', '24.21.0'];
const ranges = [
  // nothing, everything
  '', ' ', '*', 'x', 'X', '||', '* || x', 'x.x.x', '*.1.2', '1.*.3', '1.x.x', '=*', '>=*', '<=*', '>*', '<*', '^*', '~*', '>x', '<X',
  // exact, with marks and blanks
  '1.2.3', '=1.2.3', 'v1.2.3', '=v1.2.3', '= 1.2.3', ' 1.2.3 ', '1.2.3+build', '1.2.3-beta.2', '=1.2.3-beta.2', '1.2.3-0', '1.2.3-beta.2+build', '==1.2.3', 'vv1.2.3',
  // parts
  '0', '1', '2', '0.0', '0.2', '1.2', '1.2.x', '1.2.X', '1.2.*', '1.x', '=1.2', '=1', 'v1', 'v1.x',
  // carets and tildes
  '^1.2.3', '^1.2', '^1', '^0.2.3', '^0.2', '^0.0.3', '^0.0', '^0', '^0.x', '^0.0.x', '^1.x', '^1.2.x', '^1.2.3-beta.2', '^0.0.3-beta', '^2.0.0-rc.1', '^ 1.2.3', '^v1.2.3', '^=1.2.3',
  '~1.2.3', '~1.2', '~1', '~0.2.3', '~0.2', '~0', '~0.0.1', '~1.x', '~1.2.3-beta.2', '~> 1.2.3', '~>1.2', '~ 1.2.3', '~v1.2',
  // comparisons
  '>1.2.3', '>=1.2.3', '<1.2.3', '<=1.2.3', '>1.2', '>=1.2', '<1.2', '<=1.2', '>1', '>=1', '<1', '<=1', '> 1.2.3', '>= 1.2.3', '<  2', '>=1.2.x', '<1.x', '>1.x', '<=1.x',
  '>1.2.3-beta.1', '>=1.2.3-beta.2', '<1.2.3-beta.10', '<=1.2.3-beta.2', '<2.0.0-0', '>=2.0.0-0', '<0.0.0', '>=0.0.0', '<0.0.0-0', '>=0.0.0-0',
  // marks, and numbers behind an x
  '==1', '==1.2', 'vv1', 'v=1.2.3', '=v=1.2.3', '=  =1.2.3', '== 1', '^==1', '^vv1.2.3', '~==1.2.3', '>==1.2.3', '>= =1.2.3', '>=vv1.2.3', '>==1', '<==1.x', '1 - vv2', '==1 - 2', '=1.2.3 - 2', 'v1.2.3 - v2.0.0', '1.2.3 - ==2.0.0', 'vv1.2.3 - 2',
  '1.x.3', 'x.x.1', 'x.1', '^x.1', '~1.x.3', '^1.x.3', '>=1.x.3', '<x.1', 'x.1 - 2', '1.x.3 - 2', '1 - 2.x.1', '1.x.x-beta', '1.2.x-beta',
  // several
  '>=1.2.3 <2', '>=1.2.3 <2.0.0-0', '>1 <3 ', '>=1.2.3   <1.3.0', '<1 >2', '1.2.3 1.2.3', '1.2.3 1.2.4', '^1.2 ~1.2.3', '^1 || ^3', '1.2.3||2.0.1', '^1.2.3 ||  ', '<1 || >=2 <3 || 4.5.6',
  '>=1.2.3-beta.1 <1.2.3', '>=1.2.3-beta.1 <2', '~1.2.3-beta.1 || ^2.0.0-rc.1', '* 1.2.3', '>=1 * <2',
  // hyphens
  '1.2.3 - 2.3.4', '1.2 - 2.3.4', '1.2.3 - 2.3', '1.2.3 - 2', '1 - 2', '1.x - 2.x', '* - 2', '1 - *', '1.2.3-beta.1 - 1.2.3-beta.2', '1.2.3-beta.1 - 2', '1.2.3 -2.3.4', '1.2.3- 2.3.4', '1.2.3  -  2.0.0', 'v1 - v2', '1 - 2 || 4',
  // none
  'latest', 'banana', '1.2.3.4', '01.2.3', '1.02.3', '1.2.3-01', '1.2.3-', '1.2.3-a..b', '1.2.3+', '1..2', '.1', '1.', '>', '<=', '^', '~', '- 1', '1 -', '1 - 2 - 3', '>>1', '=>1', '!1', '1,2', '1 | 2', '1 ||| 2', 'blerg || 1.2.3', '^^1', '~^1', '9007199254740992.0.0', '1.2.3 foo', 'file:x', 'npm:a@1', 'x1', '1x', '1.2.3beta', '1.2-beta', '-1',
];

function ours(lines) {
  const { status, stdout } = spawnSync(path.join(build, 'semver'), { input: `${lines.join('\n')}\n`, encoding: 'utf8' });
  assert.equal(status, 0);
  const answers = stdout.trimEnd().split('\n');
  assert.equal(answers.length, lines.length);
  return answers;
}

test(`${ranges.length} ranges, ${versions.length} versions each`, (t) => {
  const cases = ranges.flatMap((range) => versions.map((version) => [range, version]));
  const expected = cases.map(([range, version]) => (semver.validRange(range) === null ? '-1' : semver.satisfies(version, range) ? '1' : '0'));
  const got = ours(cases.map(([range, version]) => `=${range}\t${version}`));
  const differ = cases.flatMap(([range, version], i) => (got[i] === expected[i] ? [] : [`"${range}" with ${version}: ${got[i]}, not ${expected[i]}`]));
  t.diagnostic(`${cases.length} cases: ${['1', '0', '-1'].map((answer) => expected.filter((e) => e === answer).length)}`);
  assert.ok(cases.length >= 300 && ['1', '0', '-1'].every((answer) => expected.filter((e) => e === answer).length >= 300));
  assert.deepEqual(differ.slice(0, 40), [], `${differ.length} differ`);
});

test('the order of versions', () => {
  const pairs = versions.flatMap((a) => versions.map((b) => [a, b]));
  assert.deepEqual(ours(pairs.map(([a, b]) => `\t${a}\t${b}`)), pairs.map(([a, b]) => String(semver.compare(a, b))));
});

test('what is a version', () => {
  const texts = [...versions, '1', '1.2', 'v1.2.3', '=1.2.3', '1.2.3.4', '01.2.3', '1.2.3-01', '1.2.3-0a', '1.2.3-', '1.2.3+', '1.2.3-a+b.c', '1.2.3--', '1.2.3---1', '1.2.3-a.', '9007199254740992.0.0', '', 'x', '1.2.x', '-1.2.3', '1.2.3 4'];
  const isOne = (text) => semver.valid(text) !== null && !/^[v=\s]|\s$/.test(text); // ours stand in file names: nothing in front
  assert.deepEqual(ours(texts.map((text) => `=*\t${text}`)).map((answer) => answer !== 'none'), texts.map(isOne));
});
