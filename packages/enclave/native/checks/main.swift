/// Checks of the helper's pure parts: recorded and documented output of macOS commands, and RFC 8785. Built and run by
/// `scripts/ci/check-swift.sh`. Needs no test framework, so that the command line tools suffice.
import Foundation

var failures = 0

func check(_ name: String, _ holds: Bool) {
    if holds { return }
    failures += 1
    print("failed: \(name)")
}

// csrutil status
check("SIP on", readSystemIntegrity("System Integrity Protection status: enabled.\n").isOn)
check("SIP on, without full stop", readSystemIntegrity("System Integrity Protection status: enabled\n").isOn)
let customConfiguration = """
    System Integrity Protection status: unknown (Custom Configuration).

    Configuration:
    \tApple Internal: disabled
    \tKext Signing: disabled
    \tFilesystem Protections: enabled
    \tDebugging Restrictions: enabled
    \tDTrace Restrictions: enabled
    \tNVRAM Protections: enabled
    \tBaseSystem Verification: enabled

    This is an unsupported configuration, likely to break in the future and leave your machine in an unknown state.
    """
for output in [
    "System Integrity Protection status: disabled.\n", "System Integrity Protection status: enabled (Apple Internal).\n",
    "System Integrity Protection status: not enabled.\n", "System Integrity Protection status:\n", customConfiguration, "enabled", "", "\n",
    "status: enabled", "Authenticated Root status: enabled",
] {
    check("SIP not on: \(output)", !readSystemIntegrity(output).isOn)
}
check("SIP unknown", !readSystemIntegrity(nil).isOn)

// csrutil authenticated-root status
check("authenticated root on", readAuthenticatedRoot("Authenticated Root status: enabled\n").isOn)
check("authenticated root off", !readAuthenticatedRoot("Authenticated Root status: disabled\n").isOn)
check("authenticated root unknown", !readAuthenticatedRoot(nil).isOn)
check("authenticated root, other text", !readAuthenticatedRoot("csrutil: Unknown command: authenticated-root\nenabled").isOn)

// system_profiler -json SPiBridgeDataType
func profile(_ level: String) -> String {
    """
    {
      "SPiBridgeDataType" : [
        {
          "_name" : "Controller Information",
          "ibridge_boot_uuid" : "00000000-0000-0000-0000-000000000000",
          "ibridge_build" : "11881.81.4",
          "ibridge_extra_boot_policies" : "",
          "ibridge_model_identifier_top" : "MacBookPro18,3",
          "ibridge_sb_boot_args" : "Enabled",
          "ibridge_sb_ctrr" : "Enabled",
          "ibridge_sb_device_mdm" : "No",
          "ibridge_sb_manual_mdm" : "No",
          "ibridge_sb_other_kext" : "No",
          "ibridge_sb_sip" : "Enabled",
          "ibridge_sb_ssv" : "Enabled",
          "ibridge_secure_boot" : "\(level)"
        }
      ]
    }
    """
}
let full = BootPolicyWords(smb0: 0, smb1: 0)
let reduced = BootPolicyWords(smb0: 1, smb1: 0)
let permissive = BootPolicyWords(smb0: 1, smb1: 1)
let none = BootPolicyWords(smb0: nil, smb1: nil)
check("full security", readSecureBoot(profilerJson: profile("Full Security"), words: full).isOn)
check("full security, no device tree words", readSecureBoot(profilerJson: profile("Full Security"), words: none).isOn)
check("full security contradicted", !readSecureBoot(profilerJson: profile("Full Security"), words: reduced).isOn)
check("full security contradicted", !readSecureBoot(profilerJson: profile("Full Security"), words: permissive).isOn)
check("full security contradicted", !readSecureBoot(profilerJson: profile("Full Security"), words: BootPolicyWords(smb0: nil, smb1: 1)).isOn)
for level in ["Reduced Security", "Permissive Security", "Medium Security", "No Security"] {
    check(level, !readSecureBoot(profilerJson: profile(level), words: full).isOn)
}
check("another language with numbers", readSecureBoot(profilerJson: profile("Sécurité maximale"), words: full).isOn)
check("another language, reduced", !readSecureBoot(profilerJson: profile("Sécurité réduite"), words: reduced).isOn)
check("another language without numbers", !readSecureBoot(profilerJson: profile("Sécurité maximale"), words: none).isOn)
check("another language, one number", !readSecureBoot(profilerJson: profile("Sécurité maximale"), words: BootPolicyWords(smb0: 0, smb1: nil)).isOn)
for output in ["", "{", "{}", "{\"SPiBridgeDataType\":[]}", "{\"SPiBridgeDataType\":[{}]}", "{\"SPiBridgeDataType\":[{},{}]}", "Full Security"] {
    check("no boot policy: \(output)", !readSecureBoot(profilerJson: output, words: full).isOn)
}
check("no profiler", !readSecureBoot(profilerJson: nil, words: full).isOn)

// RFC 8785 section 3.2.3, the sorting example, and section 3.2.2.2
let sorting = #"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#
let sorted = "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\"\u{FB33}\":\"Hebrew Letter Dalet With Dagesh\"}"
check("RFC 8785 order of members", (try? JsonParser.parse(Array(sorting.utf8)))?.canonicalBytes() == Array(sorted.utf8))
let escapes = #"{"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false],"n":[0,-0,-1,9007199254740991]}"#
let escaped = "{\"literals\":[null,true,false],\"n\":[0,0,-1,9007199254740991],\"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}"
check("RFC 8785 escapes", (try? JsonParser.parse(Array(escapes.utf8)))?.canonicalBytes() == Array(escaped.utf8))

// JSON parser
for text in [
    "", " ", "{", "}", "[1,]", "{\"a\":1,}", "{\"a\":1,\"a\":2}", "01", "1.", ".5", "1e", "+1", "--1", "tru", "nulll", "\"\\x\"", "\"\\u12g4\"", "\"",
    "'a'", "[1 2]", "{\"a\" 1}", "{1:2}", "NaN", "\"\t\"", String(repeating: "[", count: 33) + String(repeating: "]", count: 33),
] {
    check("malformed: \(text)", (try? JsonParser.parse(Array(text.utf8))) == nil)
}
for text in ["1.5", "1e3", "9007199254740992", "-9007199254740992", "-9223372036854775808", "99999999999999999999", "\"\\ud800\"", "\"\\udc00\\ud800\"", "\"\\ud800\\u0041\""] {
    check("unusable: \(text)", (try? JsonParser.parse(Array(text.utf8))) == JsonValue.unusable)
}
check("nested", (try? JsonParser.parse(Array((String(repeating: "[", count: 31) + String(repeating: "]", count: 31)).utf8))) != nil)

print(failures == 0 ? "all checks hold" : "\(failures) checks failed")
exit(failures == 0 ? 0 : 1)
