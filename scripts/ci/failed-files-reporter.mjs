/**
 * Vitest reporter: writes the failed test files with their projects, as `[{ project, file }]`, to the file `FAILED_FILES_REPORT`.
 * Vitest's own reporters omit the projects.
 */
import { writeFileSync } from 'node:fs';

export default class FailedFilesReporter {
  onTestRunEnd(testModules) {
    const failed = testModules.filter((testModule) => testModule.state() === 'failed');
    const files = failed.map(({ project, relativeModuleId }) => ({ project: project.name, file: relativeModuleId }));
    const { FAILED_FILES_REPORT: path } = process.env;
    if (path !== undefined) writeFileSync(path, JSON.stringify(files));
  }
}
