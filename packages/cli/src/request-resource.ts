/** Which resource and right a request to an API server is about, from its method and path (`GET /apis/G/V/namespaces/NS/R`). */
import type { Forbidden } from '@seamark/kube'

export interface Resource {
  readonly group: string
  readonly plural: string
  readonly namespace: string | undefined
  readonly name: string | undefined
  readonly subresource: string | undefined
}

const PATH =
  /^(?<method>[A-Z]+) (?:\/clusters\/[^/]+)?\/(?:api\/v1|apis\/(?<group>[^/]+)\/[^/]+)\/(?:namespaces\/(?<namespace>[^/]+)\/(?=[^/]))?(?<plural>[^/?]+)(?:\/(?<name>[^/?]+))?(?:\/(?<subresource>[^/?]+))?/

export function resourceOf(request: string): Resource | undefined {
  const groups = PATH.exec(request)?.groups
  if (groups === undefined) return undefined
  const { group = '', plural = '', namespace, name, subresource } = groups
  return { group, plural, namespace, name, subresource }
}

/** `globalingresses.seamark.io`, as kubectl names a resource. */
export function whatOf({ group, plural }: Pick<Resource, 'group' | 'plural'>): string {
  return group === '' ? plural : `${plural}.${group}`
}

export interface Right {
  readonly user: string
  readonly verb: string
  /** As kubectl names it. */
  readonly resource: string
  /** `in namespace web`, or `in the cluster`. */
  readonly place: string
  readonly isNamespaced: boolean
  /** A rule of a Role that grants it. */
  readonly rule: {
    readonly apiGroups: readonly string[]
    readonly resources: readonly string[]
    readonly verbs: readonly string[]
  }
}

/** What the authorizer of Kubernetes writes; admission plug-ins refuse with texts of their own. */
const REFUSAL =
  /(?<user>User "[^"]*") cannot (?<verb>\S+) resource "(?<resource>[^"]+)" in API group "(?<group>[^"]*)"(?: in the namespace "(?<namespace>[^"]+)")?/

/** Undefined when the request was refused for another reason than a right that is missing. */
export function rightOf({ status }: Pick<Forbidden, 'status'>): Right | undefined {
  const groups = REFUSAL.exec(status.message ?? '')?.groups
  if (groups === undefined) return undefined
  const { user = '', verb = '', resource = '', group = '', namespace } = groups
  const isNamespaced = namespace !== undefined
  return {
    user: user.replace(/^U/, 'u'),
    verb,
    resource: whatOf({ group, plural: resource }),
    place: isNamespaced ? `in namespace ${namespace}` : 'in the cluster',
    isNamespaced,
    rule: { apiGroups: [group], resources: [resource], verbs: [verb] },
  }
}
