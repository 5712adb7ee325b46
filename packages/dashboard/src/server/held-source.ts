/** What guards hold, from where the manager stores it: read after this process stored something, and every few seconds. */
import type { AppOptions, PageSource } from '@seamark/operator'
import { isObjectScope, joinStores, openObjectStore, openRecordsStores } from '@seamark/operator'
import { type Client, sleep, systemClock } from '@seamark/kube'
import type { HeldItem } from '../view/needs.ts'
import type { OtherZone, Overview } from '../view/overview.ts'
import { textOf } from '../view/own-zones.ts'

/** Another replica may have stored it. */
const POLL_MS = 5_000
const UNSEEN_POLL_MS = 30_000
/** Several scopes are stored one after the other. */
const SETTLE_MS = 50

interface Deps {
  readonly source: Pick<PageSource, 'manager'>
  readonly options: AppOptions
  readonly onHeldChange: PageSource['onHeldChange']
  readonly isSeen: () => boolean
}

/** Rejects when the API server does not answer, or a state cannot be read. */
export async function readHeld(
  client: Client,
  namespace: string,
  stateFolder: string | undefined,
): Promise<{ readonly held: readonly HeldItem[]; readonly zones: readonly OtherZone[] }> {
  const objects = openObjectStore(client, namespace)
  const guard = stateFolder === undefined ? undefined : openRecordsStores(client, namespace, stateFolder).store
  const held: HeldItem[] = []
  const zones: OtherZone[] = []
  for (const [scope, state] of await joinStores(guard, objects, isObjectScope).list()) {
    const decided = 'decided' in state ? (state.decided as { zone: string; provider: string } | undefined) : undefined
    const shownScope = decided === undefined ? scope : textOf(decided.zone)
    held.push(...state.held.map((change) => ({ scope: shownScope, change })))
    const records = 'ownedNames' in state ? Number(state.ownedNames) : 0
    if (decided !== undefined) zones.push({ name: textOf(decided.zone), provider: decided.provider, records })
  }
  return { held, zones }
}

export async function followHeld(deps: Deps, overview: Overview, signal: AbortSignal): Promise<void> {
  const { client } = deps.source.manager
  const { namespace, records } = deps.options
  let wake: () => void = () => undefined
  deps.onHeldChange(() => wake())
  while (!signal.aborted) {
    const woken = new Promise<void>((resolve) => (wake = resolve))
    try {
      const { held, zones } = await readHeld(client, namespace, records?.config.stateFolder)
      overview.setHeld(held, zones)
    } catch {
      // The API server does not answer: what was held is still held, as far as is known.
    }
    await Promise.race([woken, sleep(systemClock, deps.isSeen() ? POLL_MS : UNSEEN_POLL_MS, signal)])
    await sleep(systemClock, SETTLE_MS, signal)
  }
}
