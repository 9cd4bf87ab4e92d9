/// Pure functions that read macOS commands' output about the Mac's protections; `checks/` has recorded outputs. Only the
/// exact words for "on" count as on. All other output counts as off, with a reason for the owner.
import Foundation

/// State of a protection. Off: not shown to be on.
enum Protection: Equatable {
    case on
    case off(reason: String)

    var isOn: Bool { self == .on }
}

/// `csrutil status`, for example "System Integrity Protection status: enabled."
func readSystemIntegrity(_ output: String?) -> Protection {
    readStatusLine(output, label: "System Integrity Protection status:", name: "csrutil status")
}

/// `csrutil authenticated-root status`, for example "Authenticated Root status: enabled"
func readAuthenticatedRoot(_ output: String?) -> Protection {
    readStatusLine(output, label: "Authenticated Root status:", name: "csrutil authenticated-root status")
}

/// Only "enabled" counts as on; "enabled (Apple Internal)" and "unknown (Custom Configuration)" do not.
private func readStatusLine(_ output: String?, label: String, name: String) -> Protection {
    guard let line = output?.split(whereSeparator: \.isNewline).first, line.hasPrefix(label) else {
        return .off(reason: "\(name) said nothing that is understood")
    }
    let word = line.dropFirst(label.count).trimmingCharacters(in: CharacterSet(charactersIn: " ."))
    return word == "enabled" ? .on : .off(reason: "\(name) says \(word)")
}

/// Words of the local boot policy in the device tree (`/chosen/asmb`): `lp-smb0` is 1 with Reduced Security, `lp-smb1` is 1
/// with Permissive Security, and both are 0 with Full Security. Nil where the device tree has no such word.
struct BootPolicyWords: Equatable {
    let smb0: UInt32?
    let smb1: UInt32?
}

/// Secure boot is on only at Full Security. `system_profiler -json SPiBridgeDataType` has the level in words of the system's
/// language, the device tree in numbers. A contradiction counts as off. For words in another language, the numbers decide.
func readSecureBoot(profilerJson: String?, words: BootPolicyWords) -> Protection {
    if words.smb0 ?? 0 != 0 || words.smb1 ?? 0 != 0 { return .off(reason: "the boot policy is not Full Security") }
    guard let level = secureBootLevel(profilerJson) else {
        return .off(reason: "system_profiler said nothing that is understood about secure boot")
    }
    if level == "Full Security" { return .on }
    if ["Reduced Security", "Medium Security", "Permissive Security", "No Security"].contains(level) {
        return .off(reason: "secure boot is at \(level)")
    }
    if words == BootPolicyWords(smb0: 0, smb1: 0) { return .on }
    return .off(reason: "the level of secure boot is given in words that are not understood")
}

/// The level of secure boot in words: `ibridge_secure_boot` of the only entry.
private func secureBootLevel(_ profilerJson: String?) -> String? {
    guard let text = profilerJson, let value = try? JsonParser.parse(Array(text.utf8)), case .object(let whole) = value,
        case .array(let entries)? = whole["SPiBridgeDataType"], entries.count == 1, case .object(let entry) = entries[0],
        case .string(let level)? = entry["ibridge_secure_boot"]
    else { return nil }
    return level
}
