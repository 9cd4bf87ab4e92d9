/// One line in, one line out. Requests that ask macOS for its protections take some tenths of a second, so they have a
/// queue of their own and the signing of responses never waits behind them.
import Foundation

final class Answers {
    private let operations: Operations
    private let signing = DispatchQueue(label: "signing")
    private let asking = DispatchQueue(label: "asking")
    private let output = NSLock()
    /// Lines taken in and not answered yet; reading waits beyond that.
    private let room = DispatchSemaphore(value: 256)

    init(operations: Operations) {
        self.operations = operations
    }

    func take(_ line: Line) {
        switch Answers.read(line) {
        case .failure(let failure):
            reply(failure.id, .failure(failure.refusal))
        case .success(let (id, request)):
            room.wait()
            queue(for: request).async { [self] in
                defer { room.signal() }
                reply(id, Result { try operations.perform(request) })
            }
        }
    }

    /// Returns when everything taken in is answered.
    func finish() {
        signing.sync {}
        asking.sync {}
    }

    private func queue(for request: Request) -> DispatchQueue {
        switch request {
        case .attest, .answerChallenge: return asking
        case .hello, .identity, .signKey, .signResponse, .signE2eResponse: return signing
        }
    }

    private struct Failure: Error {
        let id: JsonValue
        let refusal: Refusal
    }

    private static func read(_ line: Line) -> Result<(JsonValue, Request), Failure> {
        var id = JsonValue.null
        do {
            guard case .bytes(let bytes) = line else { throw Refusal(.badRequest, "the line is over \(longestLine) bytes") }
            // Decoding repairs what is not UTF-8; text that it changed was not.
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
        output.lock()
        defer { output.unlock() }
        // Nobody reads any more: the agent is gone.
        if !writeAll(1, bytes) { _exit(0) }
    }
}
