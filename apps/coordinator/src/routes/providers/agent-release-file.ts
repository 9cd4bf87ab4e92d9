/** `AgentReleaseFile` reads signed releases of the agent from the file that the setting `AGENT_RELEASES` names, again after each change. */
import { readFile, stat } from 'node:fs/promises';
import { lazyValidator, type Release, type ReleaseFeed, ReleaseFeedSchema } from '@inference/protocol';

const feed = lazyValidator(ReleaseFeedSchema);
const NONE: ReleaseFeed = { releases: [] };

export class AgentReleaseFile {
  #loadedVersion = '';
  #feed: Promise<ReleaseFeed> = Promise.resolve(NONE);

  /** Without a valid file, `all` returns no releases. `onProblem` is called once per invalid or missing file. */
  constructor(
    private readonly path: string | null,
    private readonly onProblem: (reason: string) => void,
  ) {}

  async all(): Promise<readonly Release[]> {
    return (await this.#read()).releases;
  }

  async #read(): Promise<ReleaseFeed> {
    if (this.path === null) return NONE;
    const stats = await stat(this.path, { bigint: true }).catch(() => null);
    const version = stats === null ? 'missing' : `${stats.ino} ${stats.size} ${stats.mtimeNs}`;
    if (version !== this.#loadedVersion) {
      this.#loadedVersion = version;
      this.#feed = this.#load(this.path);
    }
    return await this.#feed;
  }

  async #load(path: string): Promise<ReleaseFeed> {
    try {
      const value: unknown = JSON.parse(await readFile(path, 'utf8'));
      if (feed().Check(value)) return value;
      this.onProblem('the file is not a list of releases');
    } catch (error) {
      this.onProblem((error as NodeJS.ErrnoException).code ?? 'the file is not JSON');
    }
    return NONE;
  }
}
