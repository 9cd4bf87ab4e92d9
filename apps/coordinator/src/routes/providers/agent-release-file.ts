/** `AgentReleaseFile`: signed agent releases (`AGENT_RELEASES`), reloaded after changes. Invalid files offer nothing and are logged. */
import { readFile, stat } from 'node:fs/promises';
import { type Release, type ReleaseFeed, ReleaseFeedSchema } from '@inference/protocol';
import { Compile } from 'typebox/compile';

const feed = Compile(ReleaseFeedSchema);
const NONE: ReleaseFeed = { releases: [] };

export class AgentReleaseFile {
  #seen = '';
  #feed: Promise<ReleaseFeed> = Promise.resolve(NONE);

  /** `path` null: no releases. */
  constructor(
    private readonly path: string | null,
    private readonly onProblem: (problem: string) => void,
  ) {}

  /** Every release of the file. */
  async all(): Promise<readonly Release[]> {
    return (await this.#read()).releases;
  }

  async #read(): Promise<ReleaseFeed> {
    if (this.path === null) return NONE;
    const found = await stat(this.path, { bigint: true }).catch(() => null);
    const seen = found === null ? 'missing' : `${found.ino} ${found.size} ${found.mtimeNs}`;
    if (seen !== this.#seen) {
      this.#seen = seen;
      this.#feed = this.#load(this.path);
    }
    return await this.#feed;
  }

  async #load(path: string): Promise<ReleaseFeed> {
    try {
      const value: unknown = JSON.parse(await readFile(path, 'utf8'));
      if (feed.Check(value)) return value;
      this.onProblem('it is no list of releases');
    } catch (error) {
      this.onProblem((error as NodeJS.ErrnoException).code ?? 'it is not JSON');
    }
    return NONE;
  }
}
