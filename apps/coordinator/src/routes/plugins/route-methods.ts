/** Methods of the routes for a path, for 405 responses and preflights. */
import fastifyPlugin from 'fastify-plugin';

declare module 'fastify' {
  interface FastifyInstance {
    /** Methods with a route for a path. */
    methodsOf(path: string): ReadonlySet<string>;
  }
  interface FastifyContextConfig {
    /** Whether a path that matches the route's pattern exists. Default: every one does. */
    readonly hasPath?: (path: string) => boolean;
  }
}

interface Route {
  readonly url: string;
  readonly methods: readonly string[];
  readonly hasPath: (path: string) => boolean;
}

/** For a server without routes: only routes registered after this plugin count. */
export const routeMethods = fastifyPlugin(async (server) => {
  const routes: Route[] = [];
  server.addHook('onRoute', ({ url, method, config }) => {
    routes.push({ url, methods: [method].flat(), hasPath: config?.hasPath ?? (() => true) });
  });
  // Compiled on demand: few requests need the expressions, and a coordinator starts faster without.
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
