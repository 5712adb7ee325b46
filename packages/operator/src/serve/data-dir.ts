/**
 * The folder in which zones outlive a process, so that one that starts while the API server is away answers from them: the
 * configured one, else that of a Pod, which exists where the image or a volume provides it.
 */
import { access, constants, mkdir } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { messageOf } from '@seamark/kube'

const POD_DATA_DIR = '/var/lib/seamark/dns'
const TOKEN_FILE = '/var/run/secrets/kubernetes.io/serviceaccount/token'

export type ZoneFolder = { readonly folder: string } | { readonly folder: undefined; readonly why: string }

export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>
  /** '': none is configured. */
  readonly configured: string
  /** Name of the setting or flag. */
  readonly setting: string
  /** @default as in every Pod */
  readonly tokenFile?: string
  readonly podFolder?: string
}

/** The configured folder, in a Pod else `podFolder`, where it is writable. */
export async function findZoneFolder({
  env,
  configured,
  setting,
  tokenFile = TOKEN_FILE,
  podFolder = POD_DATA_DIR,
}: Surroundings): Promise<ZoneFolder> {
  const isInPod = (env['KUBERNETES_SERVICE_HOST'] ?? '') !== '' && existsSync(tokenFile)
  const folder = configured !== '' ? configured : isInPod ? podFolder : undefined
  if (folder === undefined) return { folder, why: `${setting} is not set` }
  try {
    await mkdir(folder, { recursive: true })
    await access(folder, constants.W_OK)
    return { folder }
  } catch (error) {
    return { folder: undefined, why: `${folder} is not writable: ${messageOf(error)}` }
  }
}
