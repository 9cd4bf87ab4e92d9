/** Rules, runbooks and dashboards agree with each other, and promtool accepts the rules and their unit tests. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { COORDINATOR_DASHBOARD } from './coordinator-dashboard.js';
import { dashboard } from './grafana.js';
import { PROMETHEUS_DIRECTORY, parseQuery, readRules } from './rule-files.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8');
const alerts = readRules().filter(({ alert }) => alert !== undefined);

/** `### Name` headings, which become anchors in lower case. */
function runbookSections(): string[] {
  return [...read('docs/runbooks.md').matchAll(/^### (\w+)$/gm)].map(([, name = '']) => name);
}

describe('alerts', () => {
  it('have a severity, a summary, a description and a runbook', () => {
    expect(alerts.length).toBeGreaterThan(40);
    for (const { alert = '', labels = {}, annotations = {} } of alerts) {
      expect(['critical', 'warning'], alert).toContain(labels.severity);
      expect(annotations, alert).toEqual({
        summary: expect.stringMatching(/^[A-Z].+[^.]$/),
        description: expect.stringMatching(/\.$/),
        runbook_url: `{{ $externalLabels.console }}/docs/runbooks#${alert.toLowerCase()}`,
      });
    }
  });

  it('on shares of requests also need a minimum of bad ones', () => {
    const shares = alerts.filter(({ expr }) => /inference:\w+:ratio_rate/.test(expr));
    expect(shares.length).toBeGreaterThan(5);
    for (const { alert, expr } of shares)
      expect(expr, alert).toMatch(/inference:(\w+):ratio_rate[\s\S]*inference:(?:\1|first_tokens):increase\w+ > \d+/);
  });

  it('and sections of the runbooks correspond', () => {
    const names = alerts.map(({ alert }) => alert);
    expect(new Set(names).size).toBe(names.length);
    expect(runbookSections().sort()).toEqual([...names].sort());
  });
});

const promtool = (...args: readonly string[]): string =>
  execFileSync('promtool', args, { cwd: PROMETHEUS_DIRECTORY, encoding: 'utf8', stdio: 'pipe' });

function hasProgram(name: string): boolean {
  try {
    execFileSync(name, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

describe.skipIf(!hasProgram('promtool'))('promtool (apt-get install prometheus)', () => {
  it('accepts the configuration and the rules', () => {
    expect(promtool('check', 'config', 'prometheus.yml')).toContain('SUCCESS');
  });

  it('passes the unit tests of the rules', () => {
    promtool('test', 'rules', ...readdirSync(join(PROMETHEUS_DIRECTORY, 'tests')).map((file) => join('tests', file)));
  });
});

describe.skipIf(!hasProgram('amtool'))('amtool (apt-get install prometheus-alertmanager)', () => {
  it('accepts the configuration, and sends warnings less often', () => {
    const file = join(ROOT, 'deploy/alertmanager/alertmanager.yml');
    const amtool = (...args: readonly string[]): string => execFileSync('amtool', args, { encoding: 'utf8', stdio: 'pipe' });
    expect(amtool('check-config', file)).toContain('1 receivers');
    const routes = amtool('config', 'routes', 'show', `--config.file=${file}`);
    expect(routes).toContain('severity="warning"');
    for (const severity of ['critical', 'warning']) {
      expect(amtool('config', 'routes', 'test', `--config.file=${file}`, `severity=${severity}`).trim()).toBe('operators');
    }
  });
});

describe('the dashboard', () => {
  it('is what `npm run dashboards` writes', () => {
    expect(JSON.parse(read('deploy/grafana/dashboards/coordinator.json'))).toEqual(dashboard(COORDINATOR_DASHBOARD));
  });
});

describe('the reader of queries', () => {
  it('finds metrics, matchers and groupings', () => {
    expect(parseQuery('sum by (a) (rate(x_total{b=~"c|d"}[5m])) / on (e) y:z')).toEqual({
      selectors: [
        { metric: 'x_total', matchers: [{ label: 'b', operator: '=~', value: 'c|d' }] },
        { metric: 'y:z', matchers: [] },
      ],
      groupingLabels: ['a', 'e'],
    });
    expect(() => parseQuery('sum by (a')).toThrow('not PromQL');
    expect(() => parseQuery('{job="x"}')).toThrow('no metric name');
  });
});
