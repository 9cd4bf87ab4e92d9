/** TCP proxy that counts the bytes between a client and a server of this machine. */
import { type AddressInfo, connect, createServer } from 'node:net';

export class CountingProxy {
  /** Bytes in both directions so far. */
  bytes = 0;

  /** Forwards connections to the port. Resolves to the port of the proxy. */
  listen(to: number): Promise<number> {
    const server = createServer({ noDelay: true }, (client) => {
      const upstream = connect({ port: to, host: '127.0.0.1', noDelay: true });
      for (const [from, into] of [[client, upstream] as const, [upstream, client] as const]) {
        from.on('data', (data: Buffer) => {
          this.bytes += data.length;
        });
        from.on('error', () => into.destroy());
        from.pipe(into);
      }
    });
    return new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port)));
  }
}
