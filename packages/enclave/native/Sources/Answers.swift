/// Answers each request line with one reply line. Requests that read the Mac's protections take some tenths of a second.
/// Those requests have their own queue, so that the signing of responses never waits behind them.
import Foundation

final class Answers {
    private let operations: Operations
    private let signingQueue = DispatchQueue(label: "signing")
    private let postureQueue = DispatchQueue(label: "posture")
    private let outputLock = NSLock()
    /// Free places for unanswered requests. Without a free place, reading of the input waits.
    private let freePlaces = DispatchSemaphore(value: 256)

    init(operations: Operations) {
        self.operations = operations
    }

    /// Queues the request of a line, or replies at once that the line is no valid request.
    func take(_ line: Line) {
        switch Answers.read(line) {
        case .failure(let failure):
            reply(failure.id, .failure(failure.refusal))
        case .success(let (id, request)):
            freePlaces.wait()
            queue(for: request).async { [self] in
                defer { freePlaces.signal() }
                reply(id, Result { try operations.perform(request) })
            }
        }
    }

    /// Returns when all queued requests are answered.
    func finish() {
        signingQueue.sync {}
        postureQueue.sync {}
    }

    private func queue(for request: Request) -> DispatchQueue {
        switch request {
        case .attest, .answerChallenge: return postureQueue
        case .hello, .identity, .signKey, .signResponse, .signE2eResponse: return signingQueue
        }
    }

    private struct Failure: Error {
        let id: JsonValue
        let refusal: Refusal
    }

    private static func read(_ line: Line) -> Result<(JsonValue, Request), Failure> {
        var id = JsonValue.null
        do {
            guard case .bytes(let bytes) = line else { throw Refusal(.badRequest, "the line is over \(maxLineBytes) bytes") }
            // Decoding replaces bytes that are not UTF-8, so such text has other bytes afterwards.
            guard Array(String(decoding: bytes, as: UTF8.self).utf8) == bytes else { throw Refusal(.badRequest, "the line is not UTF-8") }
            guard let value = try? JsonParser.parse(bytes) else { throw Refusal(.badRequest, "the line is not JSON") }
            guard case .object(let members) = value else { throw Refusal(.badRequest, "the line is not an object") }
            guard case .integer(let number)? = members["id"], number >= 0 else { throw Refusal(.badRequest, "id is not a whole number") }
            id = .integer(number)
            guard case .string(let operation)? = members["op"] else { throw Refusal(.badRequest, "op is not a string") }
            return .success((id, try Request(operation: operation, members: value, now: currentTime())))
        } catch {
            return .failure(Failure(id: id, refusal: error as? Refusal ?? Refusal(.internalError, "\(error)")))
        }
    }

    private func reply(_ id: JsonValue, _ result: Result<[String: JsonValue], Error>) {
        var members: [String: JsonValue]
        switch result {
        case .success(let value):
            members = value
            members["ok"] = .bool(true)
        case .failure(let error):
            let refusal = error as? Refusal ?? Refusal(.internalError, "\(error)")
            let message = String(refusal.message.prefix(256))
            members = ["ok": .bool(false), "error": .object(["code": .string(refusal.code.rawValue), "message": .string(message)])]
        }
        members["id"] = id
        let bytes = JsonValue.object(members).canonicalBytes() + [0x0A]
        outputLock.lock()
        defer { outputLock.unlock() }
        // A failed write means that the agent has exited.
        if !writeAll(1, bytes) { _exit(0) }
    }
}
