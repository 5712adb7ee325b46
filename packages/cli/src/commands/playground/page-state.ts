/** What the page shows of the world. */
import { request } from 'node:http'
import { poll, systemClock } from '@seamark/kube'
import type { World } from './world/world.ts'

/** Of `GET /api/v1/state`. */
interface State {
  readonly clusters: readonly { readonly name: string; readonly state: string }[]
  readonly hosts: readonly { readonly state: string }[]
}

const POLL_MS = 100
const FINE_WITHIN_MS = 10_000

/** The word of each cluster's state. */
export async function readClusterStates(world: Pick<World, 'page'>): Promise<ReadonlyMap<string, string>> {
  const { clusters } = await readState(world)
  return new Map(clusters.map(({ name, state }) => [name, state]))
}

/** What a tour did is over for everybody who looks; a machine that is very busy is not waited for. */
export async function untilAllIsFine(world: Pick<World, 'page'>, signal: AbortSignal): Promise<void> {
  const check = async () => {
    const { clusters, hosts } = await readState(world)
    const isFine = clusters.every(({ state }) => state === 'Serving')
    return isFine && hosts.every(({ state }) => state === 'as it should be') ? true : undefined
  }
  await poll(check, { clock: systemClock, intervalMs: POLL_MS, timeoutMs: FINE_WITHIN_MS, signal })
}

async function readState({ page }: Pick<World, 'page'>): Promise<State> {
  return JSON.parse(await getText(new URL('api/v1/state', page))) as State
}

async function getText(url: URL): Promise<string> {
  return new Promise((resolve, reject) => {
    request(url, { agent: false }, (response) => {
      let text = ''
      response.on('data', (part: Buffer) => (text += part.toString()))
      response.on('error', reject)
      response.on('end', () =>
        response.statusCode === 200 ? resolve(text) : reject(new Error(`the page answered ${response.statusCode}`)),
      )
    })
      .on('error', reject)
      .end()
  })
}
