/// Client of the agent's control socket: HTTP on a Unix socket that only this user can open.
import Foundation

enum ControlProblem: Error, Equatable {
    case notRunning
    case noAnswer
    case notUnderstood
    /// The agent's own sentence.
    case refused(String)
}

struct ControlSocket: Sendable {
    let path: String

    private static let maxBytes = 4 << 20
    private static let timeoutSeconds = 6

    func status() throws -> AgentStatus { try AgentStatus.parse(request("/v1/status")) }

    /// `until`: nil pauses until `resume`.
    func pause(until: Date?) throws {
        let milliseconds = until.map { String(Int64($0.timeIntervalSince1970 * 1000)) } ?? "null"
        _ = try request("/v1/pause", body: "{\"until\":\(milliseconds)}")
    }

    func resume() throws { _ = try request("/v1/resume", body: "{}") }

    /// Body of the answer. Throws `ControlProblem`. HTTP/1.0, so that the body ends with the connection.
    private func request(_ target: String, body: String? = nil) throws -> Data {
        let file = try open()
        defer { close(file) }
        var text = "\(body == nil ? "GET" : "POST") \(target) HTTP/1.0\r\n"
        if let body { text += "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n" }
        try send(Array("\(text)\r\n\(body ?? "")".utf8), to: file)
        return try ControlSocket.body(of: receive(from: file))
    }

    private func open() throws -> Int32 {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let bytes = Array(path.utf8)
        guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { throw ControlProblem.notRunning }
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        #if os(Linux)
            let file = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        #else
            let file = socket(AF_UNIX, SOCK_STREAM, 0)
        #endif
        guard file >= 0 else { throw ControlProblem.notRunning }
        var timeout = timeval(tv_sec: ControlSocket.timeoutSeconds, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(file, SOL_SOCKET, option, &timeout, socklen_t(MemoryLayout<timeval>.size))
        }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let code = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(file, $0, size) }
        }
        guard code == 0 else {
            close(file)
            throw ControlProblem.notRunning
        }
        return file
    }

    private func send(_ bytes: [UInt8], to file: Int32) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { throw ControlProblem.noAnswer }
            rest = rest.dropFirst(count)
        }
    }

    private func receive(from file: Int32) throws -> Data {
        let deadline = Date().addingTimeInterval(TimeInterval(ControlSocket.timeoutSeconds))
        var all = Data()
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = read(file, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0, Date() < deadline else { throw ControlProblem.noAnswer }
            if count == 0 { return all }
            all.append(contentsOf: buffer[0..<count])
            guard all.count <= ControlSocket.maxBytes else { throw ControlProblem.notUnderstood }
        }
    }

    /// Body of a whole HTTP response. Throws `ControlProblem` for a status other than 200.
    static func body(of response: Data) throws -> Data {
        guard !response.isEmpty else { throw ControlProblem.noAnswer }
        guard let end = response.range(of: Data("\r\n\r\n".utf8)) else { throw ControlProblem.notUnderstood }
        let head = String(decoding: response[response.startIndex..<end.lowerBound], as: UTF8.self)
        let words = head.split(separator: "\r\n").first.map { $0.split(separator: " ") } ?? []
        guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = Int(words[1]) else { throw ControlProblem.notUnderstood }
        let body = Data(response[end.upperBound...])
        if status == 200 { return body }
        guard let refusal = try? JSONDecoder().decode(Refusal.self, from: body) else { throw ControlProblem.notUnderstood }
        throw ControlProblem.refused(refusal.error.message)
    }

    private struct Refusal: Decodable {
        struct Reason: Decodable { let message: String }
        let error: Reason
    }
}
