/** Facts about the provider from response headers, as stated by the coordinator. */

export interface ProviderFacts {
  readonly id: string;
  readonly chip: string;
  readonly trustLevel: string;
  readonly secureEnclave: boolean;
  /** Enclave key in base64. */
  readonly publicKey: string;
  /** Null if the headers lack the id. The receipt contains it too. */
  readonly jobId: string | null;
}

export function providerFacts(headers: Pick<Headers, 'get'>): ProviderFacts | null {
  const id = headers.get('x-provider-id');
  if (id === null || id === '') return null;
  return {
    id,
    chip: headers.get('x-provider-chip') ?? '',
    trustLevel: headers.get('x-provider-trust-level') ?? '',
    secureEnclave: headers.get('x-provider-secure-enclave') === 'true',
    publicKey: headers.get('x-attestation-se-public-key') ?? '',
    jobId: headers.get('x-inference-job-id'),
  };
}

/** Headers from which {@link providerFacts} reads these facts. */
export function headersOf({ id, chip, trustLevel, secureEnclave, publicKey, jobId }: ProviderFacts): Readonly<Record<string, string>> {
  return {
    'x-provider-id': id,
    'x-provider-chip': chip,
    'x-provider-trust-level': trustLevel,
    'x-provider-secure-enclave': String(secureEnclave),
    'x-attestation-se-public-key': publicKey,
    ...(jobId === null ? {} : { 'x-inference-job-id': jobId }),
  };
}
