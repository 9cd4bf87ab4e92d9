/// Checks of the menu without AppKit: `checks outlooks.json [SOCKET]`. With a socket it also pauses and resumes that agent. Built and
/// run by `scripts/ci/check-swift.sh`.
import Foundation

var failures = 0

func check(_ name: String, _ holds: Bool) {
    if holds { return }
    failures += 1
    print("failed: \(name)")
}

struct Case: Decodable {
    struct Expected: Decodable {
        let state: String
        let headline: String
        let reason: String?
    }
    let name: String
    let status: AgentStatus
    let outlook: Expected
}

let cases = try JSONDecoder().decode([Case].self, from: Data(contentsOf: URL(fileURLWithPath: CommandLine.arguments[1])))
check("there are cases", cases.count > 10)
for each in cases {
    let outlook = Outlook(each.status)
    check(each.name, outlook.state.rawValue == each.outlook.state && outlook.headline == each.outlook.headline && outlook.reason == each.outlook.reason)
    let menu = MenuModel(each.status)
    check("\(each.name): the menu begins with the headline", menu.entries.first == .text(outlook.headline))
    check("\(each.name): one of pause and resume", menu.entries.contains(.command("Resume", .resume)) != menu.entries.contains(.command("Pause Until Resumed", .pause(minutes: nil))))
    check("\(each.name): quit is last", menu.entries.last == .command("Quit Menu Bar Item", .quit))
    check("\(each.name): short lines", menu.entries.allSatisfy { if case .text(let line) = $0 { return line.count <= 56 } else { return true } })
}

for (amount, text) in [(0, "$0.00"), (4_999, "$0.00"), (5_000, "$0.01"), (1_234_567, "$1.23"), (1_050_000, "$1.05"), (-20_000, "-$0.02")] {
    check("\(amount) micro-USD", dollars(Int64(amount)) == text)
}

func problem(_ response: String) -> ControlProblem? {
    do {
        _ = try ControlSocket.body(of: Data(response.utf8))
        return nil
    } catch { return error as? ControlProblem }
}
check("a whole response", (try? ControlSocket.body(of: Data("HTTP/1.1 200 OK\r\na: b\r\n\r\n{}".utf8))) == Data("{}".utf8))
check("a refusal", problem("HTTP/1.1 409 Conflict\r\n\r\n{\"error\":{\"code\":\"starting\",\"message\":\"wait\"}}") == .refused("wait"))
check("no answer", problem("") == .noAnswer)
for text in ["HTTP/1.1 200 OK\r\n", "SSH-2.0\r\n\r\n", "HTTP/1.1 x\r\n\r\n", "HTTP/1.1 404 Not Found\r\n\r\nnothing"] {
    check("not understood: \(text)", problem(text) == .notUnderstood)
}
check("no web address", !MenuModel(try AgentStatus.parse(Data("""
    {"state":"running","coordinator":"file:///Applications/Calculator.app","connection":{"state":"connected","problem":null},"trust":null,
    "models":[],"availability":null,"running_jobs":0,"coordinator_view":null}
    """.utf8))).entries.contains { if case .command("Open Console", _) = $0 { return true } else { return false } })
check("another version", (try? AgentStatus.parse(Data("{}".utf8))) == nil)

if CommandLine.arguments.count > 2 {
    let agent = ControlSocket(path: CommandLine.arguments[2])
    try agent.pause(until: Date().addingTimeInterval(3600))
    check("paused", try agent.status().availability?.pause != nil)
    try agent.resume()
    check("resumed", try agent.status().availability?.pause == nil)
    try agent.pause(until: nil)
    check("paused until resumed", try agent.status().availability?.pause != nil)
} else {
    do {
        _ = try ControlSocket(path: "/nonexistent/control.sock").status()
        check("no agent", false)
    } catch { check("no agent", error as? ControlProblem == .notRunning) }
}

print(failures == 0 ? "all checks hold" : "\(failures) checks failed")
exit(failures == 0 ? 0 : 1)
