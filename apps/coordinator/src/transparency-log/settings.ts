/** Reads the settings of the transparency log: `LOG_ORIGIN`, `LOG_WITNESSES` and `LOG_WITNESS_QUORUM`. */
import { LogFormatError, type NoteKey, parseNoteKey } from '@inference/protocol';
import { sha256 } from '@inference/protocol/crypto';
import { checked, type Environment, integer, list } from '../config/environment.js';
import { StartupError } from '../config/startup-error.js';

export interface Witness {
  readonly key: NoteKey;
  /** Submission prefix of the witness (C2SP tlog-witness), without a trailing slash. */
  readonly url: string;
}

export interface TransparencyLogSettings {
  /** Origin (name) of a new log; an existing log keeps its own. Null: derived from the public URL. */
  readonly origin: string | null;
  /** Empty: the log has no witnesses. */
  readonly witnesses: readonly Witness[];
  /** Minimum cosignatures of a published checkpoint. Default: a majority of the witnesses. */
  readonly quorum: number;
}

const MAX_WITNESSES = 16;

/** Throws StartupError with the name of the invalid variable. */
export function readTransparencyLog(env: Environment): TransparencyLogSettings {
  const witnesses = list(env, 'LOG_WITNESSES').map(readWitness);
  if (witnesses.length > MAX_WITNESSES) throw new StartupError(`LOG_WITNESSES must name at most ${MAX_WITNESSES} witnesses.`);
  const majority = witnesses.length === 0 ? 0 : Math.floor(witnesses.length / 2) + 1;
  return {
    origin: checked(
      env,
      'LOG_ORIGIN',
      (value) => /^[^\s+]{1,200}$/.test(value),
      'be a name without spaces, such as gateway.example/e2e/log',
    ),
    witnesses,
    quorum: integer(env, 'LOG_WITNESS_QUORUM', majority, 0, witnesses.length),
  };
}

/** `text`: verifier key (C2SP signed-note), a space, and the URL of the witness. */
function readWitness(text: string): Witness {
  const [key = '', url = ''] = text.split(/\s+/);
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) {
    throw new StartupError(
      'LOG_WITNESSES must be pairs of a verifier key and an address such as https://witness.example, separated by commas.',
    );
  }
  try {
    const parsed = parseNoteKey(sha256, key);
    if (parsed.type === 'cosignature') return { key: parsed, url: url.replace(/\/+$/, '') };
  } catch (error) {
    if (!(error instanceof LogFormatError)) throw error;
  }
  throw new StartupError(`LOG_WITNESSES must contain verifier keys of type cosignature/v1, not "${key}".`);
}
