/** `freePorts`: finds free TCP ports, for programs that need a port number in their configuration. */
import { type AddressInfo, createServer, type Server } from 'node:net';

/** Different ports, free at the time of the call. */
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

function listen(): Promise<Server> {
  return new Promise((resolve, reject) => {
    const server = createServer().listen(0, '127.0.0.1', () => resolve(server));
    server.once('error', reject);
  });
}

function portOf(server: Server): number {
  // A listening TCP server has an address, and no path.
  return (server.address() as AddressInfo).port;
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}
