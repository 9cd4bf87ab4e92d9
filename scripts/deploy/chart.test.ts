import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PrometheusRule, ServiceMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';
import { StatefulSet } from 'kubernetes-models/apps/v1';
import { Job } from 'kubernetes-models/batch/v1';
import { Ingress, NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { Service, ServiceAccount } from 'kubernetes-models/v1';
import { describe, expect, it } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { SECRET_SETTINGS } from '../../apps/coordinator/src/config/secret-files.js';
import { CASES, chartDigest, RENDERED } from './chart.js';

interface Container {
  readonly env: readonly { readonly name: string; readonly value?: string }[];
  readonly securityContext: object;
  readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string; readonly readOnly?: boolean }[];
}

interface PodSpec {
  readonly containers: readonly Container[];
  readonly securityContext: object;
  readonly automountServiceAccountToken: boolean;
  readonly terminationGracePeriodSeconds?: number;
}

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec: {
    readonly template: { readonly metadata: { readonly labels: Readonly<Record<string, string>> }; readonly spec: PodSpec };
    readonly selector: Readonly<Record<string, string>> & { readonly matchLabels: Readonly<Record<string, string>> };
    readonly podSelector: { readonly matchLabels: Readonly<Record<string, string>> };
    readonly ports: readonly { readonly targetPort: string }[];
  };
}

const MODELS = { Ingress, Job, NetworkPolicy, PodDisruptionBudget, PrometheusRule, Service, ServiceAccount, ServiceMonitor, StatefulSet };

function render(name: string): { readonly text: string; readonly manifests: readonly Manifest[] } {
  const text = readFileSync(join(RENDERED, `${name}.yaml`), 'utf8');
  return { text, manifests: parseAllDocuments(text).flatMap((document) => (document.toJSON() as Manifest | null) ?? []) };
}

describe.each(Object.keys(CASES))('the chart, rendered for %s', (name) => {
  const { text, manifests } = render(name);
  const pods = manifests.filter(({ kind }) => kind === 'StatefulSet' || kind === 'Job').map(({ spec }) => spec.template);
  const replicas = manifests.find(({ kind }) => kind === 'StatefulSet') as Manifest;

  it('is of these templates and values: npm run check-deploy -- --write', () => {
    expect(text.split('\n')[0]).toContain(chartDigest());
  });

  it('has manifests that the schemas of Kubernetes and of the Prometheus operator accept', () => {
    expect(manifests.length).toBeGreaterThan(3);
    for (const manifest of manifests) {
      const Model = MODELS[manifest.kind as keyof typeof MODELS] as unknown as new (
        data: Manifest,
      ) => { validate(): void; apiVersion: string };
      expect(Model, manifest.kind).toBeDefined();
      const model = new Model(manifest);
      expect(model.apiVersion).toBe(manifest.apiVersion);
      model.validate();
    }
  });

  it('has pods of the restricted Pod Security Standard that can write only their data and temporary files', () => {
    for (const { spec } of pods) {
      expect(spec.automountServiceAccountToken).toBe(false);
      expect(spec.securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 65_532, seccompProfile: { type: 'RuntimeDefault' } });
      for (const { securityContext, volumeMounts } of spec.containers) {
        expect(securityContext).toEqual({ allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } });
        const writable = volumeMounts.filter(({ readOnly }) => readOnly !== true).map(({ mountPath }) => mountPath);
        expect(writable).toEqual(['/data', '/tmp']);
      }
    }
  });

  it('contains no value of a secret, and reads each from a file', () => {
    for (const { spec } of pods) {
      const env = spec.containers.flatMap((container) => container.env);
      const secrets = SECRET_SETTINGS.filter((setting) => setting !== 'NATS_URL') as readonly string[];
      expect(env.filter(({ name }) => secrets.includes(name))).toEqual([]);
      expect(env).toContainEqual({ name: 'DATABASE_URL_FILE', value: '/etc/inference/secrets/DATABASE_URL' });
    }
  });

  it('gives pods time to drain, and selects exactly the replicas', () => {
    const { spec, metadata } = replicas.spec.template;
    const drain = Number(spec.containers[0]?.env.find(({ name }) => name === 'DRAIN_SECONDS')?.value);
    expect(spec.terminationGracePeriodSeconds).toBeGreaterThanOrEqual(drain + 5 + 15);
    const selectors = manifests.flatMap(({ kind, spec }) => {
      if (kind === 'Service') return [spec.selector];
      if (kind === 'PodDisruptionBudget' || kind === 'StatefulSet') return [spec.selector.matchLabels];
      return kind === 'NetworkPolicy' ? [spec.podSelector.matchLabels] : [];
    });
    expect(selectors.length).toBeGreaterThan(2);
    for (const selector of selectors) expect(metadata.labels).toMatchObject(selector);
    const job = manifests.find(({ kind }) => kind === 'Job');
    if (job !== undefined) expect(job.spec.template.metadata.labels).not.toMatchObject(replicas.spec.selector.matchLabels);
  });
});

it('a cluster migrates before its pods are replaced, and keeps all but one of them', () => {
  const { manifests } = render('cluster');
  expect(manifests.find(({ kind }) => kind === 'Job')?.metadata.annotations).toMatchObject({ 'helm.sh/hook': 'pre-install,pre-upgrade' });
  expect(manifests.find(({ kind }) => kind === 'PodDisruptionBudget')?.spec).toMatchObject({ maxUnavailable: 1 });
  const env = (manifests.find(({ kind }) => kind === 'StatefulSet') as Manifest).spec.template.spec.containers[0]?.env;
  expect(env).toContainEqual({ name: 'COORDINATOR_ID', value: 'coordinator-$(POD_INDEX)' });
});
