/** Metric names with the labels of their samples, read from the text format of Prometheus. */
export function metricFamilies(text: string): ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>> {
  const families = new Map<string, Map<string, Set<string>>>();
  const family = (name: string): Map<string, Set<string>> => {
    const labels = families.get(name) ?? new Map<string, Set<string>>();
    families.set(name, labels);
    return labels;
  };
  for (const line of text.split('\n')) {
    const help = /^# TYPE (\S+) (\S+)$/.exec(line);
    if (help !== null) {
      const [, name = '', type] = help;
      for (const suffix of type === 'histogram' || type === 'summary' ? ['_bucket', '_sum', '_count'] : ['']) family(name + suffix);
    }
    const sample = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+$/.exec(line);
    if (sample === null) continue;
    const [, name = '', labels = ''] = sample;
    for (const [, label = '', value = ''] of labels.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) {
      const values = family(name).get(label) ?? new Set<string>();
      values.add(value);
      family(name).set(label, values);
    }
  }
  return families;
}
