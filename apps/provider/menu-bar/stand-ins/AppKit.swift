// Stub of AppKit for Linux: the declarations that MenuBar.swift uses. Builds with this stub are for checks and never shipped.
import Foundation

public struct Selector: Sendable { let name: String }
public func NSSelectorFromString(_ name: String) -> Selector { Selector(name: name) }

@MainActor public final class NSImage: NSObject {
    public init?(systemSymbolName name: String, accessibilityDescription: String?) {}
}

@MainActor public final class NSStatusBarButton: NSObject {
    public var image: NSImage?
    public var toolTip: String?
}

@MainActor public final class NSMenuItem: NSObject {
    public init(title: String, action: Selector?, keyEquivalent: String) {}
    public static func separator() -> NSMenuItem { NSMenuItem(title: "", action: nil, keyEquivalent: "") }
    public var isEnabled = true
    public weak var target: AnyObject?
    public var representedObject: Any?
}

@MainActor public final class NSMenu: NSObject {
    public override init() {}
    public var autoenablesItems = true
    public func addItem(_ item: NSMenuItem) {}
}

@MainActor public final class NSStatusItem: NSObject {
    public nonisolated static let variableLength = -1.0
    public var button: NSStatusBarButton?
    public var menu: NSMenu?
}

@MainActor public final class NSStatusBar: NSObject {
    public static let system = NSStatusBar()
    public func statusItem(withLength length: Double) -> NSStatusItem { NSStatusItem() }
}

@MainActor public final class NSWorkspace: NSObject {
    public static let shared = NSWorkspace()
    @discardableResult public func open(_ url: URL) -> Bool { false }
}

@MainActor public final class NSApplication: NSObject {
    public enum ActivationPolicy { case accessory }
    public static let shared = NSApplication()
    @discardableResult public func setActivationPolicy(_ policy: ActivationPolicy) -> Bool { true }
    public func run() {}
    public func terminate(_ sender: Any?) {}
}
