/** The file of releases that a coordinator serves (`AGENT_RELEASES`). A version that was given out is never given out with other bytes. */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { compareVersions, type Release, type ReleaseFeed, ReleaseFeedSchema } from '@inference/protocol';
import { Compile } from 'typebox/compile';

const feed = Compile(ReleaseFeedSchema);

/** Throws where the file is there and is no feed. */
export function readFeed(file: string): ReleaseFeed {
  if (!existsSync(file)) return { releases: [] };
  const value: unknown = JSON.parse(readFileSync(file, 'utf8'));
  if (!feed.Check(value)) throw new Error(`${file} is no list of releases`);
  return value;
}

/** Newest first. Throws where it has this version for this platform with another hash. */
export function addRelease(file: string, release: Release): void {
  const { releases } = readFeed(file);
  const isSame = ({ version, platform }: Release): boolean => version === release.version && platform === release.platform;
  const known = releases.find(isSame);
  if (known !== undefined && known.sha256 !== release.sha256) {
    throw new Error(`${release.version} for ${release.platform} was released with other bytes: give it a new version`);
  }
  const all = [...releases.filter((one) => !isSame(one)), release];
  all.sort((a, b) => compareVersions(b.version, a.version) || (a.platform < b.platform ? -1 : 1));
  writeFileSync(`${file}.new`, `${JSON.stringify({ releases: all }, null, 2)}\n`);
  renameSync(`${file}.new`, file);
}
