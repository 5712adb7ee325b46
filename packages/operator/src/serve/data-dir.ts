/**
 * The folder of the local copies of zones that are stored in ConfigMaps, so that a process that starts while the API server is
 * away answers from them: `dns.copyDir`, else that of a Pod, which exists where the image or a volume provides it.
 */
import { access, constants, mkdir } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { messageOf } from '@seamark/kube'

const POD_DATA_DIR = '/var/lib/seamark/dns'
const TOKEN_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/token'

export type CopyFolder = { readonly folder: string } | { readonly folder: undefined; readonly why: string }

export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>
  /** '': none is configured. @default '' */
  readonly copyDir?: string
  /** @default as in every Pod */
  readonly tokenFile?: string
  readonly podFolder?: string
}

/** The configured folder, in a Pod else `podFolder`, where it is writable. */
export async function findCopyFolder({
  env,
  copyDir = '',
  tokenFile = TOKEN_FILE,
  podFolder = POD_DATA_DIR,
}: Surroundings): Promise<CopyFolder> {
  const isInPod = (env['KUBERNETES_SERVICE_HOST'] ?? '') !== '' && existsSync(tokenFile)
  const folder = copyDir !== '' ? copyDir : isInPod ? podFolder : undefined
  if (folder === undefined) return { folder, why: 'dns.copyDir is not set' }
  try {
    await mkdir(folder, { recursive: true })
    await access(folder, constants.W_OK)
    return { folder }
  } catch (error) {
    return { folder: undefined, why: `${folder} is not writable: ${messageOf(error)}` }
  }
}
