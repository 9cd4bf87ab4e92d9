/** Methods of the routes for a path, for 405 responses and preflights. */
import fastifyPlugin from 'fastify-plugin';

declare module 'fastify' {
  interface FastifyInstance {
    /** Methods with a route for a path. */
    methodsOf(path: string): ReadonlySet<string>;
  }
}

/** For a server without routes: only routes registered after this plugin count. */
export const routeMethods = fastifyPlugin(async (server) => {
  const routes: { readonly path: RegExp; readonly methods: readonly string[] }[] = [];
  server.addHook('onRoute', ({ url, method }) => {
    const pattern = url
      .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
      .replace(/:[A-Za-z_]+/g, '[^/]+')
      .replace(/\*/g, '.*');
    routes.push({ path: new RegExp(`^${pattern}$`), methods: [method].flat() });
  });
  server.decorate('methodsOf', (path) => new Set(routes.filter((route) => route.path.test(path)).flatMap((route) => route.methods)));
});
