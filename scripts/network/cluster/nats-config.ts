/** Configuration files of a cluster's NATS servers. Each nkey (NATS key) may only publish as its coordinator, so subjects prove senders. */
import { StartError } from '../start-error.js';

export interface NatsAddress {
  readonly host: string;
  readonly port: number;
  /** Port for connections between the servers. */
  readonly clusterPort: number;
  /** Port of the monitoring endpoint, on loopback only. Null without monitoring. */
  readonly monitorPort: number | null;
}

export interface CoordinatorUser {
  readonly id: string;
  /** Public nkey (`U…`). */
  readonly nkey: string;
}

export interface ServerConfig {
  readonly number: number;
  readonly servers: readonly NatsAddress[];
  readonly users: readonly CoordinatorUser[];
  readonly files: { readonly authority: string; readonly certificate: string; readonly key: string };
}

/** Offsets from the client port, as between NATS's default ports: 4222 for clients, 6222 for servers, 8222 for monitoring. */
const CLUSTER_PORT_OFFSET = 2000;
const MONITOR_PORT_OFFSET = 4000;
const MAX_SERVERS = 16;

/** Reads `host:port,…`. Throws {@link StartError}. */
export function parseServers(text: string): readonly NatsAddress[] {
  const servers = text.split(',').map((part): NatsAddress => {
    const found = /^(?:\[([0-9a-fA-F:]+)\]|([A-Za-z0-9.-]+)):(\d{1,5})$/.exec(part.trim());
    const host = found?.[1] ?? found?.[2];
    const port = Number(found?.[3]);
    if (host === undefined || port < 1 || port + MONITOR_PORT_OFFSET > 65_535) {
      throw new StartError(`--servers must be a list such as nats-1.example:4222,nats-2.example:4222, not ${JSON.stringify(text)}`);
    }
    return { host, port, clusterPort: port + CLUSTER_PORT_OFFSET, monitorPort: port + MONITOR_PORT_OFFSET };
  });
  const addresses = new Set(servers.map(({ host, port }) => `${host} ${port}`));
  if (servers.length > MAX_SERVERS || addresses.size !== servers.length) {
    throw new StartError(`--servers takes 1 to ${MAX_SERVERS} different addresses`);
  }
  return servers;
}

const LOOPBACK = new Set(['127.0.0.1', 'localhost', '::1']);

export function isLoopback(host: string): boolean {
  return LOOPBACK.has(host);
}

export function natsServerConfig({ number, servers, users, files }: ServerConfig): string {
  const own = servers[number - 1];
  if (own === undefined) throw new RangeError(`there is no server ${number}`);
  const bind = isLoopback(own.host) ? '127.0.0.1' : '0.0.0.0';
  const others = servers.filter((server) => server !== own);
  const tls = `tls {
  cert_file: ${quote(files.certificate)}
  key_file: ${quote(files.key)}
  ca_file: ${quote(files.authority)}`;
  return `# NATS server ${number} of ${servers.length}. Made by \`npm run cluster -- keys\`; run the command again instead of editing this file.
server_name: "nats-${number}"
listen: "${bind}:${own.port}"
${own.monitorPort === null ? '' : `# Monitoring, for this machine only.\nhttp: "127.0.0.1:${own.monitorPort}"\n`}
# Finds a silent connection within 4 to 6 seconds.
ping_interval: "2s"
ping_max: 2

${tls}
}
${others.length === 0 ? '' : clusterConfig(bind, own, others, tls)}
authorization {
  users: [
${users.map(userConfig).join('\n')}
  ]
}
`;
}

function clusterConfig(bind: string, own: NatsAddress, others: readonly NatsAddress[], tls: string): string {
  return `
cluster {
  name: "coordinators"
  listen: "${bind}:${own.clusterPort}"
  # The client port of another server is not announced to coordinators: each has the whole list.
  no_advertise: true
  routes: [
${others.map(({ host, clusterPort }) => `    "nats-route://${hostInUrl(host)}:${clusterPort}"`).join('\n')}
  ]
  ${tls.replaceAll('\n', '\n  ')}
    # Only servers with a certificate of the authority may join.
    verify: true
  }
}
`;
}

/** A coordinator publishes only under its own name, and reads only broadcasts and its own messages. */
function userConfig({ id, nkey }: CoordinatorUser): string {
  return `    {
      # ${id}
      nkey: "${nkey}"
      permissions: {
        publish: { allow: ["fleet.*.${id}", "coordinator.*.in.${id}"] }
        subscribe: { allow: ["fleet.>", "coordinator.${id}.in.>"] }
      }
    }`;
}

export function hostInUrl(host: string): string {
  return host.includes(':') ? `[${host}]` : host;
}

function quote(text: string): string {
  return JSON.stringify(text);
}
