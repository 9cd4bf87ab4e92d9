/// Performs the helper's operations. The key is read at first use and kept in memory. The Mac's protections are read again
/// for each statement that reports them.
import Foundation

final class Operations {
    private let keyFile: KeyFile
    private let lock = NSLock()
    private var signer: Signer?
    /// Reasons in the last log lines.
    private var loggedReasons: [String] = []

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

    /// The current posture. Logs why protections are not on, once per change.
    private func posture() -> Posture {
        let posture = Posture.read()
        lock.lock()
        defer { lock.unlock() }
        if posture.reasons != loggedReasons {
            loggedReasons = posture.reasons
            for reason in loggedReasons { writeLog("not shown to be protected: \(reason)") }
        }
        return posture
    }
}

/// The current time in whole milliseconds since 1970.
func currentTime() -> Int64 {
    Int64((Date().timeIntervalSince1970 * 1_000).rounded(.down))
}

/// Writes a line to stderr, for the owner's log.
func writeLog(_ text: String) {
    _ = writeAll(2, Array("\(text)\n".utf8))
}
