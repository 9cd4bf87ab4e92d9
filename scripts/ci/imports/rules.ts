/**
 * Import directions as a table. A layer is a folder; `uses` lists permitted layers (its own layer is implied), and `node` permits
 * Node's own modules. Wiring files of an app (`wires`) may import the whole app.
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
  readonly usesTypesOf?: readonly string[];
  readonly node: boolean;
}

const PURE = false;
const NODE = true;

/** Page folders of the console. None imports another, nor the router that loads them. */
const CONSOLE_PAGE_ROOMS = ['account', 'admin', 'client', 'network', 'owner', 'playground'] as const;
const pageRoom = (room: string): string => `console/pages/${room}`;

export const LAYERS: readonly Layer[] = [
  { name: 'protocol', path: 'packages/protocol/src', uses: [], node: PURE },
  { name: 'protocol/crypto', path: 'packages/protocol/src/crypto', uses: ['protocol'], node: NODE },
  { name: 'formats', path: 'packages/formats/src', uses: ['protocol'], node: PURE },
  { name: 'scheduler', path: 'packages/scheduler/src', uses: ['protocol'], node: PURE },
  { name: 'json-schema-grammar', path: 'packages/json-schema-grammar/src', uses: ['json-schema-grammar/time-limit'], node: PURE },
  { name: 'json-schema-grammar/time-limit', path: 'packages/json-schema-grammar/src/validation/time-limit.ts', uses: [], node: NODE },
  { name: 'enclave', path: 'packages/enclave/src', uses: ['protocol', 'protocol/crypto'], node: NODE },
  { name: 'verifier', path: 'packages/verifier/src', uses: ['protocol'], node: PURE },
  { name: 'verifier/cli', path: 'packages/verifier/src/cli', uses: ['verifier', 'protocol'], node: NODE },
  { name: 'device-simulation', path: 'packages/device-simulation/src', uses: ['protocol', 'protocol/crypto'], node: NODE },

  { name: 'coordinator', path: 'apps/coordinator/src', uses: 'all of the app', node: NODE },
  {
    name: 'coordinator/config',
    path: 'apps/coordinator/src/config/config.ts',
    uses: ['coordinator/devices', 'coordinator/tracing-settings', 'coordinator/start-error', 'protocol'],
    node: NODE,
  },
  { name: 'coordinator/log', path: 'apps/coordinator/src/log.ts', uses: ['coordinator/config'], node: NODE },
  { name: 'coordinator/start-error', path: 'apps/coordinator/src/config/startup-error.ts', uses: [], node: PURE },
  { name: 'coordinator/bounded-map', path: 'apps/coordinator/src/limits/bounded-map.ts', uses: [], node: PURE },
  { name: 'coordinator/fair-budget', path: 'apps/coordinator/src/limits/fair-budget.ts', uses: [], node: PURE },
  { name: 'coordinator/network-address', path: 'apps/coordinator/src/limits/network-address.ts', uses: [], node: NODE },
  {
    name: 'coordinator/routes',
    path: 'apps/coordinator/src/routes',
    uses: [
      'coordinator/log',
      'coordinator/bounded-map',
      'coordinator/telemetry',
      'coordinator/telemetry/statistics',
      'coordinator/inference',
      'coordinator/images',
      'coordinator/billing',
      'coordinator/micro-usd',
      'coordinator/accounts',
      'coordinator/telemetry/statistics',
      'coordinator/start-error',
      'coordinator/fair-budget',
      'coordinator/network-address',
      'coordinator/devices',
      'coordinator/releases',
      'coordinator/providers',
      'coordinator/providers/verification',
      'coordinator/database',
      'formats',
      'scheduler',
      'protocol',
      'protocol/crypto',
    ],
    node: NODE,
  },
  {
    name: 'coordinator/inference',
    path: 'apps/coordinator/src/inference',
    uses: [
      'coordinator/providers',
      'scheduler',
      'coordinator/images',
      'coordinator/billing',
      'coordinator/micro-usd',
      'coordinator/database',
      'coordinator/bounded-map',
      'formats',
      'protocol',
      'protocol/crypto',
    ],
    node: NODE,
  },
  { name: 'coordinator/releases', path: 'apps/coordinator/src/releases', uses: ['protocol'], node: NODE },
  {
    name: 'coordinator/images',
    path: 'apps/coordinator/src/images',
    uses: ['coordinator/database', 'coordinator/bounded-map', 'formats', 'protocol'],
    node: NODE,
  },
  {
    name: 'coordinator/accounts',
    path: 'apps/coordinator/src/accounts',
    uses: ['coordinator/database', 'coordinator/start-error', 'protocol'],
    node: NODE,
  },
  {
    name: 'coordinator/devices',
    path: 'apps/coordinator/src/devices',
    uses: ['coordinator/providers/verification', 'coordinator/database', 'coordinator/start-error', 'protocol', 'protocol/crypto'],
    node: NODE,
  },
  {
    name: 'coordinator/providers',
    path: 'apps/coordinator/src/providers',
    uses: [
      'coordinator/providers/verification',
      'coordinator/bounded-map',
      'coordinator/fair-budget',
      'coordinator/network-address',
      'scheduler',
      'protocol',
      'protocol/crypto',
    ],
    node: NODE,
  },
  {
    name: 'coordinator/providers/verification',
    path: 'apps/coordinator/src/providers/verification',
    uses: ['protocol', 'protocol/crypto'],
    usesTypesOf: ['coordinator/providers'],
    node: NODE,
  },
  {
    name: 'coordinator/tracing-settings',
    path: 'apps/coordinator/src/telemetry/tracing-settings.ts',
    uses: ['coordinator/start-error'],
    node: NODE,
  },
  {
    name: 'coordinator/telemetry',
    path: 'apps/coordinator/src/telemetry',
    uses: [
      'coordinator/inference',
      'coordinator/images',
      'coordinator/billing',
      'coordinator/providers',
      'coordinator/tracing-settings',
      'protocol',
    ],
    node: NODE,
  },
  {
    name: 'coordinator/telemetry/statistics',
    path: 'apps/coordinator/src/telemetry/statistics',
    uses: ['coordinator/providers', 'coordinator/database', 'formats', 'protocol'],
    node: NODE,
  },
  {
    name: 'coordinator/billing',
    path: 'apps/coordinator/src/billing',
    uses: ['coordinator/micro-usd', 'coordinator/accounts', 'coordinator/database', 'protocol'],
    node: NODE,
  },
  { name: 'coordinator/micro-usd', path: 'apps/coordinator/src/billing/micro-usd.ts', uses: [], node: PURE },
  {
    name: 'coordinator/database',
    path: 'apps/coordinator/src/database',
    uses: ['coordinator/start-error', 'coordinator/bounded-map', 'coordinator/micro-usd', 'protocol'],
    node: NODE,
  },

  { name: 'provider', path: 'apps/provider/src', uses: 'all of the app', node: NODE },
  { name: 'provider/watchdog', path: 'apps/provider/src/daemon/watchdog', uses: [], node: NODE },
  {
    name: 'provider/cli',
    path: 'apps/provider/src/cli',
    uses: [
      'provider',
      'provider/availability',
      'provider/account',
      'provider/config',
      'provider/control',
      'provider/doctor',
      'provider/bug-report',
      'provider/hardening',
      'provider/log',
      'provider/update',
      'provider/models',
      'provider/service',
      'provider/jobs/serving',
      'provider/host',
      'protocol',
    ],
    node: NODE,
  },
  { name: 'provider/files', path: 'apps/provider/src/files', uses: [], node: NODE },
  { name: 'provider/config', path: 'apps/provider/src/config', uses: ['provider/files'], node: NODE },
  {
    name: 'provider/account',
    path: 'apps/provider/src/account',
    uses: ['provider/control', 'provider/files', 'verifier', 'protocol'],
    node: NODE,
  },
  { name: 'provider/hardening', path: 'apps/provider/src/host/hardening', uses: [], node: NODE },
  { name: 'provider/log', path: 'apps/provider/src/log', uses: [], node: NODE },
  {
    name: 'provider/service',
    path: 'apps/provider/src/service',
    uses: ['provider/config', 'provider/control', 'provider/files', 'provider/log', 'provider/update'],
    node: NODE,
  },
  {
    name: 'provider/bug-report',
    path: 'apps/provider/src/doctor/bug-report',
    uses: ['provider/config', 'provider/control', 'provider/doctor', 'provider/log', 'provider/host', 'provider/update', 'protocol'],
    node: NODE,
  },
  { name: 'provider/update', path: 'apps/provider/src/update', uses: ['provider/models', 'protocol', 'protocol/crypto'], node: NODE },
  { name: 'provider/control', path: 'apps/provider/src/control', uses: ['provider/files', 'protocol'], node: NODE },
  {
    name: 'provider/doctor',
    path: 'apps/provider/src/doctor',
    uses: [
      'provider/config',
      'provider/control',
      'provider/host',
      'provider/models',
      'provider/service',
      'provider/update',
      'enclave',
      'protocol',
    ],
    node: NODE,
  },
  {
    name: 'provider/session',
    path: 'apps/provider/src/session',
    uses: ['provider/jobs', 'protocol', 'protocol/crypto', 'enclave'],
    node: NODE,
  },
  {
    name: 'provider/jobs',
    path: 'apps/provider/src/jobs',
    uses: [
      'provider/jobs/serving',
      'provider/engine',
      'provider/imaging',
      'provider/models',
      'enclave',
      'formats',
      'json-schema-grammar',
      'protocol',
      'protocol/crypto',
    ],
    node: NODE,
  },
  {
    name: 'provider/jobs/serving',
    path: 'apps/provider/src/jobs/serving',
    uses: ['provider/engine', 'provider/imaging', 'provider/models', 'protocol'],
    node: NODE,
  },
  {
    name: 'provider/imaging',
    path: 'apps/provider/src/imaging',
    uses: ['provider/model-process', 'provider/models', 'protocol'],
    node: NODE,
  },
  {
    name: 'provider/engine',
    path: 'apps/provider/src/engine',
    uses: ['provider/model-process', 'provider/models', 'formats', 'json-schema-grammar', 'protocol'],
    node: NODE,
  },
  { name: 'provider/model-process', path: 'apps/provider/src/model-process', uses: ['provider/hardening'], node: NODE },
  { name: 'provider/models', path: 'apps/provider/src/models', uses: ['provider/files', 'protocol'], node: NODE },
  { name: 'provider/host', path: 'apps/provider/src/host', uses: ['protocol'], node: NODE },
  {
    name: 'provider/availability',
    path: 'apps/provider/src/host/availability',
    uses: ['provider/config', 'provider/host', 'protocol'],
    node: PURE,
  },

  { name: 'console', path: 'apps/console/src', uses: ['console/app'], node: PURE },
  {
    name: 'console/app',
    path: 'apps/console/src/app',
    uses: ['console/pages', 'console/routing', 'console/api', 'console/ui'],
    node: PURE,
  },
  {
    name: 'console/pages',
    path: 'apps/console/src/pages',
    uses: [...CONSOLE_PAGE_ROOMS.map(pageRoom), 'console/routing'],
    node: PURE,
  },
  ...CONSOLE_PAGE_ROOMS.map(
    (room): Layer => ({
      name: pageRoom(room),
      path: `apps/console/src/pages/${room}`,
      uses: ['console/features', 'console/routing', 'console/api', 'console/ui', 'verifier', 'protocol'],
      usesTypesOf: ['formats'],
      node: PURE,
    }),
  ),
  {
    name: 'console/features',
    path: 'apps/console/src/features',
    uses: ['console/routing', 'console/api', 'console/ui', 'protocol'],
    usesTypesOf: ['formats'],
    node: PURE,
  },
  { name: 'console/api', path: 'apps/console/src/api', uses: ['console/ui'], usesTypesOf: ['formats'], node: PURE },
  { name: 'console/routing', path: 'apps/console/src/routing', uses: [], node: PURE },
  { name: 'console/ui', path: 'apps/console/src/ui', uses: [], node: PURE },
];

