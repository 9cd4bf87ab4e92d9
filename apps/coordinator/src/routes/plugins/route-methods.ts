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

/** For a server without routes: only routes registered after this plugin count. */
export const routeMethods = fastifyPlugin(async (server) => {
  const routes: { readonly matches: (path: string) => boolean; readonly methods: readonly string[] }[] = [];
  server.addHook('onRoute', ({ url, method, config }) => {
    const pattern = url
      .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
      .replace(/:[A-Za-z_]+/g, '[^/]+')
      .replace(/\*/g, '.*');
    const expression = new RegExp(`^${pattern}$`);
    const matches = (path: string): boolean => expression.test(path) && config?.hasPath?.(path) !== false;
    routes.push({ matches, methods: [method].flat() });
  });
  server.decorate('methodsOf', (path) => new Set(routes.filter((route) => route.matches(path)).flatMap((route) => route.methods)));
});
