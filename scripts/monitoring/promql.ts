/** Reads metric names and labels from PromQL, with the parser of the Prometheus project. */
import { parser } from '@prometheus-io/lezer-promql';

interface Matcher {
  readonly label: string;
  readonly operator: string;
  readonly value: string;
}

interface Selector {
  readonly metric: string;
  readonly matchers: readonly Matcher[];
}

export interface ParsedQuery {
  readonly selectors: readonly Selector[];
  /** Labels by which the query aggregates or joins. */
  readonly groupingLabels: readonly string[];
}

/** Replaces Grafana's variables by values that the parser accepts. */
export function withoutVariables(expr: string): string {
  return expr.replaceAll('$__rate_interval', '5m').replaceAll('$instance', '.*');
}

/** @throws Error for a syntax error, or for a metric named by a `__name__` matcher instead of the usual position. */
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
