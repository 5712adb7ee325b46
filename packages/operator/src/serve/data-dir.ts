/**
 * The folder of the local copies of zones that are stored in ConfigMaps, so that a process that starts while the API server is
 * away answers from them. In a Pod it exists where the image or a volume provides it.
 */
import { access, constants, mkdir } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { messageOf } from '@seamark/kube'

const POD_DATA_DIR = '/var/lib/seamark/dns'
const TOKEN_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/token'

export type CopyFolder = { readonly folder: string } | { readonly folder: undefined; readonly why: string }

export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>
  /** @default as in every Pod */
  readonly tokenFile?: string
  readonly podFolder?: string
}

/** In a Pod `podFolder`, where it is writable. */
export async function findCopyFolder({
  env,
  tokenFile = TOKEN_FILE,
  podFolder = POD_DATA_DIR,
}: Surroundings): Promise<CopyFolder> {
  const isInPod = (env['KUBERNETES_SERVICE_HOST'] ?? '') !== '' && existsSync(tokenFile)
  if (!isInPod) return { folder: undefined, why: 'dns.dataDir is not set' }
  try {
    await mkdir(podFolder, { recursive: true })
    await access(podFolder, constants.W_OK)
    return { folder: podFolder }
  } catch (error) {
    return { folder: undefined, why: `${podFolder} is not writable: ${messageOf(error)}` }
  }
}
