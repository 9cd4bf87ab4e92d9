/// Why a request is not done; becomes the error of its reply. Codes are those of the stdio contract.
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
