/// The JSON values of the contract. Foundation's JSON reader is not used, because systems differ in whether it
/// distinguishes `true` from `1`, and `1` from `1.0`.
enum JsonValue: Equatable {
    case null
    case bool(Bool)
    /// A whole number from -(2^53 - 1) to 2^53 - 1, which JavaScript represents exactly.
    case integer(Int64)
    case string(String)
    case array([JsonValue])
    case object([String: JsonValue])
    /// Well-formed JSON that is never valid in the contract: another number, or text with a lone surrogate.
    case unusable

    static let largestInteger: Int64 = 9_007_199_254_740_991
}
