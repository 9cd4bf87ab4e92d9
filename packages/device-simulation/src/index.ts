/** Simulated Macs, device management and certificate authority, for development and CI. */
export { AcmeServer, type AcmeServerOptions } from './acme/acme-server.js';
export { attestationObject } from './acme/challenge.js';
export {
  type AuthorityNames,
  type AuthorityOptions,
  DEVICE_ATTESTATION_PURPOSE,
  type IssuedChain,
  type IssueOptions,
  LEAF_LIFETIME_MS,
  SimulatedAuthority,
} from './certificate-authority/authority.js';
export type { CertificateTemplate, Extension } from './certificate-authority/certificate.js';
export { type AttestedDevice, DEVICE_OIDS } from './certificate-authority/device-extensions.js';
export { type P384Key, p384Key, type Random } from './certificate-authority/key.js';
export { type ChainMutation, type ChainSample, MutationBench, SAMPLE_DEVICE } from './certificate-authority/mutation-bench.js';
export { CHAIN_MUTATIONS } from './certificate-authority/mutations.js';
export { type EnrolmentProfile, readEnrolmentProfile } from './management-server/enrolment-profile.js';
export {
  FakeMac,
  type MacAnswer,
  type MacIdentity,
  type MacProtections,
  MISBEHAVIOURS,
  type Misbehaviour,
  type ReceivedCommand,
  SOUND_PROTECTIONS,
} from './management-server/fake-mac.js';
export { ManagementServer, type ManagementServerOptions } from './management-server/management-server.js';
export {
  checkInEvent,
  reportEvent,
  type SendOptions,
  type SentEvent,
  sendEvent,
  sendRaw,
  type WebhookTarget,
} from './management-server/webhook-sender.js';
