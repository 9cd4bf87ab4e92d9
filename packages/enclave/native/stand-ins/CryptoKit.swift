// Stand-in for CryptoKit on Linux: the declarations that Vendor.swift uses, with a software key.
import COpenSSL
import Foundation
import Security

public struct SoftwareKeyError: Error {}

public enum SecureEnclave {
    public static var isAvailable: Bool { true }

    public enum P256 {
        public enum Signing {
            public struct PrivateKey {
                public let dataRepresentation: Data
                public let publicKey: CryptoKit.P256.Signing.PublicKey

                public init(compactRepresentable: Bool = true, accessControl: SecAccessControl) throws {
                    var der = [UInt8](repeating: 0, count: 512)
                    let count = software_key_make(&der, der.count)
                    guard count > 0 else { throw SoftwareKeyError() }
                    try self.init(dataRepresentation: Data(der.prefix(count)))
                }

                public init(dataRepresentation: Data) throws {
                    var point = [UInt8](repeating: 0, count: 65)
                    guard software_key_public([UInt8](dataRepresentation), dataRepresentation.count, &point) == 65 else {
                        throw SoftwareKeyError()
                    }
                    self.dataRepresentation = dataRepresentation
                    publicKey = CryptoKit.P256.Signing.PublicKey(x963Representation: Data(point))
                }

                public func signature<D: DataProtocol>(for data: D) throws -> CryptoKit.P256.Signing.ECDSASignature {
                    var signature = [UInt8](repeating: 0, count: 128)
                    let count = software_key_sign(
                        [UInt8](dataRepresentation), dataRepresentation.count, [UInt8](data), data.count, &signature, signature.count)
                    guard count > 0 else { throw SoftwareKeyError() }
                    return CryptoKit.P256.Signing.ECDSASignature(derRepresentation: Data(signature.prefix(count)))
                }
            }
        }
    }
}

public enum P256 {
    public enum Signing {
        public struct PublicKey {
            public let x963Representation: Data
        }
        public struct ECDSASignature {
            public let derRepresentation: Data
        }
    }
}

public enum SHA256 {
    public static func hash<D: DataProtocol>(data: D) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        precondition(software_sha256([UInt8](data), data.count, &digest) == 32)
        return digest
    }
}
