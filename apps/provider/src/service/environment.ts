/**
 * `serviceEnvironment`: environment variables that the service passes to the daemon.
 *
 * Keys are not passed, nor variables that change program loading (NODE_OPTIONS, LD_PRELOAD, DYLD_…).
 */

/** Proxy and certificate variables are for outgoing connections; the others locate files and set the language. */
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
