// Stand-in for IOKit, and for sysctl, on Linux: the declarations that Vendor.swift uses, over a made-up machine.
import Foundation
import Security

public typealias CFString = String
public typealias io_object_t = UInt32
public let kIOMainPortDefault: UInt32 = 0

public func IOServiceMatching(_ name: String) -> [String: String]? { ["IOProviderClass": name] }
public func IOServiceGetMatchingService(_ port: UInt32, _ matching: [String: String]?) -> io_object_t { 1 }
public func IORegistryEntryFromPath(_ port: UInt32, _ path: String) -> io_object_t { 2 }
@discardableResult public func IOObjectRelease(_ object: io_object_t) -> Int32 { 0 }

public func IORegistryEntryCreateCFProperty(
    _ entry: io_object_t, _ key: CFString, _ allocator: CFAllocator?, _ options: UInt32
) -> Unmanaged<AnyObject>? {
    switch key {
    case "IOPlatformSerialNumber": return .passRetained(NSString(string: "STANDIN00001"))
    case "lp-smb0", "lp-smb1": return .passRetained(NSData(data: Data([0, 0, 0, 0])))
    default: return nil
    }
}

public func sysctlbyname(
    _ name: String, _ value: UnsafeMutableRawPointer?, _ size: UnsafeMutablePointer<Int>, _ new: UnsafeMutableRawPointer?, _ newSize: Int
) -> Int32 {
    let answers: [String: [UInt8]] = [
        "machdep.cpu.brand_string": Array("Stand-in M1\0".utf8),
        "hw.model": Array("StandInMac1,1\0".utf8),
        "hw.memsize": withUnsafeBytes(of: UInt64(16 << 30)) { Array($0) },
    ]
    guard let answer = answers[name] else { return -1 }
    if let value {
        guard size.pointee >= answer.count else { return -1 }
        value.copyMemory(from: answer, byteCount: answer.count)
    }
    size.pointee = answer.count
    return 0
}
