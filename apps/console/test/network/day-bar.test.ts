import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { afterEach, expect, it, vi } from 'vitest';
import { DayBar } from '../../src/pages/network/status/day-bar.js';

afterEach(() => {
  vi.useRealTimers();
});

it('names the days of a status that was computed before midnight', () => {
  vi.useFakeTimers({ now: Date.UTC(2026, 2, 2, 0, 0, 20), toFake: ['Date'] });
  const props = { label: 'API', days: [1, 0.5], downMinutes: [0, 720], uptime: '75%', at: '2026-03-01T23:59:50.000Z' };
  const html = renderToStaticMarkup(createElement(DayBar, props));
  expect(html).toContain('aria-valuetext="Mar 1: 50.00%, 720 minutes down"');
  expect(html).toContain('<span>Feb 28</span><span>75%</span><span>Mar 1</span>');
});
