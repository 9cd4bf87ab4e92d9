/**
 * The environment of the daemon as a service: what it needs of the owner's and nothing else, so that no key, and nothing that
 * changes how programs are loaded (NODE_OPTIONS, LD_PRELOAD, DYLD_…), gets into it. Pure.
 */

/** Proxies and certificates are for the way out; the others are for finding files and words. */
const PASSED = [
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'TMPDIR', 'LANG', 'LC_ALL', 'TZ', 'XDG_RUNTIME_DIR'],
  ...[
    'HTTP_PROXY',
    'HTTPS_PROXY',
    'NO_PROXY',
    'http_proxy',
    'https_proxy',
    'no_proxy',
    'SSL_CERT_FILE',
    'SSL_CERT_DIR',
    'NODE_EXTRA_CA_CERTS',
  ],
  ...['INFERENCE_PROVIDER_HOME', 'LOG_LEVEL'],
];

export function serviceEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(PASSED.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
}
