/** Import rules for check-imports.ts: a row per layer (a folder or file of `src`), with the layers that it may import (`uses`). */
import { builtinModules } from 'node:module';
import { dirname, join, normalize } from 'node:path';
import type { Import } from './read.js';

/** `uses` of a composition root, the code that wires an app: every layer of the app, and every package. */
const WHOLE_APP = 'whole app';

export interface Layer {
  readonly name: string;
  /** Path of a folder or file. The longest match wins. */
  readonly path: string;
  /** Name of the app; null for layers of packages. */
  readonly app: string | null;
  readonly uses: readonly string[] | typeof WHOLE_APP;
  /** Layers from which only types may be imported. */
  readonly usesTypesOf: readonly string[];
  /** Whether imports of Node.js modules are forbidden, so the layer runs in browsers. */
  readonly isNodeFree: boolean;
}

/** `uses` and `usesTypesOf` contain layers of other tables and paths of the same table, separated by white space. `.` is the path ''. */
interface Row {
  readonly uses: string;
  readonly usesTypesOf?: string;
  readonly isNodeFree?: boolean;
}

/** Rows by path below `src`; '' is the whole folder. */
type Table = Readonly<Record<string, Row>>;

function appLayers(app: string, table: Table): Layer[] {
  return layersOf(app, `apps/${app}/src`, table).map((layer) => ({ ...layer, app }));
}

function packageLayers(name: string, table: Table): Layer[] {
  return layersOf(name, `packages/${name}/src`, table).map((layer) => ({ ...layer, app: null }));
}

function layersOf(prefix: string, folder: string, table: Table): Omit<Layer, 'app'>[] {
  const nameOf = (layer: string): string => (layer in table ? [prefix, layer].filter((part) => part !== '').join('/') : layer);
  const namesOf = (paths: string): string[] => (paths.match(/\S+/g) ?? []).map((path) => nameOf(path === '.' ? '' : path));
  return Object.entries(table).map(([path, { uses, usesTypesOf = '', isNodeFree = false }]) => ({
    name: nameOf(path),
    path: [folder, path].filter((part) => part !== '').join('/'),
    uses: uses === WHOLE_APP ? uses : namesOf(uses),
    usesTypesOf: namesOf(usesTypesOf),
    isNodeFree,
  }));
}

const PACKAGE_LAYERS: readonly Layer[] = Object.entries({
  protocol: { '': { uses: '', isNodeFree: true }, crypto: { uses: 'protocol' } },
  formats: { '': { uses: 'protocol', isNodeFree: true } },
  scheduler: {
    '': { uses: 'bounded-map.ts cost pool placement cluster protocol', isNodeFree: true },
    'bounded-map.ts': { uses: '', isNodeFree: true },
    cost: { uses: '. bounded-map.ts protocol', isNodeFree: true },
    pool: { uses: '. cost protocol', isNodeFree: true },
    placement: { uses: '. bounded-map.ts cost pool protocol', isNodeFree: true },
    cluster: { uses: '. bounded-map.ts cost pool placement protocol', isNodeFree: true },
  },
  'json-schema-grammar': { '': { uses: 'validation/time-limit.ts', isNodeFree: true }, 'validation/time-limit.ts': { uses: '' } },
  enclave: { '': { uses: 'protocol protocol/crypto' } },
  verifier: { '': { uses: 'protocol', isNodeFree: true }, cli: { uses: 'verifier protocol' } },
  client: {
    '': { uses: 'verifier formats protocol', isNodeFree: true },
    'node.ts': { uses: 'client client/file-store.ts client/image-file.ts protocol/crypto' },
    'file-store.ts': { uses: 'client' },
    'image-file.ts': { uses: 'client protocol' },
    proxy: { uses: 'client client/node.ts protocol' },
  },
  'device-simulation': { '': { uses: 'protocol protocol/crypto' } },
}).flatMap(([name, table]) => packageLayers(name, table));

