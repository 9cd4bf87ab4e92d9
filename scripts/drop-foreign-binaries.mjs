/** npm install step: deletes native libraries of other systems, and unused parser sources: 310 of 1,300 MB. */
import { readdirSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const modules = fileURLToPath(new URL('../node_modules/', import.meta.url));
const own = { system: process.platform, cpu: process.arch };

function foldersOf(path) {
  try {
    return readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  } catch (error) {
    // Not installed, for example with --omit=dev.
    if (error.code === 'ENOENT') return [];
    throw error;
  }
}

const drop = (path) => rmSync(path, { recursive: true, force: true });

const onnxruntime = `${modules}onnxruntime-node/bin`;
for (const api of foldersOf(onnxruntime)) {
  for (const system of foldersOf(`${onnxruntime}/${api}`)) {
    for (const cpu of foldersOf(`${onnxruntime}/${api}/${system}`)) {
      if (system !== own.system || cpu !== own.cpu) drop(`${onnxruntime}/${api}/${system}/${cpu}`);
    }
  }
}

for (const parser of ['tree-sitter', 'tree-sitter-swift']) {
  const prebuilds = `${modules}${parser}/prebuilds`;
  const folders = foldersOf(prebuilds);
  // Without a library for this system, the sources are kept for compiling.
  if (!folders.includes(`${own.system}-${own.cpu}`)) continue;
  for (const folder of folders) if (folder !== `${own.system}-${own.cpu}`) drop(`${prebuilds}/${folder}`);
  for (const source of ['parser.c', 'parser_abi13.c', 'parser_abi14.c']) drop(`${modules}${parser}/src/${source}`);
}
