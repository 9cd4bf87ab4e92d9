/** Models whose weights lie in several files, `NAME-00001-of-00003.gguf` and so on, of which the first one names the model. */
import { statSync } from 'node:fs';
import { type GgufHeader, ModelFileError } from './gguf-header.js';

const NUMBERED = /-(\d{5})-of-(\d{5})\.gguf$/i;
const MAX_PARTS = 1024;

/** All files of a model, itself first, with their sizes together. Throws {@link ModelFileError} when one is missing. */
export function modelFiles(path: string, { values, fileBytes }: GgufHeader): { readonly paths: readonly string[]; readonly bytes: number } {
  const count = Number(values.get('split.count') ?? 1);
  if (count === 1) return { paths: [path], bytes: fileBytes };
  const match = NUMBERED.exec(path);
  if (!Number.isInteger(count) || count < 1 || count > MAX_PARTS || Number(match?.[2]) !== count) {
    throw new ModelFileError(`the model file ${path} says that it is one of ${count}, and its name does not`);
  }
  if (Number(match?.[1]) !== 1) throw new ModelFileError(`the model file ${path} is not the first of its ${count}; name that one`);
  const paths = Array.from({ length: count }, (_, index) =>
    path.replace(NUMBERED, `-${String(index + 1).padStart(5, '0')}-of-${String(count).padStart(5, '0')}.gguf`),
  );
  let bytes = 0;
  for (const part of paths) {
    const stat = statSync(part, { throwIfNoEntry: false });
    if (stat === undefined) throw new ModelFileError(`the model needs the file ${part}, which is missing`);
    bytes += stat.size;
  }
  return { paths, bytes };
}
