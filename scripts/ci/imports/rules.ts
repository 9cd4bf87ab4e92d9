/**
 * Import directions as tables. A layer is a folder or a file; `uses` lists permitted layers (its own layer is implied). Wiring files
 * of an app may import the whole app.
 */
import { builtinModules } from 'node:module';
import { dirname, join, normalize } from 'node:path';
import type { Import } from './read.js';

export interface Layer {
  readonly name: string;
  /** Path of a folder or file. The longest match wins. */
  readonly path: string;
  readonly uses: readonly string[] | 'all of the app';
  /** Layers with type-only imports, absent at run time. */
  readonly usesTypesOf: readonly string[];
  /** Uses no Node module. */
  readonly isPure: boolean;
}

type Room = Pick<Layer, 'uses'> & Partial<Pick<Layer, 'usesTypesOf' | 'isPure'>>;

/** Layers of an app or of the packages, by path below `folder`. Rooms name each other by that path, and other layers by name. */
function layersIn(app: string, folder: string, rooms: Readonly<Record<string, Room>>): Layer[] {
  const nameOf = (room: string): string => (room in rooms ? [app, room].filter((part) => part !== '').join('/') : room);
  return Object.entries(rooms).map(([room, { uses, usesTypesOf = [], isPure = false }]) => ({
    name: nameOf(room),
    path: [folder, room].filter((part) => part !== '').join('/'),
    uses: typeof uses === 'string' ? uses : uses.map(nameOf),
    usesTypesOf: usesTypesOf.map(nameOf),
    isPure,
  }));
}

const PACKAGE_LAYERS: readonly Layer[] = Object.entries({
  protocol: { '': { uses: [], isPure: true }, crypto: { uses: ['protocol'] } },
  formats: { '': { uses: ['protocol'], isPure: true } },
  scheduler: { '': { uses: ['bounded-map.ts', 'protocol'], isPure: true }, 'bounded-map.ts': { uses: [], isPure: true } },
  'json-schema-grammar': { '': { uses: ['validation/time-limit.ts'], isPure: true }, 'validation/time-limit.ts': { uses: [] } },
  enclave: { '': { uses: ['protocol', 'protocol/crypto'] } },
  verifier: { '': { uses: ['protocol'], isPure: true }, cli: { uses: ['verifier', 'protocol'] } },
  'device-simulation': { '': { uses: ['protocol', 'protocol/crypto'] } },
}).flatMap(([name, rooms]) => layersIn(name, `packages/${name}/src`, rooms));

