/** Pages of one machine keep refreshing after temporary errors. */
import { expect, test } from 'vitest';
import { ApiError } from '../../src/api/api-error.js';
import { machineRefreshMs } from '../../src/features/machines/machine-refresh.js';

const apiError = (status: number): ApiError =>
  new ApiError({ status, message: '', code: '', param: null, requestId: null, retryAfter: null });

test('only a missing machine ends the refresh', () => {
  expect(machineRefreshMs(null, 5000)).toBe(5000);
  expect(machineRefreshMs(new TypeError('no connection'), 5000)).toBe(5000);
  expect(machineRefreshMs(apiError(503), 5000)).toBe(5000);
  expect(machineRefreshMs(apiError(404), 5000)).toBe(false);
});
