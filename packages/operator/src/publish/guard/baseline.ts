/**
 * The configuration that published last, stored in a ConfigMap of the manager's namespace, so that a restart with another
 * Service, class, prefix or annotation prefix is recognised as a possible mistake that would retarget all records.
 *
 * While it differs, retargets pass the mass guard; once every source was decided and nothing is held it is replaced.
 * The annotation `seamark.io/release` on the ConfigMap is the deprecated form of an approval: of what is held when it is
 * set; each value counts once.
 */
import { type Client, ConfigMap, Forbidden, NotFound } from '@seamark/kube'
import { PUBLISH_STATE_FIELD_MANAGER } from '../../process/field-manager.ts'
import type { PublishOptions } from '../options.ts'

export const STATE_NAME = 'seamark-publish'
const RELEASE_ANNOTATION = 'seamark.io/release'

/** The options that determine targets and the selection of sources. */
export function fingerprint(options: PublishOptions): string {
  const { services, ingressClassName, namePrefix, annotationPrefix, hostnameTargets } = options
  const sorted = services.map(({ service, className = '' }) => `${className}=${service}`).toSorted()
  return JSON.stringify({ services: sorted, ingressClassName, namePrefix, annotationPrefix, hostnameTargets })
}

export interface BaselineState {
  /** Undefined: nothing was published with a known configuration. */
  readonly fingerprint: string | undefined
  /** The last processed value of the release annotation. */
  readonly released: string
  /** Its current value. */
  readonly release: string
}

export async function readBaseline(client: Client, namespace: string, signal: AbortSignal): Promise<BaselineState> {
  const found = await client.find(ConfigMap, `${namespace}/${STATE_NAME}`, { signal }).catch((error: unknown) => {
    // Without permission to read it, nothing is known and the guard stays on.
    if (error instanceof Forbidden || error instanceof NotFound) return undefined
    throw error
  })
  return {
    fingerprint: found?.data?.['fingerprint'],
    released: found?.data?.['released'] ?? '',
    release: found?.metadata.annotations?.[RELEASE_ANNOTATION] ?? '',
  }
}

export async function writeBaseline(
  client: Client,
  namespace: string,
  state: { fingerprint: string; released: string },
  signal: AbortSignal,
): Promise<void> {
  await client.apply(
    ConfigMap,
    { metadata: { namespace, name: STATE_NAME }, data: { ...state } },
    { fieldManager: PUBLISH_STATE_FIELD_MANAGER, signal },
  )
}
