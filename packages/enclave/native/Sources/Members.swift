/// Typed reading of an object's members. Missing, mistyped, invalid and unknown members are errors; values are never
/// converted.
import Foundation

struct Members {
    private let members: [String: JsonValue]
    /// Path of the object in the request, for errors.
    private let place: String

    /// Throws `bad_request` unless the value is an object whose members are all in `allowed`.
    init(_ value: JsonValue?, of place: String, allowed: Set<String>) throws {
        guard case .object(let members)? = value else { throw Refusal(.badRequest, "\(place) is not an object") }
        for name in members.keys where !allowed.contains(name) {
            throw Refusal(.badRequest, "\(place) has a member that is not known")
        }
        self.members = members
        self.place = place
    }

    func has(_ name: String) -> Bool { members[name] != nil }

    func value(_ name: String) -> JsonValue? { members[name] }

    /// Text with a number of characters (Unicode scalars) in the range `length`.
    func text(_ name: String, _ length: ClosedRange<Int>) throws -> String {
        guard case .string(let text)? = members[name], length.contains(text.unicodeScalars.count) else { throw bad(name) }
        return text
    }

    /// Text that matches the pattern from begin to end.
    func text(_ name: String, like pattern: TextPattern) throws -> String {
        guard case .string(let text)? = members[name], pattern.matches(text) else { throw bad(name) }
        return text
    }

    func text(_ name: String, oneOf choices: [String]) throws -> String {
        guard case .string(let text)? = members[name], choices.contains(text) else { throw bad(name) }
        return text
    }

    /// A list of one to `most` texts, each of which matches the pattern from begin to end.
    func texts(_ name: String, like pattern: TextPattern, atMost most: Int) throws -> JsonValue {
        guard case .array(let values)? = members[name], (1...most).contains(values.count) else { throw bad(name) }
        for value in values {
            guard case .string(let text) = value, pattern.matches(text) else { throw bad(name) }
        }
        return .array(values)
    }

    func integer(_ name: String, atLeast least: Int64) throws -> Int64 {
        guard case .integer(let number)? = members[name], number >= least else { throw bad(name) }
        return number
    }

    /// The bytes of canonical padded base64, exactly 32.
    func bytes32(_ name: String) throws -> [UInt8] {
        guard case .string(let text)? = members[name], let data = Data(base64Encoded: text), data.count == 32,
            data.base64EncodedString() == text
        else { throw bad(name) }
        return [UInt8](data)
    }

    private func bad(_ name: String) -> Refusal { Refusal(.badRequest, "\(place).\(name) is missing or not valid") }
}

/// Forms of text in the contract. All are ASCII.
enum TextPattern {
    case sha256Hex
    case uuid
    case base64Url32
    /// A decimal number with at most 20 digits before and after its point, without leading zeros.
    case decimal
    /// At most 128 letters, digits and punctuation marks; the first is a letter or a digit.
    case engineName
    /// `http://` or `https://`, then characters of RFC 3986; at most 512 characters in total.
    case url

    func matches(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        switch self {
        case .sha256Hex: return bytes.count == 64 && bytes.allSatisfy(TextPattern.isHex)
        case .base64Url32: return bytes.count == 43 && bytes.allSatisfy(TextPattern.isBase64Url)
        case .decimal: return TextPattern.isDecimal(bytes)
        case .engineName:
            guard let first = bytes.first, bytes.count <= 128, TextPattern.isAlphanumeric(first) else { return false }
            return bytes.allSatisfy { TextPattern.isAlphanumeric($0) || " ._+()/:-".utf8.contains($0) }
        case .url:
            let scheme = ["https://", "http://"].first { text.hasPrefix($0) }
            guard let scheme, bytes.count > scheme.utf8.count, bytes.count <= 512 else { return false }
            return bytes.allSatisfy(TextPattern.isUrl)
        case .uuid:
            guard bytes.count == 36 else { return false }
            return bytes.enumerated().allSatisfy { index, byte in
                [8, 13, 18, 23].contains(index) ? byte == UInt8(ascii: "-") : TextPattern.isHex(byte)
            }
        }
    }

    private static func isDecimal(_ bytes: [UInt8]) -> Bool {
        let digits = bytes.first == UInt8(ascii: "-") ? Array(bytes.dropFirst()) : bytes
        let parts = digits.split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
        guard let whole = parts.first, parts.allSatisfy({ (1...20).contains($0.count) && $0.allSatisfy(isDigit) }) else { return false }
        return whole.count == 1 || whole.first != UInt8(ascii: "0")
    }

    private static func isDigit(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte)
    }

    private static func isAlphanumeric(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): return true
        default: return false
        }
    }

    private static func isHex(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains(byte)
    }

    private static func isBase64Url(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): return true
        default: return byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
        }
    }

    private static func isUrl(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): return true
        default: return "._~:/?#[]@!$&'()*+,;=%-".utf8.contains(byte)
        }
    }
}
