/**
 * Mutual TLS of the xDS port from files. The files are read again periodically: certificates that a mounted Secret brings
 * are used for new connections without a restart. While they are incomplete, the last complete ones stay.
 */
import { experimental, type ServerCredentials } from '@grpc/grpc-js'

export interface XdsServerFiles {
  /** Authority of the certificates of clients. */
  readonly caFile: string
  readonly certificateFile: string
  readonly keyFile: string
  /** @default 10 s */
  readonly refreshMs?: number
}

const REFRESH_MS = 10_000

export function serverCredentials({ caFile, certificateFile, keyFile, refreshMs }: XdsServerFiles): ServerCredentials {
  const provider = new experimental.FileWatcherCertificateProvider({
    caCertificateFile: caFile,
    certificateFile,
    privateKeyFile: keyFile,
    refreshIntervalMs: refreshMs ?? REFRESH_MS,
  })
  return experimental.createCertificateProviderServerCredentials(provider, provider, true)
}
