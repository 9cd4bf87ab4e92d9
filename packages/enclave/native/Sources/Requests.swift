/// Requests of the stdio contract, checked member by member. `src/contract` and the simulated helper have the same rules;
/// the contract suite runs against both helpers.
import Foundation

let contractVersion: Int64 = 1
/// Maximum bytes of a line, without line feed.
let maxLineBytes = 64 * 1024
/// In milliseconds.
private let maxKeyLife: Int64 = 60 * 60_000
/// In milliseconds.
private let clockTolerance: Int64 = 120_000
private let maxOutputImages = 4
private let maxInputImages = 20
/// Versions of the receipts that are signed.
let receiptVersions: [Int64] = [2, 1]
/// Versions of the end-to-end receipts that are signed.
let e2eReceiptVersions: [Int64] = [1]
/// Endpoints whose answers are signed.
private let endpoints = [
    "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/messages/count_tokens",
    "/v1/embeddings", "/v1/images/generations",
]

enum Request {
    case hello
    case identity
    case attest(agent: JsonValue)
    case answerChallenge(nonce: String, session: String)
    case signKey(SealingKey)
    case signResponse(ReceiptDraft)
    case signE2eResponse(responseSha256: String, E2eReceiptDraft)

    /// Throws `unknown_op` or `bad_request`.
    init(operation: String, members: JsonValue, now: Int64) throws {
        func closed(_ names: String...) throws -> Members {
            try Members(members, of: operation, allowed: Set(names + ["id", "op"]))
        }
        switch operation {
        case "hello":
            _ = try closed()
            self = .hello
        case "identity":
            _ = try closed()
            self = .identity
        case "attest":
            self = .attest(agent: try Request.agent(closed("agent").value("agent")))
        case "answer_challenge":
            let members = try closed("nonce", "session_id")
            let nonce = try members.bytes32("nonce")
            self = .answerChallenge(nonce: Data(nonce).base64EncodedString(), session: try members.text("session_id", 1...64))
        case "sign_key":
            self = .signKey(try SealingKey(closed("x25519_public_key", "not_before", "not_after", "attestation_sha256"), now: now))
        case "sign_response":
            self = .signResponse(try ReceiptDraft(closed("receipt").value("receipt")))
        case "sign_e2e_response":
            let members = try closed("response_sha256", "receipt")
            let responseSha256 = try members.text("response_sha256", like: .sha256Hex)
            self = .signE2eResponse(responseSha256: responseSha256, try E2eReceiptDraft(members.value("receipt")))
        default:
            throw Refusal(.unknownOperation, "there is no such operation")
        }
    }

    private static func agent(_ value: JsonValue?) throws -> JsonValue {
        let agent = try Members(value, of: "agent", allowed: ["version", "sha256"])
        var members: [String: JsonValue] = ["version": .string(try agent.text("version", 1...128))]
        if agent.has("sha256") { members["sha256"] = .string(try agent.text("sha256", like: .sha256Hex)) }
        return .object(members)
    }
}

/// A sealing key to be signed. Valid for at most an hour from about now, so that brief access to the helper yields no
/// long-lived statements.
struct SealingKey {
    let publicKey: [UInt8]
    let notBefore: Int64
    let notAfter: Int64
    let attestationSha256: String

    fileprivate init(_ members: Members, now: Int64) throws {
        publicKey = try members.bytes32("x25519_public_key")
        notBefore = try members.integer("not_before", atLeast: 0)
        notAfter = try members.integer("not_after", atLeast: 0)
        attestationSha256 = try members.text("attestation_sha256", like: .sha256Hex)
        guard notAfter > notBefore else { throw Refusal(.badRequest, "not_after is not later than not_before") }
        guard notAfter - notBefore <= maxKeyLife else { throw Refusal(.badRequest, "a sealing key lives at most 60 minutes") }
        guard notBefore <= now + clockTolerance else { throw Refusal(.badRequest, "not_before is in the future") }
        guard notAfter > now else { throw Refusal(.badRequest, "not_after has passed") }
    }
}

/// A checked receipt without the signer's members.
struct ReceiptDraft {
    let responseSha256: String
    /// The members as they are signed, without `provider_id` and `se_key_sha256`.
    let members: [String: JsonValue]

    private static let known: Set<String> = [
        "v", "job_id", "model", "endpoint", "request_sha256", "overrides", "response_sha256", "image_sha256", "client_nonce",
        "usage", "hidden_tokens", "finish_reason", "started_at", "completed_at",
        "engine", "weights_sha256", "template_sha256", "sampling",
    ]

