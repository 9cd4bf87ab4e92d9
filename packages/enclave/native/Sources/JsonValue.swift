/// The JSON values of the contract. Foundation's JSON reader is not used: it tells `true` from `1` and `1` from `1.0`
/// differently on different systems, and a helper that signs must not guess.
enum JsonValue: Equatable {
    case null
    case bool(Bool)
    /// A whole number that every JavaScript program reads exactly: at most 2^53 - 1 either way.
    case integer(Int64)
    case string(String)
    case array([JsonValue])
    case object([String: JsonValue])
    /// Well-formed JSON that no member of the contract can be: another number, or text with a lone surrogate.
    case unusable

    static let largestInteger: Int64 = 9_007_199_254_740_991
}
