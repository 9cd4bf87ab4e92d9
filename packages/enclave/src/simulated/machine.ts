/**
 * The Mac that the simulated helper reports, always without a Secure Enclave. The real helper is the program that holds the agent's key.
 *
 * Each of `attest` and `answer_challenge` takes the members from `simulated-machine.json` in the data directory, read anew, else from the
 * option `--profile`, else from defaults.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { AttestationSchema, lazyValidator } from '@inference/protocol';
import Type, { type Static } from 'typebox';
import { Refusal } from './refusal.js';

export const MACHINE_FILE = 'simulated-machine.json';

const { chip_name, hardware_model, serial_number, os_version, memory_gb } = AttestationSchema.properties;

/** Profile of a simulated machine. Missing members have default values. */
const SimulatedMachineSchema = Type.Partial(
  Type.Object(
    {
      chip_name,
      hardware_model,
      serial_number,
      os_version,
      memory_gb,
      sip_enabled: Type.Boolean(),
      secure_boot_enabled: Type.Boolean(),
      authenticated_root_enabled: Type.Boolean(),
    },
    { additionalProperties: false },
  ),
  { additionalProperties: false },
);
export type SimulatedMachine = Static<typeof SimulatedMachineSchema>;

const machineValidator = lazyValidator(SimulatedMachineSchema);

/** Parses the JSON text of a profile. `source`: name of the text in errors. Throws {@link Refusal} `bad_request`. */
export function parseMachine(text: string, source: string): SimulatedMachine {
  try {
    const value: unknown = JSON.parse(text);
    if (machineValidator().Check(value)) return value;
  } catch {
    // Falls through to the error below.
  }
  throw new Refusal('bad_request', `${source} is not a profile of a simulated machine`);
}

/** Current machine. Throws {@link Refusal}: `bad_request` if the file is invalid, `io` if it cannot be read. */
export function readMachine(dataDir: string, profile: SimulatedMachine, publicKey: Uint8Array): Required<SimulatedMachine> {
  return {
    chip_name: 'Simulated M-series',
    hardware_model: 'SimulatedMac1,1',
    serial_number: serialOf(publicKey),
    os_version: 'Simulated macOS 15.0',
    memory_gb: Math.max(1, Math.round(totalmem() / 2 ** 30)),
    sip_enabled: true,
    secure_boot_enabled: true,
    authenticated_root_enabled: true,
    ...profile,
    ...readOverrides(dataDir),
  };
}

function readOverrides(dataDir: string): SimulatedMachine {
  let text: string;
  try {
    text = readFileSync(join(dataDir, MACHINE_FILE), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {};
    throw new Refusal('io', `${MACHINE_FILE} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  // Not ignored: an invalid file must not switch protections (SIP, secure boot, authenticated root) back on.
  return parseMachine(text, MACHINE_FILE);
}

/** "SIM" and nine characters of the key's hash, unique per agent on one machine. */
function serialOf(publicKey: Uint8Array): string {
  const alphabet = '0123456789ABCDEFGHJKLMNPQRSTVWXY';
  const hash = createHash('sha256').update(publicKey).digest();
  return `SIM${Array.from(hash.subarray(0, 9), (byte) => alphabet[byte % 32]).join('')}`;
}
