/** Deletes engines of systems other than `os` and `cpu` from a `node_modules` folder. */
export function pruneEngines(modules: string, os: string, cpu: string): void;
