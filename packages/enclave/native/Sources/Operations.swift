/// What the helper does for each request. The key is read at its first use, and kept; the protections are read anew for
/// every statement that tells of them.
import Foundation

final class Operations {
    private let keyFile: KeyFile
    private let lock = NSLock()
    private var signer: Signer?
    private var toldReasons: [String] = []

    init(dataDirectory: String) {
        keyFile = KeyFile(directory: dataDirectory)
    }

    /// Members of the reply. Throws `Refusal`.
    func perform(_ request: Request) throws -> [String: JsonValue] {
        switch request {
        case .hello:
            return [
                "contract": .integer(contractVersion), "kind": .string("secure_enclave"), "version": .string(helperVersion),
                "receipts": .array(receiptVersions.map { .integer($0) }),
                "e2e_receipts": .array(e2eReceiptVersions.map { .integer($0) }),
            ]
        case .identity:
            return try currentSigner().identity
        case .attest(let agent):
            let signer = try currentSigner()
            return try signer.attestation(of: MachineFacts.read(), posture: posture(), agent: agent, now: currentTime())
        case .answerChallenge(let nonce, let session):
            let signer = try currentSigner()
            return try signer.challengeAnswer(nonce: nonce, session: session, posture: posture(), now: currentTime())
        case .signKey(let sealing):
            return try currentSigner().keyStatement(sealing)
        case .signResponse(let draft):
            return try currentSigner().response(draft)
        case .signE2eResponse(let responseSha256, let draft):
            return try currentSigner().e2eResponse(responseSha256: responseSha256, draft)
        }
    }

    private func currentSigner() throws -> Signer {
        lock.lock()
        defer { lock.unlock() }
        if let signer { return signer }
        let loaded = Signer(key: try keyFile.loadOrCreate())
        signer = loaded
        return loaded
    }

    /// The present posture. Tells the owner why a protection is not on, once for each change.
    private func posture() -> Posture {
        let posture = Posture.read()
        lock.lock()
        defer { lock.unlock() }
        if posture.reasons != toldReasons {
            toldReasons = posture.reasons
            for reason in toldReasons { say("not shown to be protected: \(reason)") }
        }
        return posture
    }
}

/// Whole milliseconds since 1970.
func currentTime() -> Int64 {
    Int64((Date().timeIntervalSince1970 * 1_000).rounded(.down))
}

/// A line on stderr, for the owner's log.
func say(_ text: String) {
    _ = writeAll(2, Array("\(text)\n".utf8))
}
