/** The word of each cluster's state, as the page shows it. */
import { request } from 'node:http'
import type { World } from './world/world.ts'

/** Of `GET /api/v1/state`. */
interface State {
  readonly clusters: readonly { readonly name: string; readonly state: string }[]
}

export async function readClusterStates({ page }: Pick<World, 'page'>): Promise<ReadonlyMap<string, string>> {
  const { clusters } = JSON.parse(await getText(new URL('api/v1/state', page))) as State
  return new Map(clusters.map(({ name, state }) => [name, state]))
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
