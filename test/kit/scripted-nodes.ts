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

export const externalAddress = (address: string): object => ({ type: 'ExternalIP', address })
