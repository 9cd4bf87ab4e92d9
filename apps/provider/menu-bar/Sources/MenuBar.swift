/// The status item in the menu bar. The only file that uses AppKit.
import AppKit
import Foundation

@MainActor
final class MenuBar: NSObject {
    private let socket: ControlSocket
    private let queue = DispatchQueue(label: "control-socket")
    private let item = NSStatusBar.system.statusItem(withLength: NSStatusItem.variableLength)
    private var isReading = false
    private var shown: MenuModel?

    private static let intervalSeconds = 5.0

    init(socket: ControlSocket) {
        self.socket = socket
        super.init()
    }

    /// Shows the item until the owner quits.
    func run() {
        let app = NSApplication.shared
        app.setActivationPolicy(.accessory)
        _ = Timer.scheduledTimer(withTimeInterval: MenuBar.intervalSeconds, repeats: true) { _ in
            MainActor.assumeIsolated { self.refresh() }
        }
        refresh()
        app.run()
    }

    private func refresh() { perform { _ in } }

    /// Sends a command and shows the resulting status. The queue runs one command at a time.
    private func perform(_ command: @escaping @Sendable (ControlSocket) throws -> Void) {
        if isReading { return }
        isReading = true
        let socket = self.socket
        queue.async {
            let model: MenuModel
            do {
                try command(socket)
                model = MenuModel(try socket.status())
            } catch {
                model = MenuModel(error as? ControlProblem ?? .noAnswer)
            }
            Task { @MainActor in self.show(model) }
        }
    }

    private func show(_ model: MenuModel) {
        isReading = false
        // An unchanged menu stays, because it may be open.
        if model == shown { return }
        shown = model
        item.button?.image = NSImage(systemSymbolName: model.symbol, accessibilityDescription: model.headline)
        item.button?.toolTip = model.headline
        let menu = NSMenu()
        menu.autoenablesItems = false
        for entry in model.entries { menu.addItem(menuItem(entry)) }
        item.menu = menu
    }

    private func menuItem(_ entry: MenuEntry) -> NSMenuItem {
        switch entry {
        case .separator:
            return NSMenuItem.separator()
        case .text(let title):
            let item = NSMenuItem(title: title, action: nil, keyEquivalent: "")
            item.isEnabled = false
            return item
        case .command(let title, let action):
            let item = NSMenuItem(title: title, action: NSSelectorFromString("choose:"), keyEquivalent: "")
            item.target = self
            item.representedObject = action
            return item
        }
    }

    fileprivate func perform(chosen item: NSMenuItem) {
        guard let action = item.representedObject as? MenuAction else { return }
        isReading = false
        switch action {
        case .pause(let minutes): perform { try $0.pause(until: minutes.map { Date().addingTimeInterval(Double($0) * 60) }) }
        case .resume: perform { try $0.resume() }
        case .open(let url): NSWorkspace.shared.open(url)
        case .quit: NSApplication.shared.terminate(nil)
        }
    }
}

#if canImport(ObjectiveC)
    extension MenuBar {
        /// Called by a menu item.
        @objc func choose(_ item: NSMenuItem) { perform(chosen: item) }
    }
#endif
