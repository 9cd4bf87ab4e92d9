/// Entry file of the Secure Enclave helper: requests on standard input, one JSON object per line, and replies on standard
/// output. The helper ends with its input, so that it never outlives the agent. No operation signs bytes of the caller's choice.
import Foundation

let helperVersion = "0.1.0"

let arguments = CommandLine.arguments
guard arguments.count == 3, arguments[1] == "--data-dir", !arguments[2].isEmpty else {
    writeLog("The enclave helper cannot start: give it --data-dir and a directory, and nothing else.")
    exit(1)
}

// Ctrl-C signals the whole foreground group, but the agent still needs signatures while draining, and ends this process.
signal(SIGINT, SIG_IGN)
signal(SIGHUP, SIG_IGN)
signal(SIGPIPE, SIG_IGN)

let answers = Answers(operations: Operations(dataDirectory: arguments[2]))
var lines = LineReader(file: 0)
while let line = lines.next() { answers.take(line) }

// A request that hangs in a system call must not keep the helper alive.
Thread.detachNewThread {
    Thread.sleep(forTimeInterval: 5)
    _exit(0)
}
answers.finish()
exit(0)
