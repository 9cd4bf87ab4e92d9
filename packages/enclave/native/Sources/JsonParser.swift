/// Strict parser of JSON (RFC 8259) in UTF-8. Repeated members, more than 32 levels of nesting, and content after the value
/// are errors.
struct JsonParser {
    struct Malformed: Error {}

    private static let deepest = 32

    private let bytes: [UInt8]
    private var at = 0

    /// The value of a complete JSON text. Throws `Malformed`.
    static func parse(_ bytes: [UInt8]) throws -> JsonValue {
        var parser = JsonParser(bytes: bytes)
        parser.skipSpace()
        let value = try parser.value(depth: 0)
        parser.skipSpace()
        guard parser.at == bytes.count else { throw Malformed() }
        return value
    }

    private init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    private var next: UInt8? { at < bytes.count ? bytes[at] : nil }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D { at += 1 }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        at += 1
        return true
    }

    private mutating func expect(_ byte: UInt8) throws {
        guard take(byte) else { throw Malformed() }
    }

    private mutating func word(_ text: StaticString, _ value: JsonValue) throws -> JsonValue {
        for index in 0..<text.utf8CodeUnitCount { try expect(text.utf8Start[index]) }
        return value
    }

    private mutating func value(depth: Int) throws -> JsonValue {
        guard depth < JsonParser.deepest, let byte = next else { throw Malformed() }
        switch byte {
        case UInt8(ascii: "{"): return try object(depth: depth + 1)
        case UInt8(ascii: "["): return try array(depth: depth + 1)
        case UInt8(ascii: "\""): return try string().map(JsonValue.string) ?? .unusable
        case UInt8(ascii: "t"): return try word("true", .bool(true))
        case UInt8(ascii: "f"): return try word("false", .bool(false))
        case UInt8(ascii: "n"): return try word("null", .null)
        default: return try number()
        }
    }

    private mutating func object(depth: Int) throws -> JsonValue {
        try expect(UInt8(ascii: "{"))
        var members: [String: JsonValue] = [:]
        skipSpace()
        if take(UInt8(ascii: "}")) { return .object(members) }
        repeat {
            skipSpace()
            // The contract has no name with a lone surrogate. The replacement is refused as unknown.
            let name = try string() ?? "\u{FFFD}"
            skipSpace()
            try expect(UInt8(ascii: ":"))
            skipSpace()
            guard members.updateValue(try value(depth: depth), forKey: name) == nil else { throw Malformed() }
            skipSpace()
        } while take(UInt8(ascii: ","))
        try expect(UInt8(ascii: "}"))
        return .object(members)
    }

    private mutating func array(depth: Int) throws -> JsonValue {
        try expect(UInt8(ascii: "["))
        var elements: [JsonValue] = []
        skipSpace()
        if take(UInt8(ascii: "]")) { return .array(elements) }
        repeat {
            skipSpace()
            elements.append(try value(depth: depth))
            skipSpace()
        } while take(UInt8(ascii: ","))
        try expect(UInt8(ascii: "]"))
        return .array(elements)
    }

    /// RFC 8259 section 6. Numbers with fraction or exponent are `unusable`, because the contract has none.
    private mutating func number() throws -> JsonValue {
        let start = at
        _ = take(UInt8(ascii: "-"))
        if !take(UInt8(ascii: "0")) { try digits() }
        var whole = true
        if take(UInt8(ascii: ".")) {
            try digits()
            whole = false
        }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            try digits()
            whole = false
        }
        let text = String(decoding: bytes[start..<at], as: UTF8.self)
        // `magnitude`, because `abs` of the least Int64 overflows and would end the process.
        guard whole, let number = Int64(text), number.magnitude <= UInt64(JsonValue.largestInteger) else { return .unusable }
        return .integer(number)
    }

    private mutating func digits() throws {
        let start = at
        while let byte = next, (0x30...0x39).contains(byte) { at += 1 }
        guard at > start else { throw Malformed() }
    }

    /// RFC 8259 section 7. Nil if the text has a lone surrogate, which a Swift string cannot contain.
    private mutating func string() throws -> String? {
        try expect(UInt8(ascii: "\""))
        var text: [UInt8] = []
        var wellFormed = true
        while let byte = next {
            at += 1
            switch byte {
            case UInt8(ascii: "\""):
                return wellFormed ? String(decoding: text, as: UTF8.self) : nil
            case UInt8(ascii: "\\"):
                if let scalar = try escape() {
                    text.append(contentsOf: Array(String(Character(scalar)).utf8))
                } else {
                    wellFormed = false
                }
            case 0..<0x20:
                throw Malformed()
            default:
                text.append(byte)
            }
        }
        throw Malformed()
    }

    /// The character of an escape, or nil for a lone surrogate.
    private mutating func escape() throws -> Unicode.Scalar? {
        guard let byte = next else { throw Malformed() }
        at += 1
        switch byte {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
        case UInt8(ascii: "b"): return "\u{08}"
        case UInt8(ascii: "f"): return "\u{0C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): return try unicodeEscape()
        default: throw Malformed()
        }
    }

    private mutating func unicodeEscape() throws -> Unicode.Scalar? {
        let first = try codeUnit()
        guard (0xD800...0xDFFF).contains(first) else { return Unicode.Scalar(first) }
        let mark = at
        guard first < 0xDC00, take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")) else {
            at = mark
            return nil
        }
        let second = try codeUnit()
        guard (0xDC00...0xDFFF).contains(second) else {
            at = mark
            return nil
        }
        return Unicode.Scalar(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))
    }

    private mutating func codeUnit() throws -> UInt32 {
        guard at + 4 <= bytes.count else { throw Malformed() }
        var unit: UInt32 = 0
        for byte in bytes[at..<at + 4] {
            guard let digit = Character(Unicode.Scalar(byte)).hexDigitValue, byte < 0x80 else { throw Malformed() }
            unit = unit << 4 | UInt32(digit)
        }
        at += 4
        return unit
    }
}
