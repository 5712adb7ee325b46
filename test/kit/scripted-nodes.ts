/** Nodes as a scripted API server sends them, also malformed ones, and the requests for them. */

interface Exchange {
  readonly url: URL
}

/** A watch whose first events are the list. */
export const isStream = ({ url }: Exchange): boolean => url.searchParams.get('sendInitialEvents') === 'true'
export const isWatch = ({ url }: Exchange): boolean => url.searchParams.get('watch') === 'true'

/** The BOOKMARK after the initial events. */
export const END = { metadata: { resourceVersion: '9', annotations: { 'k8s.io/initial-events-end': 'true' } } }

/** A Ready node. */
export function node(name: string, addresses: unknown, version = 2): object {
  const conditions = [{ type: 'Ready', status: 'True' }]
  return { metadata: { name, uid: `uid-${name}`, resourceVersion: String(version) }, status: { addresses, conditions } }
}

/** Adds as many nodes to a stream as it is given. */
export function streamNodes(
  exchange: { start(): void; frame(type: string, object: object): void },
  count: number,
): void {
  exchange.start()
  let sent = 0
  const more = (): void => {
    for (let index = 0; index < 500; index++)
      exchange.frame('ADDED', node(`n${sent++}`, [externalAddress('192.0.2.66')]))
    if (sent < count) setImmediate(more)
  }
  more()
}

export const externalAddress = (address: string): object => ({ type: 'ExternalIP', address })