const PACKAGES: Readonly<Record<string, string>> = {
  '@inference/protocol': 'protocol',
  '@inference/protocol/crypto': 'protocol/crypto',
  '@inference/formats': 'formats',
  '@inference/scheduler': 'scheduler',
  '@inference/json-schema-grammar': 'json-schema-grammar',
  '@inference/json-schema-grammar/grammar': 'json-schema-grammar',
  '@inference/enclave': 'enclave',
  '@inference/verifier': 'verifier',
  '@inference/device-simulation': 'device-simulation',
  '@inference/coordinator': 'coordinator',
  'inference-provider': 'provider',
  '@inference/console': 'console',
};

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
    return layer.node ? null : `${layer.name} is pure: it may use no Node module`;
  }
  const target = specifier.startsWith('.')
    ? layerOf(normalize(join(dirname(path), specifier)).replace(/\.js$/, '.ts'))
    : packageLayer(specifier);
  if (target === undefined) return null;
  if (target === null) return 'the target lies in no layer';
  if (target.name === layer.name) return null;
  if (layer.uses === 'all of the app') return checkWiring(layer, target);
  if (layer.usesTypesOf?.includes(target.name)) {
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
  const name = PACKAGES[specifier];
  if (name !== undefined) return LAYERS.find((layer) => layer.name === name) ?? null;
  return specifier.startsWith('@inference/') ? null : undefined;
}
