/// Content of the menu and of its icon, without AppKit.
import Foundation

enum MenuAction: Equatable, Sendable {
    /// Nil pauses until `resume`.
    case pause(minutes: Int?)
    case resume
    case open(URL)
    case quit
}

enum MenuEntry: Equatable {
    case text(String)
    case command(String, MenuAction)
    case separator
}

struct MenuModel: Equatable {
    /// Name of an SF Symbol.
    let symbol: String
    /// Read aloud for the icon.
    let headline: String
    let entries: [MenuEntry]

    init(_ status: AgentStatus) {
        let outlook = Outlook(status)
        let isPaused = status.availability?.pause != nil
        headline = outlook.headline
        symbol = isPaused ? "pause.circle" : MenuModel.symbol(of: outlook.state)
        var entries: [MenuEntry] = [.text(outlook.headline)]
        entries += MenuModel.lines(outlook.reason)
        if let earnings = status.coordinatorView?.earnings {
            entries += [.separator, .text("Earned today (UTC): \(dollars(earnings.todayMicroUSD))")]
        }
        entries.append(.separator)
        if isPaused {
            entries.append(.command("Resume", .resume))
        } else {
            entries.append(.command("Pause for 1 Hour", .pause(minutes: 60)))
            entries.append(.command("Pause Until Resumed", .pause(minutes: nil)))
        }
        if let url = MenuModel.console(status.coordinator) { entries.append(.command("Open Console", .open(url))) }
        self.entries = entries + MenuModel.end
    }

    init(_ problem: ControlProblem) {
        let (title, next): (String, String)
        switch problem {
        case .notRunning: (title, next) = ("The provider is not running", "Start it: inference-provider start")
        case .noAnswer: (title, next) = ("The provider is not responding", "Find the cause: inference-provider doctor")
        case .notUnderstood: (title, next) = ("The menu bar item has another version", "Update it: inference-provider menu-bar on")
        case .refused(let reason): (title, next) = ("The provider refused", reason)
        }
        headline = title
        symbol = problem == .notRunning ? "bolt.slash.circle" : "exclamationmark.triangle"
        entries = [.text(title)] + MenuModel.lines(next) + MenuModel.end
    }

    private static let end: [MenuEntry] = [.separator, .command("Quit Menu Bar Item", .quit)]

    private static func symbol(of state: Outlook.State) -> String {
        switch state {
        case .serving: return "bolt.circle.fill"
        case .idle: return "bolt.circle"
        case .waiting: return "hourglass.circle"
        case .needsOwner: return "exclamationmark.triangle"
        }
    }

    /// The console of the coordinator. Only web addresses: `open` also starts programs.
    private static func console(_ coordinator: String) -> URL? {
        guard let url = URL(string: coordinator), url.scheme == "https" || url.scheme == "http", url.host != nil else { return nil }
        return url
    }

    private static let maxColumns = 56

    /// Lines of at most `maxColumns` characters, broken between words.
    private static func lines(_ text: String?) -> [MenuEntry] {
        var lines: [String] = []
        for word in (text ?? "").split(separator: " ") {
            if let last = lines.last, last.count + 1 + word.count <= maxColumns {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(String(word))
            }
        }
        return lines.map { .text($0) }
    }
}

/// `microUSD`: millionths of a US dollar. Rounded to cents.
func dollars(_ microUSD: Int64) -> String {
    let cents = (microUSD.magnitude + 5_000) / 10_000
    let fraction = cents % 100
    return "\(microUSD < 0 && cents > 0 ? "-" : "")$\(cents / 100).\(fraction < 10 ? "0" : "")\(fraction)"
}
