import { expect, it } from 'vitest';
import { SettingsError, StartupError } from '../../src/config/startup-error.js';

it('has the name of its class, which logs and stacks show', () => {
  expect(String(new StartupError('no database'))).toBe('StartupError: no database');
  expect(new SettingsError('bad').name).toBe('StartupError');
});
