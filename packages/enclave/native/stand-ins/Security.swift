// Stand-in for Security on Linux: the declarations that Vendor.swift uses.
public class CFError {}
public struct CFAllocator: Sendable {}
public final class SecAccessControl {}

public struct SecAccessControlCreateFlags: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }
    public static let privateKeyUsage = SecAccessControlCreateFlags(rawValue: 1 << 30)
}

public let kCFAllocatorDefault: CFAllocator? = nil
public let kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly = "cku"

public func SecAccessControlCreateWithFlags(
    _ allocator: CFAllocator?, _ protection: String, _ flags: SecAccessControlCreateFlags,
    _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> SecAccessControl? { SecAccessControl() }
