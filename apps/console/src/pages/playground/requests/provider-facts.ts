/** Facts about the provider from response headers. Until verified, they are claims of the coordinator. */

export interface ProviderFacts {
  readonly id: string;
  readonly chip: string;
  readonly trustLevel: string;
  readonly secureEnclave: boolean;
  /** base64 of the enclave key in the headers. */
  readonly publicKey: string;
  /** Null for unstreamed responses, whose receipt contains the job id. */
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

/** Inverse of {@link providerFacts}. */
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
