/// Members of the agent's status that the menu shows. Names are those of the control socket (`daemon-status.ts`).
import Foundation

struct AgentStatus: Decodable {
    struct Reason: Decodable { let text: String }
    struct Pause: Decodable {}
    struct Availability: Decodable {
        let state: String
        let reasons: [Reason]
        let pause: Pause?
    }
    struct Connection: Decodable {
        let state: String
        let problem: String?
    }
    struct Trust: Decodable {
        let status: String
        let routable: Bool
    }
    struct Model: Decodable { let id: String }
    struct Demand: Decodable {
        let requestCount: Int
        enum CodingKeys: String, CodingKey { case requestCount = "requests_last_5_minutes" }
    }
    struct ModelView: Decodable {
        let state: String
        let gate: String?
        let routable: Bool
        let demand: Demand
    }
    struct Decision: Decodable {
        let outcome: String
        let text: String
        let lastAt: String?
        enum CodingKeys: String, CodingKey {
            case outcome, text
            case lastAt = "last_at"
        }
    }
    struct Earnings: Decodable {
        let todayMicroUSD: Int64
        enum CodingKeys: String, CodingKey { case todayMicroUSD = "today_micro_usd" }
    }
    struct CoordinatorView: Decodable {
        let earnings: Earnings?
        let models: [ModelView]
        let decisions: [Decision]
        let serverTime: String?
        enum CodingKeys: String, CodingKey {
            case earnings, models, decisions
            case serverTime = "server_time"
        }
    }

    let state: String
    let coordinator: String
    let connection: Connection
    let trust: Trust?
    let models: [Model]
    let availability: Availability?
    let runningJobs: Int
    let coordinatorView: CoordinatorView?

    enum CodingKeys: String, CodingKey {
        case state, coordinator, connection, trust, models, availability
        case runningJobs = "running_jobs"
        case coordinatorView = "coordinator_view"
    }

    /// Throws `ControlProblem.notUnderstood` if a member is missing, as with an agent of another version.
    static func parse(_ body: Data) throws -> AgentStatus {
        do { return try JSONDecoder().decode(AgentStatus.self, from: body) } catch { throw ControlProblem.notUnderstood }
    }
}
