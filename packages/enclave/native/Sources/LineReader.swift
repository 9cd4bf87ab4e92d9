/// Reads lines from a file descriptor. An overlong line is reported once and skipped up to its line feed, so that memory
/// stays bounded for any input.
import Foundation

enum Line {
    case bytes([UInt8])
    case tooLong
}

struct LineReader {
    private let file: Int32
    private var buffer = [UInt8](repeating: 0, count: 64 * 1024)
    /// Range of unread bytes in `buffer`.
    private var ready = 0..<0
    /// Bytes of the unfinished line.
    private var line: [UInt8] = []
    private var skipping = false

    init(file: Int32) {
        self.file = file
    }

    /// The next line without its line feed; nil at the end of the input. A last line without line feed is dropped.
    mutating func next() -> Line? {
        while true {
            if ready.isEmpty && !fill() { return nil }
            let end = buffer[ready].firstIndex(of: 0x0A)
            let part = ready.lowerBound..<(end ?? ready.upperBound)
            ready = (end.map { $0 + 1 } ?? ready.upperBound)..<ready.upperBound
            if !skipping && line.count + part.count > maxLineBytes {
                line = []
                skipping = end == nil
                return .tooLong
            }
            if !skipping { line.append(contentsOf: buffer[part]) }
            guard end != nil else { continue }
            if skipping {
                skipping = false
            } else {
                defer { line = [] }
                return .bytes(line)
            }
        }
    }

    /// Reads more bytes into the buffer. Returns false at the end of the input.
    private mutating func fill() -> Bool {
        while true {
            let count = read(file, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else { return false }
            ready = 0..<count
            return true
        }
    }
}