    fileprivate init(_ value: JsonValue?) throws {
        let receipt = try Members(value, of: "receipt", allowed: ReceiptDraft.known)
        let version = try receipt.integer("v", atLeast: 1)
        guard receiptVersions.contains(version) else { throw Refusal(.badRequest, "receipt.v is not known") }
        responseSha256 = try receipt.text("response_sha256", like: .sha256Hex)
        let usage = try ReceiptDraft.usage(receipt.value("usage"))
        let hidden = try receipt.integer("hidden_tokens", atLeast: 0)
        guard hidden <= usage.completion else { throw Refusal(.badRequest, "more hidden tokens than tokens") }
        let started = try receipt.integer("started_at", atLeast: 0)
        let completed = try receipt.integer("completed_at", atLeast: 0)
        guard completed >= started else { throw Refusal(.badRequest, "completed before it started") }
        var members: [String: JsonValue] = [
            "v": .integer(version),
            "job_id": .string(try receipt.text("job_id", like: .uuid)),
            "model": .string(try receipt.text("model", 1...256)),
            "endpoint": .string(try receipt.text("endpoint", oneOf: endpoints)),
            "request_sha256": .string(try receipt.text("request_sha256", like: .sha256Hex)),
            "overrides": try ReceiptDraft.overrides(receipt.value("overrides")),
            "response_sha256": .string(responseSha256),
            "usage": usage.value,
            "hidden_tokens": .integer(hidden),
            "finish_reason": .string(try receipt.text("finish_reason", oneOf: ["stop", "length", "tool_calls", "cancelled"])),
            "started_at": .integer(started),
            "completed_at": .integer(completed),
        ]
        if receipt.has("image_sha256") { members["image_sha256"] = try receipt.texts("image_sha256", like: .sha256Hex, atMost: maxOutputImages) }
        if receipt.has("client_nonce") { members["client_nonce"] = .string(try receipt.text("client_nonce", like: .base64Url32)) }
        for (name, value) in try ReceiptDraft.computedBy(receipt, version: version) { members[name] = value }
        self.members = members
    }

    /// Members about the computation. Only version 2 has them, and always the engine.
    private static func computedBy(_ receipt: Members, version: Int64) throws -> [String: JsonValue] {
        guard version >= 2 else {
            for name in ["engine", "weights_sha256", "template_sha256", "sampling"] where receipt.has(name) {
                throw Refusal(.badRequest, "receipt.\(name) is not allowed in version 1")
            }
            return [:]
        }
        var members: [String: JsonValue] = ["engine": .string(try receipt.text("engine", like: .engineName))]
        for name in ["weights_sha256", "template_sha256"] where receipt.has(name) {
            members[name] = .string(try receipt.text(name, like: .sha256Hex))
        }
        if receipt.has("sampling") { members["sampling"] = try ReceiptDraft.sampling(receipt.value("sampling")) }
        return members
    }

    fileprivate static func sampling(_ value: JsonValue?) throws -> JsonValue {
        let sampling = try Members(
            value, of: "receipt.sampling",
            allowed: [
                "temperature", "top_p", "top_k", "min_p", "seed",
                "frequency_penalty", "presence_penalty", "repetition_penalty",
            ])
        var members: [String: JsonValue] = ["temperature": .string(try sampling.text("temperature", like: .decimal))]
        let optional = ["top_p", "top_k", "min_p", "seed", "frequency_penalty", "presence_penalty", "repetition_penalty"]
        for name in optional where sampling.has(name) {
            members[name] = .string(try sampling.text(name, like: .decimal))
        }
        return .object(members)
    }

    private static func overrides(_ value: JsonValue?) throws -> JsonValue {
        let overrides = try Members(value, of: "receipt.overrides", allowed: ["max_tokens", "image_urls", "fetched_images"])
        var members: [String: JsonValue] = [:]
        if overrides.has("max_tokens") { members["max_tokens"] = .integer(try overrides.integer("max_tokens", atLeast: 1)) }
        if overrides.has("image_urls") { members["image_urls"] = try overrides.texts("image_urls", like: .url, atMost: maxOutputImages) }
        if overrides.has("fetched_images") {
            members["fetched_images"] = try overrides.texts("fetched_images", like: .sha256Hex, atMost: maxInputImages)
        }
        return .object(members)
    }

