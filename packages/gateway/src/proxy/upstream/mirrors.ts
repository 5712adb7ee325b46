/** Copies of a request for the mirrors of its route, whose answers are ignored. */
import { rewritePath } from '../request/rewrite.ts'
import type { Exchange } from '../request/exchange.ts'
import type { HeaderMap } from '../request/header-variables.ts'
import type { Route } from '../../ir/model.ts'
import { admit } from './admission.ts'
import { isStreamed, type UpstreamBody } from './body.ts'
import type { ForwardAction, ForwardDeps } from './forward.ts'
import type { ReplayShare } from './replay-budget.ts'

/** Of a route without a timeout. */
const MIRROR_TIMEOUT_MS = 15_000

export function sendCopies(
  { clusters, upstreams, random, clock }: ForwardDeps,
  { exchange, route, action }: { exchange: Exchange; route: Route; action: ForwardAction },
  headers: HeaderMap,
  body: UpstreamBody | undefined,
  share: ReplayShare | undefined,
): void {
  const { facts } = exchange
  for (const { cluster, percent } of action.mirrors) {
    if (random() * 100 >= percent || isStreamed(body)) continue
    const state = clusters.get(cluster)
    const endpoint = state === undefined ? undefined : clusters.pick(state)
    if (state === undefined || endpoint === undefined) continue
    const admitted = admit(state, endpoint, exchange.headerBytes)
    // Nobody waits for a copy.
    if (admitted === 'overflow') continue
    const path = `${rewritePath(action.rewrite, route.match.path, facts.path)}${facts.search}`
    const copy = { ...headers, host: shadowHost(String(headers['host'])) }
    share?.hold()
    let isOver = false
    const end = () => {
      if (isOver) return
      isOver = true
      cancelTimeout()
      share?.release()
      admitted.release()
    }
    const call = upstreams.send(
      state.cluster,
      endpoint,
      { method: facts.method, path, headers: copy, body },
      {
        onResponse: ({ body: ignored }) =>
          void ignored
            .on('error', () => undefined)
            .on('close', end)
            .resume(),
        onError: end,
      },
    )
    const cancelTimeout = clock.after(action.timeoutMs || MIRROR_TIMEOUT_MS, () => {
      call.cancel()
      end()
    })
  }
}

function shadowHost(authority: string): string {
  const colon = authority.lastIndexOf(':')
  return colon > 0 ? `${authority.slice(0, colon)}-shadow${authority.slice(colon)}` : `${authority}-shadow`
}