const COORDINATOR_LAYERS = layersIn('coordinator', 'apps/coordinator/src', {
  '': { uses: 'all of the app' },
  'config/config.ts': {
    uses: [
      'devices',
      'cluster/settings.ts',
      'config/environment.ts',
      'telemetry/tracing-settings.ts',
      'config/startup-error.ts',
      'protocol',
    ],
  },
  'log.ts': { uses: ['config/config.ts'] },
  'config/environment.ts': { uses: ['config/startup-error.ts'], isPure: true },
  'config/startup-error.ts': { uses: [], isPure: true },
  'limits/fair-budget.ts': { uses: [], isPure: true },
  'limits/network-address.ts': { uses: [] },
  'limits/attempt-counters.ts': { uses: [], isPure: true },
  'limits/network-limits.ts': { uses: [], isPure: true },
  routes: {
    uses: [
      'log.ts',
      'cluster/views.ts',
      'scheduler/bounded-map.ts',
      'telemetry',
      'telemetry/statistics',
      'inference',
      'images',
      'billing',
      'billing/micro-usd.ts',
      'accounts',
      'config/startup-error.ts',
      'limits/fair-budget.ts',
      'limits/network-address.ts',
      'limits/attempt-counters.ts',
      'limits/network-limits.ts',
      'devices',
      'releases',
      'providers',
      'providers/verification',
      'database',
      'formats',
      'scheduler',
      'protocol',
      'protocol/crypto',
    ],
  },
  inference: {
    uses: [
      'providers',
      'scheduler',
      'images',
      'billing',
      'billing/micro-usd.ts',
      'database',
      'scheduler/bounded-map.ts',
      'formats',
      'protocol',
      'protocol/crypto',
    ],
  },
  releases: { uses: ['protocol'] },
  images: { uses: ['database', 'scheduler/bounded-map.ts', 'formats', 'protocol'] },
  accounts: { uses: ['database', 'config/startup-error.ts', 'protocol'] },
  devices: {
    uses: ['providers/verification', 'database', 'config/environment.ts', 'config/startup-error.ts', 'protocol', 'protocol/crypto'],
  },
  providers: {
    uses: [
      'providers/verification',
      'scheduler/bounded-map.ts',
      'limits/fair-budget.ts',
      'limits/network-address.ts',
      'scheduler',
      'protocol',
      'protocol/crypto',
    ],
  },
  'providers/verification': { uses: ['scheduler/bounded-map.ts', 'protocol', 'protocol/crypto'], usesTypesOf: ['providers'] },
  'telemetry/tracing-settings.ts': { uses: ['config/startup-error.ts'] },
  telemetry: { uses: ['inference', 'images', 'billing', 'providers', 'telemetry/tracing-settings.ts', 'protocol'] },
  'telemetry/statistics': { uses: ['cluster/views.ts', 'providers', 'database', 'scheduler/bounded-map.ts', 'formats', 'protocol'] },
  billing: { uses: ['billing/micro-usd.ts', 'accounts', 'database', 'protocol'] },
  'cluster/transport': { uses: [] },
  'cluster/link': { uses: ['cluster/transport'] },
  'cluster/json-message.ts': { uses: [], isPure: true },
  'cluster/permits': { uses: ['cluster/json-message.ts', 'cluster/link', 'limits/network-limits.ts', 'scheduler/bounded-map.ts'] },
  'cluster/views.ts': { uses: [], isPure: true },
  'cluster/settings.ts': { uses: ['config/environment.ts', 'config/startup-error.ts'] },
  cluster: {
    uses: [
      'cluster/transport',
      'cluster/link',
      'cluster/json-message.ts',
      'cluster/views.ts',
      'database',
      'images',
      'inference',
      'providers',
      'providers/verification',
      'log.ts',
      'scheduler',
      'scheduler/bounded-map.ts',
      'formats',
      'protocol',
    ],
  },
  'billing/micro-usd.ts': { uses: [], isPure: true },
  database: {
    uses: ['config/startup-error.ts', 'limits/attempt-counters.ts', 'scheduler/bounded-map.ts', 'billing/micro-usd.ts', 'protocol'],
  },
});

const PROVIDER_LAYERS = layersIn('provider', 'apps/provider/src', {
  '': { uses: 'all of the app' },
  'daemon/watchdog': { uses: [] },
  cli: {
    uses: [
      '',
      'host/availability',
      'account',
      'config',
      'control',
      'doctor',
      'doctor/bug-report',
      'host/hardening',
      'log',
      'update',
      'models',
      'service',
      'jobs/serving',
      'host',
      'protocol',
    ],
  },
  files: { uses: [] },
  config: { uses: ['files'] },
  account: { uses: ['control', 'files', 'verifier', 'protocol'] },
  'host/hardening': { uses: [] },
  log: { uses: [] },
  service: { uses: ['config', 'control', 'files', 'log', 'update'] },
  'doctor/bug-report': { uses: ['config', 'control', 'doctor', 'log', 'host', 'update', 'protocol'] },
  update: { uses: ['models', 'protocol', 'protocol/crypto'] },
  control: { uses: ['files', 'protocol'] },
  doctor: { uses: ['config', 'control', 'host', 'models', 'service', 'update', 'enclave', 'protocol'] },
  session: { uses: ['jobs', 'protocol', 'protocol/crypto', 'enclave'] },
  jobs: {
    uses: ['jobs/serving', 'engine', 'imaging', 'models', 'enclave', 'formats', 'json-schema-grammar', 'protocol', 'protocol/crypto'],
  },
  'jobs/serving': { uses: ['engine', 'imaging', 'models', 'protocol'] },
  imaging: { uses: ['model-process', 'models', 'protocol'] },
  engine: { uses: ['model-process', 'models', 'formats', 'json-schema-grammar', 'protocol'] },
  'model-process': { uses: ['host/hardening'] },
  models: { uses: ['files', 'protocol'] },
  host: { uses: ['protocol'] },
  'host/availability': { uses: ['config', 'host', 'protocol'], isPure: true },
});

