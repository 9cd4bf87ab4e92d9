/** Service log: bounded size, synchronous writes, text form, and following over rotations. */
import { appendFileSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { beforeEach, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import { follow, lastLines } from '../../src/log/log-files.js';
import { logLineText } from '../../src/log/log-line.js';
import { RotatingFile } from '../../src/log/rotating-file.js';

let dir: string;
beforeEach(() => {
  dir = temporaryDirectory('log');
});

it('is bounded in size and loses no line at a rotation', () => {
  const path = join(dir, 'p.log');
  const file = new RotatingFile({ path, maxBytes: 1000, maxRotated: 3 });
  const log = pino({ base: null, timestamp: false }, file);
  for (let number = 0; number < 200; number++) log.info({ number }, 'a line');
  file.close();
  const names = ['p.log.3', 'p.log.2', 'p.log.1', 'p.log'];
  expect(readdirSync(dir).sort()).toEqual([...names].sort());
  for (const name of names) expect(statSync(join(dir, name)).size).toBeLessThanOrEqual(1000);
  const numbers = names.flatMap((name) =>
    readFileSync(join(dir, name), 'utf8')
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { number: number }).number),
  );
  expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, index) => 200 - numbers.length + index));
  expect(numbers.length).toBeGreaterThan(60);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

it('appends to an existing file, and survives write errors', () => {
  const path = join(dir, 'p.log');
  writeFileSync(path, 'old\n');
  const file = new RotatingFile({ path, maxBytes: 10, maxRotated: 1 });
  file.write('1234567\n');
  expect([readFileSync(`${path}.1`, 'utf8'), readFileSync(path, 'utf8')]).toEqual(['old\n', '1234567\n']);
  // The folder is gone: the next rotation cannot make a file.
  rmSync(dir, { recursive: true });
  file.write('next line\n');
  expect(file.lost).toBe(1);
  file.close();
  mkdirSync(dir);
});

it('returns last lines, across files and blocks', () => {
  const path = join(dir, 'p.log');
  const lines = Array.from({ length: 3000 }, (_, index) => `${index} ${'ü'.repeat(index % 90)}`);
  writeFileSync(`${path}.1`, `${lines.slice(0, 1500).join('\n')}\n`);
  writeFileSync(path, `${lines.slice(1500).join('\n')}\n`);
  expect(lastLines(path, 3)).toEqual(lines.slice(-3));
  expect(lastLines(path, 1400)).toEqual(lines.slice(-1400));
  expect(lastLines(path, 2000)).toEqual(lines.slice(-2000));
  expect(lastLines(path, 0)).toEqual([]);
  expect(lastLines(path, 9999)).toEqual(lines);
  expect(lastLines(join(dir, 'none'), 5)).toEqual([]);
});

it('is followed across rotations, in whole lines', async () => {
  const path = join(dir, 'p.log');
  writeFileSync(path, 'before\n');
  const stop = new AbortController();
  const coming = follow(path, stop.signal, { pollMs: 5 });
  const seen: string[] = [];
  const reading = (async () => {
    for await (const lines of coming) {
      seen.push(...lines);
      if (seen.length === 1) {
        renameSync(path, `${path}.1`);
        appendFileSync(`${path}.1`, 'into the old one\n');
        writeFileSync(path, 'first of the new\nhal');
      }
      if (seen.includes('first of the new')) appendFileSync(path, 'f a line\n');
      if (seen.includes('half a line')) stop.abort();
    }
  })();
  // The generator opens the file in its first turn.
  await new Promise((resolve) => setImmediate(resolve));
  appendFileSync(path, 'after\n');
  await reading;
  expect(seen.slice(0, 3)).toEqual(['after', 'into the old one', 'first of the new']);
  expect(seen).toContain('half a line');
});

it('is followed from its last lines on, without a gap, a repeated line or half a line, also after a truncation', async () => {
  const path = join(dir, 'p.log');
  writeFileSync(`${path}.1`, 'first\n');
  writeFileSync(path, 'second\nthird\nhalf');
  const stop = new AbortController();
  const lines = follow(path, stop.signal, { lastLineCount: 3, pollMs: 5 });
  expect((await lines.next()).value).toEqual(['first', 'second', 'third']);
  // Written while the last lines are printed, before the first check for new ones.
  appendFileSync(path, ' a line\nfourth\n');
  expect((await lines.next()).value).toEqual(['half a line', 'fourth']);
  writeFileSync(path, 'short\n');
  expect((await lines.next()).value).toEqual(['short']);
  stop.abort();
  expect((await lines.next()).done).toBe(true);
});

it('is shown for people, and no line can play with their terminal', () => {
  const line = JSON.stringify({
    level: 40,
    time: 0,
    pid: 1,
    hostname: 'h',
    event: 'x',
    code: 'a\u001b[2J\u202eb',
    facts: { a: [1] },
    msg: 'not connected',
  });
  expect(logLineText(line)).toMatch(/^19(69|70)-\d\d-\d\d \d\d:\d\d:\d\d WARN {2}not connected code=a\?\[2J\?b facts=\{"a":\[1\]\}$/);
  expect(logLineText('Error: no JSON\u0007')).toBe('Error: no JSON?');
  expect(logLineText('null')).toBe('null');
});