const COORDINATOR_LAYERS = appLayers('coordinator', {
  'main.ts': { uses: 'commands' },
  commands: { uses: WHOLE_APP },
  'app.ts': { uses: WHOLE_APP },
  wiring: { uses: WHOLE_APP },
  'config/config.ts': {
    uses: `devices cluster/settings.ts config/environment.ts config/mail.ts config/operator.ts config/secret-files.ts
      config/retention.ts telemetry/tracing-settings.ts transparency-log/settings.ts config/startup-error.ts protocol`,
  },
  'log.ts': { uses: 'config/config.ts' },
  'config/environment.ts': { uses: 'config/startup-error.ts', isNodeFree: true },
  'config/mail.ts': { uses: 'config/environment.ts config/startup-error.ts', isNodeFree: true },
  'config/secret-files.ts': { uses: 'config/environment.ts config/startup-error.ts' },
  'config/operator.ts': { uses: 'config/environment.ts protocol' },
  'config/program-version.ts': { uses: '' },
  'config/retention.ts': { uses: 'config/environment.ts', isNodeFree: true },
  'config/startup-error.ts': { uses: '', isNodeFree: true },
  'coalescing-runner.ts': { uses: '', isNodeFree: true },
  'repeated-task.ts': { uses: '' },
  'semaphore.ts': { uses: '', isNodeFree: true },
  'wait-group.ts': { uses: '', isNodeFree: true },
  'time-units.ts': { uses: '', isNodeFree: true },
  'limits/fair-budget.ts': { uses: '', isNodeFree: true },
  'limits/network-address.ts': { uses: '' },
  'limits/attempt-counters.ts': { uses: '', isNodeFree: true },
  'limits/network-limits.ts': { uses: '', isNodeFree: true },
  routes: {
    uses: `log.ts time-units.ts wait-group.ts cluster/views.ts scheduler/bounded-map.ts telemetry telemetry/history telemetry/statistics
      telemetry/statistics/model-performance.ts inference images billing billing/micro-usd.ts accounts config/program-version.ts
      config/startup-error.ts limits/fair-budget.ts limits/network-address.ts limits/attempt-counters.ts limits/network-limits.ts
      devices releases providers providers/verification transparency-log database formats scheduler protocol protocol/crypto`,
  },
  inference: {
    uses: `semaphore.ts wait-group.ts providers scheduler images billing billing/micro-usd.ts database scheduler/bounded-map.ts formats
      protocol protocol/crypto`,
  },
  releases: { uses: 'providers database formats protocol' },
  'transparency-log/settings.ts': { uses: 'config/environment.ts config/startup-error.ts protocol protocol/crypto' },
  'transparency-log': { uses: 'transparency-log/settings.ts scheduler/bounded-map.ts database protocol protocol/crypto' },
  images: { uses: 'database semaphore.ts scheduler/bounded-map.ts formats protocol' },
  backup: { uses: 'transparency-log database config/startup-error.ts protocol protocol/crypto', usesTypesOf: 'config/config.ts' },
  accounts: { uses: 'repeated-task.ts database semaphore.ts config/mail.ts config/startup-error.ts protocol' },
  devices: {
    uses: `coalescing-runner.ts providers/verification database config/environment.ts config/startup-error.ts protocol
      protocol/crypto`,
  },
  providers: {
    uses: `time-units.ts providers/verification scheduler/bounded-map.ts limits/fair-budget.ts limits/network-address.ts scheduler
      protocol protocol/crypto`,
  },
  'providers/verification': { uses: 'scheduler/bounded-map.ts protocol protocol/crypto', usesTypesOf: 'providers' },
  'telemetry/tracing-settings.ts': { uses: 'config/startup-error.ts' },
  'telemetry/statistics/model-performance.ts': { uses: 'scheduler/bounded-map.ts formats' },
  telemetry: {
    uses: `time-units.ts inference images billing providers telemetry/tracing-settings.ts
      telemetry/statistics/model-performance.ts protocol`,
  },
  'telemetry/checks': { uses: 'repeated-task.ts telemetry database' },
  'telemetry/history': { uses: 'time-units.ts scheduler/bounded-map.ts formats' },
  'telemetry/statistics': { uses: 'time-units.ts cluster/views.ts providers database scheduler/bounded-map.ts formats protocol' },
  billing: { uses: 'repeated-task.ts time-units.ts billing/micro-usd.ts accounts database protocol' },
  'cluster/transport': { uses: '' },
  'cluster/link': { uses: 'cluster/transport' },
  'cluster/json-message.ts': { uses: '', isNodeFree: true },
  'cluster/permits': { uses: 'cluster/json-message.ts cluster/link limits/network-limits.ts scheduler/bounded-map.ts' },
  'cluster/views.ts': { uses: '', isNodeFree: true },
  'cluster/settings.ts': { uses: 'config/environment.ts config/startup-error.ts' },
  cluster: {
    uses: `cluster/transport cluster/link cluster/json-message.ts cluster/views.ts database images inference providers
      providers/verification log.ts scheduler scheduler/bounded-map.ts formats protocol`,
  },
  'billing/micro-usd.ts': { uses: '', isNodeFree: true },
  database: {
    uses: `repeated-task.ts coalescing-runner.ts time-units.ts config/program-version.ts config/startup-error.ts limits/attempt-counters.ts
      scheduler/bounded-map.ts billing/micro-usd.ts protocol`,
  },
});

