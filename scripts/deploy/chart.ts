/** Paths of the Helm chart, and the sets of values that `npm run check-deploy` renders into deploy/helm/rendered. */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ROOT } from '../release/manifest.js';
import { filesBelow } from '../release/stage.js';

export const CHART = join(ROOT, 'deploy/helm/inference-coordinator');
export const RENDERED = join(ROOT, 'deploy/helm/rendered');

const REQUIRED = {
  publicUrl: 'https://gateway.example',
  existingSecret: 'inference-secrets',
  nats: { url: 'tls://nats.messages:4222', nkeySecret: 'inference-nkeys' },
};

/** Values of the chart, by the name of the rendered file. */
export const CASES: Readonly<Record<string, object>> = {
  cluster: REQUIRED,
  single: { ...REQUIRED, replicaCount: 1, nats: { enabled: false }, networkPolicy: { enabled: false }, migration: { enabled: false } },
  everything: {
    ...REQUIRED,
    image: { digest: `sha256:${'0'.repeat(64)}` },
    imagePullSecrets: [{ name: 'registry' }],
    secretSettings: ['DATABASE_URL', 'ADMIN_KEY', 'SMTP_URL'],
    ingress: {
      enabled: true,
      className: 'nginx',
      annotations: { 'nginx.ingress.kubernetes.io/proxy-buffering': 'off' },
      hosts: ['gateway.example'],
      tls: [{ hosts: ['gateway.example'], secretName: 'gateway-tls' }],
    },
    trustedProxies: ['10.42.0.0/16'],
    persistence: { storageClassName: 'fast' },
    networkPolicy: { egressRestricted: true, egress: [{ to: [{ ipBlock: { cidr: '10.0.0.0/8' } }] }] },
    metrics: { serviceMonitor: { enabled: true, labels: { release: 'prometheus' } }, prometheusRule: { enabled: true } },
    serviceAccount: { annotations: { purpose: 'coordinator' } },
    podAnnotations: { team: 'inference' },
    podLabels: { tier: 'gateway' },
    nodeSelector: { 'kubernetes.io/os': 'linux' },
    tolerations: [{ key: 'dedicated', operator: 'Equal', value: 'gateway', effect: 'NoSchedule' }],
    affinity: { nodeAffinity: {} },
    priorityClassName: 'high',
  },
};

/** SHA-256 of the values and all files of the chart, including alert rules. Stored with the rendered files, to detect outdated ones. */
export function chartDigest(): string {
  const hash = createHash('sha256').update(JSON.stringify(CASES));
  for (const file of filesBelow(CHART)) hash.update(`${file}\0`).update(readFileSync(join(CHART, file)));
  return hash.digest('hex');
}
