// swift-tools-version:5.9
import PackageDescription

let package = Package(
    name: "inference-enclave",
    platforms: [.macOS(.v13)],
    targets: [.executableTarget(name: "inference-enclave", path: "Sources")]
)
