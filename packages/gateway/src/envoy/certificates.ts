/**
 * Mutual TLS of the xDS port with certificates that the manager makes and renews, as those of its webhooks: two Secrets in its
 * namespace, one for the port and one for Envoys, each with an authority of its own. A Pod of Envoy mounts `ca.crt` of the first and
 * `tls.crt` and `tls.key` of the second, never the key of an authority.
 *
 * Flow: every replica reads both Secrets every 30 s and writes what the port needs into a private folder, which the port reads again
 * (credentials.ts); the holder of the Lease rotates.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Clock, createCertificateKeeper, type Manager, systemClock } from '@seamark/kube'
import { writePrivateFile } from '@seamark/kube/private-file'
import type { XdsServerFiles } from './credentials.ts'

export interface XdsSecrets {
  readonly namespace: string
  /** Of the port. */
  readonly secret: string
  /** Of Envoys. */
  readonly clientSecret: string
  /** Names by which Envoys connect to the port. */
  readonly dnsNames: readonly string[]
}

/** The kubelet writes a changed Secret into Pods within about two minutes. */
const TRUST_AFTER_MS = 600_000

/** Of all Envoys: the authority alone decides who may connect. */
const CLIENT_NAME = 'seamark-envoy'

export interface XdsCertificates {
  readonly files: XdsServerFiles
  /** Resolves when the files are there. */
  readonly ready: Promise<void>
}

export async function keepXdsCertificates(
  mgr: Manager,
  secrets: XdsSecrets,
  clock: Clock = systemClock,
): Promise<XdsCertificates> {
  const folder = await mkdtemp(join(tmpdir(), 'seamark-xds-'))
  const file = (name: string): string => join(folder, name)
  const files = { caFile: file('ca.crt'), certificateFile: file('tls.crt'), keyFile: file('tls.key') }
  const deps = {
    client: mgr.client,
    clock,
    log: mgr.log,
    metrics: mgr.metrics,
    isLeading: () => mgr.isLeading,
  }
  const common = { namespace: secrets.namespace, trustAfterMs: TRUST_AFTER_MS }
  const server = createCertificateKeeper(
    {
      ...common,
      secret: secrets.secret,
      dnsNames: secrets.dnsNames,
      async onRead({ leaf }) {
        await writePrivateFile(files.keyFile, leaf.keyPem)
        await writePrivateFile(files.certificateFile, leaf.certPem)
      },
    },
    deps,
  )
  const client = createCertificateKeeper(
    {
      ...common,
      secret: secrets.clientSecret,
      dnsNames: [CLIENT_NAME],
      usages: 'client',
      onRead: async ({ authorities }) => writePrivateFile(files.caFile, authorities.join('')),
    },
    deps,
  )
  let markReady: () => void = () => undefined
  const ready = new Promise<void>((resolve) => (markReady = resolve))
  mgr.add('gateway-xds-certificates', async ({ signal }) => {
    try {
      await Promise.all([server.start(signal), client.start(signal)])
      markReady()
      const ignore = (): void => undefined
      await Promise.all([server.run(signal, ignore), client.run(signal, ignore)])
    } catch (error) {
      if (!signal.aborted) throw error
    } finally {
      await rm(folder, { recursive: true, force: true })
    }
  })
  return { files, ready }
}