    fileprivate static func usage(_ value: JsonValue?) throws -> (value: JsonValue, completion: Int64) {
        let usage = try Members(
            value, of: "receipt.usage", allowed: ["prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens", "images"])
        let prompt = try usage.integer("prompt_tokens", atLeast: 0)
        let completion = try usage.integer("completion_tokens", atLeast: 0)
        let total = try usage.integer("total_tokens", atLeast: 0)
        guard total == prompt + completion else { throw Refusal(.badRequest, "usage does not add up") }
        var members: [String: JsonValue] = [
            "prompt_tokens": .integer(prompt), "completion_tokens": .integer(completion), "total_tokens": .integer(total),
        ]
        if usage.has("cached_tokens") { members["cached_tokens"] = .integer(try usage.integer("cached_tokens", atLeast: 0)) }
        if usage.has("images") {
            let images = try usage.integer("images", atLeast: 1)
            guard images <= Int64(maxOutputImages) else { throw Refusal(.badRequest, "more images than a job has") }
            members["images"] = .integer(images)
        }
        return (.object(members), completion)
    }
}

/// A checked receipt of an end-to-end job without the signer's members. Contains commitments to the plaintext, not its hashes.
struct E2eReceiptDraft {
    let sealedResponseSha256: String
    /// The members as they are signed, without `provider_id` and `se_key_sha256`.
    let members: [String: JsonValue]

    private static let e2eMembers: Set<String> = [
        "v", "job_id", "model", "endpoint", "context_sha256", "sealed_request_sha256", "sealed_response_sha256",
        "request_commitment", "response_commitment", "image_commitments", "response_bytes",
        "usage", "hidden_tokens", "finish_reason", "started_at", "completed_at",
        "engine", "weights_sha256", "template_sha256", "sampling",
    ]
    private static let e2eFinishReasons = ["stop", "length", "tool_calls", "cancelled", "refused"]

    fileprivate init(_ value: JsonValue?) throws {
        let receipt = try Members(value, of: "receipt", allowed: E2eReceiptDraft.e2eMembers)
        let version = try receipt.integer("v", atLeast: 1)
        guard e2eReceiptVersions.contains(version) else { throw Refusal(.badRequest, "receipt.v is not known") }
        sealedResponseSha256 = try receipt.text("sealed_response_sha256", like: .sha256Hex)
        let finishReason = try receipt.text("finish_reason", oneOf: E2eReceiptDraft.e2eFinishReasons)
        let hidden = try receipt.integer("hidden_tokens", atLeast: 0)
        let started = try receipt.integer("started_at", atLeast: 0)
        let completed = try receipt.integer("completed_at", atLeast: 0)
        guard completed >= started else { throw Refusal(.badRequest, "completed before it started") }
        var members: [String: JsonValue] = [
            "v": .integer(version),
            "job_id": .string(try receipt.text("job_id", like: .uuid)),
            "model": .string(try receipt.text("model", 1...256)),
            "endpoint": .string(try receipt.text("endpoint", oneOf: endpoints)),
            "sealed_response_sha256": .string(sealedResponseSha256),
            "response_bytes": .integer(try receipt.integer("response_bytes", atLeast: 0)),
            "hidden_tokens": .integer(hidden),
            "finish_reason": .string(finishReason),
            "started_at": .integer(started),
            "completed_at": .integer(completed),
        ]
        for name in ["context_sha256", "sealed_request_sha256", "request_commitment", "response_commitment"] {
            members[name] = .string(try receipt.text(name, like: .sha256Hex))
        }
        if receipt.has("image_commitments") {
            members["image_commitments"] = try receipt.texts("image_commitments", like: .sha256Hex, atMost: maxOutputImages)
        }
        if finishReason == "refused" {
            guard !receipt.has("usage") else { throw Refusal(.badRequest, "receipt.usage is no member of a refusal") }
            guard hidden == 0 else { throw Refusal(.badRequest, "more hidden tokens than tokens") }
        } else {
            let usage = try ReceiptDraft.usage(receipt.value("usage"))
            guard hidden <= usage.completion else { throw Refusal(.badRequest, "more hidden tokens than tokens") }
            members["usage"] = usage.value
            guard receipt.has("engine") else { throw Refusal(.badRequest, "receipt.engine is missing") }
        }
        if receipt.has("engine") { members["engine"] = .string(try receipt.text("engine", like: .engineName)) }
        for name in ["weights_sha256", "template_sha256"] where receipt.has(name) {
            members[name] = .string(try receipt.text(name, like: .sha256Hex))
        }
        if receipt.has("sampling") { members["sampling"] = try ReceiptDraft.sampling(receipt.value("sampling")) }
        self.members = members
    }
}