const PROVIDER_LAYERS = appLayers('provider', {
  'main.ts': { uses: 'cli version.ts' },
  'startup-error.ts': { uses: 'control files host/hardening model-process models service enclave' },
  'version.ts': { uses: '' },
  daemon: { uses: WHOLE_APP },
  'daemon/watchdog': { uses: '' },
  cli: {
    uses: `daemon startup-error.ts host/availability account config control doctor doctor/bug-report host/hardening log update models
      notifications service jobs/serving host protocol`,
  },
  files: { uses: '' },
  config: { uses: 'files protocol' },
  account: { uses: 'control files verifier protocol' },
  'host/hardening': { uses: '' },
  log: { uses: '' },
  service: { uses: 'config control files log update' },
  'doctor/bug-report': { uses: 'config control doctor log host update protocol' },
  update: { uses: 'models protocol protocol/crypto' },
  notifications: { uses: 'files service protocol' },
  control: { uses: 'files protocol' },
  doctor: { uses: 'config control host host/availability models service update enclave protocol' },
  session: { uses: 'jobs protocol protocol/crypto enclave' },
  jobs: { uses: `jobs/serving engine imaging models enclave formats json-schema-grammar protocol protocol/crypto` },
  'jobs/serving': { uses: 'engine imaging models protocol' },
  imaging: { uses: 'model-process models protocol' },
  engine: { uses: 'model-process models formats json-schema-grammar protocol' },
  'model-process': { uses: 'host/hardening' },
  models: { uses: 'files protocol' },
  host: { uses: 'protocol' },
  'host/availability': { uses: 'config host protocol', isNodeFree: true },
});

/** Page folders of the console. Page folders import neither each other nor the router. */
const PAGE_FOLDERS = ['account', 'admin', 'client', 'docs', 'models', 'network', 'organisation', 'owner', 'playground'].map(
  (name) => `pages/${name}`,
);
const PAGE_ROW: Row = { uses: 'features routing api ui verifier protocol', usesTypesOf: 'formats', isNodeFree: true };

const CONSOLE_LAYERS = appLayers('console', {
  'main.tsx': { uses: 'app styles', isNodeFree: true },
  styles: { uses: '' },
  app: { uses: 'pages features routing api ui', usesTypesOf: 'formats', isNodeFree: true },
  pages: { uses: [...PAGE_FOLDERS, 'routing'].join(' '), isNodeFree: true },
  ...Object.fromEntries(PAGE_FOLDERS.map((folder) => [folder, PAGE_ROW])),
  features: { uses: 'routing api ui protocol', usesTypesOf: 'formats', isNodeFree: true },
  api: { uses: 'ui', usesTypesOf: 'formats', isNodeFree: true },
  routing: { uses: '', usesTypesOf: 'formats', isNodeFree: true },
  ui: { uses: '', isNodeFree: true },
});

const LAYERS: readonly Layer[] = [...PACKAGE_LAYERS, ...COORDINATOR_LAYERS, ...PROVIDER_LAYERS, ...CONSOLE_LAYERS];

/** Package name of an app, or of a module in an app. */
const APP_PACKAGE = /^(@inference\/(coordinator|console)|inference-provider)(\/|$)/;

/** The layer of a source file, by the longest matching path. Null if no row covers the file. */
export function layerOf(path: string): Layer | null {
  let best: Layer | null = null;
  for (const layer of LAYERS) {
    const inside = path === layer.path || path.startsWith(`${layer.path}/`);
    if (inside && (best === null || layer.path.length > best.path.length)) best = layer;
  }
  return best;
}

/** Reason why the file at `path` must not import the specifier, or null. */
export function checkImport(layer: Layer, path: string, { specifier, typesOnly }: Import): string | null {
  if (specifier.startsWith('node:') || builtinModules.includes(specifier)) {
    return layer.isNodeFree ? `${layer.name} may use no module of Node.js` : null;
  }
  if (APP_PACKAGE.test(specifier)) return 'apps never import each other';
  const target = specifier.startsWith('.')
    ? layerOf(normalize(join(dirname(path), specifier)).replace(/\.js$/, '.ts'))
    : packageLayer(specifier);
  if (target === undefined) return null;
  if (target === null) return 'the target lies in no layer';
  if (target.name === layer.name) return null;
  if (layer.uses === WHOLE_APP) {
    return target.app === null || target.app === layer.app ? null : 'apps never import each other';
  }
  if (layer.usesTypesOf.includes(target.name)) {
    return typesOnly ? null : `${layer.name} may import only types from ${target.name}`;
  }
  return layer.uses.includes(target.name) ? null : `${layer.name} may use only ${layer.uses.join(', ') || 'itself'}`;
}

/** Layer of one of our packages, or null if it has none. Undefined for third-party packages. */
function packageLayer(specifier: string): Layer | null | undefined {
  const [, scope, name = ''] = /^(@inference\/|inference-)(.*)$/.exec(specifier) ?? [];
  if (scope === undefined) return undefined;
  // `json-schema-grammar/grammar` is a second entry of `json-schema-grammar`, in the same layer.
  const path = name.replace(/\/grammar$/, '');
  return LAYERS.find((layer) => layer.name === path || layer.name === `${path}.ts`) ?? null;
}
