/** Text of CHANGELOG.md (format of keepachangelog.com): adds a version from changesets, and finds the section of a version. */

export interface ChangelogEntry {
  readonly summary: string;
  readonly packages: readonly string[];
}

const UNRELEASED = '## Unreleased';

/** Products in the order of the changelog. An entry is listed under the first product it names, or else under the last. */
const PRODUCTS: readonly { readonly title: string; readonly packages: readonly string[] }[] = [
  { title: 'API and coordinator', packages: ['@inference/coordinator'] },
  { title: 'Console', packages: ['@inference/console'] },
  { title: 'Agent', packages: ['inference-provider'] },
  { title: 'Client and verifier', packages: [] },
];

/** Turns the unreleased part into the section of a version, and opens a new unreleased part. Throws if no such part exists. */
export function withRelease(changelog: string, version: string, date: string, entries: readonly ChangelogEntry[]): string {
  const [before, after] = changelog.split(`${UNRELEASED}\n`);
  if (before === undefined || after === undefined) throw new Error(`CHANGELOG.md has no section "${UNRELEASED}"`);
  const next = after.search(/^## /m);
  const highlights = (next === -1 ? after : after.slice(0, next)).trim();
  const older = next === -1 ? '' : after.slice(next);
  const parts = [`## ${version} (${date})`, highlights, ...PRODUCTS.map((product, index) => listOf(product, index, entries))];
  return `${before}${UNRELEASED}\n\n${parts.filter((part) => part !== '').join('\n\n')}\n\n${older}`;
}

function listOf({ title }: (typeof PRODUCTS)[number], index: number, entries: readonly ChangelogEntry[]): string {
  const own = entries.filter(({ packages }) => productOf(packages) === index).map(({ summary }) => `- ${indent(summary.trim())}`);
  return own.length === 0 ? '' : `### ${title}\n\n${own.sort().join('\n')}`;
}

function productOf(packages: readonly string[]): number {
  const found = PRODUCTS.findIndex((product) => product.packages.some((name) => packages.includes(name)));
  return found === -1 ? PRODUCTS.length - 1 : found;
}

function indent(text: string): string {
  return text.replaceAll('\n', '\n  ').replaceAll(/[ ]+$/gm, '');
}

/** Text below the heading of a version. Throws if the changelog has none. */
export function sectionOf(changelog: string, version: string): string {
  const sections = changelog.split(/^## /m).slice(1);
  const section = sections.find((text) => text.split(/\s/, 1)[0] === version);
  if (section === undefined) throw new Error(`CHANGELOG.md has no section of ${version}: npm run release -- version writes it`);
  return section.slice(section.indexOf('\n')).trim();
}
