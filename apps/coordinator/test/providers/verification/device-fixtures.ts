/** Macs of the simulated authority, with complete device evidence and certificate chains, for tests of trust. */
import { randomBytes } from 'node:crypto';
import { type AttestedDevice, SAMPLE_DEVICE, SimulatedAuthority } from '@inference/device-simulation';
import { toBase64 } from '@inference/protocol';
import { sha256Hex } from '@inference/protocol/crypto';
import { deviceNonce, noncePreimage, weeklyEpoch } from '../../../src/providers/verification/chain/freshness.js';
import { parseSimulatedAnchor, type TrustAnchor } from '../../../src/providers/verification/chain/trust-anchor.js';
import type { DeviceChainEvidence, DeviceEvidence } from '../../../src/providers/verification/evidence.js';

export const DAY_MS = 24 * 60 * 60_000;

export class DeviceWorld {
  readonly authority: SimulatedAuthority;
  readonly anchor: TrustAnchor;

  constructor(now: number) {
    this.authority = SimulatedAuthority.create({ now, random: randomBytes });
    this.anchor = parseSimulatedAnchor(this.authority.rootPem);
  }

  /** A chain bound to `publicKey`, issued at `now`. */
  chain(publicKey: Uint8Array, device: Partial<AttestedDevice>, now: number, nonce?: Uint8Array): DeviceChainEvidence {
    const preimage = noncePreimage(publicKey, weeklyEpoch(now), randomBytes(16));
    const freshness = nonce ?? deviceNonce(preimage);
    if (freshness === null) throw new TypeError('the preimage gives no nonce');
    const { certificates } = this.authority.issue({ now, random: randomBytes, device: { ...SAMPLE_DEVICE, ...device }, freshness });
    return { receivedAt: now, certificates: certificates.map(toBase64), preimage };
  }

  /** Evidence of a Mac with all protections on. */
  evidence(publicKey: Uint8Array, device: Partial<AttestedDevice>, now: number): DeviceEvidence {
    const { serialNumber, provisioningUdid, softwareUpdateDeviceId } = { ...SAMPLE_DEVICE, ...device };
    return {
      publicKeySha256: sha256Hex(publicKey),
      enrolledAt: now,
      security: { receivedAt: now, sipEnabled: true, secureBootLevel: 'full', diskEncryptionEnabled: true, authenticatedRootEnabled: true },
      information: { receivedAt: now, serialNumber, provisioningUdid, softwareUpdateDeviceId },
      chain: this.chain(publicKey, device, now),
      acme: null,
    };
  }
}
