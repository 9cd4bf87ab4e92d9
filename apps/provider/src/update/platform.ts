/** The kind of machine that releases are made for. */
import { RELEASE_PLATFORMS, type ReleasePlatform } from '@inference/protocol';

/** Null where there are none for this one. */
export function releasePlatform(): ReleasePlatform | null {
  return RELEASE_PLATFORMS.find((platform) => platform === `${process.platform}-${process.arch}`) ?? null;
}
