/**
 * `GET /v1/providers/attestation`: the evidence for every connected provider, so that anyone can check what is claimed, and a
 * text that says how, and what is not proved (spec: provider attestation record).
 */
import type { AttestationFeed } from '@inference/protocol';
import type { FastifyInstance } from 'fastify';
import type { Fleet } from '../fleet/fleet.js';
import { attestationRecord, publishedAnchor } from './attestation-record.js';
import { addPublicRoute } from './public-route.js';
import { verificationInstructions } from './verification-instructions.js';

const ROOT_CA_URL = 'https://www.apple.com/certificateauthority/private/';
const ROOT_CA_NAME = 'Apple Enterprise Attestation Root CA';

export function addAttestation(server: FastifyInstance, fleet: Fleet): void {
  const { anchor } = fleet;
  const instructions = verificationInstructions(anchor);
  addPublicRoute(
    server,
    '/v1/providers/attestation',
    async (): Promise<AttestationFeed> => ({
      providers: [...fleet.sessions()].map((session) => attestationRecord(fleet, session)),
      apple_root_ca_url: ROOT_CA_URL,
      apple_enterprise_root_ca: ROOT_CA_NAME,
      verification_instructions: instructions,
      trust_anchor: publishedAnchor(anchor),
    }),
  );
}
