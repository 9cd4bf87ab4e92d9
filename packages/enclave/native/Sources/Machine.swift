/// Facts about this Mac and the state of its protections, read without root. An unreadable fact is an error; an unreadable
/// protection counts as off.
import Foundation

struct MachineFacts {
    let chipName: String
    let hardwareModel: String
    let serialNumber: String
    let osVersion: String
    /// Unified memory in GiB.
    let memoryGb: Int64

    /// Throws `io`, with the name of the fact that cannot be read.
    static func read() throws -> MachineFacts {
        let version = ProcessInfo.processInfo.operatingSystemVersion
        guard let memory = sysctlNumber("hw.memsize"), memory > 0 else { throw Refusal(.io, "the memory size cannot be read") }
        return MachineFacts(
            chipName: try label(sysctlText("machdep.cpu.brand_string"), "chip name"),
            hardwareModel: try label(sysctlText("hw.model"), "hardware model"),
            serialNumber: try label(platformSerialNumber(), "serial number"),
            osVersion: "macOS \(version.majorVersion).\(version.minorVersion).\(version.patchVersion)",
            memoryGb: max(1, Int64((memory + (1 << 29)) >> 30))
        )
    }

    private static func label(_ text: String?, _ name: String) throws -> String {
        guard let text, (1...128).contains(text.unicodeScalars.count) else { throw Refusal(.io, "the \(name) cannot be read") }
        return text
    }
}

struct Posture {
    let systemIntegrity: Protection
    let secureBoot: Protection
    let authenticatedRoot: Protection

    /// The current state. Takes some tenths of a second, because three commands run.
    static func read() -> Posture {
        let words = BootPolicyWords(
            smb0: deviceTreeWord("IODeviceTree:/chosen/asmb", "lp-smb0"),
            smb1: deviceTreeWord("IODeviceTree:/chosen/asmb", "lp-smb1")
        )
        return Posture(
            systemIntegrity: readSystemIntegrity(outputOf("/usr/bin/csrutil", ["status"])),
            secureBoot: readSecureBoot(
                profilerJson: outputOf("/usr/sbin/system_profiler", ["-json", "SPiBridgeDataType"]), words: words),
            authenticatedRoot: readAuthenticatedRoot(outputOf("/usr/bin/csrutil", ["authenticated-root", "status"]))
        )
    }

    /// For each protection that is not on: the reason, for the owner.
    var reasons: [String] {
        [systemIntegrity, secureBoot, authenticatedRoot].compactMap {
            if case .off(let reason) = $0 { return reason }
            return nil
        }
    }
}
