/// File of the enclave key's blob in the data directory, readable only by its owner. A key is created only if no file
/// exists. A file that is damaged, open to others or from another enclave is an error and never replaced.
import Foundation

struct KeyFile {
    static let name = "secure-enclave-key.json"
    /// Maximum bytes of the file.
    private static let largest = 8_192

    private let directory: String
    private var path: String { directory + "/" + KeyFile.name }

    init(directory: String) {
        self.directory = directory
    }

    /// Reads the key, or creates a key if no file exists. Throws `no_enclave`, `key_unavailable` or `io`.
    func loadOrCreate() throws -> EnclaveKey {
        guard EnclaveKey.isAvailable else { throw Refusal(.noEnclave, "this machine has no Secure Enclave that can be used") }
        if let bytes = try readExisting() { return try key(in: bytes) }
        let created: EnclaveKey
        do { created = try EnclaveKey() } catch let refusal as Refusal { throw refusal } catch {
            throw Refusal(.keyUnavailable, "the Secure Enclave did not make a key: \(error)")
        }
        if try write(created.representation) { return created }
        // Another process created the file first; its key is valid.
        guard let bytes = try readExisting() else { throw Refusal(.io, "\(KeyFile.name) appeared and vanished") }
        return try key(in: bytes)
    }

    private func key(in bytes: [UInt8]) throws -> EnclaveKey {
        guard let file = try? Members(try JsonParser.parse(bytes), of: KeyFile.name, allowed: ["v", "kind", "data_representation"]),
            file.value("v") == .integer(1), file.value("kind") == .string("secure_enclave"),
            case .string(let text)? = file.value("data_representation"), let blob = Data(base64Encoded: text), !blob.isEmpty
        else { throw Refusal(.keyUnavailable, "\(KeyFile.name) is damaged") }
        do { return try EnclaveKey(representation: blob) } catch {
            throw Refusal(.keyUnavailable, "the Secure Enclave does not accept the key in \(KeyFile.name)")
        }
    }

    /// Nil if no file exists. Follows no links: the file must belong to this user and be closed to others.
    private func readExisting() throws -> [UInt8]? {
        let file = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        if file < 0 {
            if errno == ENOENT { return nil }
            throw Refusal(.keyUnavailable, "\(KeyFile.name) cannot be opened (\(errorText()))")
        }
        defer { close(file) }
        var info = stat()
        guard fstat(file, &info) == 0 else { throw Refusal(.io, "\(KeyFile.name) cannot be read (\(errorText()))") }
        guard info.st_mode & S_IFMT == S_IFREG else { throw Refusal(.keyUnavailable, "\(KeyFile.name) is not a regular file") }
        guard info.st_mode & 0o077 == 0 else {
            throw Refusal(.keyUnavailable, "\(KeyFile.name) is open to other users (its mode must be 0600)")
        }
        guard info.st_uid == getuid() else { throw Refusal(.keyUnavailable, "\(KeyFile.name) belongs to another user") }
        guard (1...KeyFile.largest).contains(Int(info.st_size)) else { throw Refusal(.keyUnavailable, "\(KeyFile.name) is damaged") }
        var bytes = [UInt8](repeating: 0, count: KeyFile.largest + 1)
        let count = read(file, &bytes, bytes.count)
        guard count == Int(info.st_size) else { throw Refusal(.keyUnavailable, "\(KeyFile.name) cannot be read whole") }
        return Array(bytes.prefix(count))
    }

    /// Writes the blob; the file appears complete or not at all. Returns false if a file exists by now.
    private func write(_ blob: Data) throws -> Bool {
        try makeDirectory(directory)
        let value = JsonValue.object([
            "v": .integer(1), "kind": .string("secure_enclave"), "data_representation": .string(blob.base64EncodedString()),
        ])
        let draft = "\(path).\(UUID().uuidString).new"
        defer { unlink(draft) }
        let file = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw unwritable() }
        let bytes = value.canonicalBytes() + [0x0A]
        let written = writeAll(file, bytes) && fsync(file) == 0
        guard close(file) == 0, written else { throw unwritable() }
        if link(draft, path) != 0 {
            if errno == EEXIST { return false }
            throw unwritable()
        }
        let folder = open(directory, O_RDONLY | O_CLOEXEC)
        guard folder >= 0 else { throw unwritable() }
        defer { close(folder) }
        guard fsync(folder) == 0 else { throw unwritable() }
        return true
    }

    private func makeDirectory(_ path: String) throws {
        if mkdir(path, 0o700) == 0 || errno == EEXIST { return }
        let parent = (path as NSString).deletingLastPathComponent
        guard errno == ENOENT, !parent.isEmpty, parent != path else { throw unwritable() }
        try makeDirectory(parent)
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw unwritable() }
    }

    private func unwritable() -> Refusal { Refusal(.io, "\(KeyFile.name) cannot be written (\(errorText()))") }

    private func errorText() -> String { String(cString: strerror(errno)) }
}

/// Writes all bytes. Returns false if the write fails, for example because the reader has exited or the disk is full.
func writeAll(_ file: Int32, _ bytes: [UInt8]) -> Bool {
    var written = 0
    while written < bytes.count {
        let count = bytes.withUnsafeBytes { write(file, $0.baseAddress?.advanced(by: written), bytes.count - written) }
        if count < 0 && errno == EINTR { continue }
        guard count > 0 else { return false }
        written += count
    }
    return true
}
