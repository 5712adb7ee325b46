/**
 * What the garbage collector of a controller manager does, for an API server beside which none runs: an object whose
 * owners are all gone is deleted.
 */
import { type Client, Ingress, NotFound } from '@seamark/kube'
import type { Kind, Obj } from '@seamark/kube/object'

const PERIOD_MS = 500

interface Definition extends Obj {
  readonly spec: {
    readonly group: string
    readonly scope: string
    readonly names: { readonly kind: string; readonly plural: string }
    readonly versions: readonly { readonly name: string; readonly served: boolean; readonly storage: boolean }[]
  }
}

/** Looks at the kinds of these CustomResourceDefinitions, whose owners are of the same kinds or Ingresses. */
export async function collectGarbage(client: Client, definitions: readonly Obj[], signal: AbortSignal): Promise<void> {
  const kinds = definitions.map((definition) => kindOf(definition as Definition))
  while (!signal.aborted) {
    // A server that is busy or gone is asked again.
    await collectOnce(client, kinds, signal).catch(() => undefined)
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, PERIOD_MS)
      signal.addEventListener('abort', () => (clearTimeout(timer), resolve()), { once: true })
    })
  }
}

async function collectOnce(client: Client, kinds: readonly Kind<Obj>[], signal: AbortSignal): Promise<void> {
  // Dependents before owners: an object of the first list cannot have an owner that is newer than the second.
  const dependents = await listAll(client, kinds, signal)
  const owners = await listAll(client, [...kinds, Ingress], signal)
  const uids = new Set(owners.map(({ object }) => object.metadata.uid))
  for (const { kind, object } of dependents) {
    const { ownerReferences = [], deletionTimestamp, namespace, name, uid } = object.metadata
    if (deletionTimestamp !== undefined || ownerReferences.length === 0) continue
    // Owners of other kinds are not looked for.
    const isKnown = ownerReferences.every(({ kind: owner }) => [...kinds, Ingress].some((each) => each.kind === owner))
    if (!isKnown || ownerReferences.some((owner) => uids.has(owner.uid))) continue
    const key = namespace === undefined ? (name ?? '') : `${namespace}/${name ?? ''}`
    await client
      .delete(kind, key, { precondition: { ...(uid !== undefined && { uid }) }, signal })
      .catch((error: unknown) => {
        if (!(error instanceof NotFound)) throw error
      })
  }
}

async function listAll(client: Client, kinds: readonly Kind<Obj>[], signal: AbortSignal) {
  const lists = await Promise.all(
    kinds.map(async (kind) => {
      const { items } = await client.list(kind, { signal })
      return items.map((object) => ({ kind, object }))
    }),
  )
  return lists.flat()
}

function kindOf({ spec }: Definition): Kind<Obj> {
  const version = spec.versions.find(({ storage }) => storage) ?? spec.versions[0]
  return {
    group: spec.group,
    version: version?.name ?? 'v1',
    kind: spec.names.kind,
    plural: spec.names.plural,
    namespaced: spec.scope === 'Namespaced',
  }
}
