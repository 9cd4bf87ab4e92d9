/// The error of a request that the helper does not perform, with a code of the stdio contract.
struct Refusal: Error {
    enum Code: String {
        case badRequest = "bad_request"
        case unknownOperation = "unknown_op"
        case noEnclave = "no_enclave"
        case keyUnavailable = "key_unavailable"
        case io
        case internalError = "internal"
    }

    let code: Code
    let message: String

    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }
}
