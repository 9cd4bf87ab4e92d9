/** `FakeMac` answers device-management commands as a Mac does, or misbehaves as tests ask. */
import { randomBytes } from 'node:crypto';
import { buildBinary, build as buildXml, type PlistValue } from 'plist';
import type { SimulatedAuthority } from '../certificate-authority/authority.js';
import type { AttestedDevice } from '../certificate-authority/device-extensions.js';

export interface MacProtections {
  readonly sipEnabled: boolean;
  readonly secureBootLevel: 'off' | 'medium' | 'full' | 'not supported';
  readonly diskEncrypted: boolean;
  readonly authenticatedRoot: boolean;
  readonly thirdPartyKextsAllowed: boolean;
}

export interface MacIdentity {
  readonly serialNumber: string;
  /** UDID of device management; a Mac's hardware UUID. */
  readonly udid: string;
  readonly provisioningUdid: string;
  readonly softwareUpdateDeviceId: string;
  readonly hardwareModel: string;
  readonly osVersion: string;
}

/** Faults of a Mac or an impostor. */
export const MISBEHAVIOURS = [
  /** Accepts commands and never answers. */
  'no_answer',
  /** Answers NotNow. */
  'not_now',
  /** Answers Error. */
  'device_error',
  /** Reports a serial number that differs from its certificate. */
  'wrong_serial',
  /** Reports a provisioning UDID that differs from its certificate. */
  'wrong_provisioning_udid',
  /** Reports a board that differs from its certificate. */
  'wrong_board',
  /** Answers with another device's UDID. */
  'other_udid',
  /** Answers a command that was never sent. */
  'other_command',
  /** Attests with the freshness code of another nonce. */
  'stale_nonce',
  /** Answers `DeviceInformation` without a certificate chain. */
  'no_attestation',
  /** Sends each answer twice. */
  'duplicate_answers',
  /** Nests XML entities that expand to a long text. */
  'entity_bomb',
  /** Pads the property list to more than 300 KiB. */
  'huge_answer',
  /** Sends JSON instead of a property list. */
  'no_plist',
  /** Sends binary property lists instead of XML. */
  'binary_plist',
] as const;
export type Misbehaviour = (typeof MISBEHAVIOURS)[number];

export interface ReceivedCommand {
  readonly uuid: string;
  readonly requestType: string;
  readonly nonce: Uint8Array | null;
}

/** Answer to the management server: the raw property list, and the values that the server parses from it. */
export interface MacAnswer {
  readonly status: 'Acknowledged' | 'Error' | 'NotNow';
  readonly commandUuid: string;
  readonly rawPlist: Uint8Array;
}

export const SOUND_PROTECTIONS: MacProtections = {
  sipEnabled: true,
  secureBootLevel: 'full',
  diskEncrypted: true,
  authenticatedRoot: true,
  thirdPartyKextsAllowed: false,
};

const DEFAULT_RENEW_MS = 7 * 24 * 60 * 60_000;
const ENTITY_BOMB =
  '<!DOCTYPE plist [<!ENTITY a "aaaaaaaaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>';
const HUGE_BYTES = 300 * 1024;

interface FakeMacOptions {
  readonly identity: MacIdentity;
  readonly authority: SimulatedAuthority;
  readonly now: () => number;
  readonly protections?: Partial<MacProtections>;
  readonly misbehaviours?: readonly Misbehaviour[];
  /** How long commands with other nonces get the cached chain, in milliseconds. Default: Apple's seven days. */
  readonly renewMs?: number;
}

export class FakeMac {
  readonly identity: MacIdentity;
  protections: MacProtections;
  misbehaviours: ReadonlySet<Misbehaviour>;
  readonly #authority: SimulatedAuthority;
  readonly #now: () => number;
  readonly #renewMs: number;
  /** Newest chain for a command. `nonce` in hexadecimal. */
  #cached: { readonly nonce: string; readonly issuedAt: number; readonly chain: readonly Uint8Array[] } | null = null;

  constructor(options: FakeMacOptions) {
    this.identity = options.identity;
    this.protections = { ...SOUND_PROTECTIONS, ...options.protections };
    this.misbehaviours = new Set(options.misbehaviours);
    this.#authority = options.authority;
    this.#now = options.now;
    this.#renewMs = options.renewMs ?? DEFAULT_RENEW_MS;
  }

