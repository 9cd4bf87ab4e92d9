/** Opens the file of agent releases. */
import { AgentReleaseFile } from '../routes/providers/agent-release-file.js';
import type { StartContext } from './start-context.js';

export function openReleases({ config, log }: StartContext): AgentReleaseFile {
  return new AgentReleaseFile(config.agentReleases, (problem) =>
    log.error({ path: config.agentReleases, problem }, 'the release file cannot be used'),
  );
}
