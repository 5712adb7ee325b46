/**
 * A serving certificate from files, as mounted by cert-manager and others: read at the start, and again every ten
 * seconds.
 *
 * Guarantee: if files are missing, incomplete or do not match, the current certificate stays in use.
 */
import { readFile } from 'node:fs/promises'
import { isPair, type CertificatePair } from '../certificates.ts'
import { sleep } from '../clock.ts'
import { KubeError, messageOf } from '../errors.ts'
import type { CertificateKeeper, KeeperDeps } from './certificate-keeper.ts'

export interface CertificateFiles {
  certFile: string
  keyFile: string
}

const POLL_INTERVAL_MS = 10_000

export function createFileKeeper(
  { certFile, keyFile }: CertificateFiles,
  { clock, log, metrics }: Pick<KeeperDeps, 'clock' | 'log' | 'metrics'>,
): CertificateKeeper {
  let current = ''

  async function read(): Promise<CertificatePair> {
    try {
      const pair = { certPem: await readFile(certFile, 'utf8'), keyPem: await readFile(keyFile, 'utf8') }
      if (!isPair(pair)) throw new KubeError('CERTIFICATE', 'certificate and private key do not match')
      metrics.certificateRead(true)
      return pair
    } catch (error) {
      metrics.certificateRead(false)
      throw new KubeError('CERTIFICATE', `cannot use ${certFile} with ${keyFile}: ${messageOf(error)}`, {
        cause: error,
      })
    }
  }

  return {
    async start() {
      const pair = await read()
      current = pair.certPem
      return pair
    },
    async run(signal, onLeaf) {
      while (!signal.aborted) {
        await sleep(clock, POLL_INTERVAL_MS, signal)
        if (signal.aborted) return
        try {
          const pair = await read()
          if (pair.certPem === current) continue
          current = pair.certPem
          onLeaf(pair)
          log.info({ certFile }, 'webhook certificate loaded')
        } catch (error) {
          log.warn({ error: messageOf(error) }, 'webhook certificate not read; the one in use stays')
        }
      }
    },
  }
}
