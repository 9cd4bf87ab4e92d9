/** Builds the JSON of a Grafana dashboard (schema 39) from rows of panels. */

export interface Query {
  /** PromQL. `$__rate_interval` and variables of the dashboard may occur. */
  readonly expr: string;
  /** Legend. `{{label}}` is replaced by the value of a label. */
  readonly legend: string;
}

export interface Panel {
  readonly title: string;
  /** Help beside the title. */
  readonly about?: string;
  /** Lines over `time`, or the latest `number`. */
  readonly kind: 'time' | 'number';
  /** Grafana's name of the unit: `short`, `s`, `bytes`, `percentunit`, `reqps` … */
  readonly unit: string;
  /** Width in columns; a row has 24. */
  readonly width?: number;
  readonly isStacked?: boolean;
  /** A number at or above this value is red. */
  readonly redFrom?: number;
  /** A number below this value is red. */
  readonly redBelow?: number;
  readonly queries: readonly Query[];
}

export interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

const COLUMNS = 24;
// biome-ignore lint/suspicious/noTemplateCurlyInString: a variable of Grafana
const DATASOURCE = { type: 'prometheus', uid: '${datasource}' } as const;
const HEIGHTS = { time: 8, number: 4 } as const;

/** Dashboard in Grafana's storage form. Ids and positions follow from the order of rows and panels. */
export function dashboard(options: { readonly uid: string; readonly title: string; readonly rows: readonly Row[] }): object {
  const panels: object[] = [];
  let y = 0;
  for (const { title, panels: members } of options.rows) {
    panels.push({ id: panels.length + 1, type: 'row', title, collapsed: false, gridPos: { h: 1, w: COLUMNS, x: 0, y }, panels: [] });
    y += 1;
    let x = 0;
    let rowHeight = 0;
    for (const panel of members) {
      const width = panel.width ?? (panel.kind === 'number' ? 4 : 8);
      if (x + width > COLUMNS) {
        y += rowHeight;
        [x, rowHeight] = [0, 0];
      }
      const height = HEIGHTS[panel.kind];
      panels.push({ id: panels.length + 1, ...panelOf(panel), gridPos: { h: height, w: width, x, y } });
      x += width;
      rowHeight = Math.max(rowHeight, height);
    }
    y += rowHeight;
  }
  return {
    uid: options.uid,
    title: options.title,
    tags: ['inference'],
    schemaVersion: 39,
    version: 1,
    editable: true,
    graphTooltip: 1,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    timezone: 'browser',
    templating: {
      list: [
        { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus', current: {}, hide: 0 },
        {
          name: 'instance',
          label: 'Coordinator',
          type: 'query',
          datasource: DATASOURCE,
          query: { query: 'label_values(inference_ready, instance)', refId: 'instance' },
          refresh: 2,
          multi: true,
          includeAll: true,
          allValue: '.*',
          current: { text: 'All', value: '$__all' },
          hide: 0,
        },
      ],
    },
    annotations: {
      list: [
        {
          name: 'Starts of coordinators',
          datasource: DATASOURCE,
          enable: true,
          iconColor: 'blue',
          expr: 'changes(process_start_time_seconds{job="inference-coordinator"}[1m]) > 0',
          titleFormat: 'Start of {{instance}}',
        },
      ],
    },
    panels,
  };
}

function panelOf(panel: Panel): object {
  const { kind, title, about, unit, queries } = panel;
  const targets = queries.map(({ expr, legend }, index) => ({
    refId: String.fromCharCode('A'.charCodeAt(0) + index),
    datasource: DATASOURCE,
    expr,
    legendFormat: legend,
    ...(kind === 'number' ? { instant: true } : { range: true }),
  }));
  const common = { title, ...(about === undefined ? {} : { description: about }), datasource: DATASOURCE, targets };
  if (kind === 'number') {
    return {
      type: 'stat',
      ...common,
      fieldConfig: { defaults: { unit, thresholds: thresholdsOf(panel), color: { mode: 'thresholds' } }, overrides: [] },
      options: {
        reduceOptions: { calcs: ['lastNotNull'], fields: '', values: false },
        colorMode: 'value',
        graphMode: 'none',
        textMode: 'auto',
      },
    };
  }
  return {
    type: 'timeseries',
    ...common,
    fieldConfig: {
      defaults: {
        unit,
        min: 0,
        custom: {
          drawStyle: 'line',
          lineWidth: 1,
          fillOpacity: panel.isStacked === true ? 40 : 8,
          showPoints: 'never',
          stacking: { mode: panel.isStacked === true ? 'normal' : 'none' },
        },
      },
      overrides: [],
    },
    options: { legend: { displayMode: 'list', placement: 'bottom', showLegend: true }, tooltip: { mode: 'multi', sort: 'desc' } },
  };
}

function thresholdsOf({ redFrom, redBelow }: Panel): object {
  const steps =
    redBelow !== undefined
      ? [
          { color: 'red', value: null },
          { color: 'green', value: redBelow },
        ]
      : redFrom !== undefined
        ? [
            { color: 'green', value: null },
            { color: 'red', value: redFrom },
          ]
        : [{ color: 'text', value: null }];
  return { mode: 'absolute', steps };
}
