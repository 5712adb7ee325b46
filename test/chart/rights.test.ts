/**
 * Least privilege, proven: each part of a capability runs on a kube-apiserver under the roles that the chart renders for it, through
 * its life: start, steady, change, pause, take-over, deletion. Nothing is denied, and what the audit log has of its account is
 * what the table of rights grants, in both directions.
 */
import { needs } from '@seamark/kit'
import { Namespace } from '@seamark/kube'
import { kind } from '@seamark/kube/object'
import {
  MANAGER_PARTS,
  MEMBER_ROLE,
  MEMBER_TLS_ROLE,
  type Right,
  resourceNameOf,
  rulesOf,
  WILDCARD_ROLE,
} from '@seamark/operator'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { accountOf, AuditedPlane, type Use } from './audited-plane.ts'
import { allCrds, hasEveryKind } from './lives/crds.ts'
import { live } from './lives/live.ts'
import { lives } from './lives/lives.ts'
import { INGRESS_ROUTES } from './lives/publish.ts'
import { MEMBER_NAMESPACE, memberCluster } from './lives/member.ts'
import { buildBundle, ServiceAccount } from './manager.ts'

const isMissing = !needs('kube-apiserver', 'etcd', 'helm') || !hasEveryKind
const LIFE_MS = 240_000

/** As the audit log must have them. Owner references are no requests: the API server asks for those rights itself. */
function grantsOf(rights: readonly Right[]): Use[] {
  return rights
    .filter(({ isAskedByServer = false, isRare = false }) => !isAskedByServer && !isRare)
    .flatMap(({ verbs, place, ...right }) =>
      verbs.map((verb) => `${verb} ${resourceNameOf(right)}${place === 'home' ? ' at home' : ''}`),
    )
}

/** A right for the whole cluster is used in any namespace. */
const isUsed = (uses: ReadonlySet<Use>) => (grant: Use) => uses.has(grant) || uses.has(`${grant} at home`)

describe.skipIf(isMissing)('under the rendered roles, with the upstream CRDs of ../shared/crds', () => {
  let plane: AuditedPlane
  let member: AuditedPlane

  beforeAll(async () => {
    if (isMissing) return
    buildBundle()
    ;[plane, member] = await Promise.all([
      AuditedPlane.start(allCrds({ without: INGRESS_ROUTES })),
      AuditedPlane.start(allCrds()),
    ])
    await grantMember(member)
  }, LIFE_MS)
  afterAll(async () => {
    await plane?.[Symbol.asyncDispose]()
    await member?.[Symbol.asyncDispose]()
  })

  const home = (part: string): string => `m-${part.toLowerCase().replaceAll('.', '-')}`

  it(
    'every part does what it should, is denied nothing, and uses every right that it has',
    async () => {
      const unused: string[] = []
      const denied: string[] = []
      const failed: string[] = []
      const ofManager = new Set<Use>()
      const lived = new Set<string>(['manager'])
      for (const life of lives(memberCluster(member))) {
        const [part] = life.parts
        for (const each of life.parts) lived.add(each)
        await live(plane, life, home(part)).catch((error: unknown) => failed.push(String(error)))
        const account = accountOf(home(part), 'seamark')
        const uses = plane.uses(account)
        for (const use of uses) ofManager.add(use)
        denied.push(...plane.denied(account))
        const granted = life.parts.flatMap((name): readonly Right[] => MANAGER_PARTS[name].rights)
        unused.push(
          ...grantsOf(granted)
            .filter((grant) => !isUsed(uses)(grant))
            .map((grant) => `${part}: ${grant}`),
        )
      }
      unused.push(
        ...grantsOf(MANAGER_PARTS.manager.rights)
          .filter((grant) => !isUsed(ofManager)(grant))
          .map((grant) => `manager: ${grant}`),
      )
      const ofMember = member.uses(accountOf(MEMBER_NAMESPACE, 'seamark-fleet'))
      unused.push(
        ...grantsOf([...MEMBER_ROLE, ...MEMBER_TLS_ROLE.map((right) => ({ ...right, place: 'cluster' as const }))])
          .filter((grant) => !isUsed(ofMember)(grant))
          .map((grant) => `member: ${grant}`),
      )
      const ofWildcard = member.uses(accountOf(MEMBER_NAMESPACE, 'seamark-wildcard'))
      unused.push(
        ...grantsOf(WILDCARD_ROLE)
          .filter((grant) => !isUsed(ofWildcard)(grant))
          .map((grant) => `wildcard member: ${grant}`),
      )
      for (const name of ['seamark-fleet', 'seamark-wildcard'])
        denied.push(...member.denied(accountOf(MEMBER_NAMESPACE, name)))
      expect(Object.keys(MANAGER_PARTS).filter((part) => !lived.has(part))).toEqual([])
      expect({ failed, denied, unused }).toEqual({ failed: [], denied: [], unused: [] })
    },
    LIFE_MS * 3,
  )
})

const rbac = { group: 'rbac.authorization.k8s.io', version: 'v1', namespaced: false } as const
const ClusterRole = kind({ ...rbac, kind: 'ClusterRole', plural: 'clusterroles' })
const ClusterRoleBinding = kind({ ...rbac, kind: 'ClusterRoleBinding', plural: 'clusterrolebindings' })

/** What `seamark cluster add` creates. */
async function grantMember({ client }: AuditedPlane): Promise<void> {
  await client.create(Namespace, { metadata: { name: MEMBER_NAMESPACE } })
  const roles: Record<string, readonly Right[]> = {
    'seamark-fleet': [...MEMBER_ROLE, ...MEMBER_TLS_ROLE.map((right) => ({ ...right, place: 'cluster' as const }))],
    'seamark-wildcard': WILDCARD_ROLE,
  }
  for (const [name, rights] of Object.entries(roles)) {
    await client.create(ServiceAccount, { metadata: { namespace: MEMBER_NAMESPACE, name } })
    await client.create(ClusterRole, { metadata: { name }, rules: rulesOf(rights, 'cluster') } as never)
    await client.create(ClusterRoleBinding, {
      metadata: { name },
      roleRef: { apiGroup: rbac.group, kind: 'ClusterRole', name },
      subjects: [{ kind: 'ServiceAccount', namespace: MEMBER_NAMESPACE, name }],
    } as never)
  }
}