/** Page folders of the console. None imports another, nor the router that loads them. */
const PAGE_ROOMS = ['account', 'admin', 'client', 'network', 'owner', 'playground'].map((room) => `pages/${room}`);
const PAGE_ROOM: Room = {
  uses: ['features', 'routing', 'api', 'ui', 'verifier', 'protocol'],
  usesTypesOf: ['formats'],
  isPure: true,
};

const CONSOLE_LAYERS = layersIn('console', 'apps/console/src', {
  '': { uses: ['app'], isPure: true },
  app: { uses: ['pages', 'routing', 'api', 'ui'], isPure: true },
  pages: { uses: [...PAGE_ROOMS, 'routing'], isPure: true },
  ...Object.fromEntries(PAGE_ROOMS.map((room) => [room, PAGE_ROOM])),
  features: { uses: ['routing', 'api', 'ui', 'protocol'], usesTypesOf: ['formats'], isPure: true },
  api: { uses: ['ui'], usesTypesOf: ['formats'], isPure: true },
  routing: { uses: [], isPure: true },
  ui: { uses: [], isPure: true },
});

const LAYERS: readonly Layer[] = [...PACKAGE_LAYERS, ...COORDINATOR_LAYERS, ...PROVIDER_LAYERS, ...CONSOLE_LAYERS];

/** The layer a source file lies in, by the longest matching path. */
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
    return layer.isPure ? `${layer.name} is pure: it may use no Node module` : null;
  }
  const target = specifier.startsWith('.')
    ? layerOf(normalize(join(dirname(path), specifier)).replace(/\.js$/, '.ts'))
    : packageLayer(specifier);
  if (target === undefined) return null;
  if (target === null) return 'the target lies in no layer';
  if (target.name === layer.name) return null;
  if (layer.uses === 'all of the app') return checkWiring(layer, target);
  if (layer.usesTypesOf.includes(target.name)) {
    return typesOnly ? null : `${layer.name} may import only types from ${target.name}`;
  }
  return layer.uses.includes(target.name) ? null : `${layer.name} may use only ${layer.uses.join(', ') || 'itself'}`;
}

/** Wiring files may import every folder of their own app and every package, but never another app. */
function checkWiring(layer: Layer, target: Layer): string | null {
  const isApp = (name: string): boolean => name.startsWith('coordinator') || name.startsWith('provider') || name.startsWith('console');
  const sameApp = target.name === layer.name || target.name.startsWith(`${layer.name}/`);
  return sameApp || !isApp(target.name) ? null : 'apps never import each other';
}

/** Layer of one of our packages; undefined for third-party packages; null for our packages without a layer. */
function packageLayer(specifier: string): Layer | null | undefined {
  const [, scope, name = ''] = /^(@inference\/|inference-)(.*)$/.exec(specifier) ?? [];
  if (scope === undefined) return undefined;
  // The grammar without schemas is an entry of the same layer.
  const path = name.replace(/\/grammar$/, '');
  return LAYERS.find((layer) => layer.name === path || layer.name === `${path}.ts`) ?? null;
}
