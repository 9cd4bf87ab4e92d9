/** `methodsOf` returns the HTTP methods that a path has routes for, for 405 responses and preflights. Empty for an unknown path. */
import fastifyPlugin from 'fastify-plugin';

declare module 'fastify' {
  interface FastifyInstance {
    methodsOf(path: string): ReadonlySet<string>;
  }
  interface FastifyContextConfig {
    /** For a wildcard route: whether a path that matches the route's pattern exists. Default: always true. */
    readonly hasPath?: (path: string) => boolean;
  }
}

interface Route {
  readonly url: string;
  readonly methods: readonly string[];
  readonly hasPath: (path: string) => boolean;
}

/** Must be registered before the routes: earlier routes are not found. */
export const routeMethods = fastifyPlugin(async (server) => {
  const routes: Route[] = [];
  server.addHook('onRoute', ({ url, method, config }) => {
    routes.push({ url, methods: [method].flat(), hasPath: config?.hasPath ?? (() => true) });
  });
  // Compiled on demand, because few requests need the expressions and compiling all would delay the start.
  const patterns = new Map<string, RegExp>();
  const patternOf = (url: string): RegExp => {
    const pattern = patterns.get(url) ?? compilePattern(url);
    patterns.set(url, pattern);
    return pattern;
  };
  server.decorate('methodsOf', (path) => {
    const matching = routes.filter(({ url, hasPath }) => patternOf(url).test(path) && hasPath(path));
    return new Set(matching.flatMap(({ methods }) => methods));
  });
});

function compilePattern(url: string): RegExp {
  const pattern = url
    .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replace(/:[A-Za-z_]+/g, '[^/]+')
    .replace(/\*/g, '.*');
  return new RegExp(`^${pattern}$`);
}
