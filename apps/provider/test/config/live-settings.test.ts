/** Live settings: immediate changes, changes that need a restart, and invalid files. */
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { temporaryDirectory } from '../../../../test/support/temporary-directory.js';
import type { Config } from '../../src/config/config.js';
import { LiveSettings, type SettingsEvent } from '../../src/config/live-settings.js';
import { readConfig } from '../../src/config/read-config.js';

let dir: string;
let path: string;
let events: SettingsEvent[];
let applied: Config[];
let settings: LiveSettings;
let heard: (() => void)[];

beforeEach(() => {
  dir = temporaryDirectory('settings');
  path = join(dir, 'config.toml');
  [events, applied, heard] = [[], [], []];
  settings = open(0);
});
afterEach(() => settings.close());

function open(everyMs: number, initial: Config = readConfig(path)): LiveSettings {
  return new LiveSettings({
    path,
    initial,
    read: () => readConfig(path),
    apply: (config) => applied.push(config),
    onEvent: (event) => {
      events.push(event);
      for (const hear of heard.splice(0)) hear();
    },
    everyMs,
  });
}

it('applies live settings and lists settings that need a restart', () => {
  writeFileSync(path, 'log_level = "debug"\n[models]\nslots = 3\n[availability]\nwhen_hot = "serve"');
  expect(settings.reload()).toMatchObject({ problem: null, needs_restart: ['models.slots'] });
  expect(events).toEqual([
    { type: 'changed', changed: ['availability.when_hot', 'log_level', 'models.slots'], needsRestart: ['models.slots'] },
  ]);
  expect(applied).toHaveLength(1);
  expect(applied[0]).toMatchObject({ log_level: 'debug', availability: { when_hot: 'serve' } });
  // No repeated report; a reverted setting needs no restart.
  settings.reload();
  expect(events).toHaveLength(1);
  writeFileSync(path, '');
  expect(settings.reload().needs_restart).toEqual([]);
});

it('keeps the previous settings while the file is invalid, and reports once', () => {
  writeFileSync(path, 'log_level = "debug"');
  settings.reload();
  writeFileSync(path, 'log_level = "debug"\n[modles]');
  expect(settings.reload()).toMatchObject({ problem: `${path}:2:1: there is no setting modles (did you mean models?)` });
  settings.reload();
  expect(settings.config.log_level).toBe('debug');
  expect(events.filter(({ type }) => type === 'refused')).toHaveLength(1);
  writeFileSync(path, 'log_level = "debug"');
  expect(settings.reload().problem).toBeNull();
  expect(events.at(-1)).toEqual({ type: 'changed', changed: [], needsRestart: [] });
});

it('notices a change between the start and the first poll', async () => {
  settings.close();
  writeFileSync(path, 'log_level = "info"');
  const now = readConfig(path);
  writeFileSync(path, 'log_level = "warn"');
  const changed = new Promise<void>((resolve) => heard.push(resolve));
  settings = open(5, now);
  await changed;
  expect(applied.at(-1)?.log_level).toBe('warn');
});

it('notices changed and replaced files', async () => {
  settings.close();
  settings = open(20);
  const changed = new Promise<void>((resolve) => heard.push(resolve));
  writeFileSync(`${path}.new`, '[update]\nautomatic = false');
  renameSync(`${path}.new`, path);
  await changed;
  expect(applied.at(-1)?.update.automatic).toBe(false);
});
