/** The definition of a namespaced kind with one version, `v1`, for tests of servers and clients. */

interface NewKind {
  readonly group: string
  readonly plural: string
  readonly singular: string
  readonly kind: string
}

export function customResource(
  { group, plural, singular, kind }: NewKind,
  openAPIV3Schema: object = { type: 'object' },
) {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { plural, singular, kind },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }],
    },
  } as const
}

/** A kind without fields of its own. */
export const BOAT: NewKind = { group: 'harbour.test', plural: 'boats', singular: 'boat', kind: 'Boat' }
