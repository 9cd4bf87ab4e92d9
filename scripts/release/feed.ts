/** Reads and writes the release feed (`releases.json`), which coordinators with `AGENT_RELEASES` serve. */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { compareVersions, type Release, type ReleaseFeed, ReleaseFeedSchema } from '@inference/protocol';
import { Compile } from 'typebox/compile';

const feed = Compile(ReleaseFeedSchema);

/** Throws when the file exists but is not a feed. */
export function readFeed(file: string): ReleaseFeed {
  if (!existsSync(file)) return { releases: [] };
  const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
  if (!feed.Check(value)) throw new Error(`${file} is not a release feed`);
  return value;
}

/** Adds or replaces a release; the newest version comes first. Throws if the version was published with another hash. */
export function addRelease(file: string, release: Release): void {
  const { releases } = readFeed(file);
  const isSame = ({ version, platform }: Release): boolean => version === release.version && platform === release.platform;
  const known = releases.find(isSame);
  if (known !== undefined && known.sha256 !== release.sha256) {
    throw new Error(`${release.version} for ${release.platform} was released with other bytes: use a new version`);
  }
  const all = [...releases.filter((other) => !isSame(other)), release];
  all.sort((a, b) => compareVersions(b.version, a.version) || (a.platform < b.platform ? -1 : 1));
  writeFileSync(`${file}.new`, `${JSON.stringify({ releases: all }, null, 2)}\n`);
  renameSync(`${file}.new`, file);
}
