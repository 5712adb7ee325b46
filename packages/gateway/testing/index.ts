/** For tests and benches of the gateway. Not a public surface. */
import { keyOf, type Immutable, type Key, type Kind, type Obj } from '@seamark/kube/object'
import type { Objects } from '../src/draft/input.ts'

/** A view over plain objects; each needs `kind`. */
export function objectsOf(all: readonly Obj[]): Objects {
  const byKind = new Map<string, Map<Key, Obj>>()
  for (const object of all) {
    const kind = object.kind ?? ''
    const group = byKind.get(kind) ?? new Map<Key, Obj>()
    byKind.set(kind, group.set(keyOf(object), object))
  }
  return {
    get: <T extends Obj>(kind: Kind<T>, key: Key) => byKind.get(kind.kind)?.get(key) as Immutable<T> | undefined,
    list: <T extends Obj>(kind: Kind<T>) => [...(byKind.get(kind.kind)?.values() ?? [])] as unknown as Immutable<T>[],
  }
}

const DEFAULT_TIME = '2026-01-01T00:00:00Z'

/** An object of `kind` with `namespace/name`. */
export function object(kind: string, key: string, fields: object = {}, meta: object = {}): Obj {
  const [namespace = '', name = ''] = key.includes('/') ? key.split('/') : ['', key]
  const metadata = {
    ...(namespace !== '' && { namespace }),
    name,
    creationTimestamp: DEFAULT_TIME,
    generation: 1,
    ...meta,
  }
  return { kind, metadata, ...fields }
}

export function service(key: string, ports: readonly number[] = [80], spec: object = {}, meta: object = {}): Obj {
  const list = ports.map((port) => ({ name: `p${port}`, port, protocol: 'TCP' }))
  return object('Service', key, { spec: { ports: list, ...spec } }, meta)
}

export function httpProxy(key: string, spec: object, meta: object = {}): Obj {
  return object('HTTPProxy', key, { spec }, meta)
}

/** A root HTTPProxy with one route to Service `web` of its namespace. */
export function rootProxy(key: string, fqdn: string, spec: object = {}): Obj {
  return httpProxy(key, { virtualhost: { fqdn }, routes: [{ services: [{ name: 'web', port: 80 }] }], ...spec })
}

export { isAlive } from '../src/envoy/process.ts'
export { AdsClient, type AdsClientOptions, type Received } from './ads-client.ts'
