/** Finds free ports of this machine, for programs that cannot report a port that the system chose. */
import { randomInt } from 'node:crypto';
import { type AddressInfo, createServer, type Server } from 'node:net';

/** Below the ephemeral ports of Linux and macOS, which an outgoing connection could take before the program listens. */
const PORTS = { min: 20_000, max: 32_767 } as const;

export async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(Array.from({ length: count }, listen));
  const ports = servers.map(portOf);
  await Promise.all(servers.map(close));
  return ports;
}

export async function freePort(): Promise<number> {
  const server = await listen();
  const port = portOf(server);
  await close(server);
  return port;
}

async function listen(): Promise<Server> {
  for (;;) {
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve, reject) => {
      server.once('error', (error: NodeJS.ErrnoException) => (error.code === 'EADDRINUSE' ? resolve(false) : reject(error)));
      server.listen(randomInt(PORTS.min, PORTS.max + 1), '127.0.0.1', () => resolve(true));
    });
    if (isFree) return server;
  }
}

function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
