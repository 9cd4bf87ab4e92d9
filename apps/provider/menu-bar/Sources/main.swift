/// Menu bar item of the provider: `inference-menu-bar --socket PATH`. `--print` writes the menu once as text, and ends.
import Foundation

let arguments = Array(CommandLine.arguments.dropFirst())
let isPrinting = arguments.contains("--print")
let values = arguments.filter { $0 != "--print" }
guard values.count == 2, values[0] == "--socket", !values[1].isEmpty else {
    FileHandle.standardError.write(Data("Usage: inference-menu-bar --socket PATH [--print]\n".utf8))
    exit(2)
}

// An agent that ends while a request is written must not end this program.
signal(SIGPIPE, SIG_IGN)

let controlSocket = ControlSocket(path: values[1])
if isPrinting {
    let model: MenuModel
    do { model = MenuModel(try controlSocket.status()) } catch { model = MenuModel(error as? ControlProblem ?? .noAnswer) }
    print("[\(model.symbol)]")
    for entry in model.entries {
        switch entry {
        case .separator: print("-")
        case .text(let title): print(title)
        case .command(let title, _): print("> \(title)")
        }
    }
    exit(0)
}
MainActor.assumeIsolated { MenuBar(socket: controlSocket).run() }
