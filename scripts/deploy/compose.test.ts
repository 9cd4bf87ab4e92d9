import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DCLinter } from 'dclint';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { SECRET_SETTINGS } from '../../apps/coordinator/src/config/secret-files.js';
import { ROOT } from '../release/manifest.js';

const FILE = join(ROOT, 'deploy/compose.yaml');

interface Service {
  readonly image: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly env_file?: string;
  readonly ports?: readonly string[];
  readonly networks?: readonly string[];
  readonly secrets?: readonly (string | { readonly source: string })[];
  readonly volumes?: readonly string[];
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly read_only?: boolean;
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly healthcheck?: object;
  readonly restart?: string;
  readonly stop_grace_period?: string;
  readonly deploy?: { readonly resources: { readonly limits: { readonly memory: string } } };
}

interface Compose {
  readonly services: Readonly<Record<string, Service>>;
  readonly networks: Readonly<
    Record<string, { readonly internal?: boolean; readonly ipam?: { readonly config: readonly { subnet: string }[] } }>
  >;
  readonly volumes: Readonly<Record<string, object>>;
  readonly secrets: Readonly<Record<string, { readonly file: string }>>;
}

const compose = parse(readFileSync(FILE, 'utf8'), { merge: true }) as Compose;
const services = Object.entries(compose.services);
const isTask = ({ restart }: Service): boolean => restart === 'no';

describe('deploy/compose.yaml', () => {
  it('has no finding of the linter, the schema of the Compose specification included', async () => {
    // Rules about order and quotes are disabled as mere style; Caddy's ports are intentionally public.
    const off = Object.fromEntries(
      [
        'no-quotes-in-volumes',
        'no-unbound-port-interfaces',
        'service-keys-order',
        'services-alphabetical-order',
        'top-level-properties-order',
      ].map((rule) => [rule, 0 as const]),
    );
    const results = await new DCLinter({ rules: off, quiet: false, debug: false, exclude: [] }).lintFiles([FILE], false);
    expect(results.flatMap(({ messages }: { readonly messages: readonly unknown[] }) => messages)).toEqual([]);
  });

  it('hardens every service, limits its memory, and asks for its health', () => {
    for (const [name, service] of services) {
      expect(service, name).toMatchObject({ read_only: true, cap_drop: ['ALL'], security_opt: ['no-new-privileges:true'] });
      expect(service.deploy?.resources.limits.memory, name).toMatch(/^\d+[MG]$/);
      expect(isTask(service) || service.healthcheck !== undefined, name).toBe(true);
      for (const [other, { condition }] of Object.entries(service.depends_on ?? {})) {
        expect(condition, `${name} → ${other}`).toBe(
          isTask(compose.services[other] as Service) ? 'service_completed_successfully' : 'service_healthy',
        );
      }
    }
  });

  it('pins every image of others by tag and digest', () => {
    const others = services.filter(([, { image }]) => !image.startsWith('${COORDINATOR_IMAGE'));
    expect(others.length).toBeGreaterThan(4);
    for (const [name, { image }] of others) expect(image, name).toMatch(/^docker\.io\/[a-z/-]+:[\w.-]+@sha256:[0-9a-f]{64}$/);
  });

  it('publishes only Caddy, and keeps database and messages off every network with a way out', () => {
    const isPublic = ({ ports = [] }: Service) => ports.some((port) => !port.startsWith('127.0.0.1:'));
    expect(services.filter(([, service]) => isPublic(service)).map(([name]) => name)).toEqual(['caddy']);
    for (const name of ['postgres', 'nats', 'prometheus', 'migrate']) {
      for (const network of compose.services[name]?.networks ?? []) expect(compose.networks[network]?.internal, name).toBe(true);
    }
  });

  it('trusts the addresses of the network that it shares with Caddy', () => {
    const subnet = compose.networks.gateway?.ipam?.config[0]?.subnet;
    const coordinators = services.filter(([name]) => name.startsWith('coordinator-'));
    for (const [name, { environment }] of coordinators) {
      expect(environment).toMatchObject({ COORDINATOR_ID: name, TRUSTED_PROXIES: subnet });
      expect(compose.services.caddy?.environment?.COORDINATORS).toContain(`${name}:8080`);
    }
  });

  it('passes secrets by files that the coordinator reads, and defines every secret and volume that it uses', () => {
    for (const [name, { secrets = [], volumes = [], environment = {} }] of services) {
      for (const secret of secrets) expect(compose.secrets, name).toHaveProperty(typeof secret === 'string' ? secret : secret.source);
      for (const volume of volumes) {
        const [source = ''] = volume.split(':');
        expect(source.startsWith('./') || compose.volumes[source] !== undefined, `${name}: ${source}`).toBe(true);
      }
      for (const setting of Object.keys(environment))
        expect(SECRET_SETTINGS as readonly string[], name).not.toContain(setting === 'NATS_URL' ? '' : setting);
    }
    const [coordinator] = services.filter(([name]) => name === 'coordinator-1').map(([, service]) => service);
    const fileSettings = Object.keys(coordinator?.environment ?? {}).filter((name) => name.endsWith('_FILE') && !name.startsWith('NATS_'));
    for (const name of fileSettings) expect(SECRET_SETTINGS as readonly string[]).toContain(name.slice(0, -'_FILE'.length));
  });

  it('gives coordinators more time to stop than their example settings to drain', () => {
    const drain = Number(/^DRAIN_SECONDS=(\d+)$/m.exec(readFileSync(join(ROOT, 'deploy/settings.env.example'), 'utf8'))?.[1]);
    const grace = Number.parseInt(compose.services['coordinator-1']?.stop_grace_period ?? '', 10);
    expect(grace).toBeGreaterThanOrEqual(drain + 15);
    expect(existsSync(join(ROOT, 'deploy/Caddyfile'))).toBe(true);
  });
});
