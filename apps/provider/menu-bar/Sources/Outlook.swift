import Foundation

/// Headline and reason of `inference-provider status`. Follows `jobOutlook` of the command line; `checks/outlooks.json` holds
/// the cases that both must agree on.
struct Outlook: Equatable {
    enum State: String { case serving, idle, waiting, needsOwner = "needs_owner" }

    let state: State
    let headline: String
    let reason: String?

    private static let closed = "Not accepting requests"
    private static let ready = "Ready for requests"

    init(_ state: State, _ headline: String, _ reason: String? = nil) {
        self.state = state
        self.headline = headline
        self.reason = reason
    }

    init(_ status: AgentStatus) {
        self = Outlook.starting(status) ?? Outlook.unavailable(status) ?? Outlook.unverified(status) ?? Outlook.open(status)
    }

    private static func starting(_ status: AgentStatus) -> Outlook? {
        switch status.state {
        case "starting": return Outlook(.waiting, "Starting", "The models are being loaded.")
        case "stopping": return Outlook(.waiting, "Stopping", "Running requests finish first.")
        default: return nil
        }
    }

    private static func unavailable(_ status: AgentStatus) -> Outlook? {
        guard let availability = status.availability, availability.state != "serving" else { return nil }
        let isLeaving = availability.state == "leaving"
        let texts = availability.reasons.map { sentence($0.text) } + (isLeaving ? ["Running requests finish first."] : [])
        return Outlook(.waiting, isLeaving ? "Not accepting new requests" : closed, texts.isEmpty ? nil : texts.joined(separator: " "))
    }

    private static func unverified(_ status: AgentStatus) -> Outlook? {
        if status.connection.state != "connected" {
            let problem = status.connection.problem.map { ": \($0)" } ?? ""
            return Outlook(.needsOwner, closed, sentence("Not connected to the coordinator\(problem)"))
        }
        if status.models.isEmpty { return Outlook(.needsOwner, closed, "No model is served.") }
        guard let trust = status.trust else { return Outlook(.waiting, "Connected", "The coordinator is verifying this machine.") }
        return trust.routable ? nil : Outlook(.needsOwner, closed, sentence(capitalized(words(trust.status))))
    }

    private static func open(_ status: AgentStatus) -> Outlook {
        let count = status.runningJobs
        if count > 0 { return Outlook(.serving, "Serving \(count) \(count == 1 ? "request" : "requests")") }
        guard let view = status.coordinatorView else { return Outlook(.serving, ready) }
        let routable = view.models.filter { $0.routable }
        if let first = view.models.first, routable.isEmpty {
            return Outlook(.waiting, "\(closed) right now", sentence(capitalized(words(first.gate ?? first.state))))
        }
        if routable.reduce(0, { $0 + $1.demand.requestCount }) == 0 {
            return Outlook(.idle, ready, "No requests for these models in the last five minutes.")
        }
        guard let last = view.decisions.first, last.outcome != "chosen", !wasRecentlyChosen(view) else { return Outlook(.serving, ready) }
        return Outlook(.serving, ready, "Last decision: \(sentence(last.text))")
    }

    /// The same period as in `requests_last_5_minutes`.
    private static let recentSeconds: TimeInterval = 5 * 60

    private static func wasRecentlyChosen(_ view: AgentStatus.CoordinatorView) -> Bool {
        guard let now = date(view.serverTime) else { return false }
        return view.decisions.contains { decision in
            guard decision.outcome == "chosen", let at = date(decision.lastAt) else { return false }
            return now.timeIntervalSince(at) <= recentSeconds
        }
    }

    private static func date(_ text: String?) -> Date? {
        guard let text = text else { return nil }
        let format = ISO8601DateFormatter()
        format.formatOptions = [.withInternetDateTime, .withFractionalSeconds]
        return format.date(from: text)
    }

    private static func words(_ code: String) -> String { String(code.map { $0 == "_" ? " " : $0 }) }

    private static func capitalized(_ text: String) -> String { text.prefix(1).uppercased() + text.dropFirst() }

    private static func sentence(_ text: String) -> String {
        guard let last = text.last else { return text }
        return ".!?".contains(last) ? text : text + "."
    }
}
