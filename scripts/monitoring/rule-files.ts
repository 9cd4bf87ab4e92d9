/** Reads the rules of `deploy/prometheus/rules` and the queries of the dashboard. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import { COORDINATOR_DASHBOARD } from './coordinator-dashboard.js';
import { withoutVariables } from './promql.js';

export const PROMETHEUS_DIRECTORY = fileURLToPath(new URL('../../deploy/prometheus', import.meta.url));

export interface Rule {
  readonly file: string;
  readonly expr: string;
  /** Name of a recording rule. */
  readonly record?: string;
  /** Name of an alert. */
  readonly alert?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

interface RuleFile {
  readonly groups: readonly { readonly rules: readonly Omit<Rule, 'file'>[] }[];
}

export function readRules(): readonly Rule[] {
  const directory = join(PROMETHEUS_DIRECTORY, 'rules');
  return readdirSync(directory).flatMap((file) => {
    const { groups } = parse(readFileSync(join(directory, file), 'utf8')) as RuleFile;
    return groups.flatMap(({ rules }) => rules.map((rule) => ({ ...rule, file })));
  });
}

/** A query with the labels that its legend shows. */
export interface DashboardQuery {
  readonly panel: string;
  readonly expr: string;
  readonly legendLabels: readonly string[];
}

export function dashboardQueries(): readonly DashboardQuery[] {
  return COORDINATOR_DASHBOARD.rows.flatMap(({ panels }) =>
    panels.flatMap(({ title, queries }) =>
      queries.map(({ expr, legend }) => ({
        panel: title,
        expr: withoutVariables(expr),
        legendLabels: [...legend.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = '']) => label),
      })),
    ),
  );
}
