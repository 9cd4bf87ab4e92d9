export function sourceOf(specifier: string, conditions?: readonly string[]): string | null;
