/** `Balancer`: TCP load balancer in front of a local cluster's coordinators. Polls their `/health/ready`. */
import { connect, createServer, type Server, type Socket } from 'node:net';

const CHECK_MS = 200;
const CHECK_TIMEOUT_MS = 1_000;
const CONNECT_TIMEOUT_MS = 1_000;
/** Maximum time that a new connection waits for a ready coordinator. */
const MAX_WAIT_MS = 5_000;

export interface Backend {
  readonly name: string;
  readonly port: number;
  isReady: boolean;
  /** Open WebSockets of agents. */
  agents: number;
}

/** Orders the ready coordinators for a new connection. The first that accepts gets the connection. */
type Policy = (ready: readonly Backend[]) => readonly Backend[];

/** Listening port of the balancer. */
export interface Listener {
  readonly port: number;
  /** Coordinator of the agent's oldest open WebSocket. Null without a WebSocket, and on the clients' port. */
  readonly backend: Backend | null;
}

export class Balancer {
  readonly #backends: readonly Backend[];
  readonly #servers = new Set<Server>();
  readonly #sockets = new Set<Socket>();
  readonly #onChange: () => void;
  readonly #closing = new AbortController();
  #turn = 0;

  /** Calls `onChange` when an agent connects to a coordinator or disconnects. */
  constructor(backends: readonly { readonly name: string; readonly port: number }[], onChange: () => void) {
    this.#backends = backends.map((backend) => ({ ...backend, isReady: false, agents: 0 }));
    this.#onChange = onChange;
    for (const backend of this.#backends) void this.#watch(backend);
  }

  get backends(): readonly Backend[] {
    return this.#backends;
  }

  /** Listens for clients, who get the ready coordinators in turn. The system chooses the port for 0. Rejects if the port is taken. */
  async listenForClients(port: number): Promise<Listener> {
    return this.#listen(port, false, (ready) => {
      const from = this.#turn++ % Math.max(1, ready.length);
      return [...ready.slice(from), ...ready.slice(0, from)];
    });
  }

  /** Listens for one agent, who gets the preferred coordinator, or else the ready coordinator with the fewest agents. */
  async listenForAgent(preferredIndex: number): Promise<Listener> {
    return this.#listen(0, true, (ready) => {
      const rest = ready.filter((backend) => backend !== this.#backends[preferredIndex]).sort((a, b) => a.agents - b.agents);
      return [...ready.filter((backend) => backend === this.#backends[preferredIndex]), ...rest];
    });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    const closed = [...this.#servers].map((server) => new Promise((resolve) => server.close(resolve)));
    for (const socket of this.#sockets) socket.destroy();
    await Promise.all(closed);
  }

  async #listen(port: number, isForAgents: boolean, policy: Policy): Promise<Listener> {
    /** Coordinators of this port's open WebSockets, oldest first. */
    const connected: Backend[] = [];
    const count = (backend: Backend, change: 1 | -1): void => {
      backend.agents += change;
      if (change === 1) connected.push(backend);
      else connected.splice(connected.indexOf(backend), 1);
      this.#onChange();
    };
    // Half-open, because a client may close its side before the response.
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true }, (client) => {
      this.#track(client);
      void this.#serve(client, policy, isForAgents ? count : null);
    });
    this.#servers.add(server);
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ port, host: '127.0.0.1', backlog: 4096 }, resolve);
    });
    const { port: bound } = server.address() as { port: number };
    return {
      port: bound,
      get backend() {
        return connected[0] ?? null;
      },
    };
  }

  async #serve(client: Socket, policy: Policy, count: ((backend: Backend, change: 1 | -1) => void) | null): Promise<void> {
    const deadline = performance.now() + MAX_WAIT_MS;
    while (!client.destroyed && !this.#closing.signal.aborted) {
      for (const backend of policy(this.#backends.filter(({ isReady }) => isReady))) {
        const upstream = await connectTo(backend.port);
        if (upstream === null) continue;
        if (client.destroyed) return void upstream.destroy();
        this.#track(upstream);
        if (count !== null) onWebSocket(client, upstream, (change) => count(backend, change));
        join(client, upstream);
        return;
      }
      if (performance.now() > deadline) break;
      await new Promise((wake) => setTimeout(wake, CHECK_MS));
    }
    client.destroy();
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('error', () => {});
    socket.once('close', () => this.#sockets.delete(socket));
  }

  async #watch(backend: Backend): Promise<void> {
    const { signal } = this.#closing;
    while (!signal.aborted) {
      backend.isReady = await isReady(backend.port, signal);
      await new Promise((wake) => setTimeout(wake, CHECK_MS));
    }
  }
}

async function isReady(port: number, signal: AbortSignal): Promise<boolean> {
  try {
    const either = AbortSignal.any([signal, AbortSignal.timeout(CHECK_TIMEOUT_MS)]);
    const response = await fetch(`http://127.0.0.1:${port}/health/ready`, { signal: either });
    await response.arrayBuffer();
    return response.ok;
  } catch {
    return false;
  }
}

/** Connects to a coordinator. Resolves to null if the connection is refused or times out. */
function connectTo(port: number): Promise<Socket | null> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    const fail = (): void => {
      socket.destroy();
      resolve(null);
    };
    const timer = setTimeout(fail, CONNECT_TIMEOUT_MS);
    socket.once('error', fail);
    socket.once('connect', () => {
      clearTimeout(timer);
      socket.off('error', fail);
      resolve(socket);
    });
  });
}

/** Calls back with 1 if the connection becomes a WebSocket, and with -1 when either side ends. */
function onWebSocket(client: Socket, upstream: Socket, callback: (change: 1 | -1) => void): void {
  client.once('data', (head: Buffer) => {
    if (!/^upgrade: *websocket/im.test(head.toString('latin1'))) return;
    callback(1);
    onFirstEnd(client, upstream, () => callback(-1));
  });
}

/** Calls back once. Does not wait for the coordinator after the client's end, because a frozen coordinator never closes. */
function onFirstEnd(client: Socket, upstream: Socket, callback: () => void): void {
  let isOver = false;
  const end = (): void => {
    if (!isOver) callback();
    isOver = true;
  };
  client.once('end', end).once('close', end);
  upstream.once('close', end);
}

/** Forwards both directions with back-pressure. A closed side closes the other. */
function join(client: Socket, upstream: Socket): void {
  for (const [from, to] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    from.pipe(to);
    from.once('close', () => to.destroySoon());
  }
}
