/// Statements that the enclave signs: a prefix for the kind, a zero byte, and canonical JSON. Apart from statements, only
/// the 64 hexadecimal digits of a response hash are signed, and such digits are never a valid statement.
import Foundation

struct Signer {
    let key: EnclaveKey
    private let keyHash: [UInt8]

    init(key: EnclaveKey) {
        self.key = key
        keyHash = sha256(key.publicKey)
    }

    private var providerId: JsonValue { .string(hex(keyHash.prefix(16))) }
    private var publicKeyText: JsonValue { .string(Data(key.publicKey).base64EncodedString()) }

    /// Result of the operation `identity`.
    var identity: [String: JsonValue] {
        ["se_public_key": publicKeyText, "key_protection": .string("file"), "secure_enclave": .bool(true)]
    }

    func attestation(of machine: MachineFacts, posture: Posture, agent: JsonValue, now: Int64) throws -> [String: JsonValue] {
        try statement("attestation", [
            "v": .integer(1),
            "se_public_key": publicKeyText,
            "key_protection": .string("file"),
            "chip_name": .string(machine.chipName),
            "hardware_model": .string(machine.hardwareModel),
            "serial_number": .string(machine.serialNumber),
            "os_version": .string(machine.osVersion),
            "memory_gb": .integer(machine.memoryGb),
            "posture": value(of: posture),
            "agent": agent,
            "issued_at": .integer(now),
        ])
    }

    func challengeAnswer(nonce: String, session: String, posture: Posture, now: Int64) throws -> [String: JsonValue] {
        try statement("challenge", [
            "v": .integer(1), "nonce": .string(nonce), "session_id": .string(session), "posture": value(of: posture),
            "issued_at": .integer(now),
        ])
    }

    func keyStatement(_ sealing: SealingKey) throws -> [String: JsonValue] {
        try statement("key", [
            "v": .integer(1),
            "provider_id": providerId,
            "key_id": .string(hex(sha256(sealing.publicKey).prefix(8))),
            "x25519_public_key": .string(Data(sealing.publicKey).base64EncodedString()),
            "not_before": .integer(sealing.notBefore),
            "not_after": .integer(sealing.notAfter),
            "attestation_sha256": .string(sealing.attestationSha256),
        ])
    }

    func response(_ draft: ReceiptDraft) throws -> [String: JsonValue] {
        var members = draft.members
        members["provider_id"] = providerId
        members["se_key_sha256"] = .string(hex(keyHash[...]))
        let signature = try sign(Array(draft.responseSha256.utf8))
        return ["signature": .string(signature), "receipt": .object(try statement("receipt", members))]
    }

    func e2eResponse(responseSha256: String, _ draft: E2eReceiptDraft) throws -> [String: JsonValue] {
        var members = draft.members
        members["provider_id"] = providerId
        members["se_key_sha256"] = .string(hex(keyHash[...]))
        return [
            "signature": .string(try sign(Array(responseSha256.utf8))),
            "sealed_signature": .string(try sign(Array(draft.sealedResponseSha256.utf8))),
            "receipt": .object(try statement("e2e-receipt", members)),
        ]
    }

    private func statement(_ kind: String, _ members: [String: JsonValue]) throws -> [String: JsonValue] {
        let payload = JsonValue.object(members).canonicalBytes()
        let signature = try sign(Array("inference/\(kind)/v1\0".utf8) + payload)
        return ["payload": .string(Data(payload).base64EncodedString()), "signature": .string(signature)]
    }

    private func sign(_ bytes: [UInt8]) throws -> String {
        do { return try key.sign(bytes).base64EncodedString() } catch {
            throw Refusal(.keyUnavailable, "the Secure Enclave did not sign: \(error)")
        }
    }

    private func value(of posture: Posture) -> JsonValue {
        .object([
            "secure_enclave": .bool(true),
            "sip_enabled": .bool(posture.systemIntegrity.isOn),
            "secure_boot_enabled": .bool(posture.secureBoot.isOn),
            "authenticated_root_enabled": .bool(posture.authenticatedRoot.isOn),
        ])
    }

    private func hex(_ bytes: ArraySlice<UInt8>) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
