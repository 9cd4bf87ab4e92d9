/// All uses of Apple's frameworks: enclave key, serial number, device tree and system values. The other files build on any
/// system; on Linux, this file builds against `stand-ins/`.
import CryptoKit
import Foundation
import IOKit
import Security

/// A P-256 key inside the Secure Enclave.
struct EnclaveKey {
    private let key: SecureEnclave.P256.Signing.PrivateKey

    static var isAvailable: Bool { SecureEnclave.isAvailable }

    /// Creates a key. Only this Mac can use the key, after the first unlock since boot, even when the user is absent.
    init() throws {
        var error: Unmanaged<CFError>?
        guard
            let access = SecAccessControlCreateWithFlags(
                kCFAllocatorDefault, kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly, [.privateKeyUsage], &error)
        else { throw Refusal(.keyUnavailable, "the access control of the key cannot be made") }
        key = try SecureEnclave.P256.Signing.PrivateKey(compactRepresentable: false, accessControl: access)
    }

    /// Loads a key from its blob. Only the enclave that created the key can use the blob.
    init(representation: Data) throws {
        key = try SecureEnclave.P256.Signing.PrivateKey(dataRepresentation: representation)
    }

    var representation: Data { key.dataRepresentation }

    /// Public key in x963 encoding, 65 bytes.
    var publicKey: [UInt8] { [UInt8](key.publicKey.x963Representation) }

    /// DER signature over the SHA-256 of the bytes.
    func sign(_ bytes: [UInt8]) throws -> Data {
        try key.signature(for: Data(bytes)).derRepresentation
    }
}

func sha256(_ bytes: [UInt8]) -> [UInt8] {
    [UInt8](SHA256.hash(data: Data(bytes)))
}

func platformSerialNumber() -> String? {
    let device = IOServiceGetMatchingService(kIOMainPortDefault, IOServiceMatching("IOPlatformExpertDevice"))
    guard device != 0 else { return nil }
    defer { IOObjectRelease(device) }
    let property = IORegistryEntryCreateCFProperty(device, "IOPlatformSerialNumber" as CFString, kCFAllocatorDefault, 0)
    return property?.takeRetainedValue() as? String
}

/// A 32-bit little-endian word of the device tree; nil if missing or of another size.
func deviceTreeWord(_ path: String, _ name: String) -> UInt32? {
    let entry = IORegistryEntryFromPath(kIOMainPortDefault, path)
    guard entry != 0 else { return nil }
    defer { IOObjectRelease(entry) }
    let property = IORegistryEntryCreateCFProperty(entry, name as CFString, kCFAllocatorDefault, 0)
    guard let data = property?.takeRetainedValue() as? Data, data.count == 4 else { return nil }
    return data.reversed().reduce(0) { $0 << 8 | UInt32($1) }
}

func sysctlText(_ name: String) -> String? {
    var size = 0
    guard sysctlbyname(name, nil, &size, nil, 0) == 0, size > 1 else { return nil }
    var bytes = [UInt8](repeating: 0, count: size)
    guard sysctlbyname(name, &bytes, &size, nil, 0) == 0 else { return nil }
    return String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
}

func sysctlNumber(_ name: String) -> UInt64? {
    var number: UInt64 = 0
    var size = MemoryLayout<UInt64>.size
    guard sysctlbyname(name, &number, &size, nil, 0) == 0, size == MemoryLayout<UInt64>.size else { return nil }
    return number
}
