/** Reads the rules of `deploy/prometheus/rules` and the queries of the dashboard. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parser } from '@prometheus-io/lezer-promql';
import { parse } from 'yaml';
import { COORDINATOR_DASHBOARD } from './coordinator-dashboard.js';

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

interface Matcher {
  readonly label: string;
  readonly operator: string;
  readonly value: string;
}

interface Selector {
  readonly metric: string;
  readonly matchers: readonly Matcher[];
}

interface ParsedQuery {
  readonly selectors: readonly Selector[];
  /** Labels by which the query aggregates or joins. */
  readonly groupingLabels: readonly string[];
}

/** Replaces Grafana's variables by values that the parser accepts. */
function withoutVariables(expr: string): string {
  return expr.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*');
}

/**
 * Reads metric names and labels from PromQL, with the parser of the Prometheus project.
 *
 * @throws Error for a syntax error, or for a metric named by a `__name__` matcher instead of the usual position.
 */
export function parseQuery(expr: string): ParsedQuery {
  const selectors: { metric: string; matchers: Matcher[] }[] = [];
  const groupingLabels: string[] = [];
  const text = (node: { readonly from: number; readonly to: number }): string => expr.slice(node.from, node.to);
  parser.parse(expr).iterate({
    enter(ref) {
      const { node } = ref;
      if (node.type.isError) throw new Error(`not PromQL at ${node.from}: ${expr}`);
      if (node.name === 'VectorSelector') {
        const name = node.getChild('Identifier');
        if (name === null) throw new Error(`a selector has no metric name: ${expr}`);
        selectors.push({ metric: text(name), matchers: [] });
      }
      if (node.name === 'UnquotedLabelMatcher') {
        const [label, operator, value] = ['LabelName', 'MatchOp', 'StringLiteral'].map((child) => node.getChild(child));
        if (!label || !operator || !value) throw new Error(`a matcher is incomplete: ${expr}`);
        selectors.at(-1)?.matchers.push({ label: text(label), operator: text(operator), value: text(value).slice(1, -1) });
      }
      if (node.name === 'GroupingLabels') groupingLabels.push(...node.getChildren('LabelName').map(text));
    },
  });
  return { selectors, groupingLabels };
}