  /** Answer to a command; null for a Mac that stays silent. */
  answer(command: ReceivedCommand): MacAnswer | null {
    if (this.#misbehaves('no_answer')) return null;
    const commandUuid = this.#misbehaves('other_command') ? '00000000-0000-4000-8000-000000000000' : command.uuid;
    const status = this.#misbehaves('not_now')
      ? 'NotNow'
      : this.#misbehaves('device_error') || this.#isUnknown(command)
        ? 'Error'
        : 'Acknowledged';
    const report = {
      UDID: this.#misbehaves('other_udid') ? '11111111-2222-3333-4444-555555555555' : this.identity.udid,
      Status: status,
      CommandUUID: commandUuid,
      ...(status === 'Acknowledged' ? this.#content(command) : {}),
    };
    return { status, commandUuid, rawPlist: this.#encode(report) };
  }

  /** Property list of a check-in message: `Authenticate`, `TokenUpdate` or `CheckOut`. */
  checkIn(messageType: string): Uint8Array {
    const { udid, serialNumber, hardwareModel, osVersion } = this.identity;
    const facts = { MessageType: messageType, UDID: udid, Topic: 'com.apple.mgmt.External.simulated' };
    return this.#encode(
      messageType === 'Authenticate' ? { ...facts, SerialNumber: serialNumber, Model: hardwareModel, OSVersion: osVersion } : facts,
    );
  }

  /** Issues a new chain with this freshness code of 32 bytes. */
  attest(freshness: Uint8Array): readonly Uint8Array[] {
    const { certificates } = this.#authority.issue({
      now: this.#now(),
      random: (bytes) => new Uint8Array(randomBytes(bytes)),
      device: this.#attestedDevice(),
      freshness,
    });
    return certificates;
  }

  #misbehaves(misbehaviour: Misbehaviour): boolean {
    return this.misbehaviours.has(misbehaviour);
  }

  #isUnknown(command: ReceivedCommand): boolean {
    return command.requestType !== 'SecurityInfo' && command.requestType !== 'DeviceInformation';
  }

  #content(command: ReceivedCommand): Record<string, PlistValue> {
    return command.requestType === 'SecurityInfo' ? { SecurityInfo: this.#securityInfo() } : { QueryResponses: this.#information(command) };
  }

  #securityInfo(): Record<string, PlistValue> {
    const { sipEnabled, secureBootLevel, diskEncrypted, authenticatedRoot } = this.protections;
    return {
      SystemIntegrityProtectionEnabled: sipEnabled,
      FDE_Enabled: diskEncrypted,
      AuthenticatedRootVolumeEnabled: authenticatedRoot,
      IsRecoveryLockEnabled: false,
      SecureBoot: { SecureBootLevel: secureBootLevel, ExternalBootLevel: 'not supported' },
      FirewallSettings: { FirewallEnabled: true, BlockAllIncoming: false, StealthMode: false, Applications: [] },
    };
  }

  #information(command: ReceivedCommand): Record<string, PlistValue> {
    const { serialNumber, provisioningUdid, softwareUpdateDeviceId } = this.identity;
    const chain = command.nonce === null || this.#misbehaves('no_attestation') ? null : this.#attestation(command.nonce);
    return {
      SerialNumber: this.#misbehaves('wrong_serial') ? 'SIMWRONG0001' : serialNumber,
      ProvisioningUDID: this.#misbehaves('wrong_provisioning_udid') ? '00006041-00000000DEADBEEF' : provisioningUdid,
      SoftwareUpdateDeviceID: this.#misbehaves('wrong_board') ? 'J999xAP' : softwareUpdateDeviceId,
      ...(chain === null ? {} : { DevicePropertiesAttestation: [...chain] }),
    };
  }

  /** Chain for a command: cached for the same nonce, or while younger than `renewMs`; else new. */
  #attestation(nonce: Uint8Array): readonly Uint8Array[] {
    const now = this.#now();
    const attestedNonce = this.#misbehaves('stale_nonce') ? new Uint8Array(32).fill(0x5a) : nonce;
    const hex = Buffer.from(attestedNonce).toString('hex');
    const cached = this.#cached;
    if (cached !== null && (cached.nonce === hex || now - cached.issuedAt < this.#renewMs)) return cached.chain;
    const chain = this.attest(attestedNonce);
    this.#cached = { nonce: hex, issuedAt: now, chain };
    return chain;
  }

  #attestedDevice(): AttestedDevice {
    const { serialNumber, provisioningUdid, softwareUpdateDeviceId, osVersion } = this.identity;
    const { sipEnabled, secureBootLevel, thirdPartyKextsAllowed } = this.protections;
    const versions = { osVersion, sepOsVersion: osVersion, llbVersion: osVersion };
    const secureBoot =
      secureBootLevel === 'full' ? 'Full Security' : secureBootLevel === 'medium' ? 'Reduced Security' : 'Permissive Security';
    return { serialNumber, provisioningUdid, softwareUpdateDeviceId, ...versions, sipEnabled, secureBoot, thirdPartyKextsAllowed };
  }

  #encode(value: Record<string, PlistValue>): Uint8Array {
    if (this.#misbehaves('no_plist')) return Buffer.from('{"this":"is no property list"}');
    if (this.#misbehaves('binary_plist')) return buildBinary(value);
    const text = buildXml(this.#misbehaves('huge_answer') ? { ...value, Padding: 'x'.repeat(HUGE_BYTES) } : value);
    if (!this.#misbehaves('entity_bomb')) return Buffer.from(text);
    return Buffer.from(text.replace(/<!DOCTYPE[^>]*>/, ENTITY_BOMB).replace('<string>Acknowledged</string>', '<string>&c;</string>'));
  }
}
